/* Between the host code of the CUDA kernels, which works out geometry and chooses (C), and the kernels with
 * their launchers (CUDA C++). Every structure here travels by value, as a kernel's parameter. */
#ifndef DMI_CUDA_LAUNCH_H
#define DMI_CUDA_LAUNCH_H

#include "kernels/cuda/cuda.h"
#include "kernels/ewise/map_args.h"
#include "kernels/reduce/reduce_args.h"
#include "kernels/random/random.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { DMI_CUDA_DIMS = 2 * DM_MAX_DIMS, DMI_CUDA_SIDES = 4, DMI_CUDA_THREADS = 256 };
/* Items one launch may have: their numbers are 32-bit, with room for a grid's stride beyond the last. */
#define DMI_CUDA_ITEMS (INT64_C(1) << 30)

/* i / extent, for i < 2^31, as i * factor >> 31 + shift. */
typedef struct dmi_cuda_divisor {
    uint32_t extent, factor, shift;
} dmi_cuda_divisor;

/* A strided box of items; dims innermost first, at least one. */
typedef struct dmi_cuda_box {
    uint32_t items;
    int ndim;
    dmi_cuda_divisor chunks; /* thread blocks for a row of the innermost dim; extent 0: they do not keep to rows */
    dmi_cuda_divisor extent[DMI_CUDA_DIMS];
    int64_t stride[DMI_CUDA_SIDES][DMI_CUDA_DIMS];
} dmi_cuda_box;

/* The types in which most data is: kernels are made for each of them. The others share kernels that look at the type
 * element by element. */
static inline bool dmi_cuda_hot(dm_dtype dtype)
{
    return dtype <= DM_U8;
}

/* --- copy.cu, convert.cu --------------------------------------------------------------------------- */
/* Units of `unit` bytes (1, 2, 4, 8, 16) as they are; sides 0: src, 1: dst, strides in units. */
void dmi_cuda_launch_move(dmi_queue *q, int unit, const dmi_cuda_box *box, const void *src, void *dst);
/* One item an element, any strides. */
void dmi_cuda_launch_convert(dmi_queue *q, dm_dtype from, dm_dtype to, const dmi_cuda_box *box, const void *src,
                             void *dst);
/* One item DMI_CUDA_CONVERT_GROUP elements, dense and aligned on both sides; from != to. Strides in elements.
 */
void dmi_cuda_launch_convert_groups(dmi_queue *q, dm_dtype from, dm_dtype to, const dmi_cuda_box *box,
                                    const void *src, void *dst);
static inline int64_t dmi_cuda_convert_group(dm_dtype from, dm_dtype to)
{
    return 16 / DMI_MAX(dmi_dtype_bytes(from), dmi_dtype_bytes(to));
}

/* One dim of a product of runs: `len` is that of the longest run; a unit is 1 << shift elements (of a dim whose
 * strides are 1). run NULL: a plain dim of len.extent. */
typedef struct dmi_cuda_runs_dim {
    dmi_cuda_divisor len, count;
    const dmi_run *run; /* device memory */
    int shift;
    int64_t src_stride, dst_stride;
} dmi_cuda_runs_dim;
typedef struct dmi_cuda_runs {
    uint32_t items;
    int ndim;                /* innermost first */
    dmi_cuda_divisor chunks; /* as in dmi_cuda_box */
    dmi_cuda_runs_dim dim[DMI_CUDA_DIMS];
} dmi_cuda_runs;
void dmi_cuda_launch_move_runs(dmi_queue *q, int unit, const dmi_cuda_runs *runs, const void *src, void *dst);
void dmi_cuda_launch_convert_runs(dmi_queue *q, dm_dtype from, dm_dtype to, const dmi_cuda_runs *runs,
                                  const void *src, void *dst);

/* --- push.cu ---------------------------------------------------------------------------------- */
/* Units of `unit` bytes as in dmi_cuda_launch_move, then the counter. The box may have no items. */
void dmi_cuda_launch_push(dmi_queue *q, int unit, const dmi_cuda_box *box, const dmi_push *p);

/* --- transpose.cu ---------------------------------------------------------------------------- */
/* Planes that are dense along i in src and along j in dst, cut into tiles; outer: the planes. */
typedef struct dmi_cuda_planes {
    int64_t ni, nj;
    int64_t src_stride_j, dst_stride_i;
    int64_t tiles; /* in all, at most DMI_CUDA_ITEMS */
    dmi_cuda_divisor tiles_i, tiles_j;
    dmi_cuda_box outer;
} dmi_cuda_planes;
enum { DMI_CUDA_TRANSPOSE_SIDE = 64 }; /* of tiles for any element */
/* Side of the tiles for elements of `bytes` where ni, nj and strides are multiples of 16 bytes, pointers too.
 */
static inline int64_t dmi_cuda_transpose_side(int64_t bytes)
{
    return bytes <= 2 ? 128 : bytes == 8 ? 32 : 64;
}
void dmi_cuda_launch_transpose(dmi_queue *q, dm_dtype from, dm_dtype to, bool aligned,
                               const dmi_cuda_planes *planes, const void *src, void *dst);

/* --- map_hot.cu, map_warm.cu, map_cold.cu -------------------------------------------------------------- */
/* One elementwise row. Sides 0 .. inputs-1: its operands; inputs: out. */
typedef struct dmi_cuda_map {
    dmi_cuda_box box;
    void *memory[4];
    dmi_number number[2]; /* S and T */
    int row, inputs;
    bool choice;   /* the first operand is a condition */
    bool splat[4]; /* groups: one element serves a whole group */
    dm_dtype compute, dtype[4];
} dmi_cuda_map;
/* Launchers for operands and out of one type; groups: 16 bytes of elements an item, else one element. NULL: there is none. */
typedef void dmi_cuda_map_launcher(dmi_queue *q, dmi_cuda_map *p);
dmi_cuda_map_launcher *dmi_cuda_map_hot_same(int row, dm_dtype dtype, bool groups);
dmi_cuda_map_launcher *dmi_cuda_map_warm_same(int inputs, dm_dtype dtype, bool groups);
/* Any types; groups: four elements an item, else one. */
void dmi_cuda_map_hot_any(dmi_queue *q, dmi_cuda_map *p, bool groups);
void dmi_cuda_map_warm_any(dmi_queue *q, dmi_cuda_map *p, bool groups);
void dmi_cuda_map_cold_any(dmi_queue *q, dmi_cuda_map *p, bool groups);

/* --- map_program.cu, map_program_complex.cu ----------------------------------------------------- */
typedef struct dmi_cuda_step {
    uint8_t row, type, of, via, to, from[3], number[2], operands;
    bool compare, choice, part;
} dmi_cuda_step;
/* A program over a box, dims innermost first. */
typedef struct dmi_cuda_program {
    uint32_t items;
    int ndim, inputs, steps, result, kept;
    dmi_cuda_divisor extent[DMI_CUDA_DIMS];
    int64_t stride[DMI_MAP_SIDES][DM_MAX_DIMS];
    void *memory[DMI_MAP_SIDES];
    uint8_t dtype[DMI_MAP_SIDES], input_type[DMI_MAP_INPUTS], keeps[DMI_MAP_KEPT], kept_type[DMI_MAP_KEPT];
    uint8_t constant_type[DMI_MAP_NUMBERS], constant_number[DMI_MAP_NUMBERS];
    uint8_t made[DMI_MAP_INPUTS], seed[DMI_MAP_INPUTS];
    dmi_map_linear linear;
    dmi_number number[DMI_MAP_NUMBERS];
    dmi_cuda_step step[DMI_MAP_STEPS];
} dmi_cuda_program;
void dmi_cuda_launch_map_program(dmi_queue *q, const dmi_cuda_program *p);         /* no value is complex */
void dmi_cuda_launch_map_program_complex(dmi_queue *q, const dmi_cuda_program *p); /* any program */

/* --- within.cu ------------------------------------------------------------------------------------------ */
/* Low and high: numbers, or in memory of the device. */
typedef struct dmi_cuda_bounds {
    double value[2];
    const double *at[2]; /* NULL: value */
} dmi_cuda_bounds;
/* *status = 1 where an element, or of a complex type a part, is not in low .. high. Side 0: x. */
void dmi_cuda_launch_within(dmi_queue *q, dm_dtype dtype, const dmi_cuda_box *box, const void *x,
                            const dmi_cuda_bounds *bounds, uint32_t *status);

/* --- reduce.cu --------------------------------------------------------------------------- */
typedef struct dmi_cuda_reduce {
    dmi_cuda_box kept;   /* along: one item a result; across: one a group of results. Side 0: in */
    dmi_cuda_box summed; /* along: one item a group of elements. Side 0: in */
    bool across;
    int group;     /* elements a group has: 1, or 16 bytes' worth */
    uint32_t tail; /* along: elements of a row beyond its groups, from tail_at on */
    int64_t tail_at;
    uint32_t team;  /* threads side by side on the results' groups (across) or on one result (along) */
    uint32_t parts; /* partial sums of each result */
    uint32_t items_per_part;
    int64_t results; /* elements between parts in `sums` */
    /* along, of one result in parts: the last thread block adds them up into acc. NULL: another kernel does */
    uint32_t *ticket;
    void *acc;
    dm_dtype dtype;  /* not complex: a complex array is one of its parts */
} dmi_cuda_reduce;
/* Thread blocks: of short rows several a thread. */
static inline unsigned dmi_cuda_reduce_blocks(const dmi_cuda_reduce *p)
{
    const int64_t most = 1 << 13, teams = DMI_CUDA_THREADS / p->team;
    int64_t jobs = (int64_t)p->kept.items * p->parts;
    if (p->across) {
        return (unsigned)(((int64_t)p->kept.items + p->team - 1) / p->team * p->parts);
    }
    jobs = (jobs + teams - 1) / teams;
    return (unsigned)(p->team < DMI_CUDA_THREADS && jobs > most ? most : jobs);
}
/* sums[part * results + result] */
void dmi_cuda_launch_reduce(dmi_queue *q, const dmi_cuda_reduce *p, const void *in, void *sums);
/* acc[i] = sum over part of sums[part * results + i] */
void dmi_cuda_launch_join(dmi_queue *q, int acc_kind, int64_t parts, int64_t results, const void *sums,
                          void *acc);

/* --- reduction.cu, reduction_acc.cu: rows of reduce.def ---------------------------------------- */
typedef struct dmi_cuda_rows {
    dmi_cuda_reduce base; /* group 1; side 1 of `summed`: numbers of elements */
    int acc;
    dm_dtype number; /* dmi_acc_number */
    bool narrow;     /* elements of 16 and 32 bits, in groups: rows that keep them keep floats */
    bool ordered;    /* of rows that keep places: numbers of elements rise in the order of items */
    bool last;       /* out receives accumulators; else states, of parts */
    int64_t place;   /* number of the first element */
    dmi_cuda_places places;
} dmi_cuda_rows;
/* Bytes of a state. */
static inline int64_t dmi_cuda_state_bytes(int acc)
{
    return dmi_reductions[dmi_acc_row(acc)].state == DMI_STATE_VALUE ? 8 : dmi_acc_bytes(acc);
}
void dmi_cuda_launch_rows(dmi_queue *q, const dmi_cuda_rows *p, const void *in, void *out);
void dmi_cuda_launch_rows_join(dmi_queue *q, const dmi_cuda_rows *p, int64_t parts, const void *in, void *out);
void dmi_cuda_launch_rows_start(dmi_queue *q, int acc, int64_t results, void *out);
void dmi_cuda_launch_rows_combine(dmi_queue *q, int acc_kind, const dmi_cuda_box *box, const void *part, void *acc);
void dmi_cuda_launch_rows_combine_runs(dmi_queue *q, int acc_kind, const dmi_cuda_runs *runs, const void *part, void *acc);
void dmi_cuda_launch_rows_finish(dmi_queue *q, int acc_kind, double scale, const dmi_cuda_box *box,
                                 const void *acc, bool accumulates, dm_dtype out_dtype, void *out);

/* --- acc.cu -------------------------------------------------------------------------------- */
void dmi_cuda_launch_acc_add(dmi_queue *q, int acc_kind, const dmi_cuda_box *box, const void *part, void *acc);
void dmi_cuda_launch_acc_add_runs(dmi_queue *q, int acc_kind, const dmi_cuda_runs *runs, const void *part,
                                  void *acc);
typedef struct dmi_cuda_store {
    dmi_cuda_box box; /* sides 0: acc, 1: out */
    int acc;
    double scale, beta;
    int64_t iscale, ibeta;
    bool plain, integers;
    bool divides; /* by scale */
    bool zero; /* the sums are not read and count as 0 */
    dm_dtype out_dtype;
} dmi_cuda_store;
void dmi_cuda_launch_acc_store(dmi_queue *q, const dmi_cuda_store *p, const void *acc, void *out);
/* Groups: so many elements an item, else one. */
#define DMI_CUDA_FOLD_GROUP(bytes) ((bytes) == 2 ? 8 : 4)
typedef struct dmi_cuda_fold_rows {
    dmi_cuda_store store; /* its box's sides 0: rows, 1: out, 2: own */
    int addends, own;
    int64_t pitch;
    dm_dtype dtype;
} dmi_cuda_fold_rows;
void dmi_cuda_launch_fold(dmi_queue *q, const dmi_cuda_fold_rows *p, bool groups, const void *rows,
                          const void *own, void *out);

/* --- fill.cu ------------------------------------------------------------------------------- */
/* `unit` bytes (1, 2, 4, 8, 16) of value at every item; side 0: out. */
void dmi_cuda_launch_constant(dmi_queue *q, int unit, const dmi_cuda_box *box, const uint64_t *value,
                              void *out);
/* `bytes` of value where a row's index is one of cols. */
typedef struct dmi_cuda_diagonal {
    dmi_dimset rows, cols;
    int64_t row_stride, col_stride, row_position; /* row_position: of the first row */
    int64_t first_row, count;
} dmi_cuda_diagonal;
void dmi_cuda_launch_diagonal(dmi_queue *q, int64_t bytes, const dmi_cuda_diagonal *p, const uint64_t *value,
                              void *out);
/* Elements of one dim in order, as ranges of consecutive indices: the first begins at index `start`, range
 * s > 0 at jump_start + s * jump with `block` elements. One range: first_len is count. */
typedef struct dmi_cuda_dim_ranges {
    int64_t count, start, first_len;
    int64_t jump_start, jump, block;
    int64_t stride, weight; /* in memory, of consecutive elements; in the row-major index, of an index */
} dmi_cuda_dim_ranges;
/* Items: groups of elements whose row-major index begins at a multiple of the group, as many for every range
 * of the innermost dim as the longest may need; the ranges; then the elements of the other dims. */
typedef struct dmi_cuda_fill {
    uint32_t items;
    int ndim; /* at least 1; innermost first */
    dmi_cuda_divisor groups, ranges;
    dmi_cuda_divisor extent[DM_MAX_DIMS]; /* of dims beyond the innermost */
    dmi_cuda_dim_ranges dim[DM_MAX_DIMS];
    int kind;
    dm_dtype dtype;
    dmi_fill_values values;
    dmi_uniform64 range64;
    dmi_uniform32 range32;
    uint64_t width; /* of the range of integers */
} dmi_cuda_fill;
static inline int64_t dmi_cuda_fill_group(int kind, dm_dtype dtype)
{
    return kind == DMI_FILL_GAMMA || kind == DMI_FILL_POISSON ? 1 : dmi_dtype_is_float(dtype) && dtype != DM_F64 ? 4 : 2;
}
void dmi_cuda_launch_fill(dmi_queue *q, const dmi_cuda_fill *p, void *out);

/* --- ewise/map_places_cuda.c --- */
dmi_cuda_place dmi_cuda_place_of(const dmi_dimset *set, int64_t extent, int64_t whole);
void dmi_cuda_linear_of(const dmi_map_places *p, dmi_map_linear *out); /* out: zero before */

/* --- box/geometry_cuda.c ------------------------------------------------------------------------------ */
typedef struct dmi_box dmi_box;
dmi_cuda_divisor dmi_cuda_divide_by(int64_t extent);
/* box (simplified; extents' product at most DMI_CUDA_ITEMS) as a kernel takes it. */
void dmi_cuda_box_make(const dmi_box *box, dmi_cuda_box *out);
/* Calls fn for parts of a box that have at most DMI_CUDA_ITEMS items; at: element positions of the sides. With
 * `in_order` a part is always a whole range of the box's row-major order. */
typedef void dmi_cuda_part_fn(void *context, const dmi_box *part, const int64_t *at);
void dmi_cuda_split(const dmi_box *box, const int64_t *at, bool in_order, dmi_cuda_part_fn *fn, void *context);
/* Are side's elements of `bytes` dense along the innermost dim, and every group of `group` of them that begins
 * at a multiple of it aligned to its size? */
bool dmi_cuda_grouped(const dmi_box *box, int side, const void *base, int64_t at, int64_t bytes, int64_t group);

/* Bytes that may be moved at once, of elements of `bytes` that are dense along the innermost dim on all sides:
 * the largest power of two up to 16 at which all rows begin. address[]: of the box's first elements. */
int64_t dmi_cuda_row_unit(const dmi_box *box, const uintptr_t *address, int64_t bytes);
/* The box in units of `group` elements along the innermost dim, whose extent is a multiple. */
void dmi_cuda_in_units(const dmi_box *box, int64_t group, dmi_box *out);

/* --- the kernels' host sides --------------------------------------------------------------------- */
void dmi_cuda_copy(dmi_queue *q, const dmi_copy *d, const void *src, void *dst);
void dmi_cuda_push_rows(dmi_queue *q, const dmi_push *p);
void dmi_cuda_gemm(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                   void *c, void *workspace);
/* Of 8-bit floats by cublasLt, with m, n, k > 0. False: it has no such product. */
bool dmi_cuda_gemm_f8(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta, void *c,
                      void *workspace);
/* The same where c is a column or a row, of f64 or f32 (with cuBLAS there, m, n, k > 0); false: it is not. */
bool dmi_cuda_gemv(dmi_queue *q, const dmi_gemm *d, double alpha, const void *a, const void *b, double beta,
                   void *c);
void dmi_cuda_fill_region(dmi_queue *q, const dmi_fill *d, const dmi_fill_values *v, void *out);
void dmi_cuda_reduce_box(dmi_queue *q, const dmi_reduce *d, const void *in, void *acc);
void dmi_cuda_acc_add(dmi_queue *q, const dmi_acc_add *d, const void *part, void *acc);
void dmi_cuda_acc_store_box(dmi_queue *q, const dmi_acc_store *d, double scale, const void *acc, double beta,
                            void *out);
void dmi_cuda_fold(dmi_queue *q, const dmi_fold *d, double scale, const void *rows, const void *own,
                   double beta, void *out);

#ifdef __cplusplus
}
#endif
#endif
