#include "kernels/ewise/nvrtc.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* As nvrtc.h has them; that header may be missing where this is built. */
typedef struct nvrtc_program *nvrtc_program;
static struct {
    bool found;
    int major, minor;
    const char *(*error_text)(int result);
    int (*version)(int *major, int *minor);
    int (*create)(nvrtc_program *out, const char *source, const char *name, int headers,
                  const char *const *text, const char *const *names);
    int (*destroy)(nvrtc_program *program);
    int (*compile)(nvrtc_program program, int count, const char *const *options);
    int (*code_bytes)(nvrtc_program program, size_t *out);
    int (*code)(nvrtc_program program, char *out);
    int (*log_bytes)(nvrtc_program program, size_t *out);
    int (*log)(nvrtc_program program, char *out);
} nvrtc;

static bool has_all(void *library)
{
    static const struct {
        const char *name;
        void *at;
    } function[] = {
        {"nvrtcGetErrorString", &nvrtc.error_text},
        {"nvrtcVersion", &nvrtc.version},
        {"nvrtcCreateProgram", &nvrtc.create},
        {"nvrtcDestroyProgram", &nvrtc.destroy},
        {"nvrtcCompileProgram", &nvrtc.compile},
        {"nvrtcGetCUBINSize", &nvrtc.code_bytes},
        {"nvrtcGetCUBIN", &nvrtc.code},
        {"nvrtcGetProgramLogSize", &nvrtc.log_bytes},
        {"nvrtcGetProgramLog", &nvrtc.log},
    };
    for (int i = 0; i < DMI_COUNT(function); i++) {
        void *address = dlsym(library, function[i].name);
        if (!address) {
            return false;
        }
        *(void **)function[i].at = address;
    }
    return nvrtc.version(&nvrtc.major, &nvrtc.minor) == 0;
}

/* The version of the toolkit that this was built with comes first: its functions have the bits of our other
 * kernels. */
static void find(void)
{
    static const char *const folder[] = {"", DMATH_CUDA_LIBRARY_DIR "/"};
    static const int version[] = {CUDART_VERSION / 1000, 13, 12, 0};
    for (int v = 0; v < DMI_COUNT(version) && !nvrtc.found; v++) {
        for (int f = 0; f < DMI_COUNT(folder) && !nvrtc.found; f++) {
            char name[1024], number[16] = "";
            if (version[v] > 0) {
                snprintf(number, sizeof number, ".%d", version[v]);
            }
            snprintf(name, sizeof name, "%slibnvrtc.so%s", folder[f], number);
            void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
            nvrtc.found = library && has_all(library);
            if (nvrtc.found) {
                dmi_log(DMI_LOG_INFO, "%s compiles elementwise programs (NVRTC %d.%d)", name, nvrtc.major,
                        nvrtc.minor);
            } else if (library) {
                dlclose(library);
            }
        }
    }
    if (!nvrtc.found) {
        dmi_log(DMI_LOG_INFO, "libnvrtc is not found: elementwise programs are interpreted, which is slower");
    }
}

bool dmi_nvrtc_version(int *major, int *minor)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    *major = nvrtc.major;
    *minor = nvrtc.minor;
    return nvrtc.found;
}

static void tell(nvrtc_program program, int result)
{
    size_t bytes = 0;
    char *text = NULL;
    if (dmi_log_on(DMI_LOG_DEBUG) && nvrtc.log_bytes(program, &bytes) == 0 && bytes > 1) {
        text = calloc(1, bytes + 1);
    }
    if (text && nvrtc.log(program, text) != 0) {
        text[0] = 0;
    }
    dmi_log(DMI_LOG_DEBUG, "NVRTC: %s\n%s", nvrtc.error_text(result), text ? text : "");
    free(text);
}

/* Functions without a mark, lambdas among them, are the device's. Contraction is off, as in all our kernels;
 * division and square roots are exact, and small numbers are kept, unless an option says otherwise. */
void *dmi_nvrtc_compile(const char *source, int capability, size_t *bytes)
{
    char arch[40];
    const char *const options[] = {arch, "--std=c++17", "--fmad=false", "--disable-warnings",
                                   "--device-as-default-execution-space"};
    nvrtc_program program = NULL;
    char *code = NULL;
    int major, minor;
    if (!dmi_nvrtc_version(&major, &minor)) {
        return NULL;
    }
    snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d", capability);
    int result = nvrtc.create(&program, source, "dmath_map.cu", 0, NULL, NULL);
    if (result != 0) {
        dmi_log(DMI_LOG_DEBUG, "NVRTC: %s", nvrtc.error_text(result));
        return NULL;
    }
    result = nvrtc.compile(program, DMI_COUNT(options), options);
    *bytes = 0;
    if (result == 0 && nvrtc.code_bytes(program, bytes) == 0 && *bytes > 0) {
        code = malloc(*bytes);
    }
    if (code && nvrtc.code(program, code) != 0) {
        free(code);
        code = NULL;
    }
    if (!code) {
        tell(program, result);
    }
    nvrtc.destroy(&program);
    return code;
}
