/* Elementwise ops with factors that may be elements of arrays: expressions, run by the op map */
#include "ops/by.h"

#include <string.h>

enum { MOST = 2 }; /* terms, and arrays of a term */

/* factor * array[0] * array[1] ... */
typedef struct term {
    const char *factor_name;
    dm_factor factor;
    int arrays;
    const char *name[MOST];
    dm_array array[MOST];
} term;

/* Does the array broadcast to out, whether it is read or not? */
static dm_status check_shape(const char *name, const dmi_desc *x, const char *out_name, const dmi_desc *out)
{
    const char *const names[] = {name, out_name};
    dmi_call pair = {.op = DMI_OP_map, .called = dmi_api_number(), .noperand = 2, .names = names};
    pair.operand[0].desc = *x;
    pair.operand[1].desc = *out;
    return dmi_check_broadcast(&pair, 0, 1);
}

/* Where out is complex, a complex factor makes what is computed from real arrays complex. */
static dm_status widen(dmi_by *by, const term *t, dm_dtype out)
{
    const dmi_desc *element;
    bool complex = t->factor.element == 0 && t->factor.imaginary != 0;
    if (t->factor.element == 1) {
        dm_status status = dmi_by_find(by, t->factor_name, t->factor.array, &element);
        if (status != DM_OK) {
            return status;
        }
        complex = dmi_dtype_is_complex(element->dtype);
    }
    if (complex && dmi_dtype_is_complex(out) && !dmi_dtype_is_complex(by->type)) {
        by->type = by->type == DM_F32 ? DM_C64 : DM_C128;
    }
    return DM_OK;
}

/* out = the sum of the terms */
static dm_status submit(dm_session *session, int terms, const term *t, const char *out_name, dm_array out)
{
    static const char *const factors[MOST] = {"p", "q"}, *const arrays[MOST][MOST] = {{"w", "x"}, {"y", "z"}};
    const dmi_desc *to, *x[MOST][MOST];
    dm_dtype dtype[MOST * MOST];
    char text[256] = "";
    int inputs = 0;
    dmi_by by;
    dm_status status = dmi_by_begin(&by, session, DMI_OP_map);
    status = status == DM_OK ? dmi_by_find(&by, out_name, out, &to) : status;
    for (int i = 0; i < terms; i++) {
        for (int k = 0; k < t[i].arrays && status == DM_OK; k++) {
            status = dmi_by_find(&by, t[i].name[k], t[i].array[k], &x[i][k]);
            status = status == DM_OK ? check_shape(t[i].name[k], x[i][k], out_name, to) : status;
            dtype[inputs++] = status == DM_OK ? x[i][k]->dtype : 0;
        }
    }
    if (status != DM_OK) {
        return status;
    }
    by.type = dmi_dtype_carrier(dmi_linear_type(dtype, inputs, to->dtype));
    for (int i = 0; i < terms && status == DM_OK; i++) {
        status = widen(&by, &t[i], to->dtype);
    }
    for (int i = 0; i < terms && status == DM_OK; i++) {
        char product[MOST + 2] = {*factors[i]};
        if (dmi_factor_zero(&t[i].factor)) {
            continue;
        }
        status = dmi_by_factor(&by, factors[i], t[i].factor_name, &t[i].factor);
        for (int k = 0; k < t[i].arrays; k++) {
            dmi_by_operand(&by, t[i].name[k], t[i].array[k], arrays[i][k], x[i][k]->dtype);
            strcat(product, arrays[i][k]);
        }
        dmi_by_term(&by, text, product);
    }
    status = status == DM_OK ? dmi_by_program(&by, text, to->dtype) : status;
    if (status != DM_OK) {
        return status;
    }
    dmi_by_operand(&by, out_name, out, NULL, 0);
    return dmi_by_submit(&by, session);
}

dm_status dm_axpby_by(dm_session *session, dm_factor alpha, dm_array x, dm_factor beta, dm_array y)
{
    if (dmi_factor_real(&alpha) && dmi_factor_real(&beta)) {
        return dm_axpby(session, alpha.value, x, beta.value, y);
    }
    return submit(session, 2, (term[]){{"alpha", alpha, 1, {"x"}, {x}}, {"beta", beta, 1, {"y"}, {y}}}, "y", y);
}

dm_status dm_add_by(dm_session *session, dm_factor alpha, dm_array a, dm_factor beta, dm_array b, dm_array out)
{
    if (dmi_factor_real(&alpha) && dmi_factor_real(&beta)) {
        return dm_add(session, alpha.value, a, beta.value, b, out);
    }
    return submit(session, 2, (term[]){{"alpha", alpha, 1, {"a"}, {a}}, {"beta", beta, 1, {"b"}, {b}}}, "out",
                  out);
}

dm_status dm_multiply_by(dm_session *session, dm_factor alpha, dm_array a, dm_array b, dm_array out)
{
    if (dmi_factor_real(&alpha)) {
        return dm_multiply(session, alpha.value, a, b, out);
    }
    return submit(session, 1, (term[]){{"alpha", alpha, 2, {"a", "b"}, {a, b}}}, "out", out);
}

dm_status dm_scale_by(dm_session *session, dm_factor alpha, dm_array a, dm_array out)
{
    if (dmi_factor_real(&alpha)) {
        return dm_scale(session, alpha.value, a, out);
    }
    return submit(session, 1, (term[]){{"alpha", alpha, 1, {"a"}, {a}}}, "out", out);
}
