/* Elementwise functions for `dmath bench`: every call of <dmath/ewise.h>, and beside each the same in a plain
 * loop. */
#include "dmath_bench_op.h"

#include "kernels/ewise/ewise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* P(name, its value for a, b, c). A call of ewise.h without a line here does not compile. */
#define P(name, value)                                                                                         \
    static double plain_##name(double a, double b, double c)                                                   \
    {                                                                                                          \
        (void)a, (void)b, (void)c;                                                                             \
        return (value);                                                                                        \
    }
P(negative, -a)
P(positive, a)
P(abs, fabs(a))
P(sign, (a > 0) - (a < 0))
P(square, a *a)
P(reciprocal, 1 / a)
P(conj, a)
P(real, a)
P(imag, 0)
P(sqrt, sqrt(a))
P(rsqrt, 1 / sqrt(a))
P(cbrt, cbrt(a))
P(exp, exp(a))
P(exp2, exp2(a))
P(expm1, expm1(a))
P(log, log(a))
P(log2, log2(a))
P(log10, log10(a))
P(log1p, log1p(a))
P(sin, sin(a))
P(cos, cos(a))
P(tan, tan(a))
P(asin, asin(a))
P(acos, acos(a))
P(atan, atan(a))
P(sinh, sinh(a))
P(cosh, cosh(a))
P(tanh, tanh(a))
P(asinh, asinh(a))
P(acosh, acosh(a))
P(atanh, atanh(a))
P(erf, erf(a))
P(erfc, erfc(a))
P(gamma, tgamma(a))
P(lgamma, log(tgamma(a)))
P(sigmoid, 1 / (1 + exp(-a)))
P(softplus, log(1 + exp(a)))
P(gelu, a *(1 + erf(a / sqrt(2))) / 2)
P(relu, a > 0 ? a : 0)
P(nan_to_num, a)
P(floor, floor(a))
P(ceil, ceil(a))
P(trunc, trunc(a))
P(round, nearbyint(a))
P(isnan, isnan(a) != 0)
P(isinf, isinf(a) != 0)
P(isfinite, isfinite(a) != 0)
P(signbit, signbit(a) != 0)
P(logical_not, a == 0)
P(bitwise_invert, (double)~(int64_t)a)
P(subtract, a - b)
P(divide, a / b)
P(floor_divide, floor(a / b))
P(remainder, a - b * floor(a / b))
P(pow, pow(a, b))
P(minimum, fmin(a, b))
P(maximum, fmax(a, b))
P(atan2, atan2(a, b))
P(hypot, sqrt(a *a + b * b))
P(logaddexp, log(exp(a) + exp(b)))
P(copysign, copysign(a, b))
P(equal, a == b)
P(not_equal, a != b)
P(less, a < b)
P(less_equal, a <= b)
P(greater, a > b)
P(greater_equal, a >= b)
P(logical_and, a != 0 && b != 0)
P(logical_or, a != 0 || b != 0)
P(logical_xor, (a != 0) != (b != 0))
P(bitwise_and, (double)((int64_t)a &(int64_t)b))
P(bitwise_or, (double)((int64_t)a | (int64_t)b))
P(bitwise_xor, (double)((int64_t)a ^ (int64_t)b))
P(bitwise_left_shift, (double)((int64_t)a << (int64_t)b))
P(bitwise_right_shift, (double)((int64_t)a >> (int64_t)b))
P(where, a != 0 ? b : c)
P(clip, fmin(fmax(a, b), c))
#undef P

typedef struct function {
    int operands;
    dm_status (*of_1)(dm_session *s, dm_array a, dm_array out);
    dm_status (*of_2)(dm_session *s, dm_array a, dm_array b, dm_array out);
    dm_status (*of_3)(dm_session *s, dm_array a, dm_array b, dm_array c, dm_array out);
    double (*plain)(double a, double b, double c);
} function;

#define F1(name) {1, dm_##name, NULL, NULL, plain_##name},
#define F2(name) {2, NULL, dm_##name, NULL, plain_##name},
#define F3(name) {3, NULL, NULL, dm_##name, plain_##name},
static const function functions[] = {DM_EWISE_MAP(F1, F2, F3)};
#define NAME(name) #name,
static const char *const names[] = {DM_EWISE_MAP(NAME, NAME, NAME)};

static const dmi_ew_row *row_of(const char *name, int *number)
{
    for (*number = 0; *number < DMI_EW_ROWS; ++*number) {
        if (strcmp(dmi_ew_rows[*number].name, name) == 0) {
            return &dmi_ew_rows[*number];
        }
    }
    return NULL;
}

/* Numbers for which the function has a value: whole ones for bits and logic. */
static dm_status prepare(tool_op *o)
{
    const function *f = o->row->with;
    const char *name = o->row->name;
    bool whole = strncmp(name, "logical", 7) == 0 || strncmp(name, "bitwise", 7) == 0;
    dm_dtype dtype[3], taken, result;
    int row;
    dm_status status = DM_OK;
    for (int i = 0; i < 3; i++) {
        bool mask = i == 0 && strcmp(name, "where") == 0;
        dtype[i] = whole || mask ? DM_I32 : o->dtype;
        double lo = whole || mask                ? 0
                    : strcmp(name, "acosh") == 0 ? 1.05
                                                 : 0.05,
               hi = whole  ? 8
                    : mask ? 2
                           : lo + 0.9;
        if (i < f->operands) {
            status = TOOL_TRY(status, tool_op_vector(o, i, dtype[i], lo, hi));
        }
    }
    if (status == DM_OK && (!row_of(name, &row) || !dmi_ew_types(row, dtype, &taken, &result))) {
        status = dmi_fail(DM_ERR_INTERNAL, "%s takes no %s", name, dm_dtype_name(dtype[0]));
    }
    return TOOL_TRY(status, tool_op_result(o, 3, result, 1, &o->n));
}

static dm_status call(tool_op *o)
{
    const function *f = o->row->with;
    return f->of_1   ? f->of_1(o->s, o->a[0], o->a[3])
           : f->of_2 ? f->of_2(o->s, o->a[0], o->a[1], o->a[3])
                     : f->of_3(o->s, o->a[0], o->a[1], o->a[2], o->a[3]);
}

static void plain(tool_op *o)
{
    const function *f = o->row->with;
    for (int64_t i = 0; i < o->n; i++) {
        o->want[i] = f->plain(o->h[0][i], f->operands > 1 ? o->h[1][i] : 0, f->operands > 2 ? o->h[2][i] : 0);
    }
}

const tool_op_row *tool_ops_ewise(void)
{
    static tool_op_row rows[DMI_COUNT(functions) + 1];
    for (int i = 0; i < DMI_COUNT(functions) && !rows[i].name; i++) {
        rows[i] = (tool_op_row){.name = names[i],
                                .family = "elementwise",
                                .prepare = prepare,
                                .call = call,
                                .plain = plain,
                                .with = &functions[i]};
    }
    return rows;
}
