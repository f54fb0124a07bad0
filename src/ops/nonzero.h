/* Indices of elements that are not zero. */
#ifndef DMI_OPS_NONZERO_H
#define DMI_OPS_NONZERO_H

#include "ops/common.h"

/* args.i of nonzero */
enum { DMI_NONZERO_COUNTS };

#endif
