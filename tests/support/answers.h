/* What reductions make of n elements: loops in long double. */
#ifndef DMT_ANSWERS_H
#define DMT_ANSWERS_H

#include "support/numbers.h"

typedef struct dmt_answer {
    long double value, bound;
    bool whole; /* an integer: it is converted as integers are */
} dmt_answer;

/* Flags of a row: no elements are refused; INEXACT: with a bound; the product is tested with numbers whose product is
 * exact. */
enum { DMT_NEEDS_ELEMENTS = 1, DMT_INEXACT = 2, DMT_POWERS = 4 };
typedef struct dmt_reduction {
    const char *name;
    dmt_answer (*value)(dm_dtype dtype, const long double *v, int64_t n);
    int flags;
} dmt_reduction;
int dmt_reductions(void);
const dmt_reduction *dmt_reduction_at(int i);
const dmt_reduction *dmt_reduction_named(const char *name);

/* The answers of var and (root) std are those of correction 0. */
dmt_answer dmt_answer_corrected(dmt_answer a, int64_t n, double correction, bool root);

#endif
