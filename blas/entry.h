/* What the entry points of Fortran and of CBLAS share. */
#ifndef DMB_ENTRY_H
#define DMB_ENTRY_H

#include "blas.h"

#include <complex.h>
#include <math.h>

#define TYPE_s DM_F32
#define TYPE_d DM_F64
#define TYPE_c DM_C64
#define TYPE_z DM_C128

/* A factor of this type. */
static inline dm_c128 take(dm_dtype dtype, const void *from)
{
    bool complex_too = dmb_is_complex(dtype), wide = dtype == DM_F64 || dtype == DM_C128;
    dm_c128 v = {wide ? ((const double *)from)[0] : (double)((const float *)from)[0], 0};
    if (complex_too) {
        v.im = wide ? ((const double *)from)[1] : (double)((const float *)from)[1];
    }
    return v;
}

/* An entry point, which calls OpenBLAS' function of its name unless dmb_run has done it: a routine, and a
 * function with a result. most: the largest threshold at which it may go to the workers, for others shall not
 * wait for more. The last arguments make the request r; end: what follows then. */
#define ROUTINE(name, types, values, most, end, ...)                                                           \
    DMB_API void name types;                                                                                   \
    void name types                                                                                            \
    {                                                                                                          \
        static void(*_Atomic real) types;                                                                      \
        if ((most) >= dmb_known_threshold) {                                                                   \
            dmb_request r = {__VA_ARGS__};                                                                     \
            if (dmb_run(&r)) {                                                                                 \
                end;                                                                                           \
                return;                                                                                        \
            }                                                                                                  \
        }                                                                                                      \
        if (!real) {                                                                                           \
            real = (void(*) types)dmb_real(#name);                                                             \
        }                                                                                                      \
        (*real) values;                                                                                        \
    }
#define FUNCTION(type, name, types, values, most, result, ...)                                                 \
    DMB_API type name types;                                                                                   \
    type name types                                                                                            \
    {                                                                                                          \
        static type(*_Atomic real) types;                                                                      \
        if ((most) >= dmb_known_threshold) {                                                                   \
            dmb_request r = {__VA_ARGS__};                                                                     \
            if (dmb_run(&r)) {                                                                                 \
                return result;                                                                                 \
            }                                                                                                  \
        }                                                                                                      \
        if (!real) {                                                                                           \
            real = (type(*) types)dmb_real(#name);                                                             \
        }                                                                                                      \
        return (*real)values;                                                                                  \
    }

#endif
