#include "support/factors.h"

/* A value that the type holds. */
static double value_for(dmt_case *c, dm_dtype dtype, bool zero)
{
    for (;;) {
        double drawn = dmt_factor_random(c, !dmt_is_float(dtype));
        double value = (double)dmt_from_real(dtype, drawn);
        if (value != 0 || zero) {
            return value;
        }
    }
}

dmt_factor dmt_factor_make(dmt_case *c, const char *name, bool whole, bool zero)
{
    static const dm_dtype wholes[] = {DM_I64, DM_I32, DM_I16, DM_I8, DM_U8, DM_U32, DM_U64, DM_BOOL};
    dmt_factor f = {.value = 0};
    int64_t one[DM_MAX_DIMS];
    if (dmt_chance(&c->random, 30)) {
        f.value = dmt_factor_random(c, whole);
        f.given = dm_value(f.value);
        dmt_say(c, "\n    %s: the number %.17g", name, f.value);
        return f;
    }
    bool floats = !whole && dmt_chance(&c->random, 75);
    dm_dtype dtype = floats ? dmt_float_random(c) : wholes[dmt_int(&c->random, 0, 7)];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 10) ? DM_MAX_DIMS : 3);
    for (int d = 0; d < ndim; d++) {
        one[d] = 1;
    }
    dmt_host *h = dmt_host_make(&c->scratch, dtype, ndim, one);
    f.value = value_for(c, dtype, zero);
    dmt_host_set(h, f.value);
    f.element = dmt_operand_make(c, name, h, 0);
    f.given = dm_element(f.element->array);
    dmt_say(c, ", which is %.17g", f.value);
    return f;
}

void dmt_factor_unchanged(dmt_case *c, const dmt_factor *f)
{
    if (f->element) {
        dmt_operand_unchanged(c, f->element);
    }
}
