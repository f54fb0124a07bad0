/* Reductions over any dims, sums first of all. Two forms: `along` takes a dense range in several independent
 * vector lanes, `across` takes whole rows into a tile of the result held in the first-level cache. Which form
 * and which order depends only on the descriptor, and so do the bits of the result. */
#include "kernels/cpu/cpu.h"
#include "kernels/ewise/map_cpu.h"
#include "kernels/kernel.h"
#include "kernels/reduce/dd_cpu.h"
#include "kernels/reduce/reducer_cpu.h"
#include <assert.h>

enum { IN = 0, SIDES = DMI_MAP_SIDES };
enum { LANES = DMI_REDUCE_LANES, TILE = 4096, SCALED_TILE = DMI_CHUNK };

/* --- along: lane[l] += x[i] for i % LANES == l ------------------------------------- */
#define ALONG(name, type, wide)                                                                                \
    DMI_BODY void name##_body(const type *x, int64_t n, wide *lane)                                            \
    {                                                                                                          \
        wide s[LANES];                                                                                         \
        int64_t i = 0;                                                                                         \
        memcpy(s, lane, sizeof s);                                                                             \
        for (; i + LANES <= n; i += LANES) {                                                                   \
            DMI_PREFETCH(x + i, DMI_AHEAD, LANES * sizeof *x)                                                  \
            DMI_LANES_LOOP                                                                                     \
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

/* Vectors, so that the vector lanes stay in registers. */
typedef double four __attribute__((vector_size(32)));
enum { FOURS = LANES / 4 };

DMI_BODY void along_dd_body(const double *x, int64_t n, double *lane)
{
    four hi[FOURS], lo[FOURS];
    int64_t i = 0;
    memcpy(hi, lane, sizeof hi);
    memcpy(lo, lane + TILE, sizeof lo);
    for (; i + LANES <= n; i += LANES) {
        DMI_PREFETCH(x + i, DMI_AHEAD, LANES * sizeof *x)
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
    memcpy(lane + TILE, lo, sizeof lo);
    for (int l = 0; i + l < n; l++) {
        double e;
        lane[l] = dmi_two_sum(lane[l], x[i + l], &e);
        lane[TILE + l] += e;
    }
}
DMI_TWICE(static, along_dd, (const double *x, int64_t n, double *lane), (x, n, lane))

/* --- across: sum[i] += x[i] -------------------------------------------------------- */
#define ACROSS(name, type, wide)                                                                               \
    DMI_BODY void name##_body(const type *restrict x, int64_t n, wide *restrict sum)                           \
    {                                                                                                          \
        int64_t i = 0;                                                                                         \
        for (; i + LANES <= n; i += LANES) {                                                                   \
            DMI_PREFETCH(x + i, DMI_AHEAD, LANES * sizeof *x)                                                  \
            DMI_LANES_LOOP                                                                                     \
            for (int l = 0; l < LANES; l++) {                                                                  \
                sum[i + l] += (wide)x[i + l];                                                                  \
            }                                                                                                  \
        }                                                                                                      \
        for (; i < n; i++) {                                                                                   \
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

/* Rows `step` elements apart, one after the other: the same sums, with an eighth of the traffic to the tile. It
 * pays where the tile takes much of the first-level cache: a narrow tile stays there, and rows one by one are a
 * single stream of memory. */
enum { ROWS_TOGETHER = 8, WIDE_TILE = TILE / 2 };
#define ACROSS_ROWS(name, type, wide)                                                                          \
    DMI_BODY void name##_body(const type *restrict x, int64_t step, int64_t n, wide *restrict sum)             \
    {                                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                                      \
            wide s = sum[i];                                                                                   \
            for (int r = 0; r < ROWS_TOGETHER; r++) {                                                          \
                s += (wide)x[i + r * step];                                                                    \
            }                                                                                                  \
            sum[i] = s;                                                                                        \
        }                                                                                                      \
    }                                                                                                          \
    DMI_TWICE(static, name, (const type *restrict x, int64_t step, int64_t n, wide *restrict sum),             \
              (x, step, n, sum))
ACROSS_ROWS(across_rows_f32, float, double)
ACROSS_ROWS(across_rows_i64, uint64_t, uint64_t)

DMI_BODY void across_rows_dd_body(const double *restrict x, int64_t step, int64_t n, double *restrict hi,
                                  double *restrict lo)
{
    for (int64_t i = 0; i < n; i++) {
        double h = hi[i], l = lo[i];
        for (int r = 0; r < ROWS_TOGETHER; r++) {
            double e;
            h = dmi_two_sum(h, x[i + r * step], &e);
            l += e;
        }
        hi[i] = h;
        lo[i] = l;
    }
}
DMI_TWICE(static, across_rows_dd,
          (const double *restrict x, int64_t step, int64_t n, double *restrict hi, double *restrict lo),
          (x, step, n, hi, lo))

/* --- both, for any type and stride --------------------------------------------------- */
typedef union states {
    double f64[2 * TILE]; /* sums of f64: TILE hi, then TILE lo */
    uint64_t i64[TILE];
    dmi_scaled_sum scaled[2 * SCALED_TILE];         /* of f64, taken once more */
    unsigned char bytes[2 * TILE * sizeof(double)]; /* of other rows */
} states;

typedef struct reduce_job {
    const dmi_reduce *d;
    int acc;
    const dmi_reducer *reducer; /* NULL: a sum */
    dm_dtype dtype, load;       /* of the elements; rows are brought to `load` */
    int inputs;                 /* sides of the boxes before the last one */
    int parts;                  /* 2: elements of a program are complex, and their parts are summed side by side */
    dmi_map_job *map;           /* makes the elements; NULL: they are in memory */
    int64_t bytes;
    const void *in;
    void *out;
    bool lost; /* of f64: sums left the range on the way, or an element is not finite: all are to be taken once
                  more, */
    bool scaled; /* as here */
    /* Their last sides: accumulators, and elements counted in the order of x's dims, from which its index
     * follows (0 where indices are not kept). */
    dmi_box kept, reduced;
    int64_t offset[SIDES];
    states state;
} reduce_job;

/* m elements as a dense row of type `load`. */
static const void *elements(reduce_job *job, const int64_t *at, const int64_t *stride, int64_t m,
                            dmi_chunk *buffer)
{
    if (job->map) {
        dm_dtype made = (dm_dtype)job->map->p->result;
        const void *values = dmi_map_values(job->map, at, stride, m, NULL);
        return job->parts > 1 ? values : dmi_row_load(made, values, 1, job->load, buffer, m);
    }
    const void *x = dmi_at(job->in, at[IN] * job->bytes);
    return dmi_row_direct(job->dtype, stride[IN], job->load, m)
               ? x
               : dmi_row_load(job->dtype, x, stride[IN], job->load, buffer, m);
}

/* How many elements of a row with these strides come at once. */
static int64_t most_at_once(const reduce_job *job, const int64_t *stride, int64_t n)
{
    return job->map ? job->map->most : dmi_row_direct(job->dtype, stride[IN], job->load, n) ? n : DMI_CHUNK;
}

static bool keeps_places(const reduce_job *job)
{
    return dmi_reductions[dmi_acc_row(job->acc)].state == DMI_STATE_PLACE;
}

/* The index of element number `at` of those that are reduced over, in the order of x's dims. */
static int64_t index_of(const dmi_reduce *d, int64_t at)
{
    int64_t index = 0, scale = 1;
    for (int dim = d->ndim - 1; dim >= 0; dim--) {
        if (d->reduced >> dim & 1) {
            index += dmi_dimset_index(&d->index[dim], at % d->extent[dim]) * scale;
            at /= d->extent[dim];
            scale *= d->whole[dim];
        }
    }
    return index;
}

static void take_scaled(reduce_job *job, const double *x, int64_t n, bool across, int64_t to)
{
    dmi_scaled_sum *s = job->state.scaled + to;
    for (int64_t i = 0; i < n; i++) {
        dmi_scaled_take(&s[across ? i : i % job->parts], x[i], 0);
    }
}

static void take(reduce_job *job, const void *x, int64_t n, bool across, int64_t to, int64_t index,
                 int64_t step)
{
    states *s = &job->state;
    n *= job->parts;
    to *= job->parts;
    if (job->scaled) {
        take_scaled(job, x, n, across, to);
    } else if (job->reducer && across) {
        job->reducer->across(s->bytes + to * job->reducer->bytes, x, n, index);
    } else if (job->reducer) {
        job->reducer->along(s, x, n, index, step);
    } else if (across) {
        dmi_cpu_add_across(job->acc, x, n, s->i64 + to, s->f64 + TILE + to);
    } else if (job->acc == DMI_ACC_DD) {
        along_dd(x, n, s->f64);
    } else if (job->acc == DMI_ACC_F64) {
        along_f32(x, n, s->f64);
    } else {
        along_i64(x, n, s->i64);
    }
}

/* One row of n elements at positions at[] with strides, taken in vector lanes (across == false) or element by
 * element. */
static void take_row(reduce_job *job, const int64_t *at, const dmi_box *box, int dim, int64_t n, bool across)
{
    dmi_chunk buffer;
    int64_t stride[SIDES], here[SIDES], step;
    for (int side = 0; side <= job->inputs; side++) {
        stride[side] = box->stride[side][dim];
        here[side] = at[side];
    }
    step = most_at_once(job, stride, n);
    for (int64_t i = 0; i < n; i += step) {
        int64_t m = DMI_MIN(step, n - i);
        take(job, elements(job, here, stride, m, &buffer), m, across, across ? i : 0, here[job->inputs],
             stride[job->inputs]);
        for (int side = 0; side < job->inputs + !across; side++) { /* across, all have one index */
            here[side] += step * stride[side];
        }
    }
}

/* The first state (of each part) = the vector lanes together, in one fixed tree. */
static void join_lanes(reduce_job *job)
{
    states *s = &job->state;
    for (int w = LANES / 2; w >= job->parts && !job->scaled; w /= 2) {
        if (job->reducer) {
            job->reducer->combine(s, 1, s->bytes + w * job->reducer->bytes, 1, w);
            continue;
        }
        for (int l = 0; l < w; l++) {
            if (job->acc == DMI_ACC_DD) {
                dmi_dd a = {s->f64[l], s->f64[TILE + l]}, b = {s->f64[l + w], s->f64[TILE + l + w]};
                dmi_dd sum = dmi_dd_join(a, b);
                s->f64[l] = sum.hi;
                s->f64[TILE + l] = sum.lo;
            } else if (job->acc == DMI_ACC_F64) {
                s->f64[l] += s->f64[l + w];
            } else {
                s->i64[l] += s->i64[l + w];
            }
        }
    }
}

/* n states of a row other than the sum to acc at position `at`. A state that is one number may be narrower
 * there; what no elements give is then the narrow type's largest or smallest. */
static void store_states(reduce_job *job, const void *s, int64_t at, int64_t stride, int64_t n)
{
    dm_dtype number = dmi_acc_number(job->acc), carrier = dmi_dtype_carrier(number);
    int64_t bytes = dmi_acc_bytes(job->acc);
    char *out = (char *)job->out + at * bytes;
    if (number && dmi_reductions[dmi_acc_row(job->acc)].state == DMI_STATE_VALUE) {
        for (int64_t i = 0; i < n; i += DMI_CHUNK) {
            dmi_chunk wide;
            int64_t m = DMI_MIN(DMI_CHUNK, n - i);
            const void *from = dmi_at(s, i * job->reducer->bytes);
            if (carrier == number) {
                dmi_row_store(carrier, from, number, out + i * stride * bytes, stride, m);
                continue;
            }
            dmi_convert_row(carrier, DM_F64, from, &wide, m); /* from there it saturates */
            dmi_row_store(DM_F64, &wide, number, out + i * stride * bytes, stride, m);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(out + i * stride * bytes, dmi_at(s, i * bytes), (size_t)bytes);
    }
}

/* n pairs, of TILE hi and TILE lo, stride apart, as they are kept; false: one of them is lost (reduce_job). */
DMI_BODY void keep_pairs_body(const double *restrict f64, int64_t n, dmi_dd *restrict out, int64_t stride,
                              bool *lost)
{
    int many = 0;
    for (int64_t i = 0; i < n; i++) {
        dmi_dd sum = dmi_dd_normal(f64[i], f64[TILE + i]);
        many |= !dmi_finite(sum.hi);
        out[i * stride] = sum;
    }
    *lost = many != 0;
}
DMI_TWICE(static, keep_pairs,
          (const double *restrict f64, int64_t n, dmi_dd *restrict out, int64_t stride, bool *lost),
          (f64, n, out, stride, lost))

/* n finished states to acc at position `at`. */
static void store(reduce_job *job, int64_t at, int64_t stride, int64_t n)
{
    const states *s = &job->state;
    if (job->reducer) {
        store_states(job, s, at, stride, n);
        return;
    }
    int parts = job->parts;
    if (job->acc == DMI_ACC_DD && parts == 1 && !job->scaled) {
        keep_pairs(s->f64, n, (dmi_dd *)job->out + at, stride, &job->lost);
        return;
    }
    for (int64_t i = 0; i < n * parts; i++) {
        int64_t to = (at + i / parts * stride) * parts + i % parts;
        if (job->scaled) { /* the first time was right where it is finite; scaled, small sums may lose bits */
            dmi_dd *sum = (dmi_dd *)job->out + to;
            *sum = dmi_finite(sum->hi) ? *sum : dmi_dd_of_scaled(&s->scaled[i]);
        } else if (job->acc == DMI_ACC_DD) {
            dmi_dd sum = dmi_dd_normal(s->f64[i], s->f64[TILE + i]);
            job->lost |= !dmi_finite(sum.hi);
            ((dmi_dd *)job->out)[to] = sum;
        } else if (job->acc == DMI_ACC_F64) {
            ((double *)job->out)[to] = s->f64[i];
        } else {
            ((uint64_t *)job->out)[to] = s->i64[i];
        }
    }
}

static void clear(reduce_job *job, int64_t n)
{
    n *= job->parts;
    if (job->reducer) {
        job->reducer->clear(&job->state, n);
        return;
    }
    job->lost = false;
    if (job->scaled) {
        memset(job->state.scaled, 0, (size_t)n * sizeof *job->state.scaled);
        return;
    }
    memset(&job->state, 0, (size_t)n * 8);
    if (job->acc == DMI_ACC_DD) {
        memset(job->state.f64 + TILE, 0, (size_t)n * 8);
    }
}

/* Places counted in the order of x's dims become indices. */
static void set_indices(reduce_job *job, int64_t n)
{
    for (int64_t i = 0; i < n && keeps_places(job); i++) {
        int64_t at;
        void *field = job->state.bytes + (i + 1) * job->reducer->bytes - sizeof at; /* the last of the state */
        memcpy(&at, field, sizeof at);
        at = at < 0 ? at : index_of(job->d, at);
        memcpy(field, &at, sizeof at);
    }
}

/* One result: its rows run along the innermost reduced dim. */
static void reduce_one(reduce_job *job, const int64_t *at)
{
    const dmi_box *rows = &job->reduced;
    int inner = rows->ndim - 1, last = job->inputs;
    int64_t index[DMI_BOX_DIMS] = {0}, row_at[DMI_BOX_SIDES];
    memcpy(row_at, at, sizeof row_at);
    row_at[last] = 0;
    clear(job, job->scaled ? 1 : LANES);
    do {
        take_row(job, row_at, rows, inner, rows->extent[inner], false);
    } while (dmi_box_next(rows, inner, index, row_at));
    join_lanes(job);
    set_indices(job, 1);
    store(job, at[last], 1, 1);
}

/* Each result by itself. */
static void reduce_along(reduce_job *job)
{
    int64_t kept_index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES];
    memcpy(at, job->offset, sizeof job->offset);
    do {
        reduce_one(job, at);
        job->scaled = job->lost;
        if (job->scaled) {
            reduce_one(job, at);
            job->scaled = false;
        }
    } while (dmi_box_next(&job->kept, job->kept.ndim, kept_index, at));
}

/* Sums of elements as they lie in memory: several rows along the innermost reduced dim at a time. */
static void take_rows(reduce_job *job, int64_t at, int64_t m)
{
    int r = job->reduced.ndim - 1;
    int64_t rows = job->reduced.extent[r], step = job->reduced.stride[IN][r], k = 0;
    bool pairs = job->acc == DMI_ACC_DD;
    for (; k + ROWS_TOGETHER <= rows && (pairs ? 2 * m : m) > WIDE_TILE; k += ROWS_TOGETHER) {
        const void *x = dmi_at(job->in, (at + k * step) * job->bytes);
        if (pairs) {
            across_rows_dd(x, step, m, job->state.f64, job->state.f64 + TILE);
        } else if (job->acc == DMI_ACC_F64) {
            across_rows_f32(x, step, m, job->state.f64);
        } else {
            across_rows_i64(x, step, m, job->state.i64);
        }
    }
    for (; k < rows; k++) {
        take(job, dmi_at(job->in, (at + k * step) * job->bytes), m, true, 0, 0, 0);
    }
}

/* m results together, from number i of the innermost kept dim on. rows: they are sums of elements as they lie
 * in memory. */
static void reduce_tile(reduce_job *job, const int64_t *at, int64_t i, int64_t m, bool rows)
{
    const dmi_box *kept = &job->kept;
    int inner = kept->ndim - 1, last = job->inputs;
    int64_t index[DMI_BOX_DIMS] = {0}, row_at[DMI_BOX_SIDES], t = kept->stride[last][inner];
    for (int side = 0; side < last; side++) {
        row_at[side] = at[side] + i * kept->stride[side][inner];
    }
    row_at[last] = 0;
    clear(job, m);
    do {
        if (rows) {
            take_rows(job, row_at[IN], m);
        } else {
            take_row(job, row_at, kept, inner, m, true);
        }
    } while (dmi_box_next(&job->reduced, job->reduced.ndim - rows, index, row_at));
    set_indices(job, m);
    store(job, at[last] + i * t, t, m);
}

/* Tiles of results: their rows run along the innermost kept dim. */
static void reduce_across(reduce_job *job)
{
    const dmi_box *kept = &job->kept;
    int inner = kept->ndim - 1;
    int64_t n = kept->extent[inner];
    int64_t most = job->reducer ? (int64_t)sizeof job->state / job->reducer->bytes : TILE;
    bool direct = !job->map && dmi_row_direct(job->dtype, kept->stride[IN][inner], job->load, n);
    bool rows = direct && !job->reducer && job->reduced.ndim > 0;
    int64_t step = direct ? most : DMI_CHUNK;
    int64_t kept_index[DMI_BOX_DIMS] = {0}, at[DMI_BOX_SIDES];
    memcpy(at, job->offset, sizeof job->offset);
    do {
        for (int64_t i = 0; i < n; i += step) {
            int64_t end = DMI_MIN(i + step, n);
            reduce_tile(job, at, i, end - i, rows);
            job->scaled = job->lost;
            for (int64_t k = i; k < end && job->scaled; k += SCALED_TILE) {
                reduce_tile(job, at, k, DMI_MIN(SCALED_TILE, end - k), false);
            }
            job->scaled = false;
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

/* No elements: what the row starts with. */
static void reduce_nothing(reduce_job *job, int64_t results)
{
    for (int64_t i = 0; i < results; i += DMI_CHUNK) {
        int64_t m = DMI_MIN(DMI_CHUNK, results - i);
        clear(job, m);
        store(job, i, 1, m);
    }
}

static void add_dim(reduce_job *job, dmi_box *box, int64_t extent, const int64_t *stride, int64_t last)
{
    box->extent[box->ndim] = extent;
    for (int side = 0; side < job->inputs; side++) {
        box->stride[side][box->ndim] = stride[side];
    }
    box->stride[job->inputs][box->ndim++] = last;
}

/* The boxes over which x is walked; false: there is no element. */
static bool make_boxes(reduce_job *job, const dmi_reduce *d, int64_t *results)
{
    int64_t elements = 1, parts = job->map ? 1 : dmi_acc_parts(dmi_acc_for(d->row, d->dtype));
    *results = parts;
    job->kept.sides = job->reduced.sides = job->inputs + 1;
    if (parts > 1) { /* complex: one more kept dim, of the two parts */
        add_dim(job, &job->kept, parts, (int64_t[]){1}, 1);
    }
    for (int dim = d->ndim - 1; dim >= 0; dim--) { /* dims come in reverse; simplify orders them */
        bool reduced = d->reduced >> dim & 1;
        int64_t *count = reduced ? &elements : results, stride[SIDES] = {d->stride[dim] * parts};
        int64_t last = reduced && !keeps_places(job) ? 0 : *count;
        for (int side = 0; side < job->inputs && job->map; side++) {
            stride[side] = d->map->stride[side][dim];
        }
        add_dim(job, reduced ? &job->reduced : &job->kept, d->extent[dim], stride, last);
        *count *= d->extent[dim];
    }
    return elements > 0;
}

static void begin(reduce_job *job, const dmi_reduce *d, const dmi_kernel_call *call, dmi_map_job *map)
{
    int acc = dmi_acc_for(d->row, d->dtype);
    assert(acc >= 0 && d->ndim >= 0 && d->ndim <= DM_MAX_DIMS);
    job->d = d;
    job->acc = dmi_acc_part(acc);
    job->reducer = acc < DMI_ACC_SUMS ? NULL : dmi_reducer_of(acc);
    job->load = job->reducer ? dmi_dtype_carrier(dmi_acc_takes(acc)) : dmi_acc_takes(job->acc);
    job->dtype = job->reducer ? d->dtype : dmi_dtype_part(d->dtype);
    job->bytes = dmi_dtype_bytes(job->dtype);
    job->inputs = d->map ? d->map->program.inputs : 1;
    job->map = d->map ? map : NULL;
    job->parts = d->map ? dmi_acc_parts(acc) : 1;
    job->in = call->at[0];
    job->out = call->at[job->inputs];
    job->lost = job->scaled = false;
    job->kept.ndim = job->reduced.ndim = 0;
    memset(job->offset, 0, sizeof job->offset);
    job->offset[IN] = d->offset * dmi_acc_parts(acc);
    if (d->map) {
        assert(job->inputs < SIDES && DMI_CHUNK * job->parts <= TILE);
        dmi_map_begin(map, d->map, call->number, call->at);
        memcpy(job->offset, d->map->offset, (size_t)job->inputs * sizeof *job->offset);
    }
}

dm_status dmi_reduce_cpu(const dmi_kernel_call *call)
{
    const dmi_reduce *d = call->desc;
    dmi_map_job map;
    reduce_job job;
    int64_t results;
    begin(&job, d, call, &map);
    bool some = make_boxes(&job, d, &results);
    if (results == 0) {
        return DM_OK;
    }
    if (!some) {
        reduce_nothing(&job, results);
        return DM_OK;
    }
    dmi_box_simplify(&job.kept, job.inputs);
    dmi_box_simplify(&job.reduced, IN);
    if (better_across(&job)) {
        reduce_across(&job);
    } else {
        reduce_along(&job);
    }
    return DM_OK;
}

const dmi_reducer *dmi_reducer_of(int acc)
{
    int row = dmi_acc_row(acc);
    switch ((int)dmi_dtype_carrier(dmi_acc_takes(acc))) {
    case DM_BOOL:
        return &dmi_reducers_bool[row];
    case DM_I32:
        return &dmi_reducers_i32[row];
    case DM_I64:
        return &dmi_reducers_i64[row];
    case DM_U64:
        return &dmi_reducers_u64[row];
    case DM_F32:
        return &dmi_reducers_f32[row];
    case DM_F64:
        return &dmi_reducers_f64[row];
    case DM_C64:
        return &dmi_reducers_c64[row];
    case DM_C128:
        return &dmi_reducers_c128[row];
    default:
        assert(!"not a carrier");
        return NULL;
    }
}
