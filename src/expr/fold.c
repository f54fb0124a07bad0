/* Constants: integers are exact from -2^63 to 2^64 - 1, floats are doubles, and rows of them are computed by
 * the kernel itself, once. */
#include "expr/parts.h"
#include "kernels/box/convert.h"
#include "kernels/kernel.h"

#include <math.h>

expr_constant dmi_expr_whole(__int128 value, int origin)
{
    return (expr_constant){.number = {.re = (double)value, .whole = (int64_t)(uint64_t)value},
                           .wide = value > INT64_MAX,
                           .origin = origin};
}

__int128 dmi_expr_integer(const expr_constant *c)
{
    return c->wide ? (__int128)(uint64_t)c->number.whole : (__int128)c->number.whole;
}

expr_constant dmi_expr_real(double value, int origin)
{
    return (expr_constant){.number = dmi_number_of(value), .origin = origin};
}

static __int128 least_of(dm_dtype dtype)
{
    return dmi_dtype_kind(dtype) == DMI_KIND_UINT ? 0 : -((__int128)1 << (8 * dmi_dtype_bytes(dtype) - 1));
}

static __int128 most_of(dm_dtype dtype)
{
    bool sign = dmi_dtype_kind(dtype) != DMI_KIND_UINT;
    return ((__int128)1 << (8 * dmi_dtype_bytes(dtype) - sign)) - 1;
}

bool dmi_expr_fits(const expr_constant *c, dm_dtype dtype)
{
    __int128 value = dmi_expr_integer(c);
    return value >= least_of(dtype) && value <= most_of(dtype);
}

/* Integers wrap around, floats are cut off and saturate. */
static __int128 to_integer(const expr_node *node, dm_dtype to)
{
    __int128 least = least_of(to), most = most_of(to);
    double re = node->constant.number.re;
    if (!dmi_dtype_is_float(node->dtype)) {
        __int128 value = dmi_expr_integer(&node->constant) & (((__int128)1 << (8 * dmi_dtype_bytes(to))) - 1);
        return value > most ? value - ((__int128)1 << (8 * dmi_dtype_bytes(to))) : value;
    }
    return re != re ? 0 : re <= (double)least ? least : re >= (double)most ? most : (__int128)re;
}

expr_constant dmi_expr_converted(const expr_node *node, dm_dtype to)
{
    int origin = node->constant.origin;
    double value = node->constant.number.re;
    dmi_chunk narrow;
    if (to == DM_BOOL) {
        return dmi_expr_whole(value != 0, origin);
    }
    if (dmi_dtype_is_integer(to)) {
        return dmi_expr_whole(to_integer(node, to), origin);
    }
    dm_dtype carrier = dmi_dtype_carrier(to);
    dmi_convert_row(DM_F64, to, &value, &narrow, 1);
    if (carrier == DM_F32) {
        float wide = 0;
        dmi_convert_row(to, DM_F32, &narrow, &wide, 1);
        return dmi_expr_real((double)wide, origin);
    }
    return dmi_expr_real(value, origin);
}

/* One element of a row of constants in the type `taken`. */
static expr_constant compute(int row, const expr_constant *value, dm_dtype taken, dm_dtype *result)
{
    const dmi_ew_row *r = &dmi_ew_rows[row];
    dmi_map_builder b = {0};
    dmi_map_value in[3], made = {0};
    union {
        uint8_t truth;
        int64_t whole;
        double real;
    } out = {.whole = 0};
    for (int i = 0; i < r->operands; i++) {
        bool choice = r->form == DMI_FORM_CHOOSE && i == 0;
        in[i] = dmi_map_constant(&b, dmi_map_number(&b, value[i].number), choice ? DM_BOOL : taken);
    }
    dm_status status = dmi_map_apply(&b, row, in, NULL, &made);
    if (status == DM_OK) {
        dmi_map_result(&b, made, made.dtype);
        dmi_map d = {.dtype = {made.dtype}, .program = b.program};
        dmi_kernel_call call = {.desc = &d, .at = {&out}, .number = b.number, .numbers = b.numbers};
        status = dmi_map_cpu(&call);
    }
    *result = made.dtype;
    return made.dtype == DM_BOOL  ? dmi_expr_whole(out.truth, 0)
           : made.dtype == DM_I64 ? dmi_expr_whole(out.whole, 0)
                                  : dmi_expr_real(status == DM_OK ? out.real : NAN, 0);
}

/* Integer arithmetic that may leave int64. False: the row is none of it. */
static bool integer_row(int row, __int128 a, __int128 b, __int128 *out)
{
    switch (row) {
    case DMI_EW_add:
        *out = a + b;
        return true;
    case DMI_EW_subtract:
        *out = a - b;
        return true;
    case DMI_EW_square:
        b = a; /* falls through */
    case DMI_EW_multiply:
        *out = __builtin_mul_overflow(a, b, out) ? (__int128)1 << 100 : *out;
        return true;
    case DMI_EW_negative:
        *out = -a;
        return true;
    case DMI_EW_positive:
        *out = a;
        return true;
    case DMI_EW_abs:
        *out = a < 0 ? -a : a;
        return true;
    default:
        return false;
    }
}

static int too_large(expr_parser *p, int at)
{
    return dmi_expr_fail(p, DM_ERR_ARG, at, "the constant is too large for an integer");
}

static int fold_integers(expr_parser *p, int at, int row, const expr_constant *value, int origin)
{
    __int128 a = dmi_expr_integer(&value[0]), b = dmi_expr_integer(&value[1]), c = 0;
    if (integer_row(row, a, b, &c)) {
        return c < INT64_MIN || c > (__int128)UINT64_MAX
                   ? too_large(p, at)
                   : dmi_expr_constant(p, at, WEAK_INT, dmi_expr_whole(c, origin));
    }
    for (int i = 0; i < dmi_ew_rows[row].operands; i++) {
        if (value[i].wide) {
            return too_large(p, at);
        }
    }
    if ((row == DMI_EW_floor_divide || row == DMI_EW_remainder) && b == 0) {
        return dmi_expr_fail(p, DM_ERR_ARG, at, "a constant is divided by zero");
    }
    bool shift = row == DMI_EW_bitwise_left_shift;
    if ((row == DMI_EW_pow && fabs(pow((double)a, (double)b)) >= 0x1p63) ||
        (shift && a != 0 && b > 0 && fabs(ldexp((double)a, b > 99 ? 99 : (int)b)) >= 0x1p63)) {
        return too_large(p, at);
    }
    dm_dtype result;
    expr_constant folded = compute(row, value, DM_I64, &result);
    folded.origin = origin;
    return dmi_expr_constant(p, at, result == DM_BOOL ? WEAK_BOOL : WEAK_INT, folded);
}

int dmi_expr_fold(expr_parser *p, int at, int row, const int *child)
{
    const dmi_ew_row *r = &dmi_ew_rows[row];
    expr_constant value[3] = {0};
    dm_dtype operand[3], taken = 0, result = 0;
    bool choose = r->form == DMI_FORM_CHOOSE, truths = true, real = false;
    int origin = p->node[child[0]].constant.origin;
    for (int i = 0; i < r->operands; i++) {
        const expr_node *n = &p->node[child[i]];
        value[i] = n->constant;
        origin = origin == n->constant.origin ? origin : ORIGIN_MIXED;
        if (!choose || i > 0) {
            truths = truths && n->weak == WEAK_BOOL;
            real = real || n->weak == WEAK_FLOAT;
        }
    }
    origin = origin == ORIGIN_TEXT ? ORIGIN_TEXT : ORIGIN_MIXED;
    truths = truths && row != DMI_EW_add && row != DMI_EW_multiply; /* True + True is 2 */
    /* Python's: a negative power of an integer is a float */
    real = real || (row == DMI_EW_pow && dmi_expr_integer(&value[1]) < 0);
    for (int tries = 0; tries < 2 && (tries == 0 || (truths && taken != DM_BOOL)); tries++) {
        for (int i = 0; i < r->operands; i++) {
            operand[i] = choose && i == 0 ? DM_BOOL : real ? DM_F64 : truths && tries == 0 ? DM_BOOL : DM_I64;
        }
        if (!dmi_ew_types(row, operand, &taken, &result)) {
            return dmi_expr_fail(p, DM_ERR_DTYPE, at, "%s does not take %s", r->name,
                                 dmi_dtype_name(operand[choose]));
        }
    }
    if (taken == DM_I64) {
        return fold_integers(p, at, row, value, origin);
    }
    expr_constant folded = compute(row, value, taken, &result);
    folded.origin = origin;
    return dmi_expr_constant(p, at, result == DM_BOOL ? WEAK_BOOL : WEAK_FLOAT, folded);
}
