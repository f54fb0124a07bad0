/* Elementwise programs on GPUs: which kernel, and boxes for it. */
#include "kernels/box/convert.h"
#include "kernels/cuda/launch.h"
#include "kernels/ewise/map_compiled.h"
#include <assert.h>

enum { SIDES = 4 }; /* most that a row has; its operands, then out */

typedef struct map_job {
    dmi_queue *q;
    dmi_cuda_map p;
    dmi_cuda_map_launcher *same;
    bool groups;
    int64_t bytes[SIDES];
    char *memory[SIDES];
} map_job;

static void launch_part(void *context, const dmi_box *part, const int64_t *at)
{
    map_job *job = context;
    dmi_cuda_map *p = &job->p;
    int heat = dmi_ew_rows[p->row].heat;
    for (int s = 0; s <= p->inputs; s++) {
        p->memory[s] = dmi_at_mut(job->memory[s], at[s] * job->bytes[s]);
    }
    dmi_cuda_box_make(part, &p->box);
    if (job->same) {
        job->same(job->q, p);
    } else if (heat == DMI_HOT) {
        dmi_cuda_map_hot_any(job->q, p, job->groups);
    } else if (heat == DMI_WARM) {
        dmi_cuda_map_warm_any(job->q, p, job->groups);
    } else {
        dmi_cuda_map_cold_any(job->q, p, job->groups);
    }
    dmi_cuda_launched(job->q, "elementwise kernel");
}

/* The kernel for operands of one type, where they have one and there is such a kernel. */
static dmi_cuda_map_launcher *same_launcher(const dmi_cuda_map *p, bool groups)
{
    int heat = dmi_ew_rows[p->row].heat;
    dm_dtype dtype = p->dtype[p->inputs];
    bool one_type = !p->choice && p->compute == dmi_dtype_carrier(dtype);
    for (int s = 0; s < p->inputs; s++) {
        one_type = one_type && p->dtype[s] == dtype;
    }
    return !one_type || heat == DMI_COLD ? NULL
           : heat == DMI_HOT             ? dmi_cuda_map_hot_same(p->row, dtype, groups)
                                         : dmi_cuda_map_warm_same(p->inputs, dtype, groups);
}

/* Can all sides be read and written in groups? An input of which one element serves a whole group can. */
static bool grouped(map_job *job, const dmi_box *box, const int64_t *at, int64_t group)
{
    bool fits = true;
    for (int s = 0; s <= job->p.inputs; s++) {
        job->p.splat[s] = s < job->p.inputs && box->stride[s][box->ndim - 1] == 0;
        fits =
            fits && (job->p.splat[s] || dmi_cuda_grouped(box, s, job->memory[s], at[s], job->bytes[s], group));
    }
    return fits;
}

static void launch_box(map_job *job, const dmi_box *box, const int64_t *at)
{
    dmi_cuda_map *p = &job->p;
    int inner = box->ndim - 1;
    job->same = same_launcher(p, true);
    int64_t group = job->same ? 16 / job->bytes[p->inputs] : 4, n = box->extent[inner],
            body = n / group * group;
    body = grouped(job, box, at, group) ? body : 0;
    dmi_box part = *box;
    if (body > 0) {
        part.extent[inner] = body / group;
        for (int s = 0; s <= p->inputs; s++) {
            part.stride[s][inner] *= group;
        }
        job->groups = true;
        dmi_cuda_split(&part, at, false, launch_part, job);
    }
    if (body < n) {
        int64_t rest[DMI_BOX_SIDES];
        part = *box;
        part.extent[inner] = n - body;
        for (int s = 0; s <= p->inputs; s++) {
            rest[s] = at[s] + body * box->stride[s][inner];
            p->splat[s] = false;
        }
        job->groups = false;
        job->same = same_launcher(p, false);
        dmi_cuda_split(&part, rest, false, launch_part, job);
    }
}

/* Complex numbers: are there kernels of the row for operands of one type, and do all sides have the type that
 * it is computed in? */
static bool same_complex(const dmi_map *d)
{
    const dmi_ew_row *row = &dmi_ew_rows[d->program.step[0].row];
    bool same = row->heat != DMI_COLD && row->form != DMI_FORM_CHOOSE;
    for (int s = 0; s <= d->program.inputs; s++) {
        same = same && d->dtype[s] == d->program.step[0].type;
    }
    return same;
}

/* A program of one row, whose operands are inputs in their order, on the types that the kernels of one row
 * know. */
static bool is_one_row(const dmi_map *d)
{
    const dmi_map_program *p = &d->program;
    bool one = p->steps == 1 && p->kept == 0 && p->step[0].row != DMI_EW_CAST && p->step[0].type != DM_U64;
    bool complex = one && dmi_dtype_is_complex((dm_dtype)p->step[0].type);
    for (int s = 0; s <= p->inputs; s++) {
        one = one && (complex ? same_complex(d) : d->dtype[s] <= DM_U8);
    }
    for (int i = 0; i < p->inputs && one; i++) {
        bool choice = dmi_ew_rows[p->step[0].row].form == DMI_FORM_CHOOSE && i == 0;
        one = !p->made[i] && p->step[0].from[i] == (DMI_AT_INPUT | i) &&
              (choice || p->input_type[i] == p->step[0].type);
    }
    return one && p->step[0].type != DM_BOOL && p->inputs == dmi_map_operands(&p->step[0]);
}

static void run_row(const dmi_kernel_call *call, const dmi_map *d)
{
    const dmi_map_step *step = &d->program.step[0];
    int inputs = d->program.inputs;
    map_job job = {.q = call->queue};
    dmi_box box = {.ndim = d->ndim, .sides = inputs + 1};
    int64_t at[DMI_BOX_SIDES] = {0};
    job.p.row = step->row;
    job.p.inputs = inputs;
    job.p.choice = dmi_ew_rows[step->row].form == DMI_FORM_CHOOSE;
    job.p.compute = (dm_dtype)step->type;
    for (int i = 0; i < 2; i++) {
        job.p.number[i] = step->number[i] < call->numbers ? call->number[step->number[i]] : (dmi_number){0};
    }
    for (int s = 0; s <= inputs; s++) {
        job.memory[s] = call->at[s];
        job.p.dtype[s] = d->dtype[s];
        job.bytes[s] = dmi_dtype_bytes(d->dtype[s]);
        at[s] = d->offset[s];
        memcpy(box.stride[s], d->stride[s], sizeof d->stride[s]);
    }
    memcpy(box.extent, d->extent, sizeof d->extent);
    dmi_box_simplify(&box, inputs);
    launch_box(&job, &box, at);
}

typedef struct program_job {
    dmi_queue *q;
    const dmi_map *d;
    bool complex;
    dmi_cuda_program p;
    char *memory[DMI_MAP_SIDES];
} program_job;

static void launch_program(void *context, const dmi_box *part, const int64_t *at)
{
    program_job *job = context;
    dmi_cuda_program *p = &job->p;
    const int sides = p->inputs + 1 + p->kept;
    int64_t items = 1;
    p->ndim = part->ndim;
    for (int d = 0; d < part->ndim; d++) {
        int from = part->ndim - 1 - d;
        p->extent[d] = dmi_cuda_divide_by(part->extent[from]);
        items *= part->extent[from];
        for (int s = 0; s < sides; s++) {
            p->stride[s][d] = part->stride[s][from];
        }
    }
    p->items = (uint32_t)items;
    for (int s = 0; s < sides; s++) {
        p->memory[s] = dmi_at_mut(job->memory[s], at[s] * dmi_dtype_bytes(job->d->dtype[s]));
        p->linear.first[s] = at[s];
    }
    if (job->complex) {
        dmi_cuda_launch_map_program_complex(job->q, p);
    } else {
        dmi_cuda_launch_map_program(job->q, p);
    }
}

static bool has_complex(const dmi_map *d)
{
    const dmi_map_program *p = &d->program;
    bool has = false;
    for (int s = 0; s < dmi_map_sides(p); s++) {
        has = has || dmi_dtype_is_complex(d->dtype[s]);
    }
    for (int i = 0; i < p->constants; i++) {
        has = has || dmi_dtype_is_complex((dm_dtype)p->constant_type[i]);
    }
    for (int i = 0; i < p->steps; i++) {
        has = has || dmi_dtype_is_complex((dm_dtype)p->step[i].type);
    }
    return has;
}

static void run_program(const dmi_kernel_call *call, const dmi_map *d)
{
    const dmi_map_program *from = &d->program;
    program_job job = {.q = call->queue, .d = d, .complex = has_complex(d)};
    dmi_cuda_program *p = &job.p;
    dmi_box box = {.ndim = d->ndim, .sides = dmi_map_sides(from)};
    int64_t at[DMI_BOX_SIDES] = {0};
    p->inputs = from->inputs;
    p->kept = from->kept;
    memcpy(p->keeps, from->keeps, sizeof p->keeps);
    memcpy(p->kept_type, from->kept_type, sizeof p->kept_type);
    p->steps = from->steps;
    p->result = from->result;
    memcpy(p->input_type, from->input_type, sizeof p->input_type);
    memcpy(p->made, from->made, sizeof p->made);
    memcpy(p->seed, from->seed, sizeof p->seed);
    dmi_cuda_linear_of(d->places, &p->linear);
    memcpy(p->constant_type, from->constant_type, sizeof p->constant_type);
    memcpy(p->constant_number, from->constant_number, sizeof p->constant_number);
    memcpy(p->number, call->number, (size_t)DMI_MIN(call->numbers, DMI_MAP_NUMBERS) * sizeof *call->number);
    for (int i = 0; i < from->steps; i++) {
        const dmi_map_step *s = &from->step[i];
        bool cast = s->row == DMI_EW_CAST;
        int form = cast ? DMI_FORM_UNARY : dmi_ew_rows[s->row].form;
        p->step[i] = (dmi_cuda_step){.row = s->row,
                                     .type = s->type,
                                     .of = s->of,
                                     .via = s->via,
                                     .to = s->to,
                                     .from = {s->from[0], s->from[1], s->from[2]},
                                     .number = {s->number[0], s->number[1]},
                                     .operands = (uint8_t)dmi_map_operands(s),
                                     .compare = form == DMI_FORM_COMPARE || form == DMI_FORM_TEST,
                                     .choice = form == DMI_FORM_CHOOSE,
                                     .part = form == DMI_FORM_PART};
    }
    for (int s = 0; s < box.sides; s++) {
        job.memory[s] = call->at[s];
        p->dtype[s] = (uint8_t)d->dtype[s];
        at[s] = d->offset[s];
        memcpy(box.stride[s], d->stride[s], sizeof d->stride[s]);
    }
    memcpy(box.extent, d->extent, sizeof d->extent);
    dmi_box_simplify(&box, from->inputs);
    dmi_cuda_split(&box, at, false, launch_program, &job);
}

/* A row that shares its kernel with others looks for its function at run time, which costs up to two fifths of
 * the memory's rate, and kernels that are not compiled read an input that is turned an element of a line at a
 * time. Over a large array either is worth a kernel of its own, compiled. */
static bool gains_by_code(const dmi_map *d)
{
    enum { LARGE = 16 << 20 };
    int64_t bytes = dmi_dtype_bytes(d->dtype[d->program.inputs]);
    for (int dim = 0; dim < d->ndim; dim++) {
        bytes *= d->extent[dim];
    }
    return bytes >= LARGE && (dmi_ew_rows[d->program.step[0].row].heat != DMI_HOT || dmi_cuda_map_turned(d));
}

dm_status dmi_map_cuda(const dmi_kernel_call *call)
{
    const dmi_map *d = call->desc;
    assert(d->program.steps > 0 && d->ndim >= 0 && d->ndim <= DM_MAX_DIMS);
    for (int dim = 0; dim < d->ndim; dim++) {
        if (d->extent[dim] == 0) {
            return DM_OK;
        }
    }
    if (is_one_row(d)) {
        if (!gains_by_code(d) || !dmi_cuda_map_compiled(call, d)) {
            run_row(call, d);
        }
    } else if (!dmi_cuda_map_compiled(call, d)) {
        run_program(call, d);
    }
    return DM_OK;
}
