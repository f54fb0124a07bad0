/* What the step of gradient descent and its form with a rounded copy share. */
#ifndef DMI_OPS_MOMENTUM_PARTS_H
#define DMI_OPS_MOMENTUM_PARTS_H

#include "ops/common.h"

enum { DMI_MOMENTUM_GRADIENT }; /* the first of three arrays: gradient, history, weights */
typedef struct dmi_momentum_step {
    double scale, decay, momentum;
    int l1;
    dm_factor rate;
    dm_array array[3], copy; /* copy: of DMI_OP_momentum_rounded */
} dmi_momentum_step;
DM_CHECKED dm_status dmi_momentum_submit(dm_session *session, int op, const dmi_momentum_step *step);

#endif
