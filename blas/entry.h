/* What the entry points of Fortran and of CBLAS share. */
#ifndef DMB_ENTRY_H
#define DMB_ENTRY_H

#include "blas.h"

/* A factor, of a matrix' type. */
static inline void take(dm_dtype dtype, const void *from, double to[2])
{
    bool complex = dtype == DM_C64 || dtype == DM_C128, wide = dtype == DM_F64 || dtype == DM_C128;
    to[0] = wide ? ((const double *)from)[0] : (double)((const float *)from)[0];
    to[1] = !complex ? 0 : wide ? ((const double *)from)[1] : (double)((const float *)from)[1];
}

/* The real type of factors that are real though the matrices are complex. */
static inline dm_dtype part(dm_dtype dtype)
{
    return dtype == DM_C64 ? DM_F32 : dtype == DM_C128 ? DM_F64 : dtype;
}

/* Calls OpenBLAS' function of this name. */
#define PASS(name, types, values)                                                                              \
    do {                                                                                                       \
        static void(*_Atomic real) types;                                                                      \
        if (!real) {                                                                                           \
            real = (void(*) types)dmb_real(#name);                                                             \
        }                                                                                                      \
        (*real) values;                                                                                        \
    } while (0)

#define DECLARE(name, types) DMB_API void name types

#endif
