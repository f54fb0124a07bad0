/* Elementwise programs with factors. The call's numbers are {alpha, beta, 0}; a term whose factor is 0 is not
 * read. */
#include "plan/plan.h"

enum { ZERO = 2 };

void dmi_call_factors(dmi_call *call, double alpha, double beta)
{
    call->numbers = 3;
    call->number[0] = dmi_number_of(alpha);
    call->number[1] = dmi_number_of(beta);
    call->number[2] = dmi_number_of(0);
}

static bool is_whole_type(dm_dtype dtype)
{
    return !dmi_dtype_is_float(dtype) && !dmi_dtype_is_complex(dtype);
}

void dmi_convert_program(dm_dtype from, dm_dtype to, dmi_map_program *program)
{
    dmi_map_builder m = {.numbers = 0};
    dmi_map_result(&m, dmi_map_input(&m, from), to);
    *program = m.program;
}

/* Whole numbers are computed in int64 with wrap-around, or in fewer bits where the result has no more. Where a
 * whole number meets a floating one, or the result is floating, all is computed in f64. */
dm_dtype dmi_linear_type(const dm_dtype *dtype, int inputs, dm_dtype out)
{
    dm_dtype promoted = dtype[0];
    bool all = is_whole_type(out), any = false, wide = dmi_dtype_bytes(out) > 4, u64 = false;
    bool floats = false;
    for (int i = 0; i < inputs; i++) {
        promoted = dmi_dtype_promote(promoted, dtype[i]);
        any = any || is_whole_type(dtype[i]);
        floats = floats || !is_whole_type(dtype[i]);
        wide = wide || dmi_dtype_bytes(dmi_dtype_carrier(dtype[i])) > 4;
        u64 = u64 || dtype[i] == DM_U64;
    }
    if (floats) {
        return any ? dmi_dtype_promote(promoted, DM_F64) : promoted;
    }
    return !all ? dmi_dtype_promote(DM_F64, out) : u64 ? DM_U64 : wide ? DM_I64 : DM_I32;
}

static void apply_inner(dmi_map_builder *m, int row, int inputs, const dm_dtype *dtype, dm_dtype computed,
                        const int *number, dm_dtype out)
{
    dmi_map_value value[2], result = {0};
    for (int i = 0; i < inputs; i++) {
        value[i] = dmi_map_input(m, dtype[i]);
    }
    for (int i = 0; i < inputs; i++) {
        value[i] = dmi_map_cast(m, value[i], computed);
    }
    dm_status status = dmi_map_apply(m, row, value, number, &result);
    (void)status; /* these rows take every type */
    dmi_map_result(m, result, out);
}

static dmi_map_builder builder(void)
{
    return (dmi_map_builder){.numbers = ZERO + 1};
}

int dmi_linear_program(const dm_dtype dtype[2], const bool used[2], dm_dtype out, dmi_map_program *program)
{
    dm_dtype computed = dmi_linear_type(dtype, 2, out); /* a term that is not read counts too */
    dmi_map_builder m = builder();
    int one = used[0] ? 0 : 1;
    if (used[0] && used[1]) {
        apply_inner(&m, DMI_EW_linear, 2, dtype, computed, (int[]){0, 1}, out);
    } else if (used[one]) { /* + 0, so that -0 becomes 0 as in a sum of two terms */
        apply_inner(&m, DMI_EW_affine, 1, &dtype[one], computed, (int[]){one, ZERO}, out);
    } else {
        dmi_map_result(&m, dmi_map_constant(&m, ZERO, out), out);
    }
    *program = m.program;
    return one;
}

void dmi_plan_linear(dmi_builder *b, const dmi_value value[2], const bool used[2], const dmi_value *out)
{
    dmi_map_program program;
    int first = dmi_linear_program((dm_dtype[]){value[0].desc->dtype, value[1].desc->dtype}, used,
                                   out->desc->dtype, &program);
    dmi_plan_map(b, &program, &value[first], out);
}

void dmi_scaled_program(int row, int inputs, const dm_dtype *dtype, bool used, dm_dtype out, dmi_map_program *program)
{
    dmi_map_builder m = builder();
    if (used) {
        apply_inner(&m, row, inputs, dtype, dmi_linear_type(dtype, inputs, out), (int[]){0, 0}, out);
    } else {
        dmi_map_result(&m, dmi_map_constant(&m, ZERO, out), out);
    }
    *program = m.program;
}
