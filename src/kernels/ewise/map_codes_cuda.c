/* The compiled programs of this process: each is compiled once for a kind of GPU, and loaded once on every
 * device. */
#include "base/config.h"
#include "kernels/cuda/launch.h"
#include "kernels/ewise/map_args.h"
#include "kernels/ewise/map_code.h"
#include "kernels/ewise/map_compiled.h"
#include "kernels/ewise/map_source.h"
#include "kernels/ewise/nvrtc.h"
#include "kernels/ewise/tile_args.h"
#include "kernels/reduce/reduce_compiled.h"
#include "kernels/reduce/reduce_source.h"
#include <dmath/dmath.h>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DEVICES = 64,
    MOST_PROGRAMS = 4096, /* those that come later are interpreted */
    BUCKETS = 1024,
    AUTO_BYTES = 16 << 20, /* auto: a program is compiled when one call moves so much, */
    AUTO_USES = 32         /* or in its so manieth call, or by a graph that was launched so often */
};

enum { NOT_LOADED, LOADED, FAILED };

/* What is compiled: a program as it is, or in tiles, or its reduction by a row. */
enum { PLAIN = -1, TILES = -2 };
typedef struct wanted {
    int row;
    const dmi_map *d;
} wanted;

enum { MOST_KERNELS = 4 };
static const char *const map_names[MOST_KERNELS] = {DMI_MAP_KERNEL_GROUPS, DMI_MAP_KERNEL_ITEMS};
static const char *const tile_names[MOST_KERNELS] = {DMI_MAP_KERNEL_TILES_OF_GROUPS,
                                                     DMI_MAP_KERNEL_TILES_OF_ITEMS};
static const char *const reduce_names[MOST_KERNELS] = {
#define X(name) "dmath_" #name,
    DMI_REDUCE_KERNELS(X)
#undef X
};

typedef struct program {
    struct program *next;
    int uses, capability, row;
    bool looked, failed; /* on disk; for ever */
    void *code;
    size_t code_bytes;
    unsigned char state[MOST_DEVICES];
    CUfunction kernel[MOST_DEVICES][MOST_KERNELS];
    dm_dtype dtype[DMI_MAP_SIDES];
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
    snprintf(made_by, sizeof made_by, "sm_%d, NVRTC %d.%d, dmath %s, arguments of %zu, %zu and %zu bytes",
             capability, major, minor, dm_version(), sizeof(dmi_map_args), sizeof(dmi_tile_args),
             sizeof(dmi_reduce_args));
    return dmi_code_key_of(source, made_by);
}

/* Code from disk, or made now if `compile`. */
static void make_code(program *p, const dmi_queue *q, const wanted *w, bool compile)
{
    static bool told;
    char folder[1024];
    char *source = w->row == PLAIN   ? dmi_map_source(w->d)
                   : w->row == TILES ? dmi_map_tile_source(w->d)
                                     : dmi_reduce_source(w->row, w->d);
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
        dmi_log(DMI_LOG_DEBUG, "%s of %d steps %s in %.0f ms",
                w->row < 0 ? "an elementwise program" : "the reduction of a program", w->d->program.steps, p->code ? "was compiled" : "could not be compiled", (double)(dmi_now_ns() - begin) * 1e-6);
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
    const char *const *names = p->row == PLAIN ? map_names : p->row == TILES ? tile_names : reduce_names;
    bool exchanged = cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess;
    CUresult code = driver.load(&module, p->code);
    for (int k = 0; k < MOST_KERNELS && names[k] && code == CUDA_SUCCESS; k++) {
        code = driver.function(&p->kernel[device][k], module, names[k]);
    }
    if (exchanged) {
        (void)cudaThreadExchangeStreamCaptureMode(&mode);
    }
    (void)cudaGetLastError(); /* reported here; clear it, so that no later call finds it */
    p->state[device] = code == CUDA_SUCCESS ? LOADED : FAILED;
    if (code != CUDA_SUCCESS) {
        dmi_log(DMI_LOG_INFO,
                "a compiled elementwise program cannot be loaded on GPU %d and is interpreted: error %d",
                device, (int)code);
    }
}

static unsigned hash_of(const wanted *w, int capability)
{
    const dmi_map *d = w->d;
    const unsigned char *at = (const unsigned char *)&d->program;
    uint64_t h = (uint64_t)capability + (uint64_t)(w->row - TILES) * 1000;
    for (size_t i = 0; i < dmi_map_program_bytes(&d->program); i++) {
        h = (h ^ at[i]) * UINT64_C(0x100000001b3);
    }
    for (int s = 0; s < dmi_map_sides(&d->program); s++) {
        h = (h ^ (uint64_t)d->dtype[s]) * UINT64_C(0x100000001b3);
    }
    return (unsigned)((h ^ h >> 32) % BUCKETS);
}

static program *find(const wanted *w, int capability)
{
    const dmi_map *d = w->d;
    program **list = &bucket[hash_of(w, capability)];
    size_t types = (size_t)dmi_map_sides(&d->program) * sizeof d->dtype[0];
    for (program *p = *list; p; p = p->next) {
        if (p->capability == capability && p->row == w->row && p->program.steps == d->program.steps &&
            memcmp(&p->program, &d->program, dmi_map_program_bytes(&d->program)) == 0 &&
            memcmp(p->dtype, d->dtype, types) == 0) {
            return p;
        }
    }
    program *p = programs < MOST_PROGRAMS ? calloc(1, sizeof *p) : NULL;
    if (p) {
        p->capability = capability;
        p->row = w->row;
        p->failed = !dmi_map_has_source(d);
        memcpy(&p->program, &d->program, dmi_map_program_bytes(&d->program));
        memcpy(p->dtype, d->dtype, types);
        p->next = *list;
        *list = p;
        programs++;
    }
    return p;
}

/* out: [MOST_KERNELS] */
static bool kernels_of(dmi_queue *q, const wanted *w, int64_t bytes, void **out)
{
    int major, minor, device = q->device;
    const bool settled = q->compile == DMI_COMPILE_LOADED;
    if (q->compile == DMI_COMPILE_NEVER || device >= MOST_DEVICES || !dmi_nvrtc_version(&major, &minor)) {
        return false;
    }
    pthread_mutex_lock(&lock);
    program *p = driver_found() ? find(w, q->capability) : NULL;
    if (p && !p->failed && !p->code && !settled) {
        p->uses += p->uses < AUTO_USES;
        bool compile =
            q->compile == DMI_COMPILE_ALWAYS || q->repeats || bytes >= AUTO_BYTES || p->uses == AUTO_USES;
        if (compile || !p->looked) {
            make_code(p, q, w, compile);
        }
    }
    if (p && p->code && p->state[device] == NOT_LOADED && !settled) {
        load(p, device);
    }
    bool there = p && p->state[device] == LOADED;
    for (int k = 0; k < MOST_KERNELS && there; k++) {
        out[k] = p->kernel[device][k];
    }
    pthread_mutex_unlock(&lock);
    return there;
}

bool dmi_cuda_map_kernels(dmi_queue *q, const dmi_map *d, bool tiles, int64_t bytes, dmi_map_kernels *out)
{
    void *kernel[MOST_KERNELS];
    bool there = kernels_of(q, &(wanted){tiles ? TILES : PLAIN, d}, bytes, kernel);
    if (there) {
        *out = (dmi_map_kernels){kernel[0], kernel[1]};
    }
    return there;
}

bool dmi_cuda_reduce_kernels(dmi_queue *q, int row, const dmi_map *d, int64_t bytes, void *out[4])
{
    return kernels_of(q, &(wanted){row, d}, bytes, out);
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

bool dmi_cuda_compiles(void)
{
    int major, minor;
    return dmi_nvrtc_version(&major, &minor);
}
