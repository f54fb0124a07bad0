/* OpenBLAS under its own name, for calls that do not go to the workers: their names lead back here. */
#include "blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *library;

static void open_library(void)
{
    const char *name = getenv("DMATH_BLAS_LIBRARY");
    library = dlopen(name && *name ? name : "libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
}

void *dmb_real(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    void *found = library ? dlsym(library, name) : dlsym(RTLD_NEXT, name);
    Dl_info here, there;
    if (found && dladdr((void *)open_library, &here) && dladdr(found, &there) &&
        here.dli_fbase == there.dli_fbase) {
        found = NULL; /* it stands in for the library that DMATH_BLAS_LIBRARY names */
    }
    if (!found) { /* nobody can compute this call */
        fprintf(stderr, "libdmath_blas: %s is not in OpenBLAS: set DMATH_BLAS_LIBRARY\n", name);
        abort();
    }
    return found;
}
