/* What ops along one dim share: where they compute. */
#ifndef DMI_OPS_COMMON_ORDER_H
#define DMI_OPS_COMMON_ORDER_H

#include "ops/common.h"

/* Such an op has three parts, each a phase. First the elements of x come to a *frame*, a layout that serves the
 * op; often they are there. Then each worker computes. Then results go from the frame to where the output has
 * them, if that is not the same places. */
typedef struct dmi_along {
    int dim;
    dmi_desc frame; /* x in the frame: its type, its layout */
    dmi_value x;    /* the elements there */
} dmi_along;

/* An output, and where its elements are computed: itself, or a temporary. */
typedef struct dmi_along_out {
    dmi_value out, made;
    dmi_desc desc; /* of the temporary */
    bool moves;
} dmi_along_out;

/* whole: each worker must have whole rows along dim; else one range of each row's indices is enough. out: the
 * output whose layout may be the frame's. */
DM_CHECKED dm_status dmi_along_begin(dmi_builder *b, const dmi_value *x, int dim, bool whole,
                                     const dmi_value *out, dmi_along *along);
/* An output of x's shape but for its extent along dim, which may differ where rows are whole. dtype: in which
 * it is made. */
DM_CHECKED dm_status dmi_along_output(dmi_builder *b, const dmi_along *along, const dmi_value *out,
                                      dm_dtype dtype, dmi_along_out *o);
/* Moves what was computed elsewhere. */
DM_CHECKED dm_status dmi_along_end(dmi_builder *b, dmi_along_out *const *outs, int count);
/* x in a layout of the session's workers, of this type: where it does not lie so already, a temporary, which
 * comes in a phase of its own (*phase is set, and the caller ends the phase). everywhere: all of it at each
 * worker, else only the type changes. */
DM_CHECKED dm_status dmi_build_brought(dmi_builder *b, const dmi_value *x, bool everywhere, dm_dtype dtype,
                                       dmi_desc *desc, dmi_value *brought, bool *phase);
/* Is args.i[0] a dim of operand 0, and is operand `out` of the same shape? */
DM_CHECKED dm_status dmi_check_along(const dmi_call *call, int out);

#endif
