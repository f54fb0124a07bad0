#include "support/answers.h"

#include <math.h>
#include <string.h>

static long double sum_of(const long double *v, int64_t n, long double (*f)(long double))
{
    long double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += f ? f(v[i]) : v[i];
    }
    return sum;
}

static long double largest(const long double *v, int64_t n)
{
    long double most = 0;
    for (int64_t i = 0; i < n; i++) {
        most = fabsl(v[i]) > most || isnan(v[i]) ? fabsl(v[i]) : most;
    }
    return most;
}

static bool whole_type(dm_dtype dtype)
{
    return !dmt_is_float(dtype);
}

static dmt_answer product(dm_dtype dtype, const long double *v, int64_t n)
{
    uint64_t bits = 1;
    long double value = 1;
    for (int64_t i = 0; i < n; i++) {
        bits *= whole_type(dtype) ? dmt_wrapped(v[i]) : 1;
        value *= v[i];
    }
    const bool no_sign = dtype == DM_U8 || dtype == DM_U16 || dtype == DM_U32 || dtype == DM_U64;
    return whole_type(dtype) ? (dmt_answer){no_sign ? (long double)bits : (long double)(int64_t)bits, 0, true}
                             : (dmt_answer){value, 0, false};
}

/* Where the first element is that is ahead of all others. */
static int64_t place_of(const long double *v, int64_t n, int sign)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        bool ahead = isnan(v[i]) ? !isnan(v[best]) : sign * v[i] > sign * v[best];
        best = ahead ? i : best;
    }
    return best;
}

static dmt_answer minimum(dm_dtype dtype, const long double *v, int64_t n)
{
    return (dmt_answer){v[place_of(v, n, -1)], 0, whole_type(dtype)};
}

static dmt_answer maximum(dm_dtype dtype, const long double *v, int64_t n)
{
    return (dmt_answer){v[place_of(v, n, 1)], 0, whole_type(dtype)};
}

static dmt_answer first_minimum(dm_dtype dtype, const long double *v, int64_t n)
{
    (void)dtype;
    return (dmt_answer){(long double)place_of(v, n, -1), 0, true};
}

static dmt_answer first_maximum(dm_dtype dtype, const long double *v, int64_t n)
{
    (void)dtype;
    return (dmt_answer){(long double)place_of(v, n, 1), 0, true};
}

static dmt_answer nonzero(dm_dtype dtype, const long double *v, int64_t n)
{
    int64_t count = 0;
    (void)dtype;
    for (int64_t i = 0; i < n; i++) {
        count += v[i] != 0;
    }
    return (dmt_answer){(long double)count, 0, true};
}

static dmt_answer some(dm_dtype dtype, const long double *v, int64_t n)
{
    return (dmt_answer){nonzero(dtype, v, n).value > 0, 0, true};
}

static dmt_answer every(dm_dtype dtype, const long double *v, int64_t n)
{
    return (dmt_answer){nonzero(dtype, v, n).value == (long double)n, 0, true};
}

/* Integers are summed in 64 bits that wrap. */
static dmt_answer total(dm_dtype dtype, const long double *v, int64_t n)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < n && whole_type(dtype); i++) {
        bits += dmt_wrapped(v[i]);
    }
    return whole_type(dtype)
               ? (dmt_answer){dtype == DM_U64 ? (long double)bits : (long double)(int64_t)bits, 0, true}
               : (dmt_answer){sum_of(v, n, NULL), dmt_eps(DM_F64) * (long double)n * sum_of(v, n, fabsl), false};
}

static dmt_answer average(dm_dtype dtype, const long double *v, int64_t n)
{
    long double eps = dmt_eps(DM_F64), value = sum_of(v, n, NULL) / (long double)n;
    (void)dtype;
    return (dmt_answer){value, (eps * largest(v, n) + dmt_tiny(DM_F64)) * 4 * (long double)(n + 1), false};
}

static dmt_answer log_sum(dm_dtype dtype, const long double *v, int64_t n)
{
    long double top = n > 0 ? maximum(dtype, v, n).value : -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += v[i] == top ? 1 : expl(v[i] - top);
    }
    long double value = top + logl(sum);
    return (dmt_answer){value, 8 * dmt_eps(DM_F64) * (fabsl(top) + (long double)n + 1), false};
}

static dmt_answer norm_1(dm_dtype dtype, const long double *v, int64_t n)
{
    long double value = sum_of(v, n, fabsl);
    (void)dtype;
    return (dmt_answer){value, dmt_eps(DM_F64) * (long double)n * value, false};
}

static long double squared(long double v)
{
    return v * v;
}

static dmt_answer norm_2(dm_dtype dtype, const long double *v, int64_t n)
{
    long double value = sqrtl(sum_of(v, n, squared));
    (void)dtype;
    return (dmt_answer){value, dmt_eps(DM_F64) * (long double)(n + 2) * value, false};
}

static dmt_answer norm_inf(dm_dtype dtype, const long double *v, int64_t n)
{
    (void)dtype;
    return (dmt_answer){largest(v, n), 0, false};
}

static dmt_answer variance(dm_dtype dtype, const long double *v, int64_t n)
{
    long double mean = sum_of(v, n, NULL) / (long double)n, sum = 0;
    (void)dtype;
    for (int64_t i = 0; i < n; i++) {
        sum += (v[i] - mean) * (v[i] - mean);
    }
    return (dmt_answer){sum / (long double)n, 8 * dmt_eps(DM_F64) * (long double)(n + 1) * squared(largest(v, n)),
                    false};
}

static dmt_answer deviation(dm_dtype dtype, const long double *v, int64_t n)
{
    dmt_answer a = variance(dtype, v, n);
    long double value = sqrtl(a.value);
    return (dmt_answer){value, value > sqrtl(a.bound) ? a.bound / value : sqrtl(a.bound), false};
}

dmt_answer dmt_answer_corrected(dmt_answer a, int64_t n, double correction, bool root)
{
    long double left = (long double)n - correction, factor = (long double)n / (left > 0 ? left : 0);
    factor = root ? sqrtl(factor) : factor;
    return (dmt_answer){a.value * factor, a.bound * factor, a.whole};
}

static const dmt_reduction table[] = {
    {"sum", total, DMT_INEXACT},
    {"prod", product, DMT_POWERS},
    {"min", minimum, DMT_NEEDS_ELEMENTS},
    {"max", maximum, DMT_NEEDS_ELEMENTS},
    {"any", some, 0},
    {"all", every, 0},
    {"count_nonzero", nonzero, 0},
    {"argmin", first_minimum, DMT_NEEDS_ELEMENTS},
    {"argmax", first_maximum, DMT_NEEDS_ELEMENTS},
    {"mean", average, DMT_INEXACT},
    {"logsumexp", log_sum, DMT_INEXACT},
    {"var", variance, DMT_INEXACT},
    {"std", deviation, DMT_INEXACT},
    {"norm_1", norm_1, DMT_INEXACT},
    {"norm_2", norm_2, DMT_INEXACT},
    {"norm_inf", norm_inf, DMT_INEXACT},
};

int dmt_reductions(void)
{
    return (int)(sizeof table / sizeof table[0]);
}

const dmt_reduction *dmt_reduction_at(int i)
{
    return &table[i];
}

const dmt_reduction *dmt_reduction_named(const char *name)
{
    for (int i = 0; i < dmt_reductions(); i++) {
        if (strcmp(table[i].name, name) == 0) {
            return &table[i];
        }
    }
    return NULL;
}
