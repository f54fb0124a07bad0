/* Random products and lists of them, for the tests of all forms and of forced ones. */
#include "support/product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The form in which the call would run; "": it would not. */
static dm_status planned(dmt_case *c, const dmt_product *p, const dm_array operand[3], char form[40])
{
    char *text = NULL;
    form[0] = '\0';
    DMT_OK(c, dm_explain_begin(c->session));
    dm_status status = dmt_product_call(c, p, operand[0], operand[1], operand[2]);
    DMT_OK(c, dm_explain_end(c->session, &text));
    const char *at = text ? strstr(text, "algorithm ") : NULL;
    if (status == DM_OK && (!at || sscanf(at, "algorithm %39s", form) != 1)) {
        dmt_fail(c, "explain names no algorithm: %s", text ? text : "no text");
    }
    free(text);
    return status;
}

bool dmt_product_run(dmt_case *c, const dmt_product *p, dm_array a, dm_array b, dm_array out)
{
    dmt_forced *forced = c->user;
    char form[40] = "";
    dm_status expected = forced ? planned(c, p, (dm_array[]){a, b, out}, form) : DM_OK;
    dm_status status = dmt_product_call(c, p, a, b, out);
    if (forced && status == DM_ERR_UNSUPPORTED) {
        dmt_status_is(c, expected, status, "dm_gemm in explain");
        forced->refused++;
        return false;
    }
    dmt_status_is(c, status, DM_OK, "dm_gemm");
    dmt_status_is(c, expected, DM_OK, "dm_gemm in explain");
    if (forced) { /* where nothing moves, the form is "local" or "stationary", whatever is forced */
        bool served = strcmp(form, forced->algorithm) == 0;
        forced->served += served;
        forced->otherwise += !served;
    }
    return true;
}

static dm_dtype short_float(dmt_case *c)
{
    static const dm_dtype types[] = {DM_F8E4M3, DM_F8E5M2, DM_F8E4M3, DM_F16, DM_BF16};
    return types[dmt_int(&c->random, 0, 4)];
}

/* Half of the cases have small whole numbers: all sums are exact in every type, so nothing may be off at all.
 */
static bool random_product(dmt_case *c, dmt_product *p)
{
    bool brief =
        dmt_chance(&c->random, 15); /* operands of 8 bits among them: matrix units sum them in fewer bits */
    bool exact = brief || dmt_chance(&c->random, 50), mixed = dmt_chance(&c->random, 40);
    dm_dtype dtype = dmt_float_random(c);
    *p = (dmt_product){.trans_a = dmt_chance(&c->random, 50), .trans_b = dmt_chance(&c->random, 50)};
    p->m = dmt_extent_random(c, 300);
    p->n = dmt_extent_random(c, 300);
    p->k = dmt_extent_random(c, 300);
    if (p->m * p->n * p->k > 400000) {
        p->k = 400000 / (p->m * p->n);
    }
    p->alpha = dmt_factor_random(c, exact);
    p->beta = dmt_factor_random(c, exact);
    dm_dtype a = brief ? short_float(c) : mixed ? dmt_float_random(c) : dtype;
    dm_dtype b = brief ? short_float(c) : mixed ? dmt_float_random(c) : dtype;
    dmt_product_fill(c, p, a, b, mixed ? dmt_float_random(c) : dtype, exact ? DMT_SMALL : DMT_SMOOTH);
    return exact;
}

void dmt_product_case(dmt_case *c)
{
    dmt_product p;
    bool exact = random_product(c, &p);
    dmt_operand *a = dmt_operand_make(c, "a", p.a, 0);
    dmt_operand *b = dmt_operand_make(c, "b", p.b, 0);
    dmt_operand *out = dmt_operand_make(c, "c", p.c, p.beta == 0 ? DMT_UNSET : 0);
    dmt_product_say(c, &p);
    if (!dmt_product_run(c, &p, a->array, b->array, out->array)) {
        dmt_operand_unchanged(c, out);
        return;
    }
    dmt_product_check(c, &p, exact, out);
    if (dmt_chance(&c->random, 25)) {
        dmt_operand_unchanged(c, a);
        dmt_operand_unchanged(c, b);
    }
}

/* 16-bit operands of extents that GPU kernels like, split in one dim each. */
void dmt_product_aligned_case(dmt_case *c)
{
    static const int kinds[] = {DMT_ROWS, DMT_LAST, DMT_REPLICATED, DMT_GRID_BLOCKS, DMT_SUBSET};
    static const char *const names[] = {"a", "b", "c"};
    dmt_product p = {.trans_a = dmt_chance(&c->random, 30), .trans_b = dmt_chance(&c->random, 30), .alpha = 1};
    dm_dtype dtype = dmt_chance(&c->random, 50) ? DM_BF16 : DM_F16;
    int64_t unit = dmt_chance(&c->random, 70) ? 8 * c->workers : 8; /* parts of whole groups of 16 bytes */
    p.m = unit * dmt_int(&c->random, 1, 160 / unit);
    p.n = unit * dmt_int(&c->random, 1, 320 / unit);
    p.k = unit * dmt_int(&c->random, 1, 240 / unit);
    p.beta = dmt_chance(&c->random, 50) ? 0 : -1;
    dmt_product_fill(c, &p, dtype, dtype, dmt_chance(&c->random, 70) ? dtype : DM_F32, DMT_SMALL);
    dmt_host *values[] = {p.a, p.b, p.c};
    dmt_operand *o[3];
    for (int i = 0; i < 3; i++) {
        dmt_layout layout;
        dmt_layout_kind(&layout, &c->scratch, c->session, 2, values[i]->shape,
                        kinds[dmt_int(&c->random, 0, dmt_chance(&c->random, 70) ? 1 : 4)]);
        o[i] = dmt_operand_plain(c, names[i], values[i], layout.use, layout.text);
    }
    dmt_product_say(c, &p);
    if (!dmt_product_run(c, &p, o[0]->array, o[1]->array, o[2]->array)) {
        dmt_operand_unchanged(c, o[2]);
        return;
    }
    dmt_product_check(c, &p, true, o[2]);
}

/* Every triple of a few layouts, in the deterministic list's order. */
void dmt_product_layouts_case(dmt_case *c)
{
    static const int kinds[] = {DMT_ROWS,        DMT_LAST,       DMT_CYCLIC_ONE,   DMT_GRID_CYCLIC,
                                DMT_GRID_BLOCKS, DMT_REPLICATED, DMT_TWO_REPLICAS, DMT_SINGLE,
                                DMT_MAP,         DMT_SUBSET};
    const char *names[] = {"a", "b", "c"};
    int64_t pick = c->number * 7 % 1000; /* goes round all triples, and early through all kinds */
    dmt_product p = {
        .trans_a = (int)(c->number % 2), .trans_b = (int)(c->number / 2 % 2), .m = 13, .n = 9, .k = 17};
    p.alpha = 2;
    p.beta = c->number % 3 == 0 ? 0 : -1;
    dmt_product_fill(c, &p, DM_F32, DM_F32, DM_F32, DMT_SMALL);
    dmt_host *values[] = {p.a, p.b, p.c};
    dmt_operand *operands[3];
    for (int i = 0; i < 3; i++) {
        dmt_layout layout;
        dmt_layout_kind(&layout, &c->scratch, c->session, 2, values[i]->shape, kinds[pick % 10]);
        operands[i] = dmt_operand_plain(c, names[i], values[i], layout.use, layout.text);
        pick /= 10;
    }
    dmt_product_say(c, &p);
    if (!dmt_product_run(c, &p, operands[0]->array, operands[1]->array, operands[2]->array)) {
        dmt_operand_unchanged(c, operands[2]);
        return;
    }
    dmt_product_check(c, &p, true, operands[2]);
}
