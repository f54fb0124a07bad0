/* dmi_copy: the products of runs are cut into strided boxes, boxes into planes. */
#include "kernels/box/convert.h"
#include "kernels/cpu/cpu.h"
#include <assert.h>

enum { SRC = 0, DST = 1 };
/* Below this many elements a box, the runs are walked row by row: making a box costs as much as copying these.
 */
enum { MIN_BOX = 32 };
enum { TILE = 4096, TRANSPOSED = 32 }; /* elements of a tile that is converted; its width where it transposes */
enum { TILE_BYTES = 8 * TILE };    /* elements of 16 bytes: half as many */

typedef struct copy_job {
    const dmi_copy *d;
    int ndim, dim[DM_MAX_DIMS]; /* the dims that are walked: those of one element are in the offsets */
    int64_t src_bytes, dst_bytes;
    const void *src;
    void *dst;
} copy_job;

/* A tile that is not dense on both sides is gathered, converted and scattered. */
static void convert_plane(const copy_job *job, int64_t n0, int64_t n1, const void *src, int64_t s0, int64_t s1,
                          void *dst, int64_t d0, int64_t d1)
{
    dm_dtype from = job->d->src_dtype, to = job->d->dst_dtype;
    int64_t sb = job->src_bytes, db = job->dst_bytes;
    if (s1 == 1 && d1 == 1 && n1 >= 16) {
        for (int64_t i = 0; i < n0; i++) {
            dmi_convert_row(from, to, dmi_at(src, i * s0 * sb), dmi_at_mut(dst, i * d0 * db), n1);
        }
        return;
    }
    dmi_raw64 gathered[TILE_BYTES / 8], converted[TILE_BYTES / 8];
    int64_t most = TILE_BYTES / DMI_MAX(8, DMI_MAX(sb, db));
    int64_t t1 = DMI_MIN(n1, s1 > s0 && s0 > 0 && n0 > 1 ? TRANSPOSED : most), t0 = most / t1;
    for (int64_t i = 0; i < n0; i += t0) {
        for (int64_t j = 0; j < n1; j += t1) {
            int64_t m0 = DMI_MIN(t0, n0 - i), m1 = DMI_MIN(t1, n1 - j);
            const void *tile = dmi_at(src, (i * s0 + j * s1) * sb);
            void *out = dmi_at_mut(dst, (i * d0 + j * d1) * db);
            dmi_move_plane(sb, m0, m1, tile, s0, s1, gathered, m1, 1);
            dmi_convert_row(from, to, gathered, converted, m0 * m1);
            dmi_move_plane(db, m0, m1, converted, m1, 1, out, d0, d1);
        }
    }
}

/* Brings the dim in which the source is densest next to the innermost one, in which the destination is. */
static void pair_inner(dmi_box *box)
{
    int inner = box->ndim - 1, best = inner;
    for (int d = 0; d < inner; d++) {
        if (box->stride[SRC][d] > 0 && box->stride[SRC][d] < box->stride[SRC][best]) {
            best = d;
        }
    }
    if (best == inner) {
        return;
    }
    int64_t extent = box->extent[best], s = box->stride[SRC][best], t = box->stride[DST][best];
    for (int d = best; d < inner - 1; d++) {
        box->extent[d] = box->extent[d + 1];
        box->stride[SRC][d] = box->stride[SRC][d + 1];
        box->stride[DST][d] = box->stride[DST][d + 1];
    }
    box->extent[inner - 1] = extent;
    box->stride[SRC][inner - 1] = s;
    box->stride[DST][inner - 1] = t;
}

static void copy_box(const copy_job *job, dmi_box box, int64_t src_at, int64_t dst_at)
{
    dmi_box_simplify(&box, DST);
    pair_inner(&box);
    int n = box.ndim, outer = DMI_MAX(n - 2, 0);
    int64_t n0 = n > 1 ? box.extent[n - 2] : 1, n1 = box.extent[n - 1];
    int64_t s0 = n > 1 ? box.stride[SRC][n - 2] : 0, s1 = box.stride[SRC][n - 1];
    int64_t d0 = n > 1 ? box.stride[DST][n - 2] : 0, d1 = box.stride[DST][n - 1];
    int64_t index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {src_at, dst_at};
    do {
        const void *src = dmi_at(job->src, at[SRC] * job->src_bytes);
        void *dst = dmi_at_mut(job->dst, at[DST] * job->dst_bytes);
        if (job->d->src_dtype == job->d->dst_dtype) {
            dmi_move_plane(job->src_bytes, n0, n1, src, s0, s1, dst, d0, d1);
        } else {
            convert_plane(job, n0, n1, src, s0, s1, dst, d0, d1);
        }
    } while (dmi_box_next(&box, outer, index, at));
}

/* End of the longest range of runs from `first` that have one length and one distance: two dims of a box. */
static int64_t group_end(const dmi_copy *d, int dim, int64_t first)
{
    const dmi_run *run = d->run[dim];
    int64_t end = first + 1;
    if (end >= d->nrun[dim] || run[end].len != run[first].len) {
        return end;
    }
    int64_t a = run[end].a - run[first].a, b = run[end].b - run[first].b;
    if (a < 0 || b <= 0) {
        return end;
    }
    while (end < d->nrun[dim] && run[end].len == run[first].len && run[end].a - run[end - 1].a == a &&
           run[end].b - run[end - 1].b == b) {
        end++;
    }
    return end;
}

static void add_dim(dmi_box *box, int64_t extent, int64_t src_stride, int64_t dst_stride)
{
    box->extent[box->ndim] = extent;
    box->stride[SRC][box->ndim] = src_stride;
    box->stride[DST][box->ndim++] = dst_stride;
}

static void walk_groups(const copy_job *job, int k, const dmi_box *box, int64_t src_at, int64_t dst_at)
{
    if (k == job->ndim) {
        copy_box(job, *box, src_at, dst_at);
        return;
    }
    const dmi_copy *d = job->d;
    int dim = job->dim[k];
    const dmi_run *run = d->run[dim];
    int64_t s = d->src_stride[dim], t = d->dst_stride[dim];
    for (int64_t r = 0, end; r < d->nrun[dim]; r = end) {
        dmi_box inner = *box;
        end = group_end(d, dim, r);
        if (end - r > 1) {
            add_dim(&inner, end - r, (run[r + 1].a - run[r].a) * s, (run[r + 1].b - run[r].b) * t);
        }
        add_dim(&inner, run[r].len, s, t);
        walk_groups(job, k + 1, &inner, src_at + run[r].a * s, dst_at + run[r].b * t);
    }
}

static void walk_rows(const copy_job *job, int k, int64_t src_at, int64_t dst_at)
{
    const dmi_copy *d = job->d;
    int dim = job->dim[k];
    int64_t s = d->src_stride[dim], t = d->dst_stride[dim];
    bool same = d->src_dtype == d->dst_dtype;
    for (int64_t r = 0; r < d->nrun[dim]; r++) {
        const dmi_run *run = &d->run[dim][r];
        int64_t a = src_at + run->a * s, b = dst_at + run->b * t;
        if (k + 1 < job->ndim) {
            for (int64_t i = 0; i < run->len; i++) {
                walk_rows(job, k + 1, a + i * s, b + i * t);
            }
        } else if (same) {
            dmi_move_row(job->src_bytes, dmi_at(job->src, a * job->src_bytes), s,
                         dmi_at_mut(job->dst, b * job->dst_bytes), t, run->len);
        } else {
            convert_plane(job, 1, run->len, dmi_at(job->src, a * job->src_bytes), 0, s,
                          dmi_at_mut(job->dst, b * job->dst_bytes), 0, t);
        }
    }
}

void dmi_cpu_copy(const dmi_copy *d, const void *src, void *dst)
{
    copy_job job = {.d = d, .src = src, .dst = dst};
    dmi_box box = {.sides = 2};
    int64_t src_at = d->src_offset, dst_at = d->dst_offset, boxes = 1;
    if (d->count == 0) {
        return;
    }
    job.src_bytes = dmi_dtype_bytes(d->src_dtype);
    job.dst_bytes = dmi_dtype_bytes(d->dst_dtype);
    assert(job.src_bytes > 0 && job.dst_bytes > 0 && d->ndim <= DM_MAX_DIMS);
    for (int dim = 0; dim < d->ndim; dim++) {
        if (d->nrun[dim] == 1 && d->run[dim][0].len == 1) {
            src_at += d->run[dim][0].a * d->src_stride[dim];
            dst_at += d->run[dim][0].b * d->dst_stride[dim];
            continue;
        }
        int64_t groups = 0;
        for (int64_t r = 0; r < d->nrun[dim]; r = group_end(d, dim, r)) {
            groups++;
        }
        boxes = DMI_MIN(boxes * groups, d->count);
        job.dim[job.ndim++] = dim;
    }
    if (boxes == 1 || d->count / boxes >= MIN_BOX) {
        walk_groups(&job, 0, &box, src_at, dst_at);
    } else {
        walk_rows(&job, 0, src_at, dst_at);
    }
}
