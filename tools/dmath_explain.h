/* The two halves of `dmath explain`: the request and the answer. */
#ifndef DMATH_TOOL_EXPLAIN_H
#define DMATH_TOOL_EXPLAIN_H

#include "dmath.h"

typedef struct explain_options {
    tool_common common;
    int op;          /* enum dmi_op; -1: not given yet */
    int64_t m, n, k; /* -1: not given */
    int worker;      /* -1: all */
    int trans_a, trans_b, transpose;
    double alpha, beta;
    int dim;                   /* sum: over which; -1: all */
    dm_dtype dtype, out_dtype; /* out_dtype 0: as dtype */
    tool_layout layout[3];
} explain_options;

bool tool_explain_parse(int argc, char **argv, explain_options *out);
/* The call that the options describe, checked. layouts[3] receives the layouts to destroy afterwards, also on
 * failure. */
dm_status tool_explain_call(const explain_options *o, int workers, dmi_call *call, dmi_layout *layouts[3]);

#endif
