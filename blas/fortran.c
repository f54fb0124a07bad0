/* The Fortran interface. What dmb_run does not take goes to OpenBLAS as it came; the hidden lengths of
 * character arguments, which BLAS in C does not read, are left out. */
#include "entry.h"

static int option(const char *given, const char *values)
{
    for (int i = 0; values[i]; i++) {
        if (*given == values[i] || *given == values[i] + ('a' - 'A')) {
            return i;
        }
    }
    return -1;
}
#define SIDE(c) option(c, "LR")
#define UPLO(c) option(c, "LU")
#define TRANS(c) option(c, "NTC")
#define DIAG(c) option(c, "NU")

#define NAME(name) name##_
#define FIRST
#define ORDER
#define BY_COLUMNS 1
#define OPTION const char *
#define INT const int *
#define AT(i) (*(i))
#define FACTOR_s const void *
#define FACTOR_d const void *
#define FACTOR_c const void *
#define FACTOR_z const void *
#define VALUE_s(f) take(DM_F32, f)
#define VALUE_d(f) take(DM_F64, f)
#define VALUE_c(f) take(DM_C64, f)
#define VALUE_z(f) take(DM_C128, f)
#define INDEX int
#define INDEX_FIRST 1

static inline float complex complex_of_float(dm_c128 v)
{
    return CMPLXF((float)v.re, (float)v.im);
}
static inline double complex complex_of_double(dm_c128 v)
{
    return CMPLX(v.re, v.im);
}
#define DOT_COMPLEX(name, t, real, op)                                                                         \
    RESULT(real complex, NAME(name), XY_TYPES, XY_VALUES, complex_of_##real(r.found), XY(t, op))

#include "routines.h"
