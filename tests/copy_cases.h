/* Copies to try kernels with, beside the random ones: whole matrices, and the short runs of redistribution. */
#ifndef COPY_CASES_H
#define COPY_CASES_H

#include "kernel_oracle.h"

static inline dmi_run *dim_runs(geometry *g, int k, int64_t n)
{
    g->runs[k] = calloc((size_t)n, sizeof *g->runs[k]);
    assert_non_null(g->runs[k]);
    g->d.run[k] = g->runs[k];
    g->d.nrun[k] = n;
    return g->runs[k];
}

/* A whole matrix, or (planes > 0) several. form: bit 0: the source is stored by columns, bit 1: the target is.
 * pitch: elements left out between its lines, on both sides. */
static inline void make_matrix(int64_t planes, int64_t rows, int64_t cols, int form, int64_t pitch, geometry *g)
{
    int i = planes > 0, j = i + 1;
    int64_t plane = (rows + pitch) * (cols + pitch);
    memset(g, 0, sizeof *g);
    g->d.ndim = j + 1;
    g->d.count = rows * cols * DMI_MAX(planes, 1);
    dim_runs(g, i, 1)->len = rows;
    dim_runs(g, j, 1)->len = cols;
    if (planes > 0) {
        dim_runs(g, 0, 1)->len = planes;
        g->d.src_stride[0] = g->d.dst_stride[0] = plane;
    }
    g->d.src_stride[i] = form & 1 ? 1 : cols + pitch;
    g->d.src_stride[j] = form & 1 ? rows + pitch : 1;
    g->d.dst_stride[i] = form & 2 ? 1 : cols + pitch;
    g->d.dst_stride[j] = form & 2 ? rows + pitch : 1;
    g->src_span = g->dst_span = plane * DMI_MAX(planes, 1);
}

/* Intersections as redistribution makes them: up to rows x cols short runs of many lengths, all multiples of
 * `unit`; in the second dim the middle one has `middle` units (0: as the others). */
static inline void make_short_runs(rng *r, int64_t rows, int64_t cols, int64_t unit, int64_t middle,
                                   geometry *g)
{
    int64_t span_a[2], span_b[2];
    memset(g, 0, sizeof *g);
    g->d.ndim = 2;
    g->d.count = 1;
    for (int k = 0; k < 2; k++) {
        int64_t a = 0, b = 0, n = rng_in(r, 1, k == 0 ? rows : cols), count = 0;
        dmi_run *runs = dim_runs(g, k, n);
        for (int64_t i = 0; i < n; i++) {
            int64_t len = unit * (middle > 0 && k == 1 && i == n / 2 ? middle : rng_in(r, 1, 3));
            runs[i] = (dmi_run){0, a, b, len};
            a += len + unit * rng_in(r, 0, 4);
            b += len;
            count += len;
        }
        g->d.count *= count;
        span_a[k] = a;
        span_b[k] = b;
    }
    g->src_span = random_strides(r, 2, span_a, g->d.src_stride);
    g->dst_span = random_strides(r, 2, span_b, g->d.dst_stride);
}

#endif
