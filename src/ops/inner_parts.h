/* What the inner product and its gradients share. */
#ifndef DMI_OPS_INNER_PARTS_H
#define DMI_OPS_INNER_PARTS_H

#include "ops/common_layer.h"

/* x: N x D, w: M x D, y: N x M; bias: operand 3, if there is one. Shapes, types, memory. */
DM_CHECKED dm_status dmi_inner_fits(const dmi_call *call, int x, int w, int y);
/* w -1: the kernel's type does not depend on that of the weights. */
void dmi_inner_describe(const dmi_builder *b, const dmi_call *call, int x, int w, int y, dmi_inner *d);
enum { DMI_INNER_BIAS = 3 };
/* dm_inner_backward_weights with options, which have been taken: of this library's size, with a good wire. */
DM_CHECKED dm_status dmi_inner_weights(dm_session *session, const dm_inner *inner, dm_array x, dm_array dy,
                                       double beta, dm_array dw, dm_array db);

#endif
