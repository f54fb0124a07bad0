/* What losses with labels, their gradient and the accuracy share. */
#ifndef DMI_OPS_SOFTMAX_LOSS_PARTS_H
#define DMI_OPS_SOFTMAX_LOSS_PARTS_H

#include "ops/common_layer.h"

/* A call of this op without operands; options NULL: refused. */
DM_CHECKED dm_status dmi_labelled_call(const dm_loss *options, int op, dmi_call *call);
/* x: N x ... x C; labels, operand 1: one for each C elements. Shapes, memory. */
DM_CHECKED dm_status dmi_labelled_fits(const dmi_call *call, int x);
/* Its descriptor, and how the kernel takes the labels: whole where they must be counted. */
void dmi_labelled_describe(const dmi_builder *b, const dmi_call *call, int x, dmi_labelled *d,
                           dmi_layer_ref *labels);
/* Must the labels that are not ignored be counted? */
bool dmi_labelled_counts(const dmi_call *call);
void dmi_labelled_options(const dmi_call *call, dmi_labelled *d); /* writes what the caller's options decide */
enum { DMI_LABELLED_NORMALIZE = 0, DMI_LABELLED_SLICES = 3, DMI_LABELLED_TOP = 4 }; /* places in args.i */

#endif
