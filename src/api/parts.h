/* What calls made of other calls share. They open a scope for the views and temporaries that they make. */
#ifndef DMI_API_PARTS_H
#define DMI_API_PARTS_H

#include "ops/by.h"
#include "ops/chain.h"

/* An array as an operand, for checks before anything is done. */
DM_CHECKED dm_status dmi_part_operand(dm_session *session, dm_array a, const char *name, dmi_operand *out);
/* A view of count indices of one dim from lo on, with all of the other dims. */
DM_CHECKED dm_status dmi_part_view(dm_session *session, dm_array a, int dim, int64_t lo, int64_t count,
                                   dm_array *out);
/* The same part of dst = that of src. */
DM_CHECKED dm_status dmi_part_copy(dm_session *session, dm_array src, int64_t from, dm_array dst, int64_t to,
                                   int dim, int64_t count);
/* All elements of an array along one dim, in row-major order: a view, or one of a copy. */
DM_CHECKED dm_status dmi_part_flat(dm_session *session, dm_array a, dm_array *out);
/* *dim counts from 0 afterwards; it may have been negative, from the end of `ndim`. */
DM_CHECKED dm_status dmi_part_dim(int *dim, int ndim);
/* DM_ERR_SHAPE unless out is of this shape. */
DM_CHECKED dm_status dmi_part_shape(const dmi_operand *out, int ndim, const int64_t *shape);
/* DM_ERR_OVERLAP unless they share no memory. */
DM_CHECKED dm_status dmi_part_apart(const dmi_operand *x, const char *name, const dmi_operand *out);
/* Errors of a factor of a call that computes in this type; it may be no part of out. */
DM_CHECKED dm_status dmi_part_factor(dm_session *session, const char *name, const dm_factor *f, dm_dtype type,
                                     const char *out_name, const dmi_operand *out);
/* A factor that is settled, as a name in a chain's texts. */
dmi_chain_name dmi_chain_factor(const char *name, const dm_factor *f);
/* DM_ERR_STATE while a program is recorded: of calls that wait, or write from the host. */
DM_CHECKED dm_status dmi_part_outside(dm_session *session);
/* Ends the scope; the status is that of the call. */
DM_CHECKED dm_status dmi_part_end(dm_session *session, dm_status status);

#endif
