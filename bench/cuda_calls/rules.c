#include "calls.h"

#include <string.h>

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool begins_with_one(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (begins(name, *list)) {
            return true;
        }
    }
    return false;
}

bool call_refused(const char *name)
{
    static const char *const memory[] = {"cudaMalloc",
                                         "cudaFree",
                                         "cudaHostAlloc",
                                         "cudaHostRegister",
                                         "cudaHostUnregister",
                                         "cuMemAlloc",
                                         "cuMemFree",
                                         "cuMemHostAlloc",
                                         "cuMemHostRegister",
                                         "cuMemHostUnregister",
                                         "cuMemCreate",
                                         "cuMemRelease",
                                         "cuMemMap",
                                         "cuMemUnmap",
                                         "cuMemAddressReserve",
                                         "cuMemSetAccess",
                                         "cudaIpcOpen",
                                         "cuIpcOpen",
                                         "cudaMemPoolCreate",
                                         "cuMemPoolCreate",
                                         "cudaIpcClose",
                                         "cuIpcClose",
                                         NULL};
    static const char *const objects[] = {
        "cudaStreamCreate", "cuStreamCreate",   "cudaStreamDestroy",    "cuStreamDestroy",    "cudaEventCreate",
        "cuEventCreate",    "cudaEventDestroy", "cuEventDestroy",       "cuModuleLoad",       "cuLibraryLoad",
        "cudaLibraryLoad",  "cuCtxCreate",      "cudaGraphInstantiate", "cuGraphInstantiate", NULL};
    static const char *const waits[] = {
        "cudaDeviceSynchronize", "cudaThreadSynchronize", "cuCtxSynchronize",   "cudaStreamSynchronize",
        "cuStreamSynchronize",   "cudaEventSynchronize",  "cuEventSynchronize", NULL};
    static const char *const copies[] = {"cudaMemcpy", "cuMemcpy", "cudaMemset", "cuMemset", NULL};
    if (begins_with_one(name, copies)) {
        return strstr(name, "Async") == NULL;
    }
    return begins_with_one(name, memory) || begins_with_one(name, objects) || begins_with_one(name, waits);
}
