/* Calls of every op on arrays of many layouts, for tests in which kernels fail. */
#ifndef OP_FORMS_H
#define OP_FORMS_H

#include "robust.h"

enum { N = 24, WORKERS = 3, A = 0, B, C, D, E, SCRATCH, ARRAYS };

typedef struct fixture {
    dm_session *session;
    dm_array array[ARRAYS]; /* a, b: read; c: written; d: not touched; e: takes what c has */
    dm_array out;           /* what the op writes: c or another */
    char folder[64];
} fixture;

typedef struct op_form {
    const char *name, *options;
    char layout[3]; /* of a, b, c: r rows, c columns, y cyclic rows, g grid, s single, * replicated */
    dm_status (*run)(fixture *f);
    bool waits;   /* the call itself reports */
    bool outside; /* the result leaves the arrays: nothing is poisoned */
} op_form;

static inline dm_layout layout_of(const dm_session *session, char kind)
{
    switch (kind) {
    case 'c':
        return dm_layout_cols(session);
    case 'y':
        return dm_layout_cyclic(session, 0, 2);
    case 'g':
        return dm_layout_grid(1, WORKERS, 5, 7);
    case 's':
        return dm_layout_single(1);
    case '*':
        return dm_layout_replicated(session);
    default:
        return dm_layout_rows(session);
    }
}

static inline dm_status gemm(fixture *f)
{
    return dm_gemm(f->session, DM_N, DM_N, 1, f->array[A], f->array[B], 1, f->array[C]);
}

static inline dm_status gemm_tn(fixture *f)
{
    return dm_gemm(f->session, DM_T, DM_N, 1, f->array[A], f->array[B], 0, f->array[C]);
}

static inline dm_status gemm_nt(fixture *f)
{
    return dm_gemm(f->session, DM_N, DM_T, 1, f->array[A], f->array[B], 0, f->array[C]);
}

static inline dm_status gemm_tt(fixture *f)
{
    return dm_gemm(f->session, DM_T, DM_T, 1, f->array[A], f->array[B], 0, f->array[C]);
}

static inline dm_status gemm_by(fixture *f)
{
    const int64_t lo[2] = {1, 1}, one[2] = {1, 1};
    dm_array element;
    OK(dm_array_view(f->session, f->array[B], lo, one, &element));
    dm_status status = dm_gemm_by(f->session, DM_N, DM_N, dm_element(element), f->array[A], f->array[B], dm_value(1),
                                  f->array[C], NULL);
    OK(dm_array_destroy(f->session, element));
    return status;
}

static inline dm_status copy(fixture *f)
{
    return dm_copy(f->session, f->array[A], f->array[C]);
}

static inline dm_status transpose(fixture *f)
{
    return dm_transpose(f->session, f->array[A], f->array[C]);
}

static inline dm_status add(fixture *f)
{
    return dm_add(f->session, 2, f->array[A], 3, f->array[B], f->array[C]);
}

static inline dm_status axpby(fixture *f)
{
    return dm_axpby(f->session, 2, f->array[A], 3, f->array[C]);
}

static inline dm_status multiply(fixture *f)
{
    return dm_multiply(f->session, 2, f->array[A], f->array[B], f->array[C]);
}

static inline dm_status map(fixture *f)
{
    dm_map_arg args[] = {DM_ARG("a", f->array[A]), DM_ARG("b", f->array[B]), DM_NUMBER("s", 2)};
    return dm_map(f->session, "where(a < b, s * a + b, a)", 3, args, f->array[C]);
}

static inline dm_status tanh_of(fixture *f)
{
    return dm_tanh(f->session, f->array[A], f->array[C]);
}

static inline dm_status fill(fixture *f)
{
    return dm_fill(f->session, f->array[C], 4);
}

static inline dm_status sum_into(fixture *f, int ndims, const dm_layout *layout)
{
    const int dims[1] = {0};
    const int64_t shape[2] = {1, ndims ? N : 1};
    OK(dm_array_create(f->session, DM_F64, 2, shape, layout, &f->out));
    return dm_sum(f->session, f->array[A], ndims ? dims : NULL, ndims, 1, 0, f->out);
}

static inline dm_status sum_rows(fixture *f)
{
    return sum_into(f, 1, NULL);
}

static inline dm_status sum_copies(fixture *f)
{
    dm_layout everywhere = dm_layout_replicated(f->session);
    return sum_into(f, 1, &everywhere);
}

static inline dm_status sum_all(fixture *f)
{
    return sum_into(f, 0, NULL);
}

static inline dm_status sum_by(fixture *f)
{
    const int64_t lo[2] = {1, 1}, one[2] = {1, 1};
    dm_array element;
    OK(dm_array_create(f->session, DM_F64, 2, one, NULL, &f->out));
    OK(dm_array_view(f->session, f->array[B], lo, one, &element));
    dm_status status = dm_sum_by(f->session, f->array[A], NULL, 0, dm_element(element), dm_value(0), f->out);
    OK(dm_array_destroy(f->session, element));
    return status;
}

static inline dm_status cumulative_sum(fixture *f)
{
    return dm_cumulative_sum(f->session, f->array[A], 0, f->array[C]);
}

static inline dm_status sort(fixture *f)
{
    return dm_sort(f->session, f->array[A], 0, 0, f->array[C]);
}

static inline dm_status save(fixture *f)
{
    char path[96];
    snprintf(path, sizeof path, "%s/saved.npy", f->folder);
    (void)unlink(path);
    dm_status status = dm_array_save(f->session, f->array[A], path);
    if (status != DM_OK) {
        assert_int_equal(access(path, F_OK), -1);
    }
    return status;
}

static inline dm_status load(fixture *f)
{
    char path[96];
    dm_array loaded = {77};
    snprintf(path, sizeof path, "%s/there.npy", f->folder);
    dm_status status = dm_array_load(f->session, path, NULL, &loaded);
    if (status == DM_OK) {
        matrix_is(f->session, loaded, N, 3);
        OK(dm_array_destroy(f->session, loaded));
    } else {
        assert_true(loaded.id == 77);
    }
    return status;
}

static const op_form forms[] = {
    {"gemm", "", "rcr", gemm, false, false},
    {"gemm", "", "rrr", gemm, false, false},
    {"gemm", "", "ccc", gemm, false, false},
    {"gemm", "", "grs", gemm, false, false},
    {"gemm", "", "ycg", gemm, false, false},
    {"gemm", "", "**r", gemm, false, false},
    {"gemm", "gemm_algorithm=stationary,", "rcg", gemm, false, false},
    {"gemm", "gemm_algorithm=stationary,", "yy*", gemm, false, false},
    {"gemm", "gemm_algorithm=cyclic,", "rrc", gemm_nt, false, false},
    {"gemm", "gemm_algorithm=contract,", "rrr", gemm_tn, false, false},
    {"gemm", "gemm_algorithm=contract,", "crr", gemm, false, false},
    {"gemm", "gemm_algorithm=contract,reduce_algorithm=direct,", "rr*", gemm_tn, false, false},
    {"gemm", "gemm_algorithm=contract,reduce_algorithm=scatter,", "rr*", gemm_tn, false, false},
    {"gemm", "", "rcr", gemm_tt, false, false},
    {"gemm", "", "rrr", gemm_tn, false, false},
    {"gemm", "gemm_workspace=2K,", "rrr", gemm, false, false},
    {"gemm_by", "", "rcr", gemm_by, false, false},
    {"gemm_by", "", "grs", gemm_by, false, false},
    {"copy", "", "r.r", copy, false, false},
    {"copy", "", "r.c", copy, false, false},
    {"copy", "", "y.*", copy, false, false},
    {"transpose", "", "r.c", transpose, false, false},
    {"add", "", "rrr", add, false, false},
    {"add", "", "rcy", add, false, false},
    {"axpby", "", "r.c", axpby, false, false},
    {"multiply", "", "gcr", multiply, false, false},
    {"map", "", "rrr", map, false, false},
    {"map", "", "gyc", map, false, false},
    {"tanh", "", "r.s", tanh_of, false, false},
    {"fill", "", "..r", fill, false, false},
    {"fill", "", "..*", fill, false, false},
    {"sum", "", "r..", sum_rows, false, false},
    {"sum", "", "c..", sum_rows, false, false},
    {"sum", "reduce_algorithm=direct,", "r..", sum_copies, false, false},
    {"sum", "reduce_algorithm=scatter,reduce_chunk=16,", "r..", sum_copies, false, false},
    {"sum", "", "y..", sum_all, false, false},
    {"sum_by", "", "rr.", sum_by, false, false},
    {"cumulative_sum", "", "r.r", cumulative_sum, false, false},
    {"cumulative_sum", "", "y.c", cumulative_sum, false, false},
    {"sort", "", "r.c", sort, false, false},
    {"sort", "", "c.*", sort, false, false},
    {"array_save", "", "r..", save, true, true},
    {"array_save", "", "g..", save, true, true},
    {"array_load", "", "r..", load, true, true},
};

#endif
