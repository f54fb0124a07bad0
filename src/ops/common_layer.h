/* The planner of layers: kernels that run slice by slice. See include/dmath/layers.h for slices. */
#ifndef DMI_OPS_COMMON_LAYER_H
#define DMI_OPS_COMMON_LAYER_H

#include "kernels/dnn/dnn.h"
#include "ops/common.h"
#include "plan/program.h"

#include <dmath/layers.h>

/* What a reference of the kernel is, of the operand of the call. */
enum dmi_layer_role {
    DMI_LAYER_NONE,   /* the call has none */
    DMI_LAYER_SLICED, /* read: the slice's samples */
    DMI_LAYER_ROWS,   /* the same, but rows of the last dim may lie apart, each as far from the one before it */
    DMI_LAYER_WHOLE,  /* read: all of it */
    DMI_LAYER_MADE,   /* written: the slice's samples */
    DMI_LAYER_MADE_ROWS, /* the same, but rows of the last dim may lie apart, where all begin at 16 bytes */
    DMI_LAYER_SUMMED, /* each slice makes a whole one; operand = scale * (their sum in the order of the slices)
                         + beta * operand */
    DMI_LAYER_SUMMED_BF16, /* the same, but each slice's is rounded to bf16 before it is sent and added */
    DMI_LAYER_SCRATCH      /* no operand */
};
typedef struct dmi_layer_ref {
    int role, operand;
    dm_dtype dtype; /* that the kernel takes or makes */
    int64_t count;  /* SCRATCH: elements */
} dmi_layer_ref;
typedef struct dmi_layer {
    int kernel;    /* DMI_KERNEL_* */
    dmi_dnn *desc; /* its descriptor, desc_bytes of them; the planner completes dmi_dnn */
    int slices;
    int like; /* operand whose layout decides which worker computes a slice; its dim 0 is the batch */
    dmi_layer_ref ref[DMI_DNN_REFS]; /* [desc_refs] */
} dmi_layer;
DM_CHECKED dm_status dmi_plan_layer(dmi_builder *b, const dmi_call *call, const dmi_layer *layer);

/* May products of f32 be made of operands that are rounded to TF32? By the session's option, on GPUs. */
static inline bool dmi_layer_tf32(const dmi_builder *b)
{
    return b->profile->gpu && b->profile->gemm_compute == DMI_COMPUTE_TF32;
}

/* --- common_layer_check.c */
/* f64 where an operand is f64, else f32. */
dm_dtype dmi_layer_dtype(const dmi_call *call);
/* The type that the kernel takes: f16 or bf16, if the workers are GPUs and operands i of the call, bit i of
 * `operands`, all have that type; else that which is computed in. */
dm_dtype dmi_layer_kernel_dtype(const dmi_builder *b, const dmi_call *call, unsigned operands);
/* Of sums and biases beside such operands. */
static inline dm_dtype dmi_layer_wide(dm_dtype dtype)
{
    return dmi_dtype_bytes(dtype) == 2 ? DM_F32 : dtype;
}
/* Outputs (operands that are written) share memory with no other operand; slices is not negative. */
DM_CHECKED dm_status dmi_layer_check(const dmi_call *call, int slices);
/* Operand i must have that many dims. */
DM_CHECKED dm_status dmi_layer_dims(const dmi_call *call, int i, int ndim);
/* Operand i must have so many elements; of: what they are, for the message: "out channels". */
DM_CHECKED dm_status dmi_layer_count(const dmi_call *call, int i, int64_t count, const char *of);
/* Operand x must have 2 dims or more, and operand `sums` one element for each channel: index of its last dim. */
DM_CHECKED dm_status dmi_layer_channels(const dmi_call *call, int x, int sums);
/* Rows of channels in a sample of x. */
int64_t dmi_layer_rows(const dmi_desc *x);
int64_t dmi_layer_elements(const dmi_desc *x);
/* Elements of a sample: of all dims but the first. */
int64_t dmi_layer_sample(const dmi_desc *x);
/* Submits the call with its operands; the last, if DM_NO_ARRAY, is left out. */
DM_CHECKED dm_status dmi_layer_submit(dm_session *session, dmi_call *call, const dm_array *arrays);

/* For calls with SUMMED operands: notes the factors; then lowers the access of the operands from `first` on,
 * where beta is 0.
 */
void dmi_layer_sums(dmi_call *call, double scale, double beta);
void dmi_layer_sums_check(dmi_call *call, int first);
/* args.i: beta is not 0; the type of gradients by weights on the wire, a dm_dtype or 0 */
enum { DMI_LAYER_KEEPS = DMI_ARG_INTS - 1, DMI_LAYER_WIRE = DMI_ARG_INTS - 2 };
/* A field `wire`, as it was given to the call of this name, must be 0 or DM_BF16. */
DM_CHECKED dm_status dmi_layer_wire_fits(const char *call, dm_dtype wire);
/* With a wire, the operands i, bit i of `operands`, must not be f16. */
DM_CHECKED dm_status dmi_layer_wire_check(const dmi_call *call, unsigned operands);
/* The role of a gradient by weights that the kernel makes in this type. */
int dmi_layer_wire_role(const dmi_call *call, dm_dtype made);

/* --- common_layer_sum.c: what several slices made is added up */
typedef struct dmi_layer_sum {
    dmi_builder *b;
    const dmi_desc *out;
    dmi_ref ref;    /* of out */
    int count;      /* slices */
    const int *map; /* [count] worker of each */
    dm_dtype dtype, wire; /* as computed; as they are added and sent */
    int work;             /* this worker's slices' sums, one after the other, of `dtype` */
    bool keeps;     /* beta is not 0 */
    bool unscaled;  /* the call has no scale: it is 1 */
    dmi_mark ready; /* they are there */
} dmi_layer_sum;
/* All are added up before any is sent on: so they do not wait for one another's transfers. */
DM_CHECKED dm_status dmi_plan_layer_sums(const dmi_layer_sum *sums, int count);
int dmi_layer_sum_channel(const dmi_layer_sum *sum);

/* --- common_layer_joint.c: sums of a program that are made together. Its planner begins with the first, and
 * calls the last before it plans each call (next) and when it has planned all (NULL). area: of the program's
 * operands. */
struct dmi_joint *dmi_joint_begin(dmi_builder *b, const dmi_program *p, const dmi_area *area);
/* Takes the sum of this operand of the call, of which `ready` and `work` are not known yet, if it can: then its
 * addends go to this workspace, and dmi_joint_made says which kernels make them: one for each slice of this
 * worker, from number `step` on, with reference `ref`. */
bool dmi_joint_add(dmi_builder *b, const dmi_call *call, int operand, const dmi_layer_sum *sum, int *work);
void dmi_joint_made(dmi_builder *b, int work, int step, int ref);
DM_CHECKED dm_status dmi_joint_make(dmi_builder *b, const dmi_call *next);

#endif
