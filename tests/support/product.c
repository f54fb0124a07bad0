#include "support/product.h"

#include <math.h>

dmt_host *dmt_matrix_random(dmt_case *c, dm_dtype dtype, int64_t rows, int64_t cols, int kind)
{
    const int64_t shape[] = {rows, cols};
    dmt_host *h = dmt_host_make(&c->scratch, dtype, 2, shape);
    dmt_host_random(h, &c->random, kind);
    return h;
}

void dmt_product_fill(dmt_case *c, dmt_product *p, dm_dtype a, dm_dtype b, dm_dtype out, int kind)
{
    p->a = p->trans_a ? dmt_matrix_random(c, a, p->k, p->m, kind) : dmt_matrix_random(c, a, p->m, p->k, kind);
    p->b = p->trans_b ? dmt_matrix_random(c, b, p->n, p->k, kind) : dmt_matrix_random(c, b, p->k, p->n, kind);
    p->c = dmt_matrix_random(c, out, p->m, p->n, kind);
    if (p->beta == 0) {
        dmt_host_set(p->c, NAN); /* must not be read */
    }
    if (p->alpha == 0 && dmt_chance(&c->random, 50)) {
        dmt_host_set(p->a, NAN);
    }
}

static dm_dtype computing_type(const dmt_product *p)
{
    bool wide = p->a->dtype == DM_F64 || p->b->dtype == DM_F64 || p->c->dtype == DM_F64;
    return wide ? DM_F64 : DM_F32;
}

/* Sums in any order: each of the k additions may round, by the size of what was added so far. */
void dmt_product_expect(const dmt_product *p, bool exact, dmt_host *want, dmt_host *bound)
{
    long double eps = dmt_eps(computing_type(p)), tiny = dmt_tiny(computing_type(p));
    int64_t a_row = p->trans_a ? 1 : p->k, a_next = p->trans_a ? p->m : 1;
    int64_t b_col = p->trans_b ? p->k : 1, b_next = p->trans_b ? 1 : p->n;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            const long double *a = p->a->v + i * a_row, *b = p->b->v + j * b_col;
            long double sum = 0, magnitude = 0;
            for (int64_t t = 0; t < p->k && p->alpha != 0; t++) {
                long double term = a[t * a_next] * b[t * b_next];
                sum += term;
                magnitude += fabsl(term);
            }
            int64_t at = i * p->n + j;
            long double old = p->beta == 0 ? 0 : (long double)p->beta * p->c->v[at];
            want->v[at] = (long double)p->alpha * sum + old;
            bound->v[at] =
                exact ? 0
                      : eps * ((long double)(p->k + 4) * fabsl(p->alpha) * magnitude + 4 * fabsl(old)) +
                            (long double)(p->k + 4) * tiny;
        }
    }
}

void dmt_product_say(dmt_case *c, const dmt_product *p)
{
    dmt_say(c, "\n    %c%c m %d n %d k %d alpha %.17g beta %.17g", p->trans_a ? 'T' : 'N',
            p->trans_b ? 'T' : 'N', (int)p->m, (int)p->n, (int)p->k, p->alpha, p->beta);
}

dm_status dmt_product_call(dmt_case *c, const dmt_product *p, dm_array a, dm_array b, dm_array out)
{
    return dm_gemm(c->session, p->trans_a ? DM_T : DM_N, p->trans_b ? DM_T : DM_N, p->alpha, a, b, p->beta,
                   out);
}

void dmt_product_check(dmt_case *c, const dmt_product *p, bool exact, dmt_operand *out)
{
    dmt_host *want = dmt_host_make(&c->scratch, p->c->dtype, 2, p->c->shape);
    dmt_host *bound = dmt_host_copy(&c->scratch, want);
    dmt_product_expect(p, exact, want, bound);
    dmt_operand_check(c, out, want, bound);
}
