#include "kernels/box/product_cuda.h"
#include <assert.h>

/* Boxes that a copy may be cut into, a launch each, before kernels look runs up; and how many items may then be
 * skipped for nothing before the runs of a dim are taken in several launches. */
enum { MOST_BOXES = 4, MOST_IDLE = 1 << 18 };

typedef struct cut_job {
    const dmi_queue *q;
    const dmi_copy *d;
    const dmi_cuda_parts *parts;
    int ndim, dim[DM_MAX_DIMS];
    int64_t elements[DM_MAX_DIMS], groups[DM_MAX_DIMS]; /* of dim[] */
    bool look_up;
} cut_job;

/* --- parts ready for a launch --------------------------------------------------------------------- */
static void sort_factors(dmi_cuda_product *p)
{
    for (int i = 1; i < p->ndim; i++) {
        for (int j = i; j > 0 && p->dim[j].dst_stride > p->dim[j - 1].dst_stride; j--) {
            dmi_cuda_factor t = p->dim[j];
            p->dim[j] = p->dim[j - 1];
            p->dim[j - 1] = t;
        }
    }
}

/* Keeps `half` of p's dim k: 0 the first, 1 the second. */
static dmi_cuda_product half_of(const dmi_cuda_product *p, int k, int half)
{
    dmi_cuda_product r = *p;
    dmi_cuda_factor *f = &r.dim[k];
    bool by_run = f->device != NULL && f->count > 1;
    if (f->device != NULL && f->count == 1) {
        r.src_at += f->host->a * f->src_stride;
        r.dst_at += f->host->b * f->dst_stride;
        f->device = f->host = NULL;
    }
    int64_t all = by_run ? f->count : f->len, first = all / 2, skipped = half == 0 ? 0 : first;
    int64_t kept = half == 0 ? first : all - first;
    if (by_run) {
        f->host += skipped;
        f->device += skipped;
        f->count = kept;
    } else {
        r.src_at += skipped * f->src_stride;
        r.dst_at += skipped * f->dst_stride;
        f->len = kept;
    }
    return r;
}

static void runs_parts(const cut_job *job, const dmi_cuda_product *p)
{
    int64_t items = 1;
    int longest = 0;
    for (int k = 0; k < p->ndim; k++) {
        const dmi_cuda_factor *f = &p->dim[k], *g = &p->dim[longest];
        longest = f->len * f->count > g->len * g->count ? k : longest;
        if (__builtin_mul_overflow(items, f->len * f->count, &items)) {
            items = INT64_MAX;
        }
    }
    if (items <= DMI_CUDA_ITEMS) {
        job->parts->runs(job->parts->context, p);
        return;
    }
    for (int half = 0; half < 2; half++) {
        dmi_cuda_product part = half_of(p, longest, half);
        runs_parts(job, &part);
    }
}

static void finish(const cut_job *job, const dmi_cuda_product *p)
{
    dmi_box box = {.ndim = p->ndim, .sides = 2};
    for (int k = 0; k < p->ndim; k++) {
        if (p->dim[k].device != NULL) {
            dmi_cuda_product sorted = *p;
            sort_factors(&sorted);
            runs_parts(job, &sorted);
            return;
        }
        box.extent[k] = p->dim[k].len;
        box.stride[0][k] = p->dim[k].src_stride;
        box.stride[1][k] = p->dim[k].dst_stride;
    }
    int64_t at[DMI_BOX_SIDES] = {p->src_at, p->dst_at};
    job->parts->box(job->parts->context, &box, at);
}

/* --- runs of one dim -------------------------------------------------------------------------------- */
/* End of the longest range of runs from `first` that have one length and one distance. */
static int64_t even_end(const dmi_run *run, int64_t nrun, int64_t first)
{
    int64_t end = first + 1;
    if (end >= nrun || run[end].len != run[first].len) {
        return end;
    }
    int64_t a = run[end].a - run[first].a, b = run[end].b - run[first].b;
    while (a >= 0 && b > 0 && end < nrun && run[end].len == run[first].len &&
           run[end].a - run[end - 1].a == a && run[end].b - run[end - 1].b == b) {
        end++;
    }
    return end;
}

/* End of the runs from `first` that one launch takes, each with as many items as the longest: not so many more
 * than there are elements. `others`: elements of the other dims; *longest: of the runs taken. */
static int64_t similar_end(const dmi_run *run, int64_t nrun, int64_t first, int64_t others, int64_t *longest)
{
    int64_t end = first, sum = 0;
    *longest = 0;
    while (end < nrun) {
        int64_t most = DMI_MAX(*longest, run[end].len);
        int64_t idle = most * (end + 1 - first) - (sum + run[end].len);
        if (idle > sum + run[end].len && idle > MOST_IDLE / others) {
            return end;
        }
        *longest = most;
        sum += run[end].len;
        end++;
    }
    return end;
}

static void add_factor(dmi_cuda_product *p, int64_t len, int64_t src_stride, int64_t dst_stride)
{
    if (len > 1) {
        p->dim[p->ndim++] =
            (dmi_cuda_factor){.len = len, .count = 1, .src_stride = src_stride, .dst_stride = dst_stride};
    }
}

static void cut_dim(const cut_job *job, int k, const dmi_cuda_product *so_far)
{
    if (k == job->ndim) {
        finish(job, so_far);
        return;
    }
    const dmi_copy *d = job->d;
    int dim = job->dim[k];
    const dmi_run *run = d->run[dim];
    int64_t s = d->src_stride[dim], t = d->dst_stride[dim], n = d->nrun[dim];
    bool table =
        job->look_up && job->groups[k] > 1 && job->q->device_run != NULL && job->q->device_run[dim] != NULL;
    for (int64_t r = 0, end; r < n; r = end) {
        dmi_cuda_product p = *so_far;
        if (table) {
            dmi_cuda_factor f = {.host = run + r, .device = job->q->device_run[dim] + r};
            end = similar_end(run, n, r, DMI_MAX(d->count / job->elements[k], 1), &f.len);
            f.count = end - r;
            f.src_stride = s;
            f.dst_stride = t;
            p.dim[p.ndim++] = f;
        } else {
            end = even_end(run, n, r);
            p.src_at += run[r].a * s;
            p.dst_at += run[r].b * t;
            if (end - r > 1) {
                add_factor(&p, end - r, (run[r + 1].a - run[r].a) * s, (run[r + 1].b - run[r].b) * t);
            }
            add_factor(&p, run[r].len, s, t);
        }
        cut_dim(job, k + 1, &p);
    }
}

void dmi_cuda_cut(const dmi_queue *q, const dmi_copy *d, const dmi_cuda_parts *parts)
{
    cut_job job = {.q = q, .d = d, .parts = parts};
    dmi_cuda_product whole = {.src_at = d->src_offset, .dst_at = d->dst_offset};
    int64_t boxes = 1;
    if (d->count == 0) {
        return;
    }
    assert(d->ndim >= 0 && d->ndim <= DM_MAX_DIMS);
    for (int dim = 0; dim < d->ndim; dim++) {
        int k = job.ndim++;
        job.dim[k] = dim;
        for (int64_t r = 0; r < d->nrun[dim]; r++) {
            job.elements[k] += d->run[dim][r].len;
        }
        for (int64_t r = 0; r < d->nrun[dim]; r = even_end(d->run[dim], d->nrun[dim], r)) {
            job.groups[k]++;
        }
        boxes = DMI_MIN(boxes * job.groups[k], d->count);
    }
    job.look_up = boxes > MOST_BOXES;
    cut_dim(&job, 0, &whole);
}

/* --- units ---------------------------------------------------------------------------------------------- */
int64_t dmi_cuda_product_unit(const dmi_cuda_product *p, int64_t bytes, const void *src, const void *dst,
                              int64_t most)
{
    const dmi_cuda_factor *inner = &p->dim[p->ndim - 1];
    if (inner->src_stride != 1 || inner->dst_stride != 1) {
        return 1;
    }
    uint64_t bits = (uint64_t)(uintptr_t)src | (uint64_t)(uintptr_t)dst | (uint64_t)most;
    for (const dmi_cuda_factor *f = p->dim; f < inner; f++) {
        bits |= (uint64_t)(f->src_stride * bytes) | (uint64_t)(f->dst_stride * bytes);
    }
    if (inner->device == NULL) {
        bits |= (uint64_t)(inner->len * bytes);
    }
    for (int64_t r = 0; inner->device != NULL && r < inner->count; r++) {
        const dmi_run *run = &inner->host[r];
        bits |= (uint64_t)(run->a * bytes) | (uint64_t)(run->b * bytes) | (uint64_t)(run->len * bytes);
    }
    return (int64_t)(bits & (0 - bits)) / bytes;
}

void dmi_cuda_product_make(const dmi_cuda_product *p, int64_t unit, dmi_cuda_runs *out)
{
    int64_t items = 1;
    memset(out, 0, sizeof *out);
    out->ndim = p->ndim;
    for (int k = 0; k < p->ndim; k++) {
        const dmi_cuda_factor *f = &p->dim[p->ndim - 1 - k];
        dmi_cuda_runs_dim *dim = &out->dim[k];
        bool in_units = k == 0 && unit > 1;
        int64_t len = in_units ? f->len / unit : f->len;
        dim->len = dmi_cuda_divide_by(len);
        dim->count = dmi_cuda_divide_by(f->count);
        dim->run = f->device;
        dim->shift = in_units ? __builtin_ctzll((unsigned long long)unit) : 0;
        dim->src_stride = in_units ? 1 : f->src_stride / unit;
        dim->dst_stride = in_units ? 1 : f->dst_stride / unit;
        items *= len * f->count;
    }
    assert(items <= DMI_CUDA_ITEMS);
    out->items = (uint32_t)items;
}
