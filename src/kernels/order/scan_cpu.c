/* Scans. `along` takes one row after the other, `across` a row of neighbouring rows at once, where these lie
 * denser. A scan of f64 sums pairs of doubles as dmi_reduce does. */
#include "kernels/kernel.h"
#include "kernels/reduce/dd_cpu.h"
#include "kernels/reduce/reducer_cpu.h"

#include <assert.h>
#include <string.h>

enum { IN, OUT, START, LANES = 16, STATE_MOST = 24 };

typedef struct scan_job {
    int acc, parts;             /* parts of complex sums */
    const dmi_reducer *reducer; /* NULL: a sum */
    dm_dtype dtype, load, result, out_dtype;
    int64_t n, stride[2]; /* along the dim */
    const void *x, *starts;
    void *out;
    dmi_box rows; /* sides IN, OUT, START */
    int64_t offset[3];
} scan_job;

/* --- sums --- */
static void sum_f32(const float *x, int64_t n, double *state, double *out)
{
    double s = *state;
    for (int64_t i = 0; i < n; i++) {
        s += (double)x[i];
        out[i] = s;
    }
    *state = s;
}

static void sum_i64(const uint64_t *x, int64_t n, uint64_t *state, uint64_t *out)
{
    uint64_t s = *state;
    for (int64_t i = 0; i < n; i++) {
        s += x[i];
        out[i] = s;
    }
    *state = s;
}

/* LANES stretches of m elements each side by side: first their sums, then, from the sums before each, all
 * results. An addition waits for the one before it in its own stretch only. finite: whether no sum has left the
 * range of doubles; where it is false the results and the state are not to be used. */
DMI_BODY void sum_stretches_body(const double *x, int64_t m, dmi_dd *state, bool rounded, double *out,
                                 bool *finite)
{
    double hi[LANES] = {0}, lo[LANES] = {0};
    for (int64_t i = 0; i < m; i++) {
        for (int l = 0; l < LANES; l++) {
            double e;
            hi[l] = dmi_two_sum(hi[l], x[l * m + i], &e);
            lo[l] += e;
        }
    }
    dmi_dd before = *state;
    for (int l = 0; l < LANES; l++) {
        dmi_dd next = dmi_dd_join(before, dmi_dd_normal(hi[l], lo[l]));
        hi[l] = before.hi;
        lo[l] = before.lo;
        before = next;
    }
    *state = before;
    for (int64_t i = 0; i < m; i++) {
        for (int l = 0; l < LANES; l++) {
            double e;
            hi[l] = dmi_two_sum(hi[l], x[l * m + i], &e);
            lo[l] += e;
            out[l * m + i] = dmi_dd_value((dmi_dd){hi[l], lo[l]}, rounded, 1);
        }
    }
    for (int l = 0; l < LANES; l++) {
        *finite &= dmi_finite(lo[l]);
    }
}
DMI_TWICE(static, sum_stretches,
          (const double *x, int64_t m, dmi_dd *state, bool rounded, double *out, bool *finite),
          (x, m, state, rounded, out, finite))

/* Where sums leave the range of doubles on the way, or an element is not finite. keep: results that are there
 * and finite are right; scaled, small ones may lose bits. */
static void sum_scaled(const double *x, int64_t n, dmi_dd *state, bool rounded, bool keep, double *out)
{
    dmi_scaled_sum s = {0, 0, 0};
    dmi_scaled_take(&s, state->hi, state->lo);
    for (int64_t i = 0; i < n; i++) {
        dmi_scaled_take(&s, x[i], 0);
        if (!keep || !dmi_finite(out[i])) {
            out[i] = dmi_dd_kept_value(dmi_dd_of_scaled(&s), rounded, 1);
        }
    }
    *state = dmi_dd_of_scaled(&s);
}

static void sum_f64(const double *x, int64_t n, dmi_dd *state, bool rounded, double *out)
{
    int64_t m = n / LANES;
    dmi_dd before = *state;
    const bool usual = !dmi_dd_scaled(before);
    bool finite = usual;
    if (m > 0 && finite) {
        sum_stretches(x, m, state, rounded, out, &finite);
    }
    double hi = state->hi, lo = state->lo;
    for (int64_t i = m * LANES; i < n; i++) {
        double e;
        hi = dmi_two_sum(hi, x[i], &e);
        lo += e;
        out[i] = dmi_dd_value((dmi_dd){hi, lo}, rounded, 1);
    }
    *state = dmi_dd_normal(hi, lo);
    if (!finite || !dmi_finite(state->hi)) {
        *state = before;
        sum_scaled(x, n, state, rounded, usual, out);
    }
}

static bool rounds(const scan_job *job)
{
    return job->out_dtype != DM_F64;
}

static void scan_row(const scan_job *job, void *state, const void *x, int64_t n, dmi_chunk *out)
{
    if (job->reducer) {
        job->reducer->scan(state, x, n, 1, out);
    } else if (job->acc == DMI_ACC_DD) {
        sum_f64(x, n, state, rounds(job), out->f64);
    } else if (job->acc == DMI_ACC_F64) {
        sum_f32(x, n, state, out->f64);
    } else {
        sum_i64(x, n, state, (uint64_t *)out->i64);
    }
}

/* --- states: n of them, dense, from the accumulators before the first elements, or of no elements --- */
static void load_states(const scan_job *job, int64_t at, int64_t stride, int64_t n, void *states)
{
    int64_t bytes = dmi_acc_bytes(job->acc);
    if (!job->starts) {
        if (job->reducer) {
            job->reducer->clear(states, n);
        } else {
            memset(states, 0, (size_t)(n * bytes));
        }
        return;
    }
    dm_dtype number = job->reducer ? dmi_acc_number(job->acc) : 0;
    if (number && dmi_dtype_carrier(number) != number) { /* a narrow number, in its carrier */
        dmi_chunk buffer;
        dm_dtype carrier = dmi_dtype_carrier(number);
        const void *from = dmi_row_load(number, dmi_at(job->starts, at * bytes), stride, carrier, &buffer, n);
        memcpy(states, from, (size_t)(n * dmi_dtype_bytes(carrier)));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(dmi_at_mut(states, i * bytes), dmi_at(job->starts, (at + i * stride) * bytes), (size_t)bytes);
    }
}

static void scan_along(const scan_job *job)
{
    int64_t index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES], in = dmi_dtype_bytes(job->dtype),
            out = dmi_dtype_bytes(job->out_dtype);
    memcpy(at, job->offset, sizeof job->offset);
    do {
        double state[STATE_MOST / sizeof(double)];
        load_states(job, at[START], 1, 1, state);
        for (int64_t i = 0; i < job->n; i += DMI_CHUNK) {
            dmi_chunk buffer, made;
            int64_t m = DMI_MIN(DMI_CHUNK, job->n - i);
            const void *from = dmi_at(job->x, (at[IN] + i * job->stride[IN]) * in);
            scan_row(job, state, dmi_row_load(job->dtype, from, job->stride[IN], job->load, &buffer, m), m,
                     &made);
            dmi_row_store(job->result, &made, job->out_dtype,
                          dmi_at_mut(job->out, (at[OUT] + i * job->stride[OUT]) * out), job->stride[OUT], m);
        }
    } while (dmi_box_next(&job->rows, job->rows.ndim, index, at));
}

/* Neighbouring sums of pairs. [now]: as loops have them, or, if scaled, kept; the other: before the last
 * element. */
typedef struct pairs {
    double hi[2][DMI_CHUNK], lo[2][DMI_CHUNK];
    bool scaled[DMI_CHUNK], any;
    int now;
} pairs;

static void pairs_begin(pairs *p, const dmi_dd *states, int64_t m)
{
    p->now = 0;
    p->any = false;
    for (int64_t i = 0; i < m; i++) {
        p->hi[0][i] = states[i].hi;
        p->lo[0][i] = states[i].lo;
        p->scaled[i] = dmi_dd_scaled(states[i]);
        p->any |= p->scaled[i];
    }
}

DMI_BODY void pairs_add_body(const double *restrict x, int64_t m, const double *restrict hi,
                             const double *restrict lo, double *restrict next_hi, double *restrict next_lo,
                             double *restrict out, bool *lost)
{
    int many = 0;
    for (int64_t i = 0; i < m; i++) {
        double e, h = dmi_two_sum(hi[i], x[i], &e), l = lo[i] + e;
        next_hi[i] = h;
        next_lo[i] = l;
        out[i] = h + l;
        many |= !dmi_finite(l);
    }
    *lost = many != 0;
}
DMI_TWICE(static, pairs_add,
          (const double *restrict x, int64_t m, const double *restrict hi, const double *restrict lo,
           double *restrict next_hi, double *restrict next_lo, double *restrict out, bool *lost),
          (x, m, hi, lo, next_hi, next_lo, out, lost))

static void pairs_take(pairs *p, const double *x, int64_t m, bool rounded, double *out)
{
    int was = p->now, now = p->now = !was;
    bool lost;
    pairs_add(x, m, p->hi[was], p->lo[was], p->hi[now], p->lo[now], out, &lost);
    for (int64_t i = 0; i < m && rounded; i++) {
        out[i] = dmi_dd_value((dmi_dd){p->hi[now][i], p->lo[now][i]}, true, 1);
    }
    for (int64_t i = 0; i < m && (lost || p->any); i++) {
        if (p->scaled[i] || !dmi_finite(p->lo[now][i])) {
            double hi = p->hi[was][i], lo = p->lo[was][i];
            dmi_dd sum = dmi_dd_add(p->scaled[i] ? (dmi_dd){hi, lo} : dmi_dd_normal(hi, lo), (dmi_dd){x[i], 0});
            p->hi[now][i] = sum.hi;
            p->lo[now][i] = sum.lo;
            p->scaled[i] = dmi_dd_scaled(sum);
            p->any |= p->scaled[i];
            out[i] = dmi_dd_kept_value(sum, rounded, 1);
        }
    }
}

/* m states take an element each; out: the results. */
static void step_across(const scan_job *job, void *states, pairs *p, const void *x, int64_t m, dmi_chunk *out)
{
    if (job->reducer) {
        job->reducer->across(states, x, m, 0);
        job->reducer->finish(states, m, 1, out);
    } else if (job->acc == DMI_ACC_DD) {
        pairs_take(p, x, m, rounds(job), out->f64);
    } else {
        for (int64_t i = 0; i < m && job->acc == DMI_ACC_F64; i++) {
            out->f64[i] = ((double *)states)[i] += (double)((const float *)x)[i];
        }
        for (int64_t i = 0; i < m && job->acc != DMI_ACC_F64; i++) {
            out->i64[i] = (int64_t)(((uint64_t *)states)[i] += ((const uint64_t *)x)[i]);
        }
    }
}

static void scan_across(const scan_job *job)
{
    const dmi_box *rows = &job->rows;
    int inner = rows->ndim - 1;
    int64_t n = rows->extent[inner], s = rows->stride[IN][inner], t = rows->stride[OUT][inner];
    int64_t index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES], in = dmi_dtype_bytes(job->dtype),
            out = dmi_dtype_bytes(job->out_dtype);
    memcpy(at, job->offset, sizeof job->offset);
    do {
        for (int64_t i = 0; i < n; i += DMI_CHUNK) {
            double states[DMI_CHUNK * STATE_MOST / sizeof(double)];
            pairs sums;
            int64_t m = DMI_MIN(DMI_CHUNK, n - i);
            int64_t start = at[START] + i * rows->stride[START][inner];
            load_states(job, start, rows->stride[START][inner], m, states);
            if (!job->reducer && job->acc == DMI_ACC_DD) {
                pairs_begin(&sums, (const dmi_dd *)(const void *)states, m);
            }
            for (int64_t k = 0; k < job->n; k++) {
                dmi_chunk buffer, made;
                const void *from = dmi_at(job->x, (at[IN] + i * s + k * job->stride[IN]) * in);
                void *to = dmi_at_mut(job->out, (at[OUT] + i * t + k * job->stride[OUT]) * out);
                step_across(job, states, &sums, dmi_row_load(job->dtype, from, s, job->load, &buffer, m), m,
                            &made);
                dmi_row_store(job->result, &made, job->out_dtype, to, t, m);
            }
        }
    } while (dmi_box_next(rows, inner, index, at));
}

/* Sums take complex elements as two rows of real ones, whose results are the two parts. */
static void begin(scan_job *job, const dmi_scan *d, const dmi_kernel_call *call)
{
    int acc = dmi_acc_for(d->row, d->dtype);
    assert(acc >= 0 && dmi_reductions[d->row].state != DMI_STATE_PLACE);
    int parts = dmi_acc_parts(acc);
    *job = (scan_job){.acc = dmi_acc_part(acc), .parts = parts, .dtype = d->dtype, .out_dtype = d->out_dtype};
    job->reducer = acc < DMI_ACC_SUMS ? NULL : dmi_reducer_of(acc);
    job->load = job->reducer ? dmi_dtype_carrier(dmi_acc_takes(acc)) : dmi_acc_takes(job->acc);
    job->result = dmi_acc_result(job->acc);
    if (parts > 1) {
        assert(dmi_dtype_is_complex(d->out_dtype));
        job->dtype = dmi_dtype_part(d->dtype);
        job->out_dtype = dmi_dtype_part(d->out_dtype);
    }
    job->n = d->extent[d->dim];
    job->stride[IN] = d->stride[d->dim] * parts;
    job->stride[OUT] = d->out_stride[d->dim] * parts;
    job->x = call->at[0];
    job->out = call->at[1];
    job->starts = d->starts ? call->at[2] : NULL;
    job->offset[IN] = d->offset * parts;
    job->offset[OUT] = d->out_offset * parts;
}

dm_status dmi_scan_cpu(const dmi_kernel_call *call)
{
    const dmi_scan *d = call->desc;
    scan_job job;
    int64_t rows = 1;
    begin(&job, d, call);
    dmi_box *box = &job.rows;
    box->sides = 3;
    for (int dim = d->ndim; dim >= 0; dim--) { /* the last one: the parts */
        if (dim == d->dim || (dim == d->ndim && job.parts == 1)) {
            continue;
        }
        bool part = dim == d->ndim;
        box->extent[box->ndim] = part ? job.parts : d->extent[dim];
        box->stride[IN][box->ndim] = part ? 1 : d->stride[dim] * job.parts;
        box->stride[OUT][box->ndim] = part ? 1 : d->out_stride[dim] * job.parts;
        box->stride[START][box->ndim] = rows;
        rows *= box->extent[box->ndim++];
    }
    if (rows == 0 || job.n == 0) {
        return DM_OK;
    }
    dmi_box_simplify(box, IN);
    int inner = box->ndim - 1;
    if (box->extent[inner] >= LANES && box->stride[IN][inner] < job.stride[IN]) {
        scan_across(&job);
    } else {
        scan_along(&job);
    }
    return DM_OK;
}
