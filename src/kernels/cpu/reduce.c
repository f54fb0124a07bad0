/* Sums over any dims. Two forms: `along` sums a dense stretch in several independent lanes, `across` adds whole
 * rows to a piece of the result held in the first-level cache. Which form and which order depends only on the
 * descriptor, and so do the bits of the result. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/dd.h"
#include <assert.h>

enum { IN = 0, ACC = 1 };
enum { LANES = 16, PIECE = 4096 };

/* --- along: lane[l] += x[i] for i % LANES == l ------------------------------------- */
#define ALONG(name, type, wide)                                                                                \
    DMI_BODY void name##_body(const type *x, int64_t n, wide *lane)                                            \
    {                                                                                                          \
        wide s[LANES];                                                                                         \
        int64_t i = 0;                                                                                         \
        memcpy(s, lane, sizeof s);                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                                   \
            for (int l = 0; l < LANES; l++) {                                                                  \
                s[l] += (wide)x[i + l];                                                                        \
            }                                                                                                  \
        }                                                                                                      \
        for (int l = 0; i + l < n; l++) {                                                                      \
            s[l] += (wide)x[i + l];                                                                            \
        }                                                                                                      \
        memcpy(lane, s, sizeof s);                                                                             \
    }                                                                                                          \
    DMI_TWICE(static, name, (const type *x, int64_t n, wide *lane), (x, n, lane))
ALONG(along_f32, float, double)
ALONG(along_i64, uint64_t, uint64_t)

/* Vectors, so that the lanes stay in registers. */
typedef double four __attribute__((vector_size(32)));
enum { FOURS = LANES / 4 };

DMI_BODY void along_dd_body(const double *x, int64_t n, double *lane)
{
    four hi[FOURS], lo[FOURS];
    int64_t i = 0;
    memcpy(hi, lane, sizeof hi);
    memcpy(lo, lane + LANES, sizeof lo);
    for (; i + LANES <= n; i += LANES) {
        for (int l = 0; l < FOURS; l++) {
            four v, s, t;
            memcpy(&v, x + i + 4 * l, sizeof v);
            s = hi[l] + v; /* as dmi_two_sum */
            t = s - hi[l];
            lo[l] += (hi[l] - (s - t)) + (v - t);
            hi[l] = s;
        }
    }
    memcpy(lane, hi, sizeof hi);
    memcpy(lane + LANES, lo, sizeof lo);
    for (int l = 0; i + l < n; l++) {
        double e;
        lane[l] = dmi_two_sum(lane[l], x[i + l], &e);
        lane[LANES + l] += e;
    }
}
DMI_TWICE(static, along_dd, (const double *x, int64_t n, double *lane), (x, n, lane))

/* --- across: sum[i] += x[i] -------------------------------------------------------- */
#define ACROSS(name, type, wide)                                                                               \
    DMI_BODY void name##_body(const type *restrict x, int64_t n, wide *restrict sum)                           \
    {                                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            sum[i] += (wide)x[i];                                                                              \
        }                                                                                                      \
    }                                                                                                          \
    DMI_TWICE(static, name, (const type *restrict x, int64_t n, wide *restrict sum), (x, n, sum))
ACROSS(across_f32, float, double)
ACROSS(across_i64, uint64_t, uint64_t)

DMI_BODY void across_dd_body(const double *restrict x, int64_t n, double *restrict hi, double *restrict lo)
{
    for (int64_t i = 0; i < n; i++) {
        double e;
        hi[i] = dmi_two_sum(hi[i], x[i], &e);
        lo[i] += e;
    }
}
DMI_TWICE(static, across_dd, (const double *restrict x, int64_t n, double *restrict hi, double *restrict lo),
          (x, n, hi, lo))

void dmi_cpu_add_across(int acc, const void *x, int64_t n, void *sum, double *lo)
{
    if (acc == DMI_ACC_DD) {
        across_dd(x, n, sum, lo);
    } else if (acc == DMI_ACC_F64) {
        across_f32(x, n, sum);
    } else {
        across_i64(x, n, sum);
    }
}

/* --- both, for any type and stride --------------------------------------------------- */
typedef union sums {
    double f64[2 * PIECE]; /* f64 inputs: PIECE hi, then PIECE lo (along: LANES and LANES) */
    uint64_t i64[PIECE];
} sums;

typedef struct reduce_job {
    int acc;
    dm_dtype dtype, load; /* of the elements; rows are brought to `load`: f64, f32 or i64 */
    int64_t offset, bytes;
    const void *in;
    void *out;
    dmi_box kept, reduced; /* kept: strides of in and of acc; reduced: of in */
} reduce_job;

/* One row of n elements at position `at` with a stride, added in lanes (across == false) or element by element.
 */
static void add_row(const reduce_job *job, int64_t at, int64_t stride, int64_t n, bool across, sums *sum)
{
    dmi_chunk buffer;
    bool direct = dmi_row_direct(job->dtype, stride, job->load, n);
    int64_t step = direct ? n : DMI_CHUNK;
    for (int64_t i = 0; i < n; i += step) {
        int64_t m = DMI_MIN(step, n - i), to = across ? i : 0;
        const void *x = dmi_at(job->in, (at + i * stride) * job->bytes);
        x = direct ? x : dmi_row_load(job->dtype, x, stride, job->load, &buffer, m);
        if (across) {
            dmi_cpu_add_across(job->acc, x, m, sum->i64 + to, sum->f64 + PIECE + to);
        } else if (job->acc == DMI_ACC_DD) {
            along_dd(x, m, sum->f64);
        } else if (job->acc == DMI_ACC_F64) {
            along_f32(x, m, sum->f64);
        } else {
            along_i64(x, m, sum->i64);
        }
    }
}

/* lane[0] = the sum of the lanes, in one fixed tree. */
static void join_lanes(const reduce_job *job, sums *sum)
{
    for (int w = LANES / 2; w > 0; w /= 2) {
        for (int l = 0; l < w; l++) {
            if (job->acc == DMI_ACC_DD) {
                dmi_dd a = {sum->f64[l], sum->f64[LANES + l]}, b = {sum->f64[l + w], sum->f64[LANES + l + w]};
                dmi_dd s = dmi_dd_add(a, b);
                sum->f64[l] = s.hi;
                sum->f64[LANES + l] = s.lo;
            } else if (job->acc == DMI_ACC_F64) {
                sum->f64[l] += sum->f64[l + w];
            } else {
                sum->i64[l] += sum->i64[l + w];
            }
        }
    }
}

/* n finished sums to acc at element position `at`; the lo parts begin at f64[lo]. */
static void store_sums(const reduce_job *job, const sums *sum, int lo, int64_t at, int64_t stride, int64_t n)
{
    if (job->acc == DMI_ACC_DD) {
        dmi_dd *out = (dmi_dd *)job->out + at;
        for (int64_t i = 0; i < n; i++) {
            out[i * stride] = dmi_dd_normal(sum->f64[i], sum->f64[lo + i]);
        }
    } else if (job->acc == DMI_ACC_F64) {
        double *out = (double *)job->out + at;
        for (int64_t i = 0; i < n; i++) {
            out[i * stride] = sum->f64[i];
        }
    } else {
        uint64_t *out = (uint64_t *)job->out + at;
        for (int64_t i = 0; i < n; i++) {
            out[i * stride] = sum->i64[i];
        }
    }
}

static void clear_sums(const reduce_job *job, sums *sum, int lo, int64_t n)
{
    memset(sum, 0, (size_t)n * 8);
    if (job->acc == DMI_ACC_DD) {
        memset(sum->f64 + lo, 0, (size_t)n * 8);
    }
}

/* Each result by itself: its rows run along the innermost reduced dim. */
static void reduce_along(const reduce_job *job)
{
    const dmi_box *rows = &job->reduced;
    int inner = rows->ndim - 1;
    int64_t kept_index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {job->offset, 0};
    sums sum;
    do {
        int64_t index[DMI_BOX_DIMS] = {0}, row_at[DMI_BOX_SIDES] = {at[IN]};
        clear_sums(job, &sum, LANES, LANES);
        do {
            add_row(job, row_at[IN], rows->stride[IN][inner], rows->extent[inner], false, &sum);
        } while (dmi_box_next(rows, inner, index, row_at));
        join_lanes(job, &sum);
        store_sums(job, &sum, LANES, at[ACC], 1, 1);
    } while (dmi_box_next(&job->kept, job->kept.ndim, kept_index, at));
}

/* A piece of results together: its rows run along the innermost kept dim. */
static void reduce_across(const reduce_job *job)
{
    const dmi_box *kept = &job->kept;
    int inner = kept->ndim - 1;
    int64_t n = kept->extent[inner], s = kept->stride[IN][inner], t = kept->stride[ACC][inner];
    int64_t step = dmi_row_direct(job->dtype, s, job->load, n) ? PIECE : DMI_CHUNK;
    int64_t kept_index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES] = {job->offset, 0};
    sums sum;
    do {
        for (int64_t i = 0; i < n; i += step) {
            int64_t m = DMI_MIN(step, n - i);
            int64_t index[DMI_BOX_DIMS] = {0}, row_at[DMI_BOX_SIDES] = {at[IN] + i * s};
            clear_sums(job, &sum, PIECE, m);
            do {
                add_row(job, row_at[IN], s, m, true, &sum);
            } while (dmi_box_next(&job->reduced, job->reduced.ndim, index, row_at));
            store_sums(job, &sum, PIECE, at[ACC] + i * t, t, m);
        }
    } while (dmi_box_next(kept, inner, kept_index, at));
}

/* Rows run where memory is denser, except that a short row is worse than a strided one. */
static bool better_across(const reduce_job *job)
{
    int k = job->kept.ndim - 1, r = job->reduced.ndim - 1;
    int64_t nk = job->kept.extent[k], nr = job->reduced.extent[r];
    if (job->reduced.stride[IN][r] < job->kept.stride[IN][k]) {
        return nr < LANES && nk > nr;
    }
    return !(nk < LANES && nr > nk);
}

static void add_dim(dmi_box *box, int64_t extent, int64_t in_stride, int64_t acc_stride)
{
    box->extent[box->ndim] = extent;
    box->stride[IN][box->ndim] = in_stride;
    box->stride[ACC][box->ndim++] = acc_stride;
}

void dmi_cpu_reduce(const dmi_reduce *d, const void *in, void *acc)
{
    reduce_job job = {.in = in, .out = acc, .kept = {.sides = 2}, .reduced = {.sides = 1}};
    int64_t results = 1, summed = 1, parts = dmi_acc_parts(dmi_acc_of(d->dtype));
    job.acc = dmi_acc_part(dmi_acc_of(d->dtype));
    job.load = dmi_acc_addend(job.acc);
    job.dtype = dmi_dtype_part(d->dtype);
    job.bytes = dmi_dtype_bytes(job.dtype);
    job.offset = d->offset * parts;
    assert(job.bytes > 0 && d->ndim >= 0 && d->ndim <= DM_MAX_DIMS);
    if (parts > 1) { /* complex: one more kept dim, of the two parts */
        add_dim(&job.kept, parts, 1, 1);
        results = parts;
    }
    for (int dim = d->ndim - 1; dim >= 0;
         dim--) { /* dims of the kept box come in reverse; simplify orders them */
        bool reduced = d->reduced >> dim & 1;
        add_dim(reduced ? &job.reduced : &job.kept, d->extent[dim], d->stride[dim] * parts, results);
        *(reduced ? &summed : &results) *= d->extent[dim];
    }
    if (results == 0 || summed == 0) {
        memset(acc, 0, (size_t)(results * dmi_acc_bytes(job.acc)));
        return;
    }
    dmi_box_simplify(&job.kept, ACC);
    dmi_box_simplify(&job.reduced, IN);
    if (better_across(&job)) {
        reduce_across(&job);
    } else {
        reduce_along(&job);
    }
}
