/* Frames before they are obeyed. The command ring and its messages come from the same build, so nothing here
 * happens unless memory or a message is damaged, or dmath has a mistake: then the session fails, and no other
 * memory is touched. Whether an operation may be called so is the master's to check, not this. */
#include "ops/ops.h"
#include "worker/worker.h"

#include <string.h>

enum { MOST_CALLS = 1 << 16, MOST_ARRAYS = MOST_CALLS * DMI_MAX_OPERANDS };
#define MOST_SPEC (INT64_C(1) << 36)

static const char *layout_wrong(const dmi_worker *w, const dmi_layout_frame *f)
{
    int64_t before = w->spec ? w->spec_bytes : 0;
    if (f->total < (int64_t)sizeof(dmi_layout_spec) || f->total > MOST_SPEC ||
        (w->spec && f->total != w->spec_total)) {
        return "a layout has another size than it said";
    }
    if (f->bytes > f->total - before || (f->last != 0) != (f->bytes == f->total - before)) {
        return "a fragment of a layout is too long, or the last one too short";
    }
    return f->layout_id != w->layouts ? "a layout has another number than the next" : NULL;
}

static const char *place_wrong(const dmi_layout *layout, int ndim, const int64_t *lo, const int64_t *extent,
                               const int64_t *skip)
{
    if (!layout || ndim != layout->ndim) {
        return "its layout is not there, or has other dims";
    }
    for (int d = 0; d < ndim; d++) {
        int64_t shape = layout->shape[d], span;
        bool sane = lo[d] >= 0 && extent[d] >= 0 && skip[d] >= 0 && skip[d] < INT64_MAX;
        if (!sane ||
            (extent[d] > 0 && (lo[d] >= shape || __builtin_mul_overflow(extent[d] - 1, skip[d] + 1, &span) ||
                               span >= shape - lo[d]))) { /* of no elements it may begin anywhere */
            return "it is a part of an array that is not there";
        }
    }
    return NULL;
}

static const char *create_wrong(const dmi_worker *w, const dmi_create_frame *f)
{
    const dmi_layout *layout = dmi_store_layout_of(w, f->layout_id);
    int64_t each = dmi_dtype_bytes((dm_dtype)f->dtype), bytes;
    if (!layout || each <= 0 || f->owner < 0 || f->owner >= DMI_OWNERS ||
        !dmi_mul_fits(dmi_layout_shard_count(layout, w->me), each, &bytes)) {
        return "an array has no layout, type or owner, or is too large";
    }
    return dmi_store_find(w, f->id) ? "an array is there already" : NULL;
}

static const char *view_wrong(const dmi_worker *w, const dmi_view_frame *f)
{
    const dmi_entry *base = dmi_store_find(w, f->base);
    const dmi_layout *layout = dmi_store_layout_of(w, f->layout_id);
    int64_t bytes;
    if (!base || dmi_store_find(w, f->id)) {
        return base ? "a view is there already" : "a view's array is not there";
    }
    const char *wrong = place_wrong(layout, f->ndim, f->lo, f->extent, f->skip);
    if (!wrong && base->memory->allocation.base &&
        (!dmi_mul_fits(dmi_layout_shard_count(layout, w->me), dmi_dtype_bytes(base->desc.dtype), &bytes) ||
         bytes > base->memory->allocation.bytes)) {
        wrong = "a view is larger than its array";
    }
    return wrong;
}

static const char *op_wrong(const dmi_worker *w, const dmi_op_frame *f)
{
    for (int i = 0; i < f->noperand; i++) {
        if (!dmi_store_find(w, dmi_op_frame_operands(f)[i].id)) {
            return "an operand is not there";
        }
    }
    return f->head.op < DMI_OPS ? NULL : "its operation is unknown";
}

/* --- programs */

static const dmi_worker_program *program_of(const dmi_worker *w, uint32_t number)
{
    return number < w->program_room ? w->program[number] : NULL;
}

static const char *program_wrong(const dmi_worker *w, const dmi_program_frame *f)
{
    if (f->program > w->dispatched || f->operands < 0 || f->operands > f->arrays || f->arrays > MOST_ARRAYS ||
        f->calls < 0 || f->calls > MOST_CALLS) {
        return "a program's counts are out of range";
    }
    return w->receiving || program_of(w, f->program) ? "a program begins inside another, or is there already"
                                                     : NULL;
}

static const char *program_array_wrong(const dmi_worker *w, const dmi_program_array_frame *f)
{
    const dmi_worker_program *program = w->receiving;
    if (!program) {
        return NULL; /* of a program in which this worker takes no part */
    }
    if (program->arrays >= program->p.arrays || dmi_dtype_bytes((dm_dtype)f->dtype) <= 0 || f->mode < 0 ||
        f->mode > DMI_READWRITE) {
        return "a program has more arrays than it said, or one without a type";
    }
    return place_wrong(dmi_store_layout_of(w, f->layout_id), f->ndim, f->lo, f->extent, f->skip);
}

static const char *program_call_wrong(const dmi_worker *w, const dmi_op_frame *f)
{
    const dmi_worker_program *program = w->receiving;
    for (int i = 0; program && i < f->noperand; i++) {
        const dmi_operand_ref *ref = &dmi_op_frame_operands(f)[i];
        if (ref->mode && ref->id >= (uint64_t)program->arrays) {
            return "a call of a program has an array that the program has not";
        }
        if (!ref->mode && ref->id != 0 && (ref->id > UINT8_MAX || dmi_dtype_bytes((dm_dtype)ref->id) <= 0)) {
            return "an operand that a call of a program does not read has no type";
        }
    }
    return f->head.op >= DMI_OPS                           ? "its operation is unknown"
           : program && program->calls >= program->p.calls ? "a program has more calls than it said"
                                                           : NULL;
}

static const char *program_end_wrong(const dmi_worker *w)
{
    const dmi_worker_program *program = w->receiving;
    return program && (program->arrays != program->p.arrays || program->calls != program->p.calls)
               ? "a program has fewer arrays or calls than it said"
               : NULL;
}

static const char *course_wrong(const dmi_worker *w, const dmi_course_frame *f)
{
    return f->program > w->dispatched                   ? "a program's number is out of range"
           : w->receiving || program_of(w, f->program) ? "a program begins inside another, or is there already"
                                                       : NULL;
}

static const char *part_wrong(const dmi_worker *w, const dmi_part_frame *f)
{
    const dmi_worker_program *program = program_of(w, f->program), *runs = program_of(w, f->runs);
    if (!program) {
        return NULL; /* in which this worker takes no part */
    }
    if (f->part != program->course.received || f->part >= program->course.parts ||
        (dmi_worker_takes_part(w, f->members) && (!runs || !runs->plan)) ||
        (runs && runs->p.operands != f->operands)) {
        return "a part of a program is not the next one, or is not there";
    }
    for (int i = 0; i < f->operands; i++) {
        int32_t operand = dmi_part_frame_operands(f)[i];
        if (operand < 0 || operand >= program->p.operands) {
            return "a part of a program has an operand that the program has not";
        }
    }
    return NULL;
}

/* The operands of a run are as a program, or a part, has them. operand NULL: in the same order. */
static bool operands_fit(const dmi_worker *w, const dmi_program *p, const int32_t *operand, const uint64_t *id)
{
    bool fit = true;
    for (int i = 0; i < p->operands && fit; i++) {
        const dmi_entry *entry = dmi_store_find(w, id[operand ? operand[i] : i]);
        const dmi_desc *desc = &p->array[i].desc;
        fit = entry && entry->desc.dtype == desc->dtype && entry->desc.layout_id == desc->layout_id &&
              entry->desc.ndim == desc->ndim;
    }
    return fit;
}

static bool parts_fit(const dmi_worker *w, const dmi_worker_program *program, const uint64_t *id)
{
    const dmi_course *c = &program->course;
    bool fit = c->received == c->parts;
    for (int i = 0; i < c->parts && fit; i++) {
        const dmi_worker_program *runs = program_of(w, c->part[i].program);
        fit = !c->part[i].mine || (runs && runs->plan && operands_fit(w, &runs->p, c->part[i].operand, id));
    }
    for (int i = 0; i < c->steps && fit; i++) {
        const dmi_course_step *s = &c->step[i];
        fit = s->kind != DMI_COURSE_REPEAT || s->every == 0 ||
              (dmi_store_find(w, id[s->value]) && dmi_store_find(w, s->seen));
    }
    return fit;
}

static const char *run_wrong(const dmi_worker *w, const dmi_program_run_frame *f)
{
    const dmi_worker_program *program = program_of(w, f->program);
    const dmi_given_number *given = dmi_run_frame_numbers(f);
    const uint64_t *id = dmi_run_frame_operands(f);
    if (!dmi_worker_takes_part(w, f->members)) {
        return NULL;
    }
    if (!program || f->operands != program->p.operands || (!program->plan && !program->course.part)) {
        return "its program is not there, or has other operands";
    }
    if (program->course.part ? !parts_fit(w, program, id) : !operands_fit(w, &program->p, NULL, id)) {
        return "an operand is not there, or is not as the program's";
    }
    for (int i = 0; i < f->numbers; i++) {
        if (given[i].at < 0 || given[i].at >= program->p.numbers) {
            return "it gives a number that the program has not";
        }
    }
    return (f->every > 0 && (!dmi_store_find(w, f->value) || !dmi_store_find(w, f->seen))) ||
                   (f->asked && !dmi_store_find(w, f->asked))
               ? "the array that it looks at is not there"
               : NULL;
}

const char *dmi_worker_frame_wrong(const dmi_worker *w, const dmi_frame *frame)
{
    const dmi_ring *ring = w->hub.ring;
    uint64_t at = w->cursor & (ring->size - 1), head = atomic_load_explicit(&ring->head, memory_order_acquire);
    const char *wrong = dmi_frame_wrong(frame, (int64_t)DMI_MIN(ring->size - at, head - w->cursor));
    const void *f = frame;
    if (wrong) {
        return wrong;
    }
    if (frame->command != w->dispatched + 1) {
        return "it is not the next command";
    }
    if (w->broken) { /* what came before may be missing here; nothing is obeyed */
        return NULL;
    }
    switch (frame->kind) {
    case DMI_FRAME_PAD:
        return "it is a pad";
    case DMI_FRAME_LAYOUT:
        return layout_wrong(w, f);
    case DMI_FRAME_CREATE:
        return create_wrong(w, f);
    case DMI_FRAME_VIEW:
        return view_wrong(w, f);
    case DMI_FRAME_OP:
        return op_wrong(w, f);
    case DMI_FRAME_PROGRAM:
        return program_wrong(w, f);
    case DMI_FRAME_PROGRAM_ARRAY:
        return program_array_wrong(w, f);
    case DMI_FRAME_PROGRAM_CALL:
        return program_call_wrong(w, f);
    case DMI_FRAME_PROGRAM_END:
        return program_end_wrong(w);
    case DMI_FRAME_PROGRAM_COURSE:
        return course_wrong(w, f);
    case DMI_FRAME_PROGRAM_PART:
        return part_wrong(w, f);
    case DMI_FRAME_PROGRAM_RUN:
        return run_wrong(w, f);
    case DMI_FRAME_PROGRAM_DESTROY:
        return w->receiving && program_of(w, ((const dmi_program_frame *)f)->program) == w->receiving
                   ? "a program is destroyed before all of it is there"
                   : NULL;
    default:
        return NULL;
    }
}

void dmi_worker_refuse(dmi_worker *w, const dmi_frame *frame, const char *wrong)
{
    char text[DMI_ERROR_TEXT];
    uint64_t command = w->dispatched + 1; /* what the frame says may be wrong */
    snprintf(text, sizeof text,
             "command %llu, a frame of kind %d, failed on worker %d (%s): the frame is damaged: %s",
             (unsigned long long)command, frame->kind, w->me, w->engine.port->host, wrong);
    dmi_log(DMI_LOG_ERROR, "%s; the session cannot go on", text);
    dmi_engine_report(&w->engine, command, DM_ERR_TRANSPORT, text);
    w->lost = true;
    dmi_worker_break(w, DM_ERR_TRANSPORT);
}
