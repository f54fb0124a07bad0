/* Matrix products for the tests: operands, what their product should be, and the comparison. */
#ifndef DMT_PRODUCT_H
#define DMT_PRODUCT_H

#include "support/cases.h"

typedef struct dmt_product {
    int trans_a, trans_b;
    int64_t m, n, k;
    double alpha, beta;
    dmt_host *a, *b, *c; /* as stored: a transposed operand the other way round */
} dmt_product;

dmt_host *dmt_matrix_random(dmt_case *c, dm_dtype dtype, int64_t rows, int64_t cols, int kind);
/* Makes a, b and c for the sizes, transposes and factors of p; what is not to be read is NaN. */
void dmt_product_fill(dmt_case *c, dmt_product *p, dm_dtype a, dm_dtype b, dm_dtype out, int kind);
void dmt_product_say(dmt_case *c, const dmt_product *p);
dm_status dmt_product_call(dmt_case *c, const dmt_product *p, dm_array a, dm_array b, dm_array out);
/* exact: of small whole numbers, whose sums no type rounds. */
void dmt_product_expect(const dmt_product *p, bool exact, dmt_host *want, dmt_host *bound);
void dmt_product_check(dmt_case *c, const dmt_product *p, bool exact, dmt_operand *out);

/* In c->user where the session forces an algorithm: how its products went. */
typedef struct dmt_forced {
    const char *algorithm;
    int64_t served;    /* by the forced algorithm */
    int64_t otherwise; /* in another form, as nothing had to move */
    int64_t refused;
} dmt_forced;
/* The product, which has to succeed; false: the forced algorithm does not serve these layouts. */
bool dmt_product_run(dmt_case *c, const dmt_product *p, dm_array a, dm_array b, dm_array out);
/* Cases, with c->user a dmt_forced or NULL. Anything; 16-bit operands of extents that GPU kernels like, split
 * in one dim each; the triples of a list of layouts, of which there are 1000. */
void dmt_product_case(dmt_case *c);
void dmt_product_aligned_case(dmt_case *c);
void dmt_product_layouts_case(dmt_case *c);

#endif
