/* Elementwise programs on the CPU: a tile of each value fits the first-level cache; every step is a loop over a
 * tile. */
#include "kernels/ewise/map_cpu.h"
#include "kernels/box/convert.h"
#include "kernels/box/stream.h"
#include "kernels/cpu/simd.h"
#include "kernels/ewise/ewise_cpu.h"
#include "kernels/kernel.h"
#include <assert.h>

enum { SIDES = DMI_MAP_SIDES };

static dmi_ewise_fn *const *rows_of(dm_dtype carrier)
{
    switch ((int)carrier) {
    case DM_BOOL:
        return dmi_ewise_bool;
    case DM_I32:
        return dmi_ewise_i32;
    case DM_I64:
        return dmi_ewise_i64;
    case DM_U64:
        return dmi_ewise_u64;
    case DM_F32:
        return dmi_ewise_f32;
    case DM_F64:
        return dmi_ewise_f64;
    case DM_C64:
        return dmi_ewise_c64;
    case DM_C128:
        return dmi_ewise_c128;
    default:
        assert(!"not a carrier");
        return NULL;
    }
}

/* One number as elements of a carrier. */
static void fill_tile(dm_dtype carrier, const dmi_number *number, int64_t n, void *out)
{
    rows_of(carrier)[DMI_EW_constant](out, NULL, NULL, NULL, number, number, n);
}

/* The last step that writes this temporary. */
static int last_writer(const dmi_map_program *p, int temporary)
{
    int i = p->steps - 1;
    while (i > 0 && p->step[i].to != temporary) {
        i--;
    }
    return i;
}

void dmi_map_begin(dmi_map_job *job, const dmi_map *d, const dmi_number *number, void *const *at)
{
    const dmi_map_program *p = &d->program;
    job->d = d;
    job->p = p;
    job->number = number;
    job->constant = false;
    for (int i = 0; i < p->inputs; i++) {
        job->bytes[i] = dmi_dtype_bytes(d->dtype[i]);
        job->at[i] = at[i];
    }
    int64_t widest = dmi_dtype_bytes((dm_dtype)p->result);
    for (int i = 0; i < p->inputs; i++) {
        widest = DMI_MAX(widest, dmi_dtype_bytes((dm_dtype)p->input_type[i]));
    }
    for (int i = 0; i < p->steps; i++) {
        const dmi_map_step *step = &p->step[i];
        widest = DMI_MAX(widest, dmi_dtype_bytes((dm_dtype)step->type));
        if (step->row == DMI_EW_CAST) { /* by way of what may be wider than both */
            widest = DMI_MAX(widest, dmi_dtype_bytes((dm_dtype)step->via));
        }
    }
    for (int i = 0; i < p->constants; i++) { /* of which some are only converted */
        widest = DMI_MAX(widest, dmi_dtype_bytes((dm_dtype)p->constant_type[i]));
    }
    job->most = DMI_MIN(DMI_TILE_BYTES / widest, DMI_CHUNK);
    for (int i = 0; i < p->constants; i++) {
        dm_dtype type = (dm_dtype)p->constant_type[i];
        fill_tile(type, &job->number[p->constant_number[i]], DMI_TILE_BYTES / dmi_dtype_bytes(type),
                  &job->constants[i]);
        job->where[DMI_AT_CONSTANT | i] = &job->constants[i];
        job->constant = true;
    }
    memset(job->keeper, 0, sizeof job->keeper);
    memset(job->direct, 0, sizeof job->direct);
    job->where[0] = NULL; /* operands that a step has not */
    for (int i = 0; i < p->steps; i++) {
        const dmi_map_step *step = &p->step[i];
        job->fn[i] = step->row == DMI_EW_CAST ? NULL : rows_of((dm_dtype)step->type)[step->row];
    }
    for (int k = 0; k < p->kept; k++) {
        job->keeper[last_writer(p, p->keeps[k])] = (uint8_t)(k + 1);
    }
}

static void cast(const dmi_map_step *step, const void *from, void *to, int64_t n)
{
    dm_dtype of = (dm_dtype)step->of, via = (dm_dtype)step->via, type = (dm_dtype)step->type;
    if (via == type) {
        dmi_convert_row(of, type, from, to, n);
        return;
    }
    dmi_tile between;
    dmi_convert_row(of, via, from, &between, n);
    dmi_convert_row(via, type, &between, to, n);
}

/* The type that a step's result has. */
static dm_dtype type_of(const dmi_map_step *step)
{
    dm_dtype type = (dm_dtype)step->type;
    int form = step->row == DMI_EW_CAST ? DMI_FORM_UNARY : dmi_ew_rows[step->row].form;
    return form == DMI_FORM_TEST || form == DMI_FORM_COMPARE ? DM_BOOL
           : form == DMI_FORM_PART                           ? dmi_dtype_part(type)
                                                             : type;
}

/* n values of one step. */
static void run_step(const dmi_map_job *job, int i, int64_t n, void *to)
{
    const dmi_map_step *step = &job->p->step[i];
    void *const *where = job->where;
    if (job->fn[i]) {
        job->fn[i](to, where[step->from[0]], where[step->from[1]], where[step->from[2]],
                   &job->number[step->number[0]], &job->number[step->number[1]], n);
    } else {
        cast(step, where[step->from[0]], to, n);
    }
}

static void *memory_of(const dmi_map_job *job, int side, const int64_t *at)
{
    return dmi_at_mut(job->at[side], at[side] * job->bytes[side]);
}

/* Inputs, and temporaries so far, whose values in a tile are one value, as bits. */
typedef struct same {
    unsigned input, temporary;
} same;

/* Does the step give one value for the tile? What a column gives for a row is computed once. */
static bool is_once(const dmi_map_step *step, same all)
{
    int operands = dmi_map_operands(step);
    bool once = operands > 0;
    for (int k = 0; k < operands; k++) {
        int index = step->from[k] & DMI_AT_INDEX, kind = step->from[k] & DMI_AT_KIND;
        once = once &&
               (kind == DMI_AT_CONSTANT || ((kind == DMI_AT_INPUT ? all.input : all.temporary) >> index & 1));
    }
    return once;
}

static void *load_input(dmi_map_job *job, int i, const int64_t *at, const int64_t *stride, int64_t n)
{
    const dmi_map_program *p = job->p;
    dm_dtype carrier = (dm_dtype)p->input_type[i];
    if (p->made[i]) {
        dmi_map_make(job->d->places, p->made[i], carrier, (uint64_t)job->number[p->seed[i]].whole, at[i],
                     stride[i], n, &job->input[i]);
        return &job->input[i];
    }
    void *from = job->at[i] ? memory_of(job, i, at) : NULL;
    if (from && !dmi_row_direct(job->d->dtype[i], stride[i], carrier, n)) {
        return (void *)(uintptr_t)dmi_row_load(job->d->dtype[i], from, stride[i], carrier,
                                               (dmi_chunk *)&job->input[i], n);
    }
    if (from) {
        DMI_PREFETCH(from, DMI_TILE_AHEAD, n * job->bytes[i])
    }
    return from;
}

void *dmi_map_values(dmi_map_job *job, const int64_t *at, const int64_t *stride, int64_t n, void *out)
{
    const dmi_map_program *p = job->p;
    same all = {0};
    for (int i = 0; i < p->inputs; i++) {
        all.input |= (unsigned)(stride[i] == 0 && !p->made[i] && n > 1) << i;
        job->where[DMI_AT_INPUT | i] = load_input(job, i, at, stride, n);
    }
    void *last = NULL;
    for (int i = 0; i < p->steps; i++) {
        const dmi_map_step *step = &p->step[i];
        int kept = job->keeper[i] - 1, side = p->inputs + 1 + kept;
        last = i + 1 == p->steps && out         ? out
               : kept >= 0 && job->direct[kept] ? memory_of(job, side, at)
                                                : (void *)&job->temporary[step->to];
        if (all.input && is_once(step, all)) {
            run_step(job, i, 1, last);
            dmi_move_row(dmi_dtype_bytes(type_of(step)), last, 0, last, 1, n);
            all.temporary |= 1u << step->to;
        } else {
            run_step(job, i, n, last);
            all.temporary &= ~(1u << step->to);
        }
        job->where[DMI_AT_TEMPORARY | step->to] = last;
    }
    return last;
}

static void store_row(const dmi_map_job *job, int side, dm_dtype carrier, const void *values, const int64_t *at,
                      const int64_t *stride, int64_t n, bool stream)
{
    void *to = memory_of(job, side, at);
    dm_dtype type = job->d->dtype[side];
    if (stream && dmi_row_direct(carrier, stride[side], type, n)) {
        dmi_stream_row(to, values, n * job->bytes[side]);
    } else {
        dmi_row_store(carrier, values, type, to, stride[side], n);
    }
}

/* n elements at element positions at[] of the sides, with strides. stream: results go past the caches. */
static void run_tile(dmi_map_job *job, const int64_t *at, const int64_t *stride, int64_t n, bool stream)
{
    const dmi_map_program *p = job->p;
    int side = p->inputs;
    void *out = memory_of(job, side, at);
    bool direct = !stream && dmi_row_direct((dm_dtype)p->result, stride[side], job->d->dtype[side], n);
    void *values = dmi_map_values(job, at, stride, n, direct ? out : NULL);
    if (!direct) {
        store_row(job, side, (dm_dtype)p->result, values, at, stride, n, stream);
    }
    for (int k = 0; k < p->kept; k++) {
        if (!job->direct[k]) {
            store_row(job, side + 1 + k, (dm_dtype)p->kept_type[k], job->where[DMI_AT_TEMPORARY | p->keeps[k]],
                      at, stride, n, stream);
        }
    }
}

/* Can what is kept as number k be computed where it goes? Not if that is an input that is read after it. */
static bool is_direct(const dmi_map_job *job, int k, const int64_t *stride, const int64_t *offset)
{
    const dmi_map_program *p = job->p;
    const int side = p->inputs + 1 + k, writer = last_writer(p, p->keeps[k]);
    bool direct = job->keeper[writer] == k + 1 &&
                  dmi_row_direct((dm_dtype)p->kept_type[k], stride[side], job->d->dtype[side], 2);
    for (int i = writer + 1; i < p->steps && direct; i++) {
        const dmi_map_step *step = &p->step[i];
        for (int o = 0; o < dmi_map_operands(step); o++) {
            int input = step->from[o] & DMI_AT_INDEX;
            bool reads = (step->from[o] & DMI_AT_KIND) == DMI_AT_INPUT && !p->made[input] && job->at[input];
            direct = direct && !(reads && dmi_at(job->at[input], offset[input] * job->bytes[input]) ==
                                              dmi_at(job->at[side], offset[side] * job->bytes[side]));
        }
    }
    return direct;
}

/* May a row be one tile, however long? Where all of its operands are read from where they are, and there is one
 * step. */
static bool any_length(const dmi_map_job *job, const int64_t *stride)
{
    const dmi_map_program *p = job->p;
    bool direct = p->steps == 1 && p->kept == 0 && !job->constant && p->step[0].row != DMI_EW_CAST &&
                  dmi_row_direct((dm_dtype)p->result, stride[p->inputs], job->d->dtype[p->inputs], 2);
    for (int i = 0; i < p->inputs && direct; i++) {
        direct = !p->made[i] && dmi_row_direct(job->d->dtype[i], stride[i], (dm_dtype)p->input_type[i], 2);
    }
    return direct;
}

/* The innermost dim is where out is densest; if it is short, the longest dim makes better rows. */
static void choose_inner(dmi_box *box)
{
    int inner = box->ndim - 1, best = inner;
    if (box->extent[inner] >= 16) {
        return;
    }
    for (int d = 0; d < inner; d++) {
        best = box->extent[d] > box->extent[best] ? d : best;
    }
    dmi_box_swap(box, inner, best);
}

/* Is out so large that it goes past the caches, with what is kept? Where one of them is an input too, its lines are read
 * anyway. */
static bool streams(const dmi_map_job *job, const dmi_box *box, const int64_t *offset)
{
    int side = job->p->inputs, inner = box->ndim - 1;
    int64_t count = 1, bytes = job->bytes[side];
    const char *out = job->at[side] + offset[side] * bytes;
    for (int d = 0; d < box->ndim; d++) {
        count *= box->extent[d];
    }
    bool far = box->stride[side][inner] == 1 && box->extent[inner] * bytes >= DMI_TILE_BYTES &&
               count * bytes >= DMI_STREAM_BYTES;
    for (int i = 0; i < side && far; i++) {
        const char *in = job->p->made[i] || !job->at[i] ? NULL : job->at[i] + offset[i] * job->bytes[i];
        far = in != out;
        for (int k = side + 1; k <= side + job->p->kept; k++) {
            far = far && (!in || in != job->at[k] + offset[k] * job->bytes[k]);
        }
    }
    return far;
}

/* Rows of one step on operands where they are: one loop a row. */
static void walk_rows(const dmi_map_job *job, const dmi_box *box, int inner, const int64_t *offset)
{
    const dmi_map_program *p = job->p;
    const dmi_map_step *step = &p->step[0];
    dmi_ewise_fn *fn = rows_of((dm_dtype)step->type)[step->row];
    int64_t index[DMI_BOX_DIMS] = {0}, at[SIDES], n = box->extent[inner];
    memcpy(at, offset, sizeof at);
    do {
        const void *from[3] = {0};
        for (int k = 0; k < dmi_ew_rows[step->row].operands; k++) {
            int input = step->from[k] & DMI_AT_INDEX;
            from[k] = dmi_at(job->at[input], at[input] * job->bytes[input]);
        }
        fn(dmi_at_mut(job->at[p->inputs], at[p->inputs] * job->bytes[p->inputs]), from[0], from[1], from[2],
           &job->number[step->number[0]], &job->number[step->number[1]], n);
    } while (dmi_box_next(box, inner, index, at));
}

static void walk(dmi_map_job *job, dmi_box *box, const int64_t *offset)
{
    int sides = dmi_map_sides(job->p), inner;
    dmi_box_simplify(box, job->p->inputs);
    choose_inner(box);
    inner = box->ndim - 1;
    int64_t n = box->extent[inner], stride[SIDES], begin[SIDES];
    bool far = false;
    for (int s = 0; s < sides; s++) {
        stride[s] = box->stride[s][inner];
        far = far || (s < job->p->inputs && stride[s] > 1);
    }
    bool stream = streams(job, box, offset);
    for (int k = 0; k < job->p->kept && !stream; k++) {
        job->direct[k] = is_direct(job, k, stride, offset);
    }
    if (!stream && any_length(job, stride)) {
        walk_rows(job, box, inner, offset);
        return;
    }
    /* Across a strided operand the rows come in tiles, so that what one tile draws into the cache, the next
     * row's tile still finds there. */
    int64_t tile = far ? DMI_MIN(job->most, DMI_CHUNK) : n;
    for (int64_t i = 0; i < n; i += tile) {
        int64_t index[DMI_BOX_DIMS] = {0}, m = DMI_MIN(tile, n - i);
        for (int s = 0; s < sides; s++) {
            begin[s] = offset[s] + i * stride[s];
        }
        do {
            for (int64_t j = 0; j < m; j += job->most) {
                int64_t at[SIDES];
                for (int s = 0; s < sides; s++) {
                    at[s] = begin[s] + j * stride[s];
                }
                run_tile(job, at, stride, DMI_MIN(job->most, m - j), stream);
            }
        } while (dmi_box_next(box, inner, index, begin));
    }
    if (stream) {
        dmi_stream_fence();
    }
}

dm_status dmi_map_cpu(const dmi_kernel_call *call)
{
    const dmi_map *d = call->desc;
    int inputs = d->program.inputs, sides = dmi_map_sides(&d->program);
    dmi_box box = {.ndim = d->ndim, .sides = sides};
    dmi_map_job job;
    assert(d->program.steps > 0 && d->ndim >= 0 && d->ndim <= DM_MAX_DIMS);
    for (int dim = 0; dim < d->ndim; dim++) {
        if (d->extent[dim] == 0) {
            return DM_OK;
        }
        box.extent[dim] = d->extent[dim];
        for (int s = 0; s < sides; s++) { /* inputs that are not read do not matter */
            box.stride[s][dim] = call->at[s] ? d->stride[s][dim] : d->stride[inputs][dim];
        }
    }
    dmi_map_begin(&job, d, call->number, call->at);
    for (int s = inputs; s < sides; s++) {
        job.bytes[s] = dmi_dtype_bytes(d->dtype[s]);
        job.at[s] = call->at[s];
    }
    walk(&job, &box, d->offset);
    return DM_OK;
}
