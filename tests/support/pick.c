/* Random shapes, types and factors. */
#include "support/cases.h"

int64_t dmt_extent_random(dmt_case *c, int64_t most)
{
    static const int64_t primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
    int64_t pick = dmt_int(&c->random, 0, 99), extent;
    if (pick < 4) {
        return 0;
    }
    if (pick < 18) {
        extent = 1;
    } else if (pick < 45) {
        extent = primes[dmt_int(&c->random, 0, 11)];
    } else if (pick < 97) {
        extent = dmt_int(&c->random, 1, 40);
    } else {
        extent = dmt_int(&c->random, 100, 300);
    }
    return extent < most ? extent : most;
}

void dmt_shape_random(dmt_case *c, int ndim, int64_t most, int64_t *shape)
{
    for (int d = 0; d < ndim; d++) {
        shape[d] = dmt_extent_random(c, most);
        most = shape[d] > 0 ? most / shape[d] : most;
    }
}

int dmt_shape_narrowed(dmt_case *c, int ndim, const int64_t *shape, int64_t *narrowed)
{
    int dropped = dmt_chance(&c->random, 25) ? (int)dmt_int(&c->random, 0, ndim) : 0;
    for (int d = dropped; d < ndim; d++) {
        narrowed[d - dropped] = dmt_chance(&c->random, 20) ? 1 : shape[d];
    }
    return ndim - dropped;
}

dm_dtype dmt_dtype_random(dmt_case *c)
{
    return dmt_dtypes[dmt_int(&c->random, 0, DMT_DTYPES - 1)];
}

dm_dtype dmt_ewise_random(dmt_case *c)
{
    return dmt_dtypes[dmt_int(&c->random, 0, DMT_EWISE - 1)];
}

dm_dtype dmt_float_random(dmt_case *c)
{
    return dmt_floats[dmt_int(&c->random, 0, 3)];
}

double dmt_factor_random(dmt_case *c, bool whole)
{
    static const double wholes[] = {0, 1, -1, 2, -3, 5};
    int64_t pick = dmt_int(&c->random, 0, 99);
    if (whole || pick < 70) {
        return wholes[dmt_int(&c->random, 0, pick < 40 ? 2 : 5)];
    }
    return 4 * dmt_unit(&c->random) - 2;
}
