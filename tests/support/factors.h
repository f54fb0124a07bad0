/* Factors for the tests: numbers, or elements of arrays of any type, shape and layout. */
#ifndef DMT_FACTORS_H
#define DMT_FACTORS_H

#include "support/cases.h"

typedef struct dmt_factor {
    dm_factor given;
    double value;
    dmt_operand *element; /* NULL: a number */
} dmt_factor;

/* whole: for integers alone. zero: may be one that is 0, with which a number keeps its operand from being read.
 */
dmt_factor dmt_factor_make(dmt_case *c, const char *name, bool whole, bool zero);
void dmt_factor_unchanged(dmt_case *c, const dmt_factor *f);

#endif
