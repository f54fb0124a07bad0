/* What ops along one dim share: where they compute. */
#ifndef DMI_OPS_COMMON_ORDER_H
#define DMI_OPS_COMMON_ORDER_H

#include "ops/common.h"
#include "ops/common_team.h"

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
 * output whose layout may be the frame's. A frame of its own is on the team. */
DM_CHECKED dm_status dmi_along_begin(dmi_builder *b, const dmi_team *team, const dmi_value *x, int dim, bool whole,
                                     const dmi_value *out, dmi_along *along);
/* The same with the places of `at`, which has x's shape, as the frame. */
DM_CHECKED dm_status dmi_along_at(dmi_builder *b, const dmi_value *x, int dim, const dmi_desc *at,
                                  dmi_along *along);
/* Are the elements of both at the same workers, in the same order? Along dim the extents may differ where rows
 * are whole. */
bool dmi_same_places(const dmi_desc *x, const dmi_desc *y, int dim);
/* An output of x's shape but for its extent along dim, which may differ where rows are whole. dtype: in which
 * it is made. */
DM_CHECKED dm_status dmi_along_output(dmi_builder *b, const dmi_along *along, const dmi_value *out,
                                      dm_dtype dtype, dmi_along_out *o);
/* Moves what was computed elsewhere. */
DM_CHECKED dm_status dmi_along_end(dmi_builder *b, dmi_along_out *const *outs, int count);
/* x in a layout of the team, of this type: where it does not lie so already, a temporary, which
 * comes in a phase of its own (*phase is set, and the caller ends the phase). everywhere: all of it at each
 * worker, else only the type changes. */
DM_CHECKED dm_status dmi_build_brought(dmi_builder *b, const dmi_team *team, const dmi_value *x, bool everywhere, dm_dtype dtype,
                                       dmi_desc *desc, dmi_value *brought, bool *phase);
/* Must places in a row of n elements have 64 bits? */
static inline bool dmi_sort_is_wide(const dmi_builder *b, int64_t n)
{
    return n > UINT32_MAX || b->profile->sort_wide;
}
/* --- rows that all workers sort together: sort_long.c, searchsorted.c, merge.c */
/* out[w, k] (i64, a row for each worker, at that worker) = how many elements of worker w's shard of `sorted`,
 * each shard in order for itself, come before v[k]. v has one dim and lies whole at each worker. */
DM_CHECKED dm_status dmi_search_parts(dm_session *session, dm_array sorted, dm_array v, bool right,
                                      bool descending, dm_array out);
/* out = the elements of x, or their indices, which lie beside them, where each shard of x is in order for
 * itself, and worker i has rows[i * workers + j] elements that belong to worker j's shard of out. */
DM_CHECKED dm_status dmi_merge(dm_session *session, bool descending, int dim, const int64_t *rows, int workers,
                               dm_array x, dm_array indices, dm_array out);
typedef struct dmi_sorting {
    int dim;
    bool descending, indices; /* indices: they are wanted, not the elements */
} dmi_sorting;
/* values, indices (or DM_NO_ARRAY) = each worker's shard of x in order for itself, or (first) the first of it,
 * x split along dim in contiguous blocks among all workers: as many as the worker's shard of values has. */
DM_CHECKED dm_status dmi_sort_parts(dm_session *session, const dmi_sorting *sort, bool first, dm_array x,
                                    dm_array values, dm_array indices);
/* The first of few long rows. *done as below. */
DM_CHECKED dm_status dmi_topk_long(dm_session *session, const dmi_sorting *sort, dm_array x, dm_array values,
                                   dm_array indices, bool *done);
/* Sorts few long rows by an exchange. *done is false where that does not serve; then nothing was done. */
DM_CHECKED dm_status dmi_sort_long(dm_session *session, const dmi_sorting *sort, dm_array x, dm_array out,
                                   bool *done);
/* Is args.i[0] a dim of operand 0, and is operand `out` of the same shape? */
DM_CHECKED dm_status dmi_check_along(const dmi_call *call, int out);

#endif
