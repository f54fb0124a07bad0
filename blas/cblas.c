/* The CBLAS interface. */
#include "entry.h"

#include <stddef.h>

/* CBLAS' numbers. */
enum { ROWS = 101, COLUMNS = 102, NO_TRANS = 111, UPPER = 121, NON_UNIT = 131, LEFT = 141 };

/* value - first, where that is 0 to most; else -1 */
static int option(int value, int first, int most)
{
    return value >= first && value <= first + most ? value - first : -1;
}
#define TRANS(v) option(v, NO_TRANS, 2)
#define SIDE(v) option(v, LEFT, 1)
#define DIAG(v) option(v, NON_UNIT, 1)
#define UPLO(v) (option(v, UPPER, 1) < 0 ? -1 : 1 - option(v, UPPER, 1))

#define NAME(name) cblas_##name
#define FIRST int order,
#define ORDER order,
#define BY_COLUMNS option(order, ROWS, 1)
#define OPTION int
#define INT int
#define AT(i) (i)
#define FACTOR_s float
#define FACTOR_d double
#define FACTOR_c const void *
#define FACTOR_z const void *
#define VALUE_s(f) take(DM_F32, &(f))
#define VALUE_d(f) take(DM_F64, &(f))
#define VALUE_c(f) take(DM_C64, f)
#define VALUE_z(f) take(DM_C128, f)
#define INDEX size_t
#define INDEX_FIRST 0

static void give(dm_dtype dtype, dm_c128 v, void *out)
{
    if (dtype == DM_C128) {
        *(dm_c128 *)out = v;
    } else {
        *(dm_c64 *)out = (dm_c64){(float)v.re, (float)v.im};
    }
}
#define DOT_COMPLEX(name, t, real, op)                                                                         \
    LEVEL_1_THEN(give(TYPE_##t, r.found, out), NAME(name##_sub),                                               \
                 (INT n, VECTOR x, INT incx, VECTOR y, INT incy, void *out), (n, x, incx, y, incy, out),       \
                 XY(t, op))

#include "routines.h"
