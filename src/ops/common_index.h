/* What take and put share: positions, what each worker wants for them, and the exchange of rows. */
#ifndef DMI_OPS_COMMON_INDEX_H
#define DMI_OPS_COMMON_INDEX_H

#include "ops/common.h"
#include "plan/bring.h"
#include "plan/exchange.h"

/* args.i of take, put and index_count. */
enum { DMI_INDEX_DIM, DMI_INDEX_MODE, DMI_INDEX_ALONG, DMI_INDEX_ADDS, DMI_INDEX_WAY, DMI_INDEX_INTS };
/* The way of take, where the command's tail does not say it. */
enum { DMI_WAY_OTHER, DMI_WAY_LISTED, DMI_WAY_LENT };

/* How a call uses its operands: lines[.., indices[p], ..] and box[p], p the positions. Operand 0 has the
 * indices. */
typedef struct dmi_indexing {
    int lines_operand, box_operand;
    const dmi_desc *indices, *lines, *box;
    int dim, mode;
    bool along;                  /* the indices have the dims of the positions, else one: dim */
    bool gathers;                /* lines come to box, which is written; else box comes to lines */
    int64_t extent[DM_MAX_DIMS]; /* of the positions */
} dmi_indexing;
void dmi_indexing_of(const dmi_call *call, dmi_indexing *out);
/* Dims, types and shapes; a negative dim in args becomes one from 0. */
DM_CHECKED dm_status dmi_indexing_check(dmi_call *call, bool gathers);
/* Every worker keeps its part of what is written; the rest comes to it. */
dm_status dmi_plan_indexed(dmi_builder *b, const dmi_call *call, const dmi_indexing *t);
/* Bytes that this moves in all. */
int64_t dmi_indexed_bytes(const dmi_indexing *t, int workers);

/* The parts of it. The positions that region `which` of what stays needs; memory unset. */
void dmi_indexing_positions(const dmi_indexing *t, int worker, int64_t which, dmi_region *out);
/* How the indices come to them, or else the lines or values. */
dmi_bring dmi_indexing_bring(const dmi_indexing *t, bool indices);
/* Strides of the indices of a region along the positions' dims. */
void dmi_indexing_strides(const dmi_indexing *t, const dmi_region *indices, int64_t *stride);

/* --- common_exchange.c: rows go to and from those who hold them. The call's tail is the table of dmi_exchange
 */
/* Is x split along dim alone, over workers 0, 1, ... in order, so that one formula says who holds an index? */
bool dmi_rows_held(const dmi_desc *x, int dim);
dmi_index_owner dmi_rows_owner(const dmi_desc *x, int dim, int mode);
/* Are they blocks of consecutive indices, in the order of the workers, and has x no others? */
bool dmi_rows_in_order(const dmi_desc *x, int dim);
dm_status dmi_plan_take_rows(dmi_builder *b, const dmi_call *call, const dmi_indexing *t);
dm_status dmi_plan_put_rows(dmi_builder *b, const dmi_call *call, const dmi_indexing *t);

/* --- common_index_list.c: the call's tail has the number of the row, 0 .. n-1, for each index */
/* Can rows come so to box? */
bool dmi_rows_listed(const dmi_indexing *t);
dm_status dmi_plan_take_listed(dmi_builder *b, const dmi_call *call, const dmi_indexing *t);

/* --- common_index_lent.c: rows are read where they are, by workers of one address space */
bool dmi_rows_lent(const dmi_indexing *t, const dmi_profile *profile);
dm_status dmi_plan_take_lent(dmi_builder *b, const dmi_call *call, const dmi_indexing *t);

/* --- common_index_call.c: the public calls */
/* One call of take or put: looks for indices outside (mode RAISE), chooses how rows come, and makes the
 * commands. arrays: as in the table. */
DM_CHECKED dm_status dmi_index_submit(dm_session *session, int op, const dm_array *arrays, int dim, int mode,
                                      bool along, bool adds);

#endif
