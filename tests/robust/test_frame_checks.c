/* Frames of the command ring with one wrong field each: by itself (comm/frame.c), and because of what a worker
 * has (worker/check.c). A frame that is right passes; with any one field wrong there are words that say what.
 */
#include "worker/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { ROOM = 8192, SIDE = 4, MOST_CALLS = 5 };

static union {
    char bytes[ROOM];
    dmi_frame head;
    dmi_layout_frame layout;
    dmi_create_frame create;
    dmi_view_frame view;
    dmi_op_frame op;
    dmi_program_frame program;
    dmi_program_array_frame array;
    dmi_course_frame course;
    dmi_part_frame part;
    dmi_program_run_frame run;
} f;
static int64_t room = ROOM;    /* of the frame, for dmi_frame_wrong */
static dmi_worker *w;          /* NULL: the frame is looked at by itself */
static dmi_worker_program *p;  /* the worker's program number 1, */
static dmi_worker_program *of; /* one with a part that is number 1, number 2, */
static dmi_entry *entry;       /* and its array */

static const char *wrong_now(void)
{
    return w ? dmi_worker_frame_wrong(w, &f.head) : dmi_frame_wrong(&f.head, room);
}

static void says(const char *words, const char *change, int line)
{
    const char *wrong = wrong_now();
    if (!wrong || strcmp(wrong, words) != 0) {
        fail_msg("line %d: %s: %s", line, change, wrong ? wrong : "nothing is wrong");
    }
}

static void right(const char *make, int line)
{
    const char *wrong = wrong_now();
    if (wrong) {
        fail_msg("line %d: %s: %s", line, make, wrong);
    }
}

/* What make() gives is right, and is not any more when `change` has been done. */
#define WRONG(make, change, words)                                                                             \
    do {                                                                                                       \
        make();                                                                                                \
        right(#make, __LINE__);                                                                                \
        change;                                                                                                \
        says((words), #change, __LINE__);                                                                      \
    } while (0)

static void frame(int kind, size_t bytes, size_t behind)
{
    memset(&f, 0, sizeof f);
    size_t all = (bytes + behind + DMI_FRAME_ALIGN - 1) / DMI_FRAME_ALIGN * DMI_FRAME_ALIGN;
    f.head = (dmi_frame){.bytes = (uint32_t)all, .kind = (uint8_t)kind, .command = 1};
    room = (int64_t)all;
}

static void noop(void)
{
    frame(DMI_FRAME_NOOP, sizeof f.head, 0);
}

static dmi_operand_ref *refs(void)
{
    return (dmi_operand_ref *)(void *)(&f.op + 1);
}

/* Two operands, a number and a tail of eight bytes. */
static void op(void)
{
    frame(DMI_FRAME_OP, sizeof f.op, 2 * sizeof(dmi_operand_ref) + sizeof(dmi_number) + 8);
    f.op.noperand = 2;
    f.op.numbers = 1;
    f.op.tail_bytes = 8;
    f.op.tail_key = 4;
    for (int i = 0; i < 2; i++) {
        refs()[i] = (dmi_operand_ref){.id = 1, .mode = DMI_READ};
    }
}

static void layout(void)
{
    frame(DMI_FRAME_LAYOUT, sizeof f.layout, sizeof(dmi_layout_spec));
    f.layout.layout_id = 1;
    f.layout.last = 1;
    f.layout.total = f.layout.bytes = sizeof(dmi_layout_spec);
}

static int32_t *part_operands(void)
{
    return (int32_t *)(void *)(&f.part + 1);
}

static void part(void)
{
    frame(DMI_FRAME_PROGRAM_PART, sizeof f.part, 4 * sizeof(int32_t));
    f.part.program = 2;
    f.part.runs = 1;
    f.part.operands = 1;
    f.part.members = 1;
}

/* One operand, two numbers, room for two modes. */
static void run(void)
{
    frame(DMI_FRAME_PROGRAM_RUN, sizeof f.run,
          sizeof(uint64_t) + 2 * sizeof(dmi_given_number) + sizeof(dmi_run_use));
    f.run.program = 1;
    f.run.operands = 1;
    f.run.numbers = 2;
    f.run.times = f.run.asks = 1;
    f.run.members = 1;
    *(uint64_t *)(void *)(&f.run + 1) = 1;
}

static dmi_course_step *steps(void)
{
    return (dmi_course_step *)(void *)(&f.course + 1);
}

/* A part, and a loop with another. */
static void course(void)
{
    frame(DMI_FRAME_PROGRAM_COURSE, sizeof f.course, 40 * sizeof(dmi_course_step));
    f.course.program = 3;
    f.course.parts = 2;
    f.course.steps = 4;
    f.course.operands = 2;
    f.course.members = 1;
    steps()[0] = (dmi_course_step){.kind = DMI_COURSE_RUN, .other = 0};
    steps()[1] = (dmi_course_step){
        .kind = DMI_COURSE_REPEAT, .other = 3, .times = 5, .every = 2, .value = 1, .asks = 1, .members = 1};
    steps()[2] = (dmi_course_step){.kind = DMI_COURSE_RUN, .other = 1};
    steps()[3] = (dmi_course_step){.kind = DMI_COURSE_END, .other = 1};
}

/* Loops in loops, so many. */
static void nest(int loops)
{
    f.course.steps = 2 * loops + 1;
    for (int i = 0; i < loops; i++) {
        steps()[i] =
            (dmi_course_step){.kind = DMI_COURSE_REPEAT, .other = 2 * loops - i, .times = 1, .asks = 1};
        steps()[2 * loops - i] = (dmi_course_step){.kind = DMI_COURSE_END, .other = i};
    }
    steps()[loops] = (dmi_course_step){.kind = DMI_COURSE_RUN};
}

static void test_frames_alone(void **state)
{
    static const char length[] = "its length is wrong", counts[] = "its counts are out of range",
                      holds[] = "it is shorter than what it holds", ref[] = "an operand has no mode or no name";
    (void)state;
    WRONG(noop, room = 8, length);
    WRONG(noop, f.head.bytes *= 2, length);
    WRONG(noop, f.head.bytes -= 1, length);
    WRONG(noop, f.head.kind = 0, "its kind is unknown");
    WRONG(noop, f.head.kind = 77, "its kind is unknown");
    WRONG(noop, f.head.kind = DMI_FRAME_OP, "it is shorter than its kind");
    WRONG(op, f.op.noperand = -1, counts);
    WRONG(op, f.op.noperand = DMI_MAX_OPERANDS + 1, counts);
    WRONG(op, f.op.numbers = -1, counts);
    WRONG(op, f.op.numbers = DMI_CALL_NUMBERS + 1, counts);
    WRONG(op, f.op.noperand = DMI_MAX_OPERANDS, holds);
    WRONG(op, f.op.tail_bytes = -1, holds);
    WRONG(op, f.op.tail_bytes = ROOM, holds);
    WRONG(op, f.op.tail_key = -1, holds);
    WRONG(op, f.op.tail_key = 9, holds);
    WRONG(op, refs()[1].mode = DMI_READWRITE + 1, ref);
    WRONG(op, memset(refs()[1].name, 'x', sizeof refs()[1].name), ref);
    WRONG(layout, f.layout.bytes = -1, holds);
    WRONG(layout, f.layout.bytes = ROOM, holds);
    WRONG(part, f.part.operands = -1, holds);
    WRONG(part, f.part.operands = 100, holds);
    WRONG(run, f.run.operands = -1, holds);
    WRONG(run, f.run.numbers = -1, holds);
    WRONG(run, f.run.operands = 100, holds);
    WRONG(run, f.run.numbers = 100, holds);
    WRONG(run,
          (f.run.numbers = 0, f.run.operands = (int32_t)((f.head.bytes - sizeof f.run) / sizeof(uint64_t))),
          holds);
    WRONG(run, f.run.times = 0, counts);
    WRONG(run, f.run.first = -2, counts);
    WRONG(run, f.run.every = -1, counts);
    WRONG(run, f.run.asks = 0, counts);
}

static void test_courses_alone(void **state)
{
    static const char counts[] = "its counts are out of range", none[] = "its steps are no course";
    (void)state;
    WRONG(course, f.course.steps = -1, counts);
    WRONG(course, f.course.parts = -1, counts);
    WRONG(course, f.course.operands = -1, counts);
    WRONG(course, f.course.numbers = -1, counts);
    WRONG(course, f.course.steps = 1000, counts);
    WRONG(course, f.course.parts = 5, counts);
    WRONG(course, f.course.steps = 3, none); /* the loop ends behind them */
    WRONG(course, (f.course.steps = 3, steps()[1].other = 2), "a loop has no end");
    WRONG(course, f.course.steps = 0, counts); /* and two parts */
    WRONG(course, (f.course.steps = f.course.parts = 0), none);
    WRONG(course, steps()[0].other = -1, none);
    WRONG(course, steps()[0].other = 2, none);
    WRONG(course, steps()[0].kind = 3, none);
    WRONG(course, steps()[0].kind = DMI_COURSE_END, none);
    WRONG(course, steps()[1].other = 1, none);
    WRONG(course, steps()[1].other = 4, none);
    WRONG(course, steps()[1].times = -1, none);
    WRONG(course, steps()[1].every = -1, none);
    WRONG(course, steps()[1].asks = 0, none);
    WRONG(course, steps()[1].value = -1, none);
    WRONG(course, steps()[1].value = 2, none);
    WRONG(course, steps()[3].other = 0, none);
    WRONG(course, steps()[1].other = 2, none); /* which is no end */
    WRONG(course, nest(DMI_COURSE_DEPTH + 1), none);
    course();
    nest(DMI_COURSE_DEPTH);
    right("as many loops as there may be", __LINE__);
    course();
    f.course.members = 0;
    f.course.steps = f.course.parts = 0;
    right("nobody takes part", __LINE__);
    /* a loop without a run: of no passes, of no members, or looked at now and then */
    for (int i = 0; i < 4; i++) {
        course();
        f.course.steps = 3;
        f.course.parts = 1;
        steps()[1].other = 2;
        steps()[1].every = i == 3;
        steps()[1].times = i == 1 ? 0 : 5;
        steps()[1].members = i != 2;
        steps()[2] = (dmi_course_step){.kind = DMI_COURSE_END, .other = 1};
        if (i == 0) {
            says(none, "a loop without a run", __LINE__);
        } else {
            right("an empty loop", __LINE__);
        }
    }
}

/* Frames from another host, into a ring with room for four. */
static void test_messages(void **state)
{
    enum { RING = 65536 };
    dmi_hub hub;
    int consumer = 0, at = 0, passed = 0;
    const char *wrong = NULL;
    const dmi_frame *last = NULL;
    (void)state;
    assert_int_equal(dmi_hub_create(2, RING, false, &hub), DM_OK);
    dmi_ring_writer ring = {.hub = &hub, .consumer = &consumer, .nconsumer = 1};
    frame(DMI_FRAME_PAD, sizeof f.head, 0);
    assert_false(dmi_frames_pass(&ring, f.bytes, (int)room, &at, &wrong, &last));
    assert_string_equal(wrong, "no message has such a frame");
    char *large = calloc(1, RING);
    assert_non_null(large);
    *(dmi_frame *)(void *)large =
        (dmi_frame){.bytes = (uint32_t)(hub.ring->size / 4 + DMI_FRAME_ALIGN), .kind = DMI_FRAME_NOOP};
    assert_false(dmi_frames_pass(&ring, large, RING, &at, &wrong, &last));
    assert_string_equal(wrong, "no message has such a frame");
    *(dmi_frame *)(void *)large = (dmi_frame){.bytes = (uint32_t)(hub.ring->size / 4), .kind = DMI_FRAME_NOOP};
    while (passed < 100 && dmi_frames_pass(&ring, large, RING, &at, &wrong, &last)) {
        assert_int_equal(at, hub.ring->size / 4);
        at = 0;
        passed++;
    }
    assert_true(passed >= 3 && passed <= 4 && !wrong && at == 0); /* full: the message waits */
    free(large);
    dmi_hub_close(&hub);
}

/* --- because of what the worker has: layout 0 of SIDE x SIDE, array 1, program 1 with that array and a number
 */

static int set_up(void **state)
{
    static const dmi_layout_spec spec = {
        .ndim = 2, .shape = {SIDE, SIDE}, .grid = {1, 1}, .session_workers = 1};
    static dmi_program_array array;
    static dmi_course_step look;
    static dmi_part its_part;
    static int32_t operand;
    (void)state;
    w = calloc(1, sizeof *w);
    p = calloc(1, sizeof *p);
    of = calloc(1, sizeof *of);
    entry = calloc(1, sizeof *entry);
    w->layout = calloc(w->layout_room = 2, sizeof *w->layout);
    w->entry = calloc(w->entry_room = 4, sizeof *w->entry);
    w->program = calloc(w->program_room = 4, sizeof *w->program);
    entry->memory = calloc(1, sizeof *entry->memory);
    assert_int_equal(dmi_hub_create(2, 65536, false, &w->hub), DM_OK);
    atomic_store(&w->hub.ring->head, ROOM);
    assert_int_equal(dmi_layout_create(&spec, &w->layout[0]), DM_OK);
    w->layouts = 1;
    w->dispatched = 0;
    entry->desc = dmi_desc_whole(DM_F64, w->layout[0], 0);
    entry->memory->allocation = (dmi_allocation){.base = f.bytes, .bytes = SIDE * SIDE * 8};
    w->entry[1] = entry;
    array.desc = entry->desc;
    p->p = (dmi_program){.arrays = 1, .operands = 1, .calls = 1, .numbers = 3, .array = &array};
    p->plan = (dmi_plan *)(void *)f.bytes; /* is there; nobody looks into it */
    look = (dmi_course_step){.kind = DMI_COURSE_REPEAT, .every = 1, .seen = 1};
    its_part = (dmi_part){.program = 1, .operand = &operand, .mine = true};
    of->p = p->p;
    of->course = (dmi_course){.step = &look, .steps = 1, .part = &its_part, .parts = 1, .received = 1};
    w->program[1] = p;
    w->program[2] = of;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    dmi_layout_destroy(w->layout[0]);
    dmi_hub_close(&w->hub);
    free(entry->memory);
    free(w->layout);
    free(w->entry);
    free(w->program);
    free(entry);
    free(of);
    free(p);
    free(w);
    w = NULL;
    return 0;
}

static void create(void)
{
    frame(DMI_FRAME_CREATE, sizeof f.create, 0);
    f.create.id = 2;
    f.create.dtype = DM_F64;
}

static void view(void)
{
    frame(DMI_FRAME_VIEW, sizeof f.view, 0);
    f.view.id = 2;
    f.view.base = 1;
    f.view.ndim = 2;
    for (int d = 0; d < 2; d++) {
        f.view.lo[d] = 1;
        f.view.extent[d] = 2;
        f.view.skip[d] = 1;
    }
}

static void test_arrays(void **state)
{
    static const char size[] = "a layout has another size than it said",
                      fragment[] = "a fragment of a layout is too long, or the last one too short",
                      none[] = "an array has no layout, type or owner, or is too large",
                      place[] = "its layout is not there, or has other dims",
                      apart[] = "it is a part of an array that is not there";
    (void)state;
    WRONG(noop, f.head.command = 2, "it is not the next command");
    WRONG(noop, f.head.kind = DMI_FRAME_PAD, "it is a pad");
    WRONG(layout, f.layout.total = 8, size);
    WRONG(layout, f.layout.total = INT64_C(1) << 40, size);
    WRONG(layout, f.layout.total *= 2, fragment); /* the last one, they say */
    WRONG(layout, f.layout.last = 0, fragment);
    WRONG(layout, f.layout.layout_id = 5, "a layout has another number than the next");
    w->spec = f.bytes; /* half of one has come */
    w->spec_total = 2 * (int64_t)sizeof(dmi_layout_spec);
    w->spec_bytes = sizeof(dmi_layout_spec);
    layout();
    says(size, "another fragment had another total", __LINE__);
    w->spec_total = sizeof(dmi_layout_spec);
    says(fragment, "more than is missing", __LINE__);
    w->spec = NULL;
    WRONG(create, f.create.layout_id = 1, none);
    WRONG(create, f.create.layout_id = 100, none);
    WRONG(create, f.create.dtype = 0, none);
    WRONG(create, f.create.owner = -1, none);
    WRONG(create, f.create.owner = DMI_OWNERS, none);
    WRONG(create, f.create.id = 1, "an array is there already");
    WRONG(view, f.view.base = 3, "a view's array is not there");
    WRONG(view, f.view.base = 1 << 20, "a view's array is not there");
    WRONG(view, f.view.id = 1, "a view is there already");
    WRONG(view, f.view.layout_id = 1, place);
    WRONG(view, f.view.ndim = 1, place);
    WRONG(view, f.view.lo[1] = -1, apart);
    WRONG(view, f.view.extent[1] = -1, apart);
    WRONG(view, f.view.skip[1] = -1, apart);
    WRONG(view, f.view.skip[1] = INT64_MAX, apart);
    WRONG(view, f.view.lo[1] = SIDE, apart);
    WRONG(view, f.view.extent[1] = 3, apart);
    WRONG(view, (f.view.extent[1] = INT64_MAX, f.view.skip[1] = INT64_MAX - 1), apart);
    WRONG(view, entry->memory->allocation.bytes /= 2, "a view is larger than its array");
    entry->memory->allocation.bytes *= 2;
    WRONG(op, refs()[1].id = 2, "an operand is not there");
    WRONG(op, f.head.op = 255, "its operation is unknown");
    w->broken = true;
    op();
    refs()[1].id = 2;
    right("a worker that has missed something obeys nothing", __LINE__);
    w->broken = false;
}

static void program(void)
{
    frame(DMI_FRAME_PROGRAM, sizeof f.program, 0);
    f.program.arrays = 2;
    f.program.operands = f.program.calls = 1;
}

static void array(void)
{
    frame(DMI_FRAME_PROGRAM_ARRAY, sizeof f.array, 0);
    f.array.dtype = DM_F64;
    f.array.ndim = 2;
}

static void call(void)
{
    op();
    f.head.kind = DMI_FRAME_PROGRAM_CALL;
    refs()[0].id = refs()[1].id = 0;
}

static void end(void)
{
    frame(DMI_FRAME_PROGRAM_END, sizeof f.program, 0);
}

static void destroy(void)
{
    frame(DMI_FRAME_PROGRAM_DESTROY, sizeof f.program, 0);
    f.program.program = 2;
}

static void test_programs(void **state)
{
    static const char counts[] = "a program's counts are out of range",
                      inside[] = "a program begins inside another, or is there already",
                      more[] = "a program has more arrays than it said, or one without a type",
                      fewer[] = "a program has fewer arrays or calls than it said";
    (void)state;
    WRONG(program, f.program.program = 3, counts); /* no such number yet */
    WRONG(program, f.program.operands = -1, counts);
    WRONG(program, f.program.operands = 3, counts);
    WRONG(program, f.program.arrays = INT32_MAX, counts);
    WRONG(program, f.program.calls = -1, counts);
    WRONG(program, f.program.calls = INT32_MAX, counts);
    w->dispatched = 1;
    program();
    f.head.command = 2;
    f.program.program = 1;
    says(inside, "there already", __LINE__);
    w->dispatched = 0;
    program();
    w->receiving = p;
    says(inside, "in another", __LINE__);
    p->arrays = 0;
    WRONG(array, f.array.dtype = 0, more);
    WRONG(array, f.array.mode = -1, more);
    WRONG(array, f.array.mode = DMI_READWRITE + 1, more);
    WRONG(array, f.array.layout_id = 1, "its layout is not there, or has other dims");
    WRONG(array, p->arrays = 1, more);
    WRONG(call, refs()[1].id = 1, "a call of a program has an array that the program has not");
    WRONG(call, (refs()[1].mode = 0, refs()[1].id = 99),
          "an operand that a call of a program does not read has no type");
    WRONG(call, f.head.op = 255, "its operation is unknown");
    WRONG(call, p->calls = 1, "a program has more calls than it said");
    WRONG(end, p->calls = 0, fewer);
    p->calls = 1;
    WRONG(end, p->arrays = 0, fewer);
    WRONG(destroy, f.program.program = 1, "a program is destroyed before all of it is there");
    w->receiving = NULL;
    array();
    f.array.dtype = 0;
    right("of a program in which it takes no part", __LINE__);
    p->arrays = p->calls = 1;
}

static void course_here(void)
{
    course();
    w->dispatched = 5;
    f.head.command = 6;
}

static void whole_run(void)
{
    run();
    f.run.program = 2;
}

static void looking(void)
{
    run();
    f.run.every = 1;
    f.run.value = f.run.seen = f.run.asked = 1;
}

static void test_runs(void **state)
{
    static const char next[] = "a part of a program is not the next one, or is not there",
                      other[] = "its program is not there, or has other operands",
                      fit[] = "an operand is not there, or is not as the program's",
                      looks[] = "the array that it looks at is not there";
    dmi_given_number *given = (dmi_given_number *)(void *)((uint64_t *)(void *)(&f.run + 1) + 1);
    (void)state;
    WRONG(course_here, f.course.program = 6, "a program's number is out of range");
    WRONG(course_here, f.course.program = 1, "a program begins inside another, or is there already");
    WRONG(course_here, w->receiving = p, "a program begins inside another, or is there already");
    w->receiving = NULL;
    w->dispatched = 0;
    of->course.received = 0;
    WRONG(part, f.part.part = 1, next);
    WRONG(part, f.part.runs = 3, next);
    WRONG(part, f.part.operands = 2, next);
    WRONG(part, part_operands()[0] = -1, "a part of a program has an operand that the program has not");
    WRONG(part, part_operands()[0] = 1, "a part of a program has an operand that the program has not");
    WRONG(part, of->course.parts = 0, next);
    of->course.parts = of->course.received = 1;
    part();
    f.part.program = 3;
    right("a part of a program in which it takes no part", __LINE__);
    WRONG(run, f.run.program = 3, other);
    WRONG(run, f.run.program = 100, other);
    WRONG(run, (f.run.operands = 2, f.run.numbers = 1), other);
    WRONG(run, p->plan = NULL, other);
    p->plan = (dmi_plan *)(void *)f.bytes;
    WRONG(run, *(uint64_t *)(void *)(&f.run + 1) = 2, fit);
    WRONG(run, entry->desc.dtype = DM_F32, fit);
    entry->desc.dtype = DM_F64;
    WRONG(run, entry->desc.layout_id = 1, fit);
    entry->desc.layout_id = 0;
    WRONG(run, entry->desc.ndim = 1, fit);
    entry->desc.ndim = 2;
    WRONG(run, given[1].at = -1, "it gives a number that the program has not");
    WRONG(run, given[1].at = 3, "it gives a number that the program has not");
    WRONG(looking, f.run.value = 2, looks);
    WRONG(looking, f.run.seen = 2, looks);
    WRONG(looking, f.run.asked = 2, looks);
    run();
    f.run.program = 3;
    f.run.members = 2;
    right("others run it", __LINE__);
    WRONG(whole_run, of->course.received = 0, fit);
    of->course.received = 1;
    WRONG(whole_run, of->course.part->program = 3, fit);
    of->course.part->program = 1;
    WRONG(whole_run, p->plan = NULL, fit);
    p->plan = (dmi_plan *)(void *)f.bytes;
    WRONG(whole_run, of->course.step->seen = 2, fit);
    of->course.part->mine = false;
    says(fit, "a look at what is not there", __LINE__);
    of->course.step->seen = 1;
    WRONG(whole_run, *(uint64_t *)(void *)(&f.run + 1) = 2, fit); /* which it looks at */
    of->course.step->every = 0;
    right("it does not look", __LINE__);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_frames_alone),
                                       cmocka_unit_test(test_courses_alone),
                                       cmocka_unit_test(test_messages),
                                       cmocka_unit_test_setup_teardown(test_arrays, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_programs, set_up, tear_down),
                                       cmocka_unit_test_setup_teardown(test_runs, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
