/* Frames as bytes that came from elsewhere: what must hold before anybody reads further. */
#include "comm/frames.h"

#include <string.h>

static const uint32_t least_of[] = {
    [DMI_FRAME_PAD] = sizeof(dmi_frame),
    [DMI_FRAME_NOOP] = sizeof(dmi_frame),
    [DMI_FRAME_LAYOUT] = sizeof(dmi_layout_frame),
    [DMI_FRAME_CREATE] = sizeof(dmi_create_frame),
    [DMI_FRAME_VIEW] = sizeof(dmi_view_frame),
    [DMI_FRAME_DESTROY] = sizeof(dmi_destroy_frame),
    [DMI_FRAME_OP] = sizeof(dmi_op_frame),
    [DMI_FRAME_PROGRAM] = sizeof(dmi_program_frame),
    [DMI_FRAME_PROGRAM_ARRAY] = sizeof(dmi_program_array_frame),
    [DMI_FRAME_PROGRAM_CALL] = sizeof(dmi_op_frame),
    [DMI_FRAME_PROGRAM_END] = sizeof(dmi_program_frame),
    [DMI_FRAME_PROGRAM_COURSE] = sizeof(dmi_course_frame),
    [DMI_FRAME_PROGRAM_PART] = sizeof(dmi_part_frame),
    [DMI_FRAME_PROGRAM_RUN] = sizeof(dmi_program_run_frame),
    [DMI_FRAME_PROGRAM_DESTROY] = sizeof(dmi_program_frame),
    [DMI_FRAME_UNMAP] = sizeof(dmi_frame),
    [DMI_FRAME_TRIM] = sizeof(dmi_frame),
    [DMI_FRAME_CANCEL] = sizeof(dmi_cancel_frame),
    [DMI_FRAME_POISON] = sizeof(dmi_poison_frame),
    [DMI_FRAME_GROUP] = sizeof(dmi_group_frame),
    [DMI_FRAME_SYNC] = sizeof(dmi_frame),
    [DMI_FRAME_STOP] = sizeof(dmi_frame),
};

/* No group but the first was made when there was none. */
static bool group_wrong(uint32_t group, uint32_t place)
{
    return place > 0 && (place >= group || place >= DMI_MOST_GROUPS);
}

static const char *asked_wrong(const dmi_group_frame *f)
{
    return f->group == 0 || group_wrong(f->group, f->group_place) ? "its group has no place" : NULL;
}

static const char *op_wrong(const dmi_op_frame *f, int64_t left)
{
    if (f->noperand < 0 || f->noperand > DMI_MAX_OPERANDS || f->numbers < 0 || f->numbers > DMI_CALL_NUMBERS) {
        return "its counts are out of range";
    }
    if (group_wrong(f->group, f->group_place)) {
        return "its group has no place";
    }
    left -= (int64_t)(f->noperand * sizeof(dmi_operand_ref) + (size_t)f->numbers * sizeof(dmi_number));
    if (left < 0 || f->tail_bytes < 0 || f->tail_bytes > left || f->tail_key < 0 ||
        f->tail_key > f->tail_bytes) {
        return "it is shorter than what it holds";
    }
    for (int i = 0; i < f->noperand; i++) {
        const dmi_operand_ref *ref = &dmi_op_frame_operands(f)[i];
        if (ref->mode > DMI_READWRITE || !memchr(ref->name, 0, sizeof ref->name)) {
            return "an operand has no mode or no name";
        }
    }
    return NULL;
}

static const char *run_wrong(const dmi_program_run_frame *f, int64_t left)
{
    bool fits = f->operands >= 0 && f->numbers >= 0 && f->operands <= left / (int64_t)sizeof(uint64_t);
    left -= fits ? f->operands * (int64_t)sizeof(uint64_t) : 0;
    fits = fits && f->numbers <= left / (int64_t)sizeof(dmi_given_number);
    left -= fits ? f->numbers * (int64_t)sizeof(dmi_given_number) : 0;
    fits = fits && f->operands <= left / (int64_t)sizeof(dmi_run_use);
    return !fits                                                          ? "it is shorter than what it holds"
           : f->times < 1 || f->first < -1 || f->every < 0 || f->asks < 1 ? "its counts are out of range"
           : group_wrong(f->group, f->group_place)                        ? "its group has no place"
                                                                          : NULL;
}

/* A worker goes through passes without a run at once, however many they are. So it must skip them, or look. */
static bool may_be_empty(const dmi_course_step *loop)
{
    return loop->times == 0 || loop->members == 0 || loop->every > 0;
}

/* Loops lie in one another, and each has its end, and before it a run. */
static const char *course_wrong(const dmi_course_frame *f, int64_t left)
{
    const dmi_course_step *step = dmi_course_frame_steps(f);
    int open[DMI_COURSE_DEPTH], depth = 0, last_run = -1;
    if (f->steps < 0 || f->parts < 0 || f->operands < 0 || f->numbers < 0 ||
        f->steps > left / (int64_t)sizeof *step || f->parts > f->steps) {
        return "its counts are out of range";
    }
    for (int i = 0; i < f->steps; i++) {
        const dmi_course_step *s = &step[i];
        bool right = s->kind == DMI_COURSE_RUN      ? s->other >= 0 && s->other < f->parts
                     : s->kind == DMI_COURSE_REPEAT ? depth < DMI_COURSE_DEPTH && s->other > i && s->other < f->steps
                                                    : s->kind == DMI_COURSE_END && depth > 0;
        if (right && s->kind == DMI_COURSE_RUN) {
            last_run = i;
        } else if (right && s->kind == DMI_COURSE_REPEAT) {
            open[depth++] = i;
            right = s->times >= 0 && s->every >= 0 && s->asks > 0 &&
                    (s->every == 0 || (s->value >= 0 && s->value < f->operands));
        } else if (right && s->kind == DMI_COURSE_END) {
            depth--;
            right = s->other == open[depth] && step[open[depth]].other == i &&
                    (last_run > open[depth] || may_be_empty(&step[open[depth]]));
        }
        if (!right) {
            return "its steps are no course";
        }
    }
    return depth > 0 ? "a loop has no end" : last_run < 0 && f->members ? "its steps are no course" : NULL;
}

const char *dmi_frame_wrong(const dmi_frame *frame, int64_t room)
{
    if (room < (int64_t)sizeof *frame || frame->bytes > room || frame->bytes % DMI_FRAME_ALIGN != 0) {
        return "its length is wrong";
    }
    if (frame->kind >= DMI_COUNT(least_of) || least_of[frame->kind] == 0) {
        return "its kind is unknown";
    }
    int64_t left = (int64_t)frame->bytes - least_of[frame->kind];
    if (left < 0) {
        return "it is shorter than its kind";
    }
    const void *f = frame;
    switch (frame->kind) {
    case DMI_FRAME_LAYOUT: {
        const dmi_layout_frame *y = f;
        return y->bytes < 0 || y->bytes > left ? "it is shorter than what it holds" : NULL;
    }
    case DMI_FRAME_OP:
    case DMI_FRAME_PROGRAM_CALL:
        return op_wrong(f, left);
    case DMI_FRAME_PROGRAM_COURSE:
        return course_wrong(f, left);
    case DMI_FRAME_PROGRAM_PART: {
        const dmi_part_frame *p = f;
        return p->operands < 0 || p->operands > left / (int64_t)sizeof(int32_t) ? "it is shorter than what it holds"
                                                                                 : NULL;
    }
    case DMI_FRAME_PROGRAM_RUN:
        return run_wrong(f, left);
    case DMI_FRAME_GROUP:
        return asked_wrong(f);
    default:
        return NULL;
    }
}

bool dmi_frames_pass(dmi_ring_writer *ring, const char *message, int bytes, int *at, const char **wrong,
                     const dmi_frame **passed)
{
    const dmi_frame *frame = (const dmi_frame *)(const void *)(message + *at);
    *wrong = dmi_frame_wrong(frame, bytes - *at);
    if (!*wrong && (frame->kind == DMI_FRAME_PAD || frame->bytes > ring->hub->ring->size / 4)) {
        *wrong = "no message has such a frame";
    }
    void *to = *wrong ? NULL : dmi_ring_reserve(ring, frame->bytes);
    if (!to) {
        return false;
    }
    *passed = memcpy(to, frame, frame->bytes);
    *at += (int)frame->bytes;
    dmi_ring_publish(ring, frame->bytes);
    return true;
}
