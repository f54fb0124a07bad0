/* Plans of c = alpha * op(a) * op(b) + beta * c. Six algorithms for matrices, by what stays where it is (stacks
 * of them: batched.c):
 *   cyclic      1-D: c and one operand stay (split along the same dim); the other operand's blocks move round
 *               the workers, each product beside the next block's transfer (dMath; Fox, Otto & Hey 1987)
 *   ring        the same, but blocks go from neighbour to neighbour: each boundary of hosts is crossed once
 *   stationary  any layouts: c stays; both operands are fetched to it, one slice of k after another
 *   panels      c stays, split along one dim; the moving operand arrives in panels with all of k
 *   fused       c stays; b (and a) are gathered while one kernel multiplies (Hopper GPUs)
 *   contract    a or b stays, split along k, the other is split alike or brought: partial products,
 *               reduce-scattered into c
 * All compute into an accumulator of the computing type: c itself if it has that type, or if every element is
 * made by one product and the kernel rounds it; else a temporary that is converted once at the end. */
#ifndef DMI_GEMM_H
#define DMI_GEMM_H

#include "plan/reduce.h"

enum { DMI_GEMM_A, DMI_GEMM_B, DMI_GEMM_C, DMI_GEMM_REPLICA }; /* the operands, as in the op's row */
/* A product that is computed elsewhere than where c lies, or by a contraction that brings an operand, moves
 * less than the others by this factor: what the others move may stay as a replica. */
enum { DMI_GEMM_MUCH_LESS = 4 };
enum { DMI_CONJUGATED = 2 }; /* args.i of an operand that is transposed and conjugated: DM_C */
typedef struct dmi_product {
    dmi_builder *b;
    const dmi_desc *op[2]; /* a, b */
    int trans[2];
    bool conj[2]; /* transposed and conjugated */
    int outer_dim[2];      /* the dim of a that is m, of b that is n */
    int inner_dim[2];      /* the dim that is k */
    const dmi_desc *c;     /* the products' output: the caller's c, or a temporary of another layout */
    const dmi_desc *user_c;
    dmi_ref out;           /* the memory of user_c: the operand, or a temporary; mode READ */
    uint8_t scalar[2];     /* alpha and beta: DMI_SCALAR_* */
    dmi_desc temporary;
    bool direct;           /* c is the caller's: alpha and beta apply in the products */
    bool beta_zero;
    bool scatter; /* reduce-scatter: the holders of a region of c make a segment of it each, then all-gather */
    const dmi_desc *replica; /* the cached replica to fill with the moving operand, at every worker of c; or NULL */
    int acc_work;          /* !direct: the accumulator */
    int64_t m, n, k;
    dm_dtype type;         /* of computation, and of sums of several products */
    int64_t elem;          /* its bytes */
    dm_dtype kernel_type;  /* of a and b in the kernels: type, or 16 or 8 bits where kernels take them so */
    dm_dtype kernel_b;     /* of b, where it has other 8 bits than a; 0: kernel_type */
    bool tf32;             /* kernels may round a and b, of f32, to TF32 */
    const char *compute;   /* for the plan's description */
    /* limit on bytes in flight, per worker: the smaller of the option and the call's limit; 0: chosen */
    int64_t workspace;
    int64_t workspace_limit; /* the call's limit alone; 0: none */
    int stays;               /* contract: the operand that is split along k */
    int64_t brought;         /* contract: bytes of the other that come from others */
    dmi_mark finished;     /* all products so far */
} dmi_product;

/* A matrix as a kernel takes it: where it lies. */
typedef struct dmi_matrix_ref {
    dmi_ref ref;
    int64_t offset, ld; /* elements */
    bool transposed;    /* it lies here as the operand's transpose */
} dmi_matrix_ref;

/* --- lift.c: the call with vectors as matrices */
typedef struct dmi_lifted {
    dmi_call call;
    dmi_layout layout[3]; /* of lifted operands; they share the arrays of the original layouts */
} dmi_lifted;
void dmi_lift(const dmi_call *call, dmi_lifted *out);
/* Adds a dim of extent 1 to desc, before dim `at`. *layout receives its layout, which shares the arrays of the old one. */
void dmi_desc_add_dim(dmi_desc *desc, int at, dmi_layout *layout);

static inline dm_dtype dmi_product_kernel_type(const dmi_product *p, int which)
{
    return which == 1 && p->kernel_b ? p->kernel_b : p->kernel_type;
}

/* --- place.c */
/* Chooses where the product is computed: where c lies, or in a temporary of another layout. */
DM_CHECKED dm_status dmi_product_place(dmi_product *p);

/* --- product.c */
/* Sets what follows from the operands alone. m, n and k are those of their last two dims. */
void dmi_product_operands(dmi_builder *b, const dmi_call *call, dmi_product *p);
/* The type in which a product with operands of these types is computed. */
dm_dtype dmi_product_type(dm_dtype a, dm_dtype b, dm_dtype c);
DM_CHECKED dm_status dmi_product_begin(dmi_builder *b, const dmi_call *call, dmi_product *p);
/* Bytes that it may hold beside its operands: `workspace`, else a share of a GPU's memory. */
int64_t dmi_product_allowance(const dmi_product *p);
/* Limit on bytes in flight: the same, but no more than is useful. */
int64_t dmi_product_in_flight(const dmi_product *p);
/* Can a kernel store its product in this type? */
bool dmi_product_makes(const dmi_product *p, dm_dtype c);
/* Before the first product. single: every element of c is made by one product over all of k. */
void dmi_product_accumulate(dmi_product *p, bool single);
/* From the accumulator to the caller's c where they differ; segments to the other holders. */
void dmi_product_end(dmi_product *p);
/* What worker w makes of c (2-D; count 0: nothing): its region, or a segment of it. */
void dmi_product_c(const dmi_product *p, int worker, dmi_region *out);
/* Region of operand `which` with the given outer (m or n) and inner (k) index sets; memory unset. */
void dmi_product_want(const dmi_product *p, int which, const dmi_dimset *outer, const dmi_dimset *inner, dmi_region *out);
bool dmi_product_in_place(const dmi_product *p, int which, int worker, const dmi_dimset *outer, const dmi_dimset *inner,
                          dmi_region *out);
/* What a region of c takes of operand `which`, with all of k: dense, or where `worker` has it, if it lies there
 * as one. */
void dmi_product_gathered(const dmi_product *p, int which, const dmi_region *c, dmi_region *out);
bool dmi_product_gathered_in_place(const dmi_product *p, int which, int worker, const dmi_region *c,
                                   dmi_region *out);
bool dmi_product_takes_whole(const dmi_product *p,
                             int which); /* do all regions of c take all of operand `which`? */
/* A located or dense region of operand `which` as a matrix of the computing type. Converted into `work` (a
 * workspace number, or -1: made as needed) if the types differ, or if kernels are much slower with it as it
 * lies. after: the region's data is there; done: the matrix is. */
dmi_matrix_ref dmi_product_matrix(dmi_product *p, int which, const dmi_region *region, dmi_ref ref, int *work,
                                  const dmi_mark after, dmi_mark done);
/* Is this region of operand `which` a strided vector, to be packed first? On GPUs the stride of a vector may change the bits
 * of a product, and replicas of c must agree. */
bool dmi_product_spread(const dmi_product *p, int which, const dmi_region *region);
/* Most bytes of the copy that it makes of so many elements; alike at all workers. */
int64_t dmi_product_copied(const dmi_product *p, int which, int64_t count);
/* Elements from one index of k to the next. */
int64_t dmi_matrix_step_k(const dmi_product *p, int which, const dmi_matrix_ref *matrix);
/* c[rows m0.., cols n0..] of the worker's region += a * b, sizes m x n x k; first: the first product into this
 * region of c. */
void dmi_product_step(dmi_product *p, const dmi_matrix_ref *a, const dmi_matrix_ref *b, int64_t m0, int64_t n0,
                      int64_t m, int64_t n, int64_t k, bool first, const dmi_mark after, dmi_mark done);
/* The worker's region of c, as a matrix. */
dmi_matrix_ref dmi_product_acc(const dmi_product *p);
/* c = alpha * t + beta * c for a region of the caller's c; t: as the region, dense, of the computing type. */
void dmi_product_store(dmi_product *p, const dmi_region *region, dmi_ref t, int64_t t_offset, const dmi_mark after,
                       dmi_mark done);
/* Elements of operand `which` that must come to all workers' c from others. */
int64_t dmi_product_traffic(const dmi_product *p, int which);

/* --- cyclic.c, stationary.c, contract.c: can they serve these layouts, and the steps */
/* which: the operand that moves. blocks: how many inner blocks a worker at most. */
bool dmi_cyclic_serves(const dmi_product *p, int which, int64_t *blocks);
bool dmi_cyclic_single(const dmi_product *p, int which); /* does a block have all of k? */
void dmi_cyclic_plan(dmi_product *p, int which, bool two_block);
/* --- ring.c: if the cyclic algorithm serves and exactly the owners of blocks of the moving operand multiply */
bool dmi_ring_serves(const dmi_product *p, int which);
bool dmi_ring_pays(const dmi_product *p,
                   int which); /* less goes from host to host than in the cyclic algorithm */
void dmi_ring_plan(dmi_product *p, int which);
/* --- panels.c. which: the moving operand */
bool dmi_panels_serve(const dmi_product *p, int which);
bool dmi_panels_pay(const dmi_product *p, int which); /* where the cyclic algorithm could serve too */
int64_t dmi_panels_count(const dmi_product *p, int which);
bool dmi_panels_fit(const dmi_product *p, int which); /* p->workspace holds panels of a useful width */
void dmi_panels_plan(dmi_product *p, int which);
/* --- fused.c: products by kernels that wait for what arrives */
bool dmi_fused_serves(const dmi_product *p);
bool dmi_fused_pays(const dmi_product *p);     /* where the cyclic algorithm could serve too */
int dmi_fused_moving(const dmi_product *p);    /* 1: b is needed whole by all workers of c; else -1 */
int64_t dmi_fused_bytes(const dmi_product *p); /* of gathered operands, at the worker with most */
void dmi_fused_plan(dmi_product *p);
bool dmi_stationary_single(const dmi_product *p); /* one multiplication */
bool dmi_stationary_whole(const dmi_product *p);  /* of a vector that comes as a whole first */
void dmi_stationary_plan(dmi_product *p);
int64_t dmi_stationary_slices(dmi_product *p); /* of k, one after another */
bool dmi_contract_serves(dmi_product *p);      /* sets stays and brought */
int64_t dmi_contract_traffic(const dmi_product *p); /* elements of partial products sent in all */
int64_t dmi_contract_room(const dmi_product *p);    /* bytes of what is brought, at the worker with most */
void dmi_contract_plan(dmi_product *p);
/* If c is small and replicated: every worker sends its whole partial product to every holder. Instead of
 * dmi_product_accumulate and dmi_product_end too. */
void dmi_contract_direct_plan(dmi_product *p);
/* --- batched.c: operands of more than two dims; after dmi_product_operands */
/* does every worker hold its operands in place, as kernels take them? */
bool dmi_batched_local(dmi_product *p);
void dmi_batched_plan(dmi_product *p);
/* --- ../gemm.c */
/* alpha is 0, or there is nothing to add up: a and b are not read. */
bool dmi_gemm_adds_nothing(const dmi_call *call);
/* The steps of c = alpha * op(a) * op(b) + beta * c; the call's c is at `out`. scalar: as in dmi_product. */
DM_CHECKED dm_status dmi_product_plan(dmi_builder *b, const dmi_call *call, const dmi_ref *out, const uint8_t scalar[2]);
/* --- estimate.c: seconds of a product by an algorithm that serves (not ring), where the machine's rates are
 * known. bytes: all that it moves. */
bool dmi_estimate_ready(const dmi_product *p);
double dmi_estimate(const dmi_product *p, int algorithm, int moving, int64_t bytes);
/* --- choose.c */
typedef struct dmi_choice {
    int algorithm, moving;
    bool direct; /* contract: everything to every holder of c */
} dmi_choice;
const char *dmi_gemm_name(int algorithm); /* as the option says it */
/* The forced algorithm, or the fastest: by estimates where the machine's rates are known, else by the bytes
 * that move. DM_ERR_UNSUPPORTED: the forced one cannot serve. */
DM_CHECKED dm_status dmi_gemm_choose(dmi_product *p, dmi_choice *out);

#endif
