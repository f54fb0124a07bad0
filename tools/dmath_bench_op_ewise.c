/* Elementwise functions for `dmath bench`: every call of <dmath/ewise.h>. Its values are compared with those of
 * the row's expression, which this process computes in f64: so devices and layouts give what the expression says.
 * Whether the expression is right is what tests/numpy/check_rows.py asks. */
#include "dmath_bench_op.h"

#include "kernels/kernel.h"

#include <string.h>

typedef struct function {
    int operands;
    dm_status (*of_1)(dm_session *s, dm_array a, dm_array out);
    dm_status (*of_2)(dm_session *s, dm_array a, dm_array b, dm_array out);
    dm_status (*of_3)(dm_session *s, dm_array a, dm_array b, dm_array c, dm_array out);
} function;

#define F1(name) {1, dm_##name, NULL, NULL},
#define F2(name) {2, NULL, dm_##name, NULL},
#define F3(name) {3, NULL, NULL, dm_##name},
static const function functions[] = {DM_EWISE_MAP(F1, F2, F3)};
#define NAME(name) #name,
static const char *const names[] = {DM_EWISE_MAP(NAME, NAME, NAME)};

/* Numbers for which the function has a value: whole ones for bits, logic and choice. */
static void range_of(int row, int operand, dm_dtype floats, dm_dtype *dtype, double *lo, double *hi)
{
    const dmi_ew_row *r = &dmi_ew_rows[row];
    bool mask = r->form == DMI_FORM_CHOOSE && operand == 0;
    bool whole = mask || !(r->domain >> DM_F64 & 1);
    *dtype = whole ? DM_I32 : floats;
    *lo = whole ? 0 : strcmp(r->name, "acosh") == 0 ? 1.05 : 0.05;
    *hi = mask ? 2 : whole ? 8 : *lo + 0.9;
}

static dm_status prepare(tool_op *o)
{
    const function *f = o->row->with;
    const char *name = o->row->name;
    dm_dtype dtype[3], taken, result;
    dm_status status = DM_OK;
    int row = dmi_ew_find(name, strlen(name));
    if (row < 0) {
        return dmi_fail(DM_ERR_INTERNAL, "%s has no row in ewise.def", name);
    }
    for (int i = 0; i < f->operands; i++) {
        double lo, hi;
        range_of(row, i, o->dtype, &dtype[i], &lo, &hi);
        status = TOOL_TRY(status, tool_op_vector(o, i, dtype[i], lo, hi));
    }
    if (status == DM_OK && !dmi_ew_types(row, dtype, &taken, &result)) {
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

/* The row in f64, or in integers, of what was read as f64. */
static void plain(tool_op *o)
{
    const function *f = o->row->with;
    int row = dmi_ew_find(o->row->name, strlen(o->row->name));
    dmi_map_builder b = {0};
    dmi_map_value value[3], result;
    dmi_map d = {.ndim = 1, .extent = {o->n}};
    for (int i = 0; i <= f->operands; i++) {
        d.dtype[i] = DM_F64;
        d.stride[i][0] = 1;
    }
    for (int i = 0; i < f->operands; i++) {
        value[i] = dmi_map_input(&b, DM_F64);
    }
    for (int i = 0; i < f->operands; i++) {
        double lo, hi;
        dm_dtype dtype;
        range_of(row, i, DM_F64, &dtype, &lo, &hi);
        value[i] = dmi_map_cast(&b, value[i], dtype);
    }
    if (dmi_map_apply(&b, row, value, NULL, &result) == DM_OK) { /* prepare has looked at its types */
        dmi_map_result(&b, result, DM_F64);
        d.program = b.program;
        dmi_kernel_call call = {.desc = &d, .number = b.number, .numbers = b.numbers};
        for (int i = 0; i <= f->operands; i++) {
            call.at[i] = i < f->operands ? o->h[i] : o->want;
        }
        (void)dmi_map_cpu(&call);
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
