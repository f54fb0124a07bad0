/* Calls of many ops on small arrays, for tests in which an allocation fails inside. Unlike op_forms.h they
 * return what their parts return, whatever it is. */
#ifndef FAULT_FORMS_H
#define FAULT_FORMS_H

#include "robust.h"
#include "support/folder.h"
#include "support/try.h"

#include <dmath/checkpoint.h>
#include <dmath/control.h>
#include <dmath/factors.h>
#include <dmath/feed.h>
#include <dmath/group.h>
#include <dmath/index.h>
#include <dmath/layers.h>
#include <dmath/linalg.h>
#include <dmath/order.h>
#include <dmath/program.h>
#include <dmath/random.h>
#include <dmath/reduce.h>

enum { SIDE = 12, OUTPUTS = 3 };

typedef struct fixture {
    dm_session *s;
    dm_array a, b;         /* matrices: read */
    dm_array v, w;         /* vectors: read */
    dm_array index;        /* SIDE row numbers */
    dm_array c, d;         /* matrices: written, and the same before every run */
    dm_array u;            /* a vector, so too */
    dm_array out[OUTPUTS]; /* what the call has written */
    int outs;
    const char *folder;
} fixture;

/* A call with its outputs. */
#define FORM(name, call, ...)                                                                                  \
    static dm_status form_##name(fixture *f)                                                                   \
    {                                                                                                          \
        const dm_array outs[] = {__VA_ARGS__};                                                                 \
        f->outs = (int)(sizeof outs / sizeof *outs);                                                           \
        memcpy(f->out, outs, sizeof outs);                                                                     \
        return (call);                                                                                         \
    }

static inline dm_status made(fixture *f, dm_dtype dtype, int ndim, int64_t n0, int64_t n1)
{
    const int64_t shape[2] = {n0, n1};
    dm_array x;
    TRY(dm_array_create(f->s, dtype, ndim, shape, NULL, &x));
    f->out[f->outs++] = x;
    return DM_OK;
}

/* Calls into arrays of their own, one or two. */
#define MAKES(name, dtype, ndim, n0, n1, call)                                                                 \
    static dm_status form_##name(fixture *f)                                                                   \
    {                                                                                                          \
        TRY(made(f, dtype, ndim, n0, n1));                                                                     \
        return (call);                                                                                         \
    }

static const int all_dims[2] = {0, 1}, first_dim[1] = {0}, second_dim[1] = {1};

FORM(gemm, dm_gemm(f->s, DM_N, DM_N, 1, f->a, f->b, 1, f->c), f->c)
FORM(gemm_t, dm_gemm(f->s, DM_T, DM_N, 2, f->a, f->b, 0, f->c), f->c)
FORM(gemm_nt, dm_gemm(f->s, DM_N, DM_T, 1, f->a, f->b, 0, f->c), f->c)
FORM(gemm_by, dm_gemm_by(f->s, DM_N, DM_N, dm_value(2), f->a, f->b, dm_value(1), f->c, NULL), f->c)
FORM(matmul, dm_matmul(f->s, f->a, f->v, f->u), f->u)
FORM(copy, dm_copy(f->s, f->a, f->c), f->c)
FORM(transpose, dm_transpose(f->s, f->b, f->c), f->c)
FORM(add, dm_add(f->s, 2, f->a, 3, f->b, f->c), f->c)
FORM(add_broadcast, dm_add(f->s, 2, f->a, 3, f->v, f->c), f->c)
FORM(axpby, dm_axpby(f->s, 2, f->a, 3, f->c), f->c)
FORM(multiply, dm_multiply(f->s, 2, f->a, f->b, f->c), f->c)
FORM(scale, dm_scale(f->s, 2, f->a, f->c), f->c)
FORM(tanh, dm_tanh(f->s, f->b, f->c), f->c)
FORM(fill, dm_fill(f->s, f->c, 4), f->c)
FORM(fill_identity, dm_fill_identity(f->s, f->c, 4), f->c)
FORM(fill_arange, dm_fill_arange(f->s, f->c, 0, 1), f->c)
FORM(fill_uniform, dm_fill_uniform(f->s, f->c, 0, 1, 7), f->c)
FORM(fill_normal, dm_fill_normal(f->s, f->c, 0, 1, 7), f->c)
FORM(fill_by, dm_fill_by(f->s, f->c, dm_value(3)), f->c)

static dm_status form_fill_uniform_by(fixture *f)
{
    dm_array low;
    TRY(dm_array_create(f->s, DM_F64, 0, NULL, NULL, &low));
    TRY(dm_fill(f->s, low, -3));
    f->out[f->outs++] = f->c;
    return dm_fill_uniform_by(f->s, f->c, dm_element(low), dm_value(5), 7);
}
MAKES(sum_rows, DM_F64, 1, SIDE, 0, dm_sum(f->s, f->a, first_dim, 1, 1, 0, f->out[0]))
MAKES(sum_all, DM_F64, 0, 0, 0, dm_sum(f->s, f->b, all_dims, 2, 1, 0, f->out[0]))
MAKES(max, DM_F64, 1, SIDE, 0, dm_max(f->s, f->a, second_dim, 1, f->out[0]))
FORM(accumulate_max, dm_accumulate_max(f->s, f->a, second_dim, 1, f->v), f->v)
MAKES(argmin, DM_I64, 1, SIDE, 0, dm_argmin(f->s, f->b, first_dim, 1, f->out[0]))
MAKES(var, DM_F64, 1, SIDE, 0, dm_var(f->s, f->a, first_dim, 1, 1, f->out[0]))
MAKES(norm, DM_F64, 0, 0, 0, dm_norm(f->s, f->a, 2, all_dims, 2, f->out[0]))
MAKES(any, DM_BOOL, 0, 0, 0, dm_any(f->s, f->a, all_dims, 2, f->out[0]))
FORM(softmax, dm_softmax(f->s, f->a, second_dim, 1, f->c), f->c)
FORM(log_softmax, dm_log_softmax(f->s, f->b, second_dim, 1, f->c), f->c)
FORM(standardise, dm_standardise(f->s, f->b, first_dim, 1, 0, f->c), f->c)
FORM(layer_norm, dm_layer_norm(f->s, f->a, second_dim, 1, f->v, f->w, 1e-5, f->c), f->c)
FORM(covariance, dm_covariance(f->s, f->a, 0, 1, f->c), f->c)
FORM(distances, dm_distances(f->s, f->a, f->b, f->c), f->c)
FORM(cosine_distances, dm_cosine_distances(f->s, f->a, f->b, f->c), f->c)
FORM(cross_entropy, dm_cross_entropy(f->s, f->a, f->index, f->u), f->u)
FORM(symmetrise, dm_symmetrise(f->s, DM_UPPER, 0, f->a, f->c), f->c)
MAKES(dot, DM_F64, 0, 0, 0, dm_dot(f->s, f->v, f->w, f->out[0]))
MAKES(iamax, DM_I64, 0, 0, 0, dm_iamax(f->s, f->v, f->out[0]))
FORM(axpy, dm_axpy(f->s, 2, f->a, f->c), f->c)
FORM(swap, dm_swap(f->s, f->c, f->d), f->c, f->d)
FORM(rot, dm_rot(f->s, f->c, f->d, 0.6, 0.8), f->c, f->d)
FORM(tril, dm_tril(f->s, f->a, f->c), f->c)
FORM(gemv, dm_gemv(f->s, DM_N, 1, f->a, f->v, 1, f->u), f->u)
FORM(ger, dm_ger(f->s, 1, f->v, f->w, f->c), f->c)
FORM(symv, dm_symv(f->s, DM_UPPER, 1, f->a, f->v, 1, f->u), f->u)
FORM(syrk, dm_syrk(f->s, DM_LOWER, DM_N, 1, f->a, 1, f->c), f->c)
FORM(symm, dm_symm(f->s, DM_LEFT, DM_LOWER, 1, f->a, f->b, 1, f->c), f->c)
FORM(trmm, dm_trmm(f->s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, 1, f->a, f->c), f->c)
FORM(trsm, dm_trsm(f->s, DM_LEFT, DM_LOWER, DM_N, DM_UNIT, 1, f->a, f->c), f->c)
FORM(trsv, dm_trsv(f->s, DM_LOWER, DM_N, DM_UNIT, f->a, f->u), f->u)
FORM(cumulative_sum, dm_cumulative_sum(f->s, f->a, 0, f->c), f->c)
FORM(isin, dm_isin(f->s, f->a, f->b, 0, f->c), f->c)
FORM(sort, dm_sort(f->s, f->a, 0, 0, f->c), f->c)
FORM(sort_long, dm_sort(f->s, f->v, 0, 1, f->u), f->u) /* by all workers together: option sort_exchange */
MAKES(argsort_long, DM_I64, 1, SIDE, 0, dm_argsort(f->s, f->w, 0, 0, f->out[0]))
MAKES(argsort, DM_I64, 2, SIDE, SIDE, dm_argsort(f->s, f->b, 0, 1, f->out[0]))
MAKES(histogram, DM_I64, 1, 5, 0, dm_histogram(f->s, f->a, -5, 5, DM_NO_ARRAY, f->out[0]))
MAKES(bincount, DM_I64, 1, SIDE, 0, dm_bincount(f->s, f->index, DM_NO_ARRAY, f->out[0]))
MAKES(median, DM_F64, 2, 1, SIDE, dm_median(f->s, f->a, 0, f->out[0]))
FORM(take, dm_take(f->s, f->a, f->index, 0, DM_RAISE, f->c), f->c)
FORM(put, dm_put(f->s, f->c, f->index, f->a, 0, DM_WRAP), f->c)
FORM(scatter_add, dm_scatter_add(f->s, f->c, f->index, f->b, 0, DM_RAISE), f->c)
FORM(roll, dm_roll(f->s, f->a, 5, 0, f->c), f->c)
FORM(flip, dm_flip(f->s, f->a, 1, f->c), f->c)
FORM(diagonal, dm_diagonal(f->s, f->a, 0, f->u), f->u)
FORM(set_diagonal, dm_set_diagonal(f->s, f->c, 0, f->v), f->c)
FORM(require_range, dm_require_range(f->s, f->a, -100, 100), f->a)
FORM(set_item, dm_set_item(f->s, f->c, (const int64_t[]){3, 4}, 9), f->c)
FORM(shuffle, dm_shuffle(f->s, f->a, 0, 7, f->c), f->c)
MAKES(tile, DM_F64, 2, 2 * SIDE, SIDE, dm_tile(f->s, f->a, (const int64_t[]){2, 1}, f->out[0]))
MAKES(repeat, DM_F64, 2, 2 * SIDE, SIDE, dm_repeat(f->s, f->a, 2, 0, f->out[0]))
MAKES(one_hot, DM_F64, 2, SIDE, SIDE, dm_one_hot(f->s, f->index, f->out[0]))
MAKES(choice, DM_I64, 1, 5, 0, dm_choice(f->s, 30, DM_NO_ARRAY, 0, 7, f->out[0]))
MAKES(permutation, DM_I64, 1, SIDE, 0, dm_fill_permutation(f->s, f->out[0], 7))
FORM(inner, dm_inner_forward(f->s, 2, f->a, f->b, f->v, f->c), f->c)

/* Calls with the factors p and q, elements of arrays. */
static inline dm_status element_of(fixture *f, double value, dm_factor *out)
{
    dm_array x;
    TRY(dm_array_create(f->s, DM_F64, 0, NULL, NULL, &x));
    *out = dm_element(x);
    return dm_fill(f->s, x, value);
}
#define BY(name, call, ...)                                                                                    \
    static dm_status form_##name(fixture *f)                                                                   \
    {                                                                                                          \
        const dm_array outs[] = {__VA_ARGS__};                                                                 \
        dm_factor p, q;                                                                                        \
        TRY(element_of(f, 0.5, &p));                                                                           \
        TRY(element_of(f, -0.25, &q));                                                                         \
        f->outs = (int)(sizeof outs / sizeof *outs);                                                           \
        memcpy(f->out, outs, sizeof outs);                                                                     \
        return (call);                                                                                         \
    }
static const dm_loss loss_options = DM_LOSS_INIT;
BY(axpby_elements, dm_axpby_by(f->s, p, f->a, q, f->c), f->c)
BY(gemm_elements, dm_gemm_by(f->s, DM_N, DM_T, p, f->a, f->b, q, f->c, NULL), f->c)
BY(arange_elements, dm_fill_arange_by(f->s, f->c, p, q), f->c)
BY(dropout_elements, dm_fill_dropout_by(f->s, f->c, p, 7), f->c)
BY(gamma_elements, dm_fill_gamma_by(f->s, f->c, dm_value(2), p, 7), f->c)
BY(gamma_shape, dm_fill_gamma_by(f->s, f->c, p, dm_value(2), 7), f->c)
BY(poisson_elements, dm_fill_poisson_by(f->s, f->c, p, 7), f->c)
static dm_status form_require_elements(fixture *f)
{
    dm_factor low, high;
    TRY(element_of(f, -100, &low));
    TRY(element_of(f, 100, &high));
    f->out[f->outs++] = f->a;
    return dm_require_range_by(f->s, f->a, low, high);
}
BY(gemv_elements, dm_gemv_by(f->s, DM_T, p, f->a, f->v, q, f->u), f->u)
BY(syr2_elements, dm_syr2_by(f->s, DM_LOWER, p, f->v, f->w, f->c), f->c)
BY(symm_elements, dm_symm_by(f->s, DM_RIGHT, DM_UPPER, p, f->a, f->b, q, f->c), f->c)
BY(her2k_elements, dm_her2k_by(f->s, DM_LOWER, DM_N, p, f->a, f->b, q, f->c), f->c)
BY(trsm_elements, dm_trsm_by(f->s, DM_RIGHT, DM_LOWER, DM_T, DM_UNIT, p, f->a, f->c), f->c)
BY(rot_elements, dm_rot_by(f->s, f->c, f->d, p, q), f->c, f->d)
BY(pad_elements, dm_pad_by(f->s, f->a, (int64_t[]){0, 0}, (int64_t[]){0, 0}, DM_PAD_CONSTANT, p, f->c), f->c)
BY(channel_sums_elements, dm_channel_sums_by(f->s, 2, p, f->a, f->b, q, f->u), f->u)
BY(relu_elements, dm_relu_backward_sums_by(f->s, 2, f->a, f->b, f->c, p, f->u), f->c, f->u)
BY(inner_elements, dm_inner_backward_weights_by(f->s, 2, f->a, f->b, p, f->c, f->u), f->c, f->u)
static const dm_inner bf16_inner = {sizeof bf16_inner, 2, DM_BF16};
BY(inner_wire, dm_inner_backward_weights_with(f->s, &bf16_inner, f->a, f->b, p, f->c, f->u), f->c, f->u)
BY(softmax_elements, dm_softmax_loss_backward_by(f->s, &loss_options, f->a, f->index, p, f->c), f->c)
BY(cross_entropy_elements, dm_cross_entropy_gradient_by(f->s, f->a, f->index, p, f->c), f->c)
MAKES(nrm2, DM_F64, 2, 1, 1, dm_nrm2(f->s, f->a, f->out[0]))

static dm_status form_map(fixture *f)
{
    const dm_map_arg args[] = {DM_ARG("a", f->a), DM_ARG("b", f->b), DM_NUMBER("t", 2)};
    f->out[f->outs++] = f->c;
    return dm_map(f->s, "where(a < b, t * a + b, exp(a / 9))", 3, args, f->c);
}

static dm_status form_map_new(fixture *f)
{
    const dm_map_arg args[] = {DM_ARG("a", f->a), DM_ARG("b", f->b)};
    TRY(dm_map_new(f->s, "sum(a * b, 0)", 2, args, NULL, &f->out[0]));
    f->outs = 1;
    return DM_OK;
}

static dm_status form_map_random(fixture *f)
{
    const dm_map_arg args[] = {DM_ARG("a", f->a)};
    f->out[f->outs++] = f->c;
    return dm_map(f->s, "a + uniform(7) * normal(8)", 1, args, f->c);
}

static dm_status form_sum_random(fixture *f)
{
    const dm_map_arg args[] = {DM_ARG("a", f->a)};
    TRY(dm_map_new(f->s, "sum(a * uniform(7), 0)", 1, args, NULL, &f->out[0]));
    f->outs = 1;
    return DM_OK;
}

static dm_status form_topk(fixture *f)
{
    TRY(made(f, DM_F64, 2, SIDE, 3));
    TRY(made(f, DM_I64, 2, SIDE, 3));
    return dm_topk(f->s, f->a, 1, 1, f->out[0], f->out[1]);
}

static dm_status form_unique(fixture *f)
{
    TRY(dm_unique(f->s, f->a, &f->out[0], &f->out[1], NULL));
    f->outs = 2;
    return DM_OK;
}

static dm_status form_quantile(fixture *f)
{
    const double q[2] = {0.25, 0.5};
    TRY(made(f, DM_F64, 2, 2, SIDE));
    return dm_quantile(f->s, f->a, q, 2, 0, f->out[0]);
}

static dm_status form_concatenate(fixture *f)
{
    const dm_array parts[2] = {f->a, f->b};
    TRY(made(f, DM_F64, 2, 2 * SIDE, SIDE));
    return dm_concatenate(f->s, 2, parts, 0, f->out[0]);
}

static dm_status padded(fixture *f, int mode)
{
    const int64_t before[2] = {1, 2}, after[2] = {3, 0};
    TRY(made(f, DM_F64, 2, SIDE + 4, SIDE + 2));
    return dm_pad(f->s, f->a, before, after, mode, 7, f->out[0]);
}

static dm_status form_pad(fixture *f)
{
    return padded(f, DM_PAD_REFLECT);
}

static dm_status form_pad_constant(fixture *f)
{
    return padded(f, DM_PAD_CONSTANT);
}

static dm_status form_pad_edge(fixture *f)
{
    return padded(f, DM_PAD_EDGE);
}

static dm_status form_unique_inverse(fixture *f)
{
    TRY(dm_unique(f->s, f->a, &f->out[0], NULL, &f->out[1]));
    f->outs = 2;
    return DM_OK;
}

static dm_status form_choice_weights(fixture *f)
{
    dm_array weights;
    TRY(made(f, DM_I64, 1, 5, 0));
    TRY(dm_vector(f->s, DM_F64, SIDE, &weights));
    TRY(dm_fill(f->s, weights, 2));
    return dm_choice(f->s, SIDE, weights, 1, 7, f->out[0]);
}

static dm_status form_view(fixture *f)
{
    const int64_t lo[2] = {1, 2}, extent[2] = {5, 7};
    dm_array from, to;
    f->out[f->outs++] = f->c;
    TRY(dm_array_view(f->s, f->a, lo, extent, &from));
    TRY(dm_array_view(f->s, f->c, lo, extent, &to));
    return dm_copy(f->s, from, to);
}

static dm_status form_slice(fixture *f)
{
    const int64_t lo[2] = {1, 0}, extent[2] = {5, 4}, step[2] = {2, 3};
    dm_array from, to;
    f->out[f->outs++] = f->c;
    TRY(dm_array_slice(f->s, f->a, lo, extent, step, &from));
    TRY(dm_array_slice(f->s, f->c, lo, extent, step, &to));
    return dm_add(f->s, 1, from, 1, to, to);
}

static dm_status form_reshape(fixture *f)
{
    const int64_t shape[3] = {3, 4, SIDE};
    f->outs = 1;
    return dm_array_reshape(f->s, f->a, 3, shape, &f->out[0]);
}

static dm_status form_write(fixture *f)
{
    double values[SIDE * SIDE];
    element_matrix(SIDE, 77, values);
    f->out[f->outs++] = f->c;
    return dm_array_write(f->s, f->c, NULL, NULL, values, 0);
}

static dm_status form_write_as(fixture *f)
{
    float values[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) {
        values[i] = (float)i;
    }
    f->out[f->outs++] = f->c;
    return dm_array_write_as(f->s, f->c, NULL, NULL, DM_F32, values, 0);
}

static dm_status form_read(fixture *f)
{
    double values[SIDE * SIDE], want[SIDE * SIDE];
    TRY(dm_array_read(f->s, f->a, NULL, NULL, values, 0));
    element_matrix(SIDE, 1, want);
    assert_memory_equal(values, want, sizeof want);
    return DM_OK;
}

static dm_status form_save(fixture *f)
{
    char path[96];
    snprintf(path, sizeof path, "%s/saved.npy", f->folder);
    (void)unlink(path);
    dm_status status = dm_array_save(f->s, f->a, path);
    TRY(status);
    f->outs = 1;
    return dm_array_load(f->s, path, NULL, &f->out[0]);
}

static dm_status form_load(fixture *f)
{
    char path[96];
    dm_layout cols = dm_layout_cols(f->s);
    snprintf(path, sizeof path, "%s/there.npy", f->folder);
    f->outs = 1;
    return dm_array_load(f->s, path, &cols, &f->out[0]);
}

static int negate(const dm_task *task)
{
    for (int64_t i = 0; i < task->blocks[0]; i++) {
        const dm_block *at = &task->block[0][i];
        for (int64_t r = 0; r < at->extent[0]; r++) {
            for (int64_t c = 0; c < at->extent[1]; c++) {
                double *x = (double *)at->data + r * at->stride[0] + c * at->stride[1];
                *x = -*x;
            }
        }
    }
    return 0;
}

static dm_status form_apply(fixture *f)
{
    const int modes[1] = {DM_READWRITE};
    const dm_apply_options options = {.size = sizeof options, .whole_rows = 1};
    f->out[f->outs++] = f->c;
    return dm_apply_with(f->s, "negate", 1, &f->c, modes, "args", 5, &options);
}

static dm_status form_explain(fixture *f)
{
    char *text = NULL;
    TRY(dm_explain_begin(f->s));
    dm_status status = dm_gemm(f->s, DM_N, DM_N, 1, f->a, f->b, 0, f->c), end = dm_explain_end(f->s, &text);
    if (end == DM_OK) {
        free(text);
    }
    return status == DM_OK ? end : status;
}

static dm_status record(fixture *f)
{
    dm_array t;
    TRY(dm_array_like(f->s, f->a, DM_F64, &t));
    TRY(dm_gemm(f->s, DM_N, DM_N, 1, f->a, f->b, 0, t));
    TRY(dm_add(f->s, 1, t, 1, f->c, f->c));
    return dm_array_destroy(f->s, t);
}

static dm_status form_program(fixture *f)
{
    dm_program p;
    f->out[f->outs++] = f->c;
    TRY(dm_program_begin(f->s));
    dm_status status = record(f);
    if (status != DM_OK) {
        (void)!dm_program_end(f->s, NULL);
        return status;
    }
    TRY(dm_program_end(f->s, &p));
    status = dm_program_run(f->s, p, 3, 0, NULL);
    dm_status end = dm_program_destroy(f->s, p);
    return status == DM_OK ? end : status;
}

static dm_status form_conv(fixture *f)
{
    const int64_t x[4] = {4, 5, 5, 2}, w[4] = {3, 3, 3, 2}, y[4] = {4, 5, 5, 3}, n[1] = {3};
    dm_conv conv = DM_CONV_INIT;
    dm_array in, weights, bias;
    conv.pad[0] = conv.pad[1] = 1;
    conv.slices = 2;
    TRY(dm_array_create(f->s, DM_F32, 4, x, NULL, &in));
    TRY(dm_array_create(f->s, DM_F32, 4, w, NULL, &weights));
    TRY(dm_array_create(f->s, DM_F32, 1, n, NULL, &bias));
    TRY(dm_array_create(f->s, DM_F32, 4, y, NULL, &f->out[0]));
    f->outs = 1;
    /* whole numbers: without memory for oneDNN's, loops compute the same, and round sums in another order */
    TRY(dm_fill_arange(f->s, in, -70, 1));
    TRY(dm_fill_arange(f->s, weights, -20, 1));
    TRY(dm_fill(f->s, bias, 1));
    TRY(dm_conv_forward(f->s, &conv, in, weights, bias, f->out[0]));
    return dm_conv_backward_weights(f->s, &conv, in, f->out[0], 0, weights, bias);
}

static dm_status form_pool(fixture *f)
{
    const int64_t x[4] = {4, 6, 6, 2}, y[4] = {4, 3, 3, 2};
    dm_pool pool = DM_POOL_INIT;
    dm_lrn lrn = DM_LRN_INIT;
    dm_array in, t;
    pool.slices = lrn.slices = 2;
    TRY(dm_array_create(f->s, DM_F32, 4, x, NULL, &in));
    TRY(dm_array_create(f->s, DM_F32, 4, x, NULL, &t));
    TRY(dm_array_create(f->s, DM_F32, 4, y, NULL, &f->out[0]));
    f->outs = 1;
    TRY(dm_fill_uniform(f->s, in, 0, 1, 1));
    TRY(dm_lrn_forward(f->s, &lrn, in, t));
    TRY(dm_pool_forward(f->s, &pool, t, f->out[0], DM_NO_ARRAY));
    return DM_OK;
}

static dm_status form_momentum(fixture *f)
{
    dm_array h;
    dm_factor rate;
    TRY(element_of(f, 0.5, &rate));
    TRY(dm_array_like(f->s, f->c, 0, &h));
    TRY(dm_fill(f->s, h, 1));
    f->out[0] = f->c;
    f->outs = 1;
    return dm_momentum_step(f->s, 0.5, 0.1, 0, 0.9, rate, f->a, h, f->c);
}

static dm_status form_momentum_rounded(fixture *f)
{
    const int64_t shape[] = {SIDE, SIDE};
    dm_array a[3];
    dm_factor rate;
    TRY(element_of(f, 0.5, &rate));
    for (int i = 0; i < 3; i++) {
        TRY(dm_array_create(f->s, DM_F32, 2, shape, NULL, &a[i]));
        TRY(dm_copy(f->s, f->a, a[i]));
    }
    TRY(made(f, DM_BF16, 2, SIDE, SIDE));
    return dm_momentum_step_rounded(f->s, 0.5, 0.1, 0, 0.9, rate, a[0], a[1], a[2], f->out[0]);
}

static dm_status form_lrn_pool(fixture *f)
{
    const int64_t x[4] = {4, 6, 6, 2}, y[4] = {4, 3, 3, 2};
    dm_pool pool = DM_POOL_INIT;
    dm_lrn lrn = DM_LRN_INIT;
    dm_array in, which;
    lrn.slices = 2;
    TRY(dm_array_create(f->s, DM_F32, 4, x, NULL, &in));
    TRY(dm_array_create(f->s, DM_F32, 4, y, NULL, &f->out[0]));
    TRY(dm_array_create(f->s, DM_F32, 4, x, NULL, &f->out[1]));
    TRY(dm_array_create(f->s, DM_U8, 4, y, NULL, &which));
    f->outs = 2;
    TRY(dm_fill_uniform(f->s, in, 0, 1, 1));
    TRY(dm_lrn_pool_forward(f->s, &lrn, &pool, in, f->out[0], which));
    return dm_lrn_pool_backward(f->s, &lrn, &pool, in, which, f->out[0], f->out[1]);
}

static dm_status form_images(fixture *f)
{
    const int64_t x[4] = {4, 2, 6, 6}, y[4] = {4, 5, 5, 2};
    const dm_images images = DM_IMAGES_INIT;
    dm_array in, places;
    TRY(dm_array_create(f->s, DM_U8, 4, x, NULL, &in));
    TRY(dm_array_create(f->s, DM_I32, 2, (const int64_t[]){4, 3}, NULL, &places));
    TRY(dm_array_create(f->s, DM_F32, 4, y, NULL, &f->out[0]));
    f->outs = 1;
    TRY(dm_fill(f->s, in, 7));
    TRY(dm_fill(f->s, places, 1));
    return dm_images_forward(f->s, &images, in, places, DM_NO_ARRAY, f->out[0]);
}

static dm_status form_meshgrid(fixture *f)
{
    TRY(made(f, DM_F64, 2, SIDE, SIDE));
    TRY(made(f, DM_F64, 2, SIDE, SIDE));
    return dm_meshgrid(f->s, 2, (const dm_array[]){f->v, f->w}, f->out);
}

static dm_status form_compress(fixture *f)
{
    TRY(dm_compress(f->s, f->a, f->index, 0, NULL, &f->out[0]));
    f->outs = 1;
    return DM_OK;
}

static dm_status form_nonzero(fixture *f)
{
    TRY(dm_nonzero(f->s, f->b, 2, f->out));
    f->outs = 2;
    return DM_OK;
}

static dm_status in_group(fixture *f)
{
    dm_array t;
    TRY(dm_array_create(f->s, DM_F64, 2, (const int64_t[]){SIDE, SIDE}, NULL, &t));
    TRY(dm_scale(f->s, 2, f->a, t));
    return dm_copy(f->s, t, f->c);
}

static dm_status form_group(fixture *f)
{
    const int last = dm_workers(f->s) - 1;
    dm_group g;
    f->out[f->outs++] = f->c;
    TRY(dm_group_create(f->s, &last, 1, &g));
    dm_status status = dm_group_begin(f->s, g);
    if (status == DM_OK) {
        status = in_group(f);
        dm_status end = dm_group_end(f->s);
        status = status == DM_OK ? end : status;
    }
    dm_status end = dm_group_destroy(f->s, g);
    return status == DM_OK ? end : status;
}

static dm_status form_scopes(fixture *f)
{
    enum { DEEP = 20 };
    dm_status status = DM_OK;
    int begun = 0;
    f->out[f->outs++] = f->c;
    while (begun < DEEP && status == DM_OK) {
        status = dm_scope_begin(f->s);
        begun += status == DM_OK;
    }
    status = status == DM_OK ? dm_scale(f->s, 3, f->a, f->c) : status;
    while (begun-- > 0) {
        dm_status end = dm_scope_end(f->s, NULL, 0);
        status = status == DM_OK ? end : status;
    }
    return status;
}

static dm_status form_program_number(fixture *f)
{
    dm_program p;
    dm_array rate;
    f->out[f->outs++] = f->c;
    TRY(dm_program_begin(f->s));
    dm_status status = dm_program_number(f->s, "rate", DM_F64, 2, &rate);
    status = status == DM_OK ? dm_axpby_by(f->s, dm_element(rate), f->a, dm_value(0), f->c) : status;
    if (status != DM_OK) {
        (void)!dm_program_end(f->s, NULL);
        return status;
    }
    TRY(dm_program_end(f->s, &p));
    status = dm_program_set_number(f->s, p, "rate", 3);
    status = status == DM_OK ? dm_program_run(f->s, p, 1, 0, NULL) : status;
    dm_status end = dm_program_destroy(f->s, p);
    return status == DM_OK ? end : status;
}

/* c += 2 a, in two loops of three passes, of which one ends by a value. */
static dm_status record_loops(fixture *f)
{
    dm_array t, left;
    TRY(dm_array_like(f->s, f->a, DM_F64, &t));
    TRY(dm_array_create(f->s, DM_F64, 0, NULL, NULL, &left));
    TRY(dm_scale(f->s, 2, f->a, t));
    TRY(dm_program_repeat(f->s, 3));
    TRY(dm_fill(f->s, left, 3));
    TRY(dm_program_repeat(f->s, 100));
    TRY(dm_add(f->s, 1, t, 1, f->c, f->c));
    TRY(dm_map(f->s, "n - 1", 1, (dm_map_arg[]){DM_ARG("n", left)}, left));
    TRY(dm_program_repeat_until(f->s, 1, left, 0.5));
    TRY(dm_program_repeat_end(f->s));
    TRY(dm_array_destroy(f->s, left));
    return dm_array_destroy(f->s, t);
}

static dm_status form_program_loops(fixture *f)
{
    dm_program p;
    f->out[f->outs++] = f->c;
    TRY(dm_program_begin(f->s));
    dm_status status = record_loops(f);
    if (status != DM_OK) {
        (void)!dm_program_end(f->s, NULL);
        return status;
    }
    TRY(dm_program_end(f->s, &p));
    status = dm_program_run(f->s, p, 2, 0, NULL);
    dm_status end = dm_program_destroy(f->s, p);
    return status == DM_OK ? end : status;
}

static dm_status form_feed(fixture *f)
{
    const int64_t shape[1] = {SIDE};
    dm_feed *feed;
    void *buffer;
    f->out[f->outs++] = f->u;
    TRY(dm_feed_create(f->s, DM_F64, 1, shape, 1, &feed));
    dm_status status = dm_feed_take(feed, 1, &buffer);
    for (int i = 0; status == DM_OK && i < SIDE; i++) {
        ((double *)buffer)[i] = i * i;
    }
    status = status == DM_OK ? dm_feed_put(feed) : status;
    status = status == DM_OK ? dm_array_feed(f->s, f->u, feed, 10) : status;
    dm_status end = dm_feed_destroy(feed);
    return status == DM_OK ? end : status;
}

static dm_status form_event(fixture *f)
{
    dm_event event;
    f->out[f->outs++] = f->c;
    TRY(dm_scale(f->s, 2, f->b, f->c));
    TRY(dm_event_record(f->s, &event));
    return dm_event_wait(f->s, event, -1);
}

static dm_status save_and_load(fixture *f, const char *path)
{
    const dm_checkpoint_item item = DM_KEEP_ARRAY("c", f->c);
    TRY(dm_keep(f->s, &item));
    TRY(dm_checkpoint_save(f->s, path, 0, NULL, NULL, NULL));
    TRY(dm_fill(f->s, f->c, 0));
    TRY(dm_checkpoint_load(f->s, path, 1, &item));
    TRY(dm_checkpoint_array(f->s, path, "c", (dm_dtype)0, NULL, &f->out[1]));
    f->outs = 2;
    return dm_checkpoint_verify(path, NULL, NULL);
}

static dm_status form_checkpoint(fixture *f)
{
    char path[96];
    snprintf(path, sizeof path, "%s/series", f->folder);
    f->out[f->outs++] = f->c;
    dm_status status = save_and_load(f, path);
    (void)dmt_remove_folder(path);
    return status;
}

/* All arrays of the session again, which have the names that they were saved under. */
static dm_status save_and_load_all(fixture *f, const char *path)
{
    dm_status status = dm_session_save(f->s, path, NULL, NULL);
    status = status == DM_OK ? dm_session_load(f->s, path) : status;
    for (int i = 1; status == DM_OK; i++) {
        char name[32];
        dm_array a = DM_NO_ARRAY;
        snprintf(name, sizeof name, "array/%d", i);
        status = dm_kept_array(f->s, name, &a);
        if (status != DM_OK || a.id == 0) {
            break;
        }
        status = dm_keep(f->s, &(dm_checkpoint_item){.name = name});
        status = status == DM_OK ? dm_array_destroy(f->s, a) : status;
    }
    return status;
}

static dm_status form_session(fixture *f)
{
    char path[96];
    snprintf(path, sizeof path, "%s/whole", f->folder);
    f->out[f->outs++] = f->c;
    dm_status status = save_and_load_all(f, path);
    (void)dmt_remove_folder(path);
    return status;
}

static dm_status form_memory_trim(fixture *f)
{
    return dm_memory_trim(f->s);
}

#define FORMS(X)                                                                                               \
    X(gemm)                                                                                                    \
    X(gemm_t)                                                                                                  \
    X(gemm_nt)                                                                                                 \
    X(gemm_by)                                                                                                 \
    X(matmul)                                                                                                  \
    X(copy)                                                                                                    \
    X(transpose)                                                                                               \
    X(add)                                                                                                     \
    X(add_broadcast)                                                                                           \
    X(axpby)                                                                                                   \
    X(multiply)                                                                                                \
    X(scale) X(tanh) X(fill) X(fill_identity) X(fill_arange) X(fill_uniform) X(fill_normal) X(fill_by)         \
        X(sum_rows) X(sum_all) X(max) X(accumulate_max) X(argmin) X(var) X(norm) X(any) X(softmax)             \
            X(log_softmax) X(standardise) X(layer_norm) X(covariance) X(distances) X(dot) X(iamax) X(axpy)     \
                X(swap) X(rot) X(tril) X(gemv) X(ger) X(symv) X(syrk) X(symm) X(trmm) X(trsm) X(trsv)          \
                    X(cumulative_sum) X(sort) X(argsort) X(histogram) X(bincount) X(median) X(take) X(put)     \
                        X(scatter_add) X(roll) X(flip) X(diagonal) X(set_diagonal) X(require_range)            \
                            X(set_item) X(inner) X(map) X(map_new) X(topk) X(unique) X(quantile)               \
                                X(concatenate) X(pad) X(view) X(slice) X(reshape) X(write) X(write_as) X(read) \
                                    X(save) X(load) X(apply) X(explain) X(program) X(conv) X(pool) X(momentum) \
                                        X(lrn_pool) X(images) X(memory_trim) X(shuffle) X(tile) X(repeat)      \
                                            X(one_hot) X(choice) X(permutation) X(meshgrid) X(compress)        \
                                                X(group) X(event) X(checkpoint) X(pad_constant) X(pad_edge)    \
                                                    X(unique_inverse) X(choice_weights) X(cosine_distances)    \
                                                        X(cross_entropy) X(symmetrise) X(fill_uniform_by)      \
                                                            X(sort_long) X(argsort_long) X(map_random)         \
                                                                X(sum_random) X(scopes) X(program_number)      \
                                                                    X(program_loops) X(feed) X(nonzero)        \
                                                                        X(isin) X(session)

/* With factors that are elements; and a norm of one element of two dims. */
#define FORMS_BY(X)                                                                                            \
    X(axpby_elements)                                                                                          \
    X(gemm_elements)                                                                                           \
    X(arange_elements)                                                                                         \
    X(dropout_elements)                                                                                        \
    X(gamma_elements)                                                                                          \
    X(gamma_shape)                                                                                             \
    X(poisson_elements)                                                                                        \
    X(require_elements)                                                                                        \
    X(gemv_elements)                                                                                           \
    X(syr2_elements)                                                                                           \
    X(symm_elements)                                                                                           \
    X(her2k_elements)                                                                                          \
    X(trsm_elements) X(rot_elements) X(pad_elements) X(channel_sums_elements) X(relu_elements)                 \
        X(inner_elements) X(inner_wire) X(softmax_elements) X(cross_entropy_elements) X(nrm2)                  \
            X(momentum_rounded)

static const struct {
    const char *name;
    dm_status (*run)(fixture *f);
} forms[] = {
#define X(name) {#name, form_##name},
    FORMS(X) FORMS_BY(X)
#undef X
};
enum { FORM_COUNT = sizeof forms / sizeof *forms };

#endif
