/* Losses between two arrays of one shape, and hinge losses. */
#ifndef DMI_OPS_PAIR_LOSS_PARTS_H
#define DMI_OPS_PAIR_LOSS_PARTS_H

#include "ops/softmax_loss_parts.h"

enum { DMI_LABELLED_LOSS = 5 }; /* place in args.i: DMI_LOSS_* */
/* Operand 0: x, operand 1: the targets, of one shape N x ... */
DM_CHECKED dm_status dmi_pair_fits(const dmi_call *call);
/* The descriptor, and how the kernel takes the targets. */
void dmi_pair_describe(const dmi_call *call, dmi_labelled *d, dmi_layer_ref *targets);
/* Of hinge losses, whose labels are those of softmax_loss_parts.h. */
void dmi_hinge_describe(const dmi_builder *b, const dmi_call *call, dmi_labelled *d, dmi_layer_ref *labels);

#endif
