/* What the convolution and its gradients share. */
#ifndef DMI_OPS_CONV_PARTS_H
#define DMI_OPS_CONV_PARTS_H

#include "ops/common_layer.h"

/* Numbers of operands. */
typedef struct dmi_conv_roles {
    int x, w, y, bias; /* bias -1: none */
} dmi_conv_roles;
/* A call of this op without operands. */
DM_CHECKED dm_status dmi_conv_call(const dm_conv *conv, int op, dmi_call *call);
/* Shapes, types, memory. */
DM_CHECKED dm_status dmi_conv_fits(const dmi_call *call, dmi_conv_roles roles);
/* Its descriptor; scratch: elements. */
void dmi_conv_describe(const dmi_builder *b, const dmi_call *call, dmi_conv_roles roles, dmi_convolution *d,
                       int64_t *scratch);
/* The type that the kernel takes, of the operands x, w and y. Gradients of weights have their own. */
dm_dtype dmi_conv_dtype(const dmi_builder *b, const dmi_call *call, dmi_conv_roles roles);
enum { DMI_CONV_SLICES = 7, DMI_CONV_RELU = 8 }; /* places in args.i */

#endif
