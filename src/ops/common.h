/* What several ops share. */
#ifndef DMI_OPS_COMMON_H
#define DMI_OPS_COMMON_H

#include "expr/expr.h"
#include "ops/session.h"

/* --- common_check.c */
enum { DMI_APART, DMI_SAME, DMI_OVERLAPPING };
/* How the elements of two operands share memory. */
int dmi_operands_overlap(const dmi_operand *a, const dmi_operand *b);
/* DM_ERR_OVERLAP unless input and output are apart or (if same_allowed) the same elements. */
DM_CHECKED dm_status dmi_check_overlap(const dmi_call *call, int input, int output, bool same_allowed);
DM_CHECKED dm_status dmi_check_same_shape(const dmi_call *call, int a, int b);
/* Does operand a broadcast to operand out (NumPy's rule, out has the full shape)? */
DM_CHECKED dm_status dmi_check_broadcast(const dmi_call *call, int a, int out);
/* With integer inputs (operands 0 .. inputs-1) and an integer output: is factor number `which` a whole number that int64
 * holds? */
DM_CHECKED dm_status dmi_check_factor(const dmi_call *call, int which, const char *name, int inputs, int output);
bool dmi_is_whole(double value);
/* Dims to reduce over, as public calls take them, become bits of args.i[0]; -1: all. */
DM_CHECKED dm_status dmi_call_dims(dmi_call *call, const int *dims, int ndims);
/* Has x those dims? Writes x's bits where args.i[0] is -1. */
DM_CHECKED dm_status dmi_check_dims(dmi_call *call, const dmi_desc *x);
/* And is operand `out` of the shape of x without those dims, or with 1 in their place? */
DM_CHECKED dm_status dmi_check_reduced(dmi_call *call, const dmi_desc *x, int out);
/* "3x5" */
const char *dmi_shape_text(const dmi_desc *desc, char text[192]);

/* --- sum.c: all but the factors */
DM_CHECKED dm_status dmi_check_sum(dmi_call *call); /* args.i[1]: out is not read */

/* --- common_program.c */
/* A program of up to three inputs, x, y and z, without numbers: "exp(x - y)". Its result is stored as type `out`. */
DM_CHECKED dm_status dmi_program_of(const char *text, int inputs, const dm_dtype *in, dm_dtype out,
                                    dmi_map_program *program);

/* --- common_random.c: random numbers in expressions. They are part of the program's inputs, behind the operands. */
/* The same of one temporary: a fill of this kind (fill.h), whose seed is this number of the call. */
void dmi_call_filled(dmi_call *call, int kind, int seed, dm_dtype dtype);
int dmi_randoms_of(const dmi_call *call);                                  /* how many there are */
/* A phase of its own: temporaries that are filled with them, of like's shape and where its elements are. */
void dmi_plan_randoms(dmi_builder *b, const dmi_call *call, const dmi_desc *like, dmi_value *value);

/* --- common_file.c */
/* The steps by which this worker moves its shard of operand 0 from a .npy file (all of it) or to one (its shard
 * of replica 0). data_offset: bytes before the first element. */
typedef struct dmi_file_plan {
    bool reading, fortran, swap;
    int64_t data_offset;
    int64_t first, last; /* parts of a checkpoint's file, from 1 on, and no others; 0: the file has no parts */
} dmi_file_plan;
DM_CHECKED dm_status dmi_plan_file(dmi_builder *b, const dmi_call *call, const dmi_file_plan *file);

/* --- copy.c */
/* dst = src, where dst has one dim more, `dim`, of extent 1. */
DM_CHECKED dm_status dmi_copy_into(dm_session *session, dm_array src, dm_array dst, int dim);
/* dst = src with source dim perm[d] along dim d of dst; src is operand number or (work >= 0) that workspace. */
DM_CHECKED dm_status dmi_plan_copy(dmi_builder *b, const dmi_desc *src, dmi_ref src_ref, const dmi_desc *dst, dmi_ref dst_ref,
                                   const int *perm, const dmi_mark after, dmi_mark done);

#endif
