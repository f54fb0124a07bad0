/* What elementwise ops should give, element by element in long double, and how far off a result may be. */
#ifndef DMT_ORACLE_H
#define DMT_ORACLE_H

#include "support/cases.h"

typedef struct dmt_expected {
    dmt_host *want, *bound;
} dmt_expected;

/* The shape and type of what is expected are like's. Operands broadcast to it. A term with a zero factor is not
 * read: NaN in it does not count. */
dmt_expected dmt_expect_add(dmt_case *c, double alpha, const dmt_host *a, double beta, const dmt_host *b,
                            const dmt_host *like);
dmt_expected dmt_expect_multiply(dmt_case *c, double alpha, const dmt_host *a, const dmt_host *b,
                                 const dmt_host *like);
dmt_expected dmt_expect_scale(dmt_case *c, double alpha, const dmt_host *a, const dmt_host *like);

/* A tensor of random numbers that suit an elementwise op: floats with some NaN and Inf, integers of any size.
 */
dmt_host *dmt_host_for_ewise(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape);
/* Random type and a shape that broadcasts to that one. */
dmt_host *dmt_broadcast_operand(dmt_case *c, int ndim, const int64_t *shape);
/* A shape for an elementwise output; returns its ndim. */
int dmt_ewise_shape(dmt_case *c, int64_t *shape);
/* Factors must be whole where everything is an integer. */
bool dmt_all_whole(const dmt_host *a, const dmt_host *b, const dmt_host *out);

/* Two views of one new array, the second shifted against the first by `shift` elements of each dim. */
typedef struct dmt_shifted {
    dmt_operand *whole;
    dm_array first, second;
    dmt_host *first_value, *second_value;
    int64_t lo[2];
} dmt_shifted;
dmt_shifted dmt_shifted_make(dmt_case *c, dm_dtype dtype, int64_t down, int64_t right);
/* After an op whose output was `second`: refused for its overlap with nothing changed, or done right. */
void dmt_shifted_check(dmt_case *c, dmt_shifted *s, dm_status status, dmt_expected expected, const char *call);

#endif
