/* Accumulators: partial results of several workers combined, and results written; and rows added up and written
 * in one pass. */
#include "kernels/cpu/cpu.h"
#include "kernels/reduce/dd_cpu.h"
#include "kernels/reduce/reducer_cpu.h"
#include <assert.h>

enum { ACC = 0, OUT = 1 };

/* --- acc_add ------------------------------------------------------------------------- */
typedef struct add_job {
    const dmi_copy *g;
    int acc;
    int ndim, dim[DM_MAX_DIMS];
    const void *part;
    void *sum;
} add_job;

/* n pairs and others added; false: some have to be added with a look at the range. */
DMI_BODY void join_pairs_body(const dmi_dd *x, int64_t s, const dmi_dd *y, int64_t t, int64_t n,
                              dmi_dd *restrict sum, bool *usual)
{
    int many = 0;
    for (int64_t i = 0; i < n; i++) {
        dmi_dd a = y[i * t], b = x[i * s];
        sum[i] = dmi_dd_join(a, b);
        many |= !dmi_finite(sum[i].hi) | dmi_dd_scaled(a) | dmi_dd_scaled(b);
    }
    *usual = many == 0;
}
DMI_TWICE(static, join_pairs,
          (const dmi_dd *x, int64_t s, const dmi_dd *y, int64_t t, int64_t n, dmi_dd *restrict sum,
           bool *usual),
          (x, s, y, t, n, sum, usual))

static void add_pairs(const dmi_dd *x, int64_t s, dmi_dd *y, int64_t t, int64_t n)
{
    enum { PIECE = 128 };
    for (int64_t first = 0; first < n; first += PIECE, x += PIECE * s, y += PIECE * t) {
        int64_t m = DMI_MIN(PIECE, n - first);
        dmi_dd sum[PIECE];
        bool usual;
        join_pairs(x, s, y, t, m, sum, &usual);
        for (int64_t i = 0; i < m; i++) {
            y[i * t] = usual ? sum[i] : dmi_dd_add(y[i * t], x[i * s]);
        }
    }
}

static void add_real_row(const add_job *job, int64_t a, int64_t s, int64_t b, int64_t t, int64_t n)
{
    if (dmi_acc_part(job->acc) == DMI_ACC_DD) {
        const dmi_dd *x = (const dmi_dd *)job->part + a;
        dmi_dd *y = (dmi_dd *)job->sum + b;
        add_pairs(x, s, y, t, n);
    } else if (dmi_acc_part(job->acc) == DMI_ACC_F64) {
        const double *x = (const double *)job->part + a;
        double *y = (double *)job->sum + b;
        for (int64_t i = 0; i < n; i++) {
            y[i * t] += x[i * s];
        }
    } else {
        const uint64_t *x = (const uint64_t *)job->part + a;
        uint64_t *y = (uint64_t *)job->sum + b;
        for (int64_t i = 0; i < n; i++) {
            y[i * t] += x[i * s];
        }
    }
}

/* Accumulators of a row other than the sum. Those that are one number are combined in its carrier. */
static void combine_row(const add_job *job, int64_t a, int64_t s, int64_t b, int64_t t, int64_t n)
{
    const dmi_reducer *reducer = dmi_reducer_of(job->acc);
    int64_t bytes = dmi_acc_bytes(job->acc);
    dm_dtype number = dmi_acc_number(job->acc), carrier = dmi_dtype_carrier(number);
    const void *from = dmi_at(job->part, a * bytes);
    void *into = dmi_at_mut(job->sum, b * bytes);
    if (!number || carrier == number) {
        reducer->combine(into, t, from, s, n);
        return;
    }
    for (int64_t i = 0; i < n; i += DMI_CHUNK) {
        dmi_chunk x, y;
        int64_t m = DMI_MIN(DMI_CHUNK, n - i);
        const void *part = dmi_row_load(number, dmi_at(from, i * s * bytes), s, carrier, &x, m);
        void *at = dmi_at_mut(into, i * t * bytes);
        (void)dmi_row_load(number, at, t, carrier, &y, m); /* another type: always in the buffer */
        reducer->combine(&y, 1, part, 1, m);
        dmi_row_store(carrier, &y, number, at, t, m);
    }
}

static void add_row(const add_job *job, int64_t a, int64_t s, int64_t b, int64_t t, int64_t n)
{
    int parts = dmi_acc_parts(job->acc);
    if (job->acc >= DMI_ACC_SUMS) {
        combine_row(job, a, s, b, t, n);
        return;
    }
    for (int k = 0; k < parts; k++) {
        add_real_row(job, a * parts + k, s * parts, b * parts + k, t * parts, n);
    }
}

static void add_walk(const add_job *job, int k, int64_t src_at, int64_t dst_at)
{
    if (k == job->ndim) {
        add_row(job, src_at, 1, dst_at, 1, 1);
        return;
    }
    int dim = job->dim[k];
    int64_t s = job->g->src_stride[dim], t = job->g->dst_stride[dim];
    for (int64_t r = 0; r < job->g->nrun[dim]; r++) {
        const dmi_run *run = &job->g->run[dim][r];
        int64_t a = src_at + run->a * s, b = dst_at + run->b * t;
        if (k + 1 == job->ndim) {
            add_row(job, a, s, b, t, run->len);
            continue;
        }
        for (int64_t i = 0; i < run->len; i++) {
            add_walk(job, k + 1, a + i * s, b + i * t);
        }
    }
}

void dmi_cpu_acc_add(const dmi_acc_add *d, const void *part, void *acc)
{
    const dmi_copy *g = &d->geometry;
    add_job job = {.g = g, .acc = d->acc, .part = part, .sum = acc};
    int64_t src_at = g->src_offset, dst_at = g->dst_offset;
    if (g->count == 0) {
        return;
    }
    assert(g->ndim >= 0 && g->ndim <= DM_MAX_DIMS);
    for (int dim = 0; dim < g->ndim; dim++) {
        if (g->nrun[dim] == 1 && g->run[dim][0].len == 1) {
            src_at += g->run[dim][0].a * g->src_stride[dim];
            dst_at += g->run[dim][0].b * g->dst_stride[dim];
        } else {
            job.dim[job.ndim++] = dim;
        }
    }
    add_walk(&job, 0, src_at, dst_at);
}

/* --- acc_store ----------------------------------------------------------------------- */
typedef struct store_job {
    const dmi_acc_store *d;
    double scale, beta;
    bool plain;       /* scale 1, beta 0: the sum itself, rounded once */
    dm_dtype compute; /* of scale * acc + beta * out: that of acc where both are integers, else F64, or C128
                         where both parts count */
    const void *acc;
    void *out;
} store_job;

/* value[0..n) = scale times pairs x, stride apart, as one double each. */
static void load_pairs(const store_job *job, const dmi_dd *x, int64_t stride, int64_t n, double *value,
                       int64_t step)
{
    bool odd = job->plain && dmi_dtype_part(job->d->out_dtype) != DM_F64, usual;
    int many = 0;
    for (int64_t i = 0; i < n && !odd; i++) {
        dmi_dd v = x[i * stride];
        value[i * step] = job->scale * (v.hi + v.lo);
        many |= !dmi_finite(v.hi) | dmi_dd_scaled(v);
    }
    usual = many == 0 && !odd;
    for (int64_t i = 0; i < n && !usual; i++) {
        value[i * step] = dmi_dd_kept_value(x[i * stride], odd, job->scale);
    }
}

/* The same, divided by scale. Of a sum beyond the range of doubles the quotient may be within it. */
static void divide_pairs(const store_job *job, const dmi_dd *x, int64_t stride, int64_t n, double *value,
                         int64_t step)
{
    for (int64_t i = 0; i < n; i++) {
        const dmi_dd v = x[i * stride];
        value[i * step] = !dmi_finite(v.hi)  ? v.hi / job->scale
                          : dmi_dd_scaled(v) ? v.lo / job->scale * DMI_SCALE_UP
                                             : (v.hi + v.lo) / job->scale;
    }
}

/* value[0..n) = accumulators from element position `at` on, in the type to compute in; of pairs, what they give
 * with scale. */
static void load_acc(const store_job *job, int64_t at, int64_t stride, int64_t n, dmi_chunk *value)
{
    int acc = job->d->acc, parts = dmi_acc_parts(acc);
    if (dmi_acc_part(acc) == DMI_ACC_DD) {
        const dmi_dd *x = (const dmi_dd *)job->acc + at * parts;
        int step = job->compute == DM_C128 ? 2 : 1;
        if (step == 2) {
            memset(value, 0, (size_t)n * sizeof value->c128[0]);
        }
        for (int k = 0; k < parts && k < step; k++) {
            (job->d->divides && !job->plain ? divide_pairs : load_pairs)(job, x + k, stride * parts, n,
                                                                         (double *)(void *)value + k, step);
        }
        return;
    }
    int64_t bytes = dmi_acc_bytes(acc);
    const void *x =
        dmi_row_load(dmi_acc_result(acc), dmi_at(job->acc, at * bytes), stride, job->compute, value, n);
    if (x != value) {
        memcpy(value, x, (size_t)(n * dmi_dtype_bytes(job->compute)));
    }
}

/* Results of a row other than the sum. */
static void finish_row(const store_job *job, int64_t at, int64_t stride, void *out, int64_t out_stride,
                       int64_t n)
{
    const dmi_reducer *reducer = dmi_reducer_of(job->d->acc);
    dm_dtype number = dmi_acc_number(job->d->acc), carrier = dmi_dtype_carrier(number);
    int64_t bytes = dmi_acc_bytes(job->d->acc);
    dmi_chunk states[2], had, value; /* a state takes 24 bytes at most */
    const void *from = dmi_at(job->acc, at * bytes);
    _Static_assert(sizeof states >= DMI_CHUNK * 24, "states do not fit");
    if (number) {
        from = dmi_row_load(number, from, stride, carrier, states, n);
    } else {
        for (int64_t i = 0; i < n; i++) {
            memcpy(dmi_at_mut(states, i * bytes), dmi_at(from, i * stride * bytes), (size_t)bytes);
        }
        from = states;
    }
    if (job->beta != 0) {
        const void *old = dmi_row_load(job->d->out_dtype, out, out_stride, carrier, &had, n);
        if (old != &had) {
            memcpy(&had, old, (size_t)(n * reducer->bytes));
        }
        reducer->combine(&had, 1, from, 1, n);
        from = &had;
    }
    reducer->finish(from, n, job->scale, &value);
    dmi_row_store(dmi_acc_result(job->d->acc), &value, job->d->out_dtype, out, out_stride, n);
}

static void store_row(const store_job *job, int64_t at, int64_t stride, int64_t out_at, int64_t out_stride,
                      int64_t n)
{
    dm_dtype out_dtype = job->d->out_dtype;
    void *out = dmi_at_mut(job->out, out_at * dmi_dtype_bytes(out_dtype));
    dmi_chunk value, buffer;
    if (job->d->acc >= DMI_ACC_SUMS) {
        finish_row(job, at, stride, out, out_stride, n);
        return;
    }
    load_acc(job, at, stride, n, &value);
    if (job->plain) {
        dmi_row_store(job->compute, &value, out_dtype, out, out_stride, n);
        return;
    }
    const void *old =
        job->beta == 0 ? NULL : dmi_row_load(out_dtype, out, out_stride, job->compute, &buffer, n);
    if (dmi_dtype_is_integer(job->compute)) {
        const uint64_t *y = old;
        uint64_t scale = (uint64_t)dmi_f64_to_i64(job->scale), beta = (uint64_t)dmi_f64_to_i64(job->beta);
        for (int64_t i = 0; i < n; i++) {
            value.i64[i] = (int64_t)(scale * (uint64_t)value.i64[i] + (y == NULL ? 0 : beta * y[i]));
        }
    } else {
        const double *y = old;
        double *v = (double *)(void *)&value;
        double scale = dmi_acc_part(job->d->acc) == DMI_ACC_DD ? 1 : job->scale;
        const int64_t numbers = n * (job->compute == DM_C128 ? 2 : 1);
        for (int64_t i = 0; i < numbers && job->d->divides && scale != 1; i++) {
            v[i] /= scale;
        }
        scale = job->d->divides ? 1 : scale;
        for (int64_t i = 0; i < numbers; i++) {
            v[i] = scale * v[i] + (y == NULL ? 0 : job->beta * y[i]);
        }
    }
    dmi_row_store(job->compute, &value, out_dtype, out, out_stride, n);
}

static void store_begin(store_job *job, const dmi_acc_store *d, double scale, const void *acc, double beta,
                        void *out)
{
    bool plain = scale == 1 && beta == 0;
    bool integers = dmi_acc_whole(d->acc) && (plain || !dmi_dtype_is_float(dmi_dtype_part(d->out_dtype)));
    *job = (store_job){.d = d,
                       .scale = scale,
                       .beta = beta,
                       .plain = plain,
                       .compute = integers                             ? dmi_acc_result(d->acc)
                                  : dmi_dtype_is_complex(d->out_dtype) ? DM_C128
                                                                       : DM_F64,
                       .acc = acc,
                       .out = out};
}

void dmi_cpu_acc_store(const dmi_acc_store *d, double scale, const void *acc, double beta, void *out)
{
    store_job job;
    dmi_box box;
    if (!dmi_box_of_store(d, &box)) {
        return;
    }
    store_begin(&job, d, scale, acc, beta, out);
    int inner = box.ndim - 1;
    int64_t n = box.extent[inner], s = box.stride[ACC][inner], t = box.stride[OUT][inner];
    int64_t index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {0, d->out_offset};
    do {
        for (int64_t i = 0; i < n; i += DMI_CHUNK) {
            store_row(&job, at[ACC] + i * s, s, at[OUT] + i * t, t, DMI_MIN(DMI_CHUNK, n - i));
        }
    } while (dmi_box_next(&box, inner, index, at));
}

/* --- fold ---------------------------------------------------------------------------- */
enum { ROWS = 0, OWN = 2 }; /* beside OUT */

typedef struct fold_job {
    const dmi_fold *d;
    dm_dtype load; /* addends are brought to this type */
    const void *rows, *own;
    dmi_chunk sum;
    double lo[2 * DMI_CHUNK];   /* of pairs: what sum rounds away, */
    dmi_dd pair[2 * DMI_CHUNK]; /* and both together */
    store_job store;            /* of pair or sum */
} fold_job;

static void fold_addend(fold_job *job, const void *addend, int64_t stride, int64_t n)
{
    dmi_chunk buffer;
    const void *x = dmi_row_load(job->d->dtype, addend, stride, job->load, &buffer, n);
    int acc = job->d->store.acc;
    dmi_cpu_add_across(dmi_acc_part(acc), x, n * dmi_acc_parts(acc), &job->sum, job->lo);
}

/* The addend's first element for position at[], and the step to the next one; row: where the next row begins.
 */
static const void *addend_at(const fold_job *job, int i, const int64_t *at, const int64_t *stride, int64_t *row,
                             int64_t *step)
{
    const dmi_fold *d = job->d;
    int64_t bytes = dmi_dtype_bytes(d->dtype), here = *row;
    *step = stride[i == d->own ? OWN : ROWS];
    if (i == d->own) {
        return dmi_at(job->own, at[OWN] * bytes);
    }
    *row += d->pitch;
    return dmi_at(job->rows, here * bytes);
}

/* The pairs of a row once more, where sums left the range of doubles on the way, or an addend is not finite. */
static void fold_scaled(fold_job *job, const int64_t *at, const int64_t *stride, int64_t n)
{
    int64_t row = at[ROWS], step, parts = dmi_acc_parts(job->d->store.acc);
    dmi_scaled_sum sum[2 * DMI_CHUNK];
    memset(sum, 0, (size_t)(n * parts) * sizeof *sum);
    for (int i = 0; i < job->d->addends; i++) {
        const double *x = addend_at(job, i, at, stride, &row, &step);
        for (int64_t k = 0; k < n * parts; k++) {
            dmi_scaled_take(&sum[k], x[k / parts * step * parts + k % parts], 0);
        }
    }
    for (int64_t k = 0; k < n * parts; k++) { /* those beside them are right, and scaled they may lose bits */
        job->pair[k] = dmi_finite(job->pair[k].hi) ? job->pair[k] : dmi_dd_of_scaled(&sum[k]);
    }
}

/* n results (at most DMI_CHUNK) of one row of the box. */
static void fold_row(fold_job *job, const int64_t *at, const int64_t *stride, int64_t n)
{
    const dmi_fold *d = job->d;
    int64_t row = at[ROWS], step, numbers = n * dmi_acc_parts(d->store.acc);
    const double *hi = (const double *)(const void *)&job->sum;
    bool finite = true;
    memset(&job->sum, 0, (size_t)numbers * 8);
    memset(job->lo, 0, (size_t)numbers * 8);
    for (int i = 0; i < d->addends; i++) {
        const void *addend = addend_at(job, i, at, stride, &row, &step);
        fold_addend(job, addend, step, n);
    }
    for (int64_t i = 0; i < numbers && dmi_acc_part(d->store.acc) == DMI_ACC_DD; i++) {
        job->pair[i] = dmi_dd_normal(hi[i], job->lo[i]);
        finite &= dmi_finite(job->pair[i].hi);
    }
    if (!finite) {
        fold_scaled(job, at, stride, n);
    }
    store_row(&job->store, 0, 1, at[OUT], stride[OUT], n);
}

void dmi_cpu_fold(const dmi_fold *d, double scale, const void *rows, const void *own, double beta, void *out)
{
    const dmi_acc_store *s = &d->store;
    fold_job job;
    dmi_box box;
    assert(s->acc == dmi_acc_of(d->dtype));
    if (!dmi_box_of_fold(d, &box)) {
        return;
    }
    job.d = d;
    job.rows = rows;
    job.own = own;
    job.load = dmi_acc_takes(s->acc);
    store_begin(&job.store, s, scale, dmi_acc_part(s->acc) == DMI_ACC_DD ? (void *)job.pair : &job.sum, beta,
                out);
    int inner = box.ndim - 1;
    int64_t n = box.extent[inner], stride[DMI_BOX_SIDES];
    int64_t index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {0, s->out_offset, d->own_offset};
    for (int side = 0; side < box.sides; side++) {
        stride[side] = box.stride[side][inner];
    }
    do {
        for (int64_t i = 0; i < n; i += DMI_CHUNK) {
            int64_t here[DMI_BOX_SIDES];
            for (int side = 0; side < box.sides; side++) {
                here[side] = at[side] + i * stride[side];
            }
            fold_row(&job, here, stride, DMI_MIN(DMI_CHUNK, n - i));
        }
    } while (dmi_box_next(&box, inner, index, at));
}
