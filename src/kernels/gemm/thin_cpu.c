/* Products of a large matrix by a vector or by a thin matrix. gemm of BLAS packs the large matrix first, which
 * takes longer than the product. These loops read it once, near the memory's rate. gemv of BLAS is as fast, but
 * the stride of the vector changes the bits of its result, and replicas of c must agree.
 *
 * Names: a is the large operand, x the thin one, y the result. If c has few rows, a and x are op(b) and op(a),
 * transposed. Three loops: dots (rows of a lie along k, x has one or two columns), rows (the same, more
 * columns), adds (rows of a lie across k). */
#include "kernels/box/convert.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/simd.h"
#include <assert.h>

enum { THIN_VECTOR = 32, THIN_SUMS = 8 }; /* bytes; the most sums that a loop keeps in registers */
enum { THIN_AHEAD = 256 }; /* bytes of a row, measured: half of it, or a whole group of rows, is slower */
enum {
    TILE_BYTES = 64 << 10,
    TILE_MOST = 4096,
    ROWS_EACH = 32
}; /* of x or y; of a, for one group of columns */
/* Measured: BLAS is as fast if a has few rows or columns. For several columns of x it is also as fast if a fits
 * the cache. */
enum { LEAST_VECTOR = 16, LEAST = 64, LEAST_ACROSS = 512, WIDE = 8, LEAST_WIDE = 256 };
enum { LEAST_BYTES = 1 << 20, LEAST_BYTES_WIDE = 8 << 20 };

/* y[i][j] = alpha * (sum over p of a(i, p) * x(p, j)) + beta * y[i][j] */
typedef struct thin_tile {
    int64_t rows, cols, k;
    const void *a, *x;
    int64_t lda;
    int64_t ldx;        /* dots: from one column to the next */
    int64_t x_k, x_col; /* adds */
    void *y;
    int64_t y_row, y_col;
    double alpha, beta;
    void *sum; /* adds: sums of each column, one every lds elements */
    int64_t lds;
    int64_t row, at; /* done so far: rows of a (dots, rows), indices of k (adds) */
} thin_tile;

typedef void thin_loop(thin_tile *t);
typedef struct thin_loops {
    thin_loop *dots[2][2], *rows[2][2],
        *adds[4][2]; /* by the columns they take; several rows or indices at a time, one */
    void (*store)(const thin_tile *t);
} thin_loops;

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL
#endif
#define THIN_REST static __attribute__((noinline))
#define LOOP_OF(name, call)                                                                                    \
    DMI_BODY void name##_body(thin_tile *t)                                                                    \
    {                                                                                                          \
        call;                                                                                                  \
    }                                                                                                          \
    DMI_TWICE(static, name, (thin_tile * t), (t))
#define LOOP(name, call) LOOP_OF(name, call)

#define REAL double
#define NAME(x) x##_f64
#include "kernels/gemm/thin_type_cpu.h"
#undef REAL
#undef NAME
#define REAL float
#define NAME(x) x##_f32
#include "kernels/gemm/thin_type_cpu.h"

/* The product as a whole. */
typedef struct thin {
    thin_tile all;
    bool along; /* a's rows lie along k */
    int64_t bytes;
    const thin_loops *loops;
} thin;

/* Columns first .. first + t.cols of x, packed as their loop wants them. */
typedef struct group {
    thin_tile t;
    const void *x; /* as given */
    thin_loop *const *loop;
    int64_t width; /* columns with those that only fill a vector up */
    bool dots;
} group;

static void run(group *g)
{
    g->loop[0](&g->t);
    g->loop[1](&g->t);
}

/* Puts the columns into groups and returns the number of groups. */
static int make_groups(const thin *t, group *g)
{
    int64_t lanes = THIN_VECTOR / t->bytes, cols = t->all.cols;
    int count = 0;
    for (int64_t col = 0; col < cols; col += g[count++].t.cols) {
        int64_t left = cols - col;
        g[count] = (group){.t = t->all};
        thin_tile *p = &g[count].t;
        p->y = dmi_at_mut(p->y, col * p->y_col * t->bytes);
        p->x = g[count].x = dmi_at(p->x, col * p->x_col * t->bytes);
        if (!t->along) {
            int size = left == 1 ? 0 : left == 2 ? 1 : left <= 4 ? 2 : 3;
            g[count].loop = t->loops->adds[size];
            g[count].width = (int64_t)1 << size;
        } else if (left <= 2) {
            g[count].dots = true;
            g[count].loop = t->loops->dots[left - 1];
            g[count].width = left;
        } else {
            g[count].loop = t->loops->rows[left > lanes];
            g[count].width = left > lanes ? 2 * lanes : lanes;
        }
        p->cols = DMI_MIN(left, g[count].width);
    }
    return count;
}

/* Indices of k, or rows of a, in a tile: all columns fit into TILE_BYTES. */
static int64_t tile_of(const thin *t, const group *g, int groups)
{
    int64_t width = 0;
    for (int i = 0; i < groups; i++) {
        width += g[i].width;
    }
    return DMI_MIN(TILE_MOST, TILE_BYTES / (width * t->bytes));
}

/* Packs x for one group: n indices of k from p. */
static void pack(const thin *t, group *g, int64_t p, int64_t n, void *room)
{
    const void *x = dmi_at(g->x, p * t->all.x_k * t->bytes);
    g->t.k = g->t.ldx = n;
    g->t.x = room;
    if (g->dots && g->width == 1 && t->all.x_k == 1) {
        g->t.x = x;
        return;
    }
    if (g->width > g->t.cols) {
        memset(room, 0, (size_t)(g->width * n * t->bytes));
    }
    dmi_move_plane(t->bytes, n, g->t.cols, x, t->all.x_k, t->all.x_col, room, g->dots ? 1 : g->width,
                   g->dots ? n : 1);
}

/* Rows of a lie along k: one range of k after another. With several groups of columns, each takes a few rows of
 * a in turn, so that the second group finds them in the cache. */
static void along(const thin *t, group *g, int groups, char *room)
{
    int64_t tile = tile_of(t, g, groups), rows = t->all.rows, step = groups == 1 ? rows : ROWS_EACH;
    for (int64_t p = 0; p < t->all.k; p += tile) {
        int64_t n = DMI_MIN(tile, t->all.k - p), used = 0;
        for (int i = 0; i < groups; i++) {
            pack(t, &g[i], p, n, room + used);
            used += g[i].width * n * t->bytes;
            g[i].t.a = dmi_at(t->all.a, p * t->bytes);
            g[i].t.beta = p == 0 ? t->all.beta : 1;
        }
        for (int64_t row = 0; row < rows; row += step) {
            for (int i = 0; i < groups; i++) {
                g[i].t.row = row;
                g[i].t.rows = DMI_MIN(rows, row + step);
                run(&g[i]);
            }
        }
    }
}

/* Rows of a lie across k: all of k for one range of y after another. */
static void across(const thin *t, group *g, int groups, char *room)
{
    int64_t tile = tile_of(t, g, groups), k = t->all.k, step = groups == 1 ? k : ROWS_EACH;
    for (int64_t row = 0; row < t->all.rows; row += tile) {
        int64_t n = DMI_MIN(tile, t->all.rows - row), used = 0;
        for (int i = 0; i < groups; i++) {
            g[i].t.sum = room + used;
            used += g[i].width * n * t->bytes;
            g[i].t.rows = g[i].t.lds = n;
            g[i].t.at = 0;
            g[i].t.a = dmi_at(t->all.a, row * t->bytes);
        }
        memset(room, 0, (size_t)used);
        for (int64_t p = 0; p < k; p += step) {
            for (int i = 0; i < groups; i++) {
                g[i].t.k = DMI_MIN(k, p + step);
                run(&g[i]);
            }
        }
        for (int i = 0; i < groups; i++) {
            t->loops->store(&g[i].t);
            g[i].t.y = dmi_at_mut(g[i].t.y, n * t->all.y_row * t->bytes);
        }
    }
}

bool dmi_cpu_thin_pays(const dmi_gemm *d)
{
    int64_t rows = DMI_MAX(d->m, d->n), cols = DMI_MIN(d->m, d->n);
    bool few = d->n <= d->m, lies_along = few ? !d->trans_a : d->trans_b;
    if (cols == 1) {
        return d->k >= LEAST_VECTOR && (lies_along || rows >= LEAST_VECTOR);
    }
    return cols <= DMI_CPU_THIN && rows >= (lies_along ? LEAST : LEAST_ACROSS) &&
           d->k >= (cols > WIDE ? LEAST_WIDE : LEAST) &&
           rows * d->k * dmi_dtype_bytes(d->dtype) >= (cols > WIDE ? LEAST_BYTES_WIDE : LEAST_BYTES);
}

void dmi_cpu_thin(const dmi_gemm *d, double alpha, const void *a, const void *b, double beta, void *c)
{
    _Alignas(64) char room[TILE_BYTES];
    group g[DMI_CPU_THIN];
    int64_t bytes = dmi_dtype_bytes(d->dtype);
    bool few = d->n <= d->m; /* columns of c; else rows: c^T = op(b)^T op(a)^T */
    assert(DMI_MIN(d->m, d->n) <= DMI_CPU_THIN && d->k > 0);
    /* The two operands' steps along k and along the other dim. */
    int64_t a_k = d->trans_a ? d->lda : 1, a_m = d->trans_a ? 1 : d->lda;
    int64_t b_k = d->trans_b ? 1 : d->ldb, b_n = d->trans_b ? d->ldb : 1;
    const void *pa = dmi_at(a, d->a_offset * bytes), *pb = dmi_at(b, d->b_offset * bytes);
    thin t = {.all = {.rows = few ? d->m : d->n,
                      .cols = few ? d->n : d->m,
                      .k = d->k,
                      .a = few ? pa : pb,
                      .x = few ? pb : pa,
                      .lda = few ? d->lda : d->ldb,
                      .x_k = few ? b_k : a_k,
                      .x_col = few ? b_n : a_m,
                      .y = dmi_at_mut(c, d->c_offset * bytes),
                      .y_row = few ? d->ldc : 1,
                      .y_col = few ? 1 : d->ldc,
                      .alpha = alpha,
                      .beta = beta},
              .along = few ? !d->trans_a : d->trans_b,
              .bytes = bytes,
              .loops = d->dtype == DM_F64 ? &loops_f64 : &loops_f32};
    int groups = make_groups(&t, g);
    (t.along ? along : across)(&t, g, groups, room);
}
