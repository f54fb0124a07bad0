/* Sums of parts of x that are accumulated before they are sent. */
#ifndef DMI_OPS_COMMON_SUM_H
#define DMI_OPS_COMMON_SUM_H

#include "ops/common.h"
#include "plan/reduce.h"

typedef struct dmi_summing {
    dmi_builder *b;
    const dmi_desc *x, *out;
    unsigned reduced;
    bool keeps;   /* out has all dims */
    int acc;      /* accumulator type */
    int64_t elem; /* its bytes */
    bool scatter; /* out is made in slices, of so many pieces */
    int pieces;
    /* of common_sum.c */
    int part_work, acc_work, landing;
    int64_t *part_at; /* in part_work: where the accumulators of each own region of x begin */
    dmi_late late;    /* additions of this turn */
} dmi_summing;

void dmi_sum_parts(dmi_summing *s);

#endif
