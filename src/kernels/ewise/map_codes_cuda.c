/* The compiled programs of this process: each is compiled once for a kind of GPU, and loaded once on every
 * device. */
#include "base/config.h"
#include "kernels/cuda/launch.h"
#include "kernels/ewise/map_args.h"
#include "kernels/ewise/map_code.h"
#include "kernels/ewise/map_compiled.h"
#include "kernels/ewise/map_source.h"
#include "kernels/ewise/nvrtc.h"
#include <dmath/dmath.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DEVICES = 64,
    MOST_PROGRAMS = 4096, /* those that come later are interpreted */
    BUCKETS = 1024,
    AUTO_BYTES = 16 << 20, /* auto: a program is compiled when one call moves so much, */
    AUTO_USES = 32         /* or in its so manieth call */
};

enum { NOT_LOADED, LOADED, FAILED };

typedef struct program {
    struct program *next;
    int uses, capability;
    bool looked, failed; /* on disk; for ever */
    void *code;
    size_t code_bytes;
    unsigned char state[MOST_DEVICES];
    dmi_map_kernels kernels[MOST_DEVICES];
    dm_dtype dtype[DMI_MAP_INPUTS + 1];
    dmi_map_program program;
} program;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static program *bucket[BUCKETS];
static int programs;

/* The driver's functions, for which nothing is linked. */
static struct {
    bool asked, found;
    CUresult (*load)(CUmodule *out, const void *code);
    CUresult (*function)(CUfunction *out, CUmodule module, const char *name);
    CUresult (*launch)(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                       unsigned bz, unsigned shared, CUstream stream, void **args, void **extra);
} driver;

static bool entry(const char *name, void *out)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    void *at = NULL;
    cudaError_t code = cudaGetDriverEntryPointByVersion(name, &at, 12000, cudaEnableDefault, &found);
    if (code != cudaSuccess) {
        (void)cudaGetLastError();
    }
    *(void **)out = at;
    return code == cudaSuccess && found == cudaDriverEntryPointSuccess && at;
}

static bool driver_found(void)
{
    if (!driver.asked) {
        driver.asked = true;
        driver.found = entry("cuModuleLoadData", &driver.load) &&
                       entry("cuModuleGetFunction", &driver.function) &&
                       entry("cuLaunchKernel", &driver.launch);
    }
    return driver.found;
}

/* The version of NVRTC is in it, and the library's, for its text is in the source but its launches are not. */
static dmi_code_key key_of(const char *source, int capability)
{
    char made_by[128];
    int major = 0, minor = 0;
    (void)dmi_nvrtc_version(&major, &minor);
    snprintf(made_by, sizeof made_by, "sm_%d, NVRTC %d.%d, dmath %s, arguments of %zu bytes", capability, major,
             minor, dm_version(), sizeof(dmi_map_args));
    return dmi_code_key_of(source, made_by);
}

/* Code from disk, or made now if `compile`. */
static void make_code(program *p, const dmi_queue *q, const dmi_map *d, bool compile)
{
    static bool told;
    char folder[1024];
    char *source = dmi_map_source(d);
    if (!source) {
        p->failed = true;
        return;
    }
    dmi_code_key key = key_of(source, p->capability);
    bool has_folder = dmi_code_folder(q->cache_dir ? q->cache_dir : "", folder, sizeof folder);
    if (has_folder && !p->looked) {
        p->code = dmi_code_read(folder, key, &p->code_bytes);
    }
    p->looked = true;
    if (!p->code && compile) {
        int64_t begin = dmi_now_ns();
        p->code = dmi_nvrtc_compile(source, p->capability, &p->code_bytes);
        p->failed = p->code == NULL;
        dmi_log(DMI_LOG_DEBUG, "an elementwise program of %d steps %s in %.0f ms", d->program.steps,
                p->code ? "was compiled" : "could not be compiled", (double)(dmi_now_ns() - begin) * 1e-6);
        if (p->code && (!has_folder || !dmi_code_write(folder, key, p->code, p->code_bytes)) && !told) {
            told = true;
            dmi_log(DMI_LOG_INFO, "compiled programs are not kept: %s cannot be written",
                    has_folder ? folder : "the folder for them");
        }
    }
    free(source);
}

/* It may be called while the stream is captured, and allocates: neither is to end the other. */
static void load(program *p, int device)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    CUmodule module = NULL;
    CUfunction groups = NULL, items = NULL;
    bool exchanged = cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
    CUresult code = driver.load(&module, p->code);
    code = code == CUDA_SUCCESS ? driver.function(&groups, module, DMI_MAP_KERNEL_GROUPS) : code;
    code = code == CUDA_SUCCESS ? driver.function(&items, module, DMI_MAP_KERNEL_ITEMS) : code;
    if (exchanged) {
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
    }
    (void)cudaGetLastError(); /* reported here; clear it, so that no later call finds it */
    p->state[device] = code == CUDA_SUCCESS ? LOADED : FAILED;
    p->kernels[device] = (dmi_map_kernels){groups, items};
    if (code != CUDA_SUCCESS) {
        dmi_log(DMI_LOG_INFO,
                "a compiled elementwise program cannot be loaded on GPU %d and is interpreted: error %d",
                device, (int)code);
    }
}

static unsigned hash_of(const dmi_map *d, int capability)
{
    const unsigned char *at = (const unsigned char *)&d->program;
    uint64_t h = (uint64_t)capability;
    for (size_t i = 0; i < dmi_map_program_bytes(&d->program); i++) {
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    }
    for (int s = 0; s <= d->program.inputs; s++) {
        h = (h ^ (uint64_t)d->dtype[s]) * UINT64_C(0x100000001b3);
    }
    return (unsigned)((h ^ h >> 32) % BUCKETS);
}

static program *find(const dmi_map *d, int capability)
{
    program **list = &bucket[hash_of(d, capability)];
    size_t types = ((size_t)d->program.inputs + 1) * sizeof d->dtype[0];
    for (program *p = *list; p; p = p->next) {
        if (p->capability == capability && p->program.steps == d->program.steps &&
            memcmp(&p->program, &d->program, dmi_map_program_bytes(&d->program)) == 0 &&
            memcmp(p->dtype, d->dtype, types) == 0) {
            return p;
        }
    }
    program *p = programs < MOST_PROGRAMS ? calloc(1, sizeof *p) : NULL;
    if (p) {
        p->capability = capability;
        p->failed = !dmi_map_has_source(d);
        memcpy(&p->program, &d->program, dmi_map_program_bytes(&d->program));
        memcpy(p->dtype, d->dtype, types);
        p->next = *list;
        *list = p;
        programs++;
    }
    return p;
}

static int capability_of(int device)
{
    static _Atomic int known[MOST_DEVICES];
    int major = 0, minor = 0, capability = atomic_load(&known[device]);
    if (capability == 0 &&
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess) {
        capability = major * 10 + minor;
        atomic_store(&known[device], capability);
    }
    return capability;
}

bool dmi_cuda_map_kernels(dmi_queue *q, const dmi_map *d, int64_t bytes, dmi_map_kernels *out)
{
    int major, minor, device = q->device;
    if (q->compile == DMI_COMPILE_NEVER || device >= MOST_DEVICES || !dmi_nvrtc_version(&major, &minor)) {
        return false;
    }
    int capability = capability_of(device);
    pthread_mutex_lock(&lock);
    program *p = capability > 0 && driver_found() ? find(d, capability) : NULL;
    if (p && !p->failed && !p->code) {
        p->uses += p->uses < AUTO_USES;
        bool compile = q->compile == DMI_COMPILE_ALWAYS || bytes >= AUTO_BYTES || p->uses == AUTO_USES;
        if (compile || !p->looked) {
            make_code(p, q, d, compile);
        }
    }
    if (p && p->code && p->state[device] == NOT_LOADED) {
        load(p, device);
    }
    bool there = p && p->state[device] == LOADED;
    if (there) {
        *out = p->kernels[device];
    }
    pthread_mutex_unlock(&lock);
    return there;
}

void dmi_cuda_map_launch(dmi_queue *q, void *kernel, unsigned blocks, void *args)
{
    void *all[] = {args};
    CUresult code = driver.launch(kernel, blocks, 1, 1, DMI_MAP_THREADS, 1, 1, 0, q->stream, all, NULL);
    if (code != CUDA_SUCCESS) { /* the runtime's errors have the driver's numbers */
        dmi_cuda_failed(q, "compiled elementwise program", (int)code, cudaGetErrorString((cudaError_t)code));
    }
}

const char *dmi_cuda_compiler(void)
{
    static _Thread_local char text[64];
    int major, minor;
    if (!dmi_nvrtc_version(&major, &minor)) {
        return "no: libnvrtc is not found";
    }
    snprintf(text, sizeof text, "NVRTC %d.%d", major, minor);
    return text;
}
