/* Damaged frames in the command ring: workers refuse them, the session fails and says so, and ends; the process
 * goes on. */
#include "robust.h"

#include "master/session.h"

static void send(dmi_session *s, uint32_t bytes, int kind, void (*change)(void *frame))
{
    void *frame = dmi_frame_begin(s, bytes, kind, DMI_OP_copy);
    memset((char *)frame + sizeof(dmi_frame), 0, bytes - sizeof(dmi_frame));
    change(frame);
    dmi_ring_publish(&s->ring, bytes); /* as long as it was, whatever it says now */
    dmi_ring_wake(&s->ring);
}

static void other_kind(void *frame)
{
    ((dmi_frame *)frame)->kind = 77;
}

static void pad(void *frame)
{
    ((dmi_frame *)frame)->kind = DMI_FRAME_PAD;
    ((dmi_frame *)frame)->bytes = 0;
}

static void odd_length(void *frame)
{
    ((dmi_frame *)frame)->bytes = 24;
}

static void too_short(void *frame)
{
    ((dmi_frame *)frame)->bytes = 16;
}

static void later(void *frame)
{
    ((dmi_frame *)frame)->command++;
}

static void again(void *frame)
{
    ((dmi_frame *)frame)->command--;
}

static void operands(void *frame)
{
    ((dmi_op_frame *)frame)->noperand = DMI_MAX_OPERANDS + 1;
}

static void long_tail(void *frame)
{
    ((dmi_op_frame *)frame)->tail_bytes = INT64_MAX;
}

/* More of the tail in the key of the plan than there is. */
static void long_key(void *frame)
{
    ((dmi_op_frame *)frame)->tail_key = INT64_C(1) << 40;
}

static void stranger(void *frame)
{
    dmi_op_frame *f = frame;
    f->noperand = 1;
    f->members = UINT64_MAX;
    ((dmi_operand_ref *)(f + 1))->id = 12345;
}

static void no_place(void *frame)
{
    dmi_op_frame *f = frame;
    f->group = 2;
    f->group_place = 1u << 31;
    f->members = UINT64_MAX;
}

static void long_fragment(void *frame)
{
    ((dmi_layout_frame *)frame)->bytes = 1 << 20;
}

static uint32_t next_layout; /* its number */

/* What it holds has no workers. */
static void empty_layout(void *frame)
{
    dmi_layout_frame *f = frame;
    f->layout_id = next_layout;
    f->last = 1;
    f->total = f->bytes = sizeof(dmi_layout_spec);
}

static void no_layout(void *frame)
{
    dmi_create_frame *f = frame;
    f->layout_id = 1000;
    f->dtype = DM_F64;
    f->id = 99;
}

static void no_program(void *frame)
{
    dmi_program_run_frame *f = frame;
    f->times = 1;
    f->members = UINT64_MAX;
}

/* Of more passes than there will ever be time for. */
static void empty_loop(void *frame)
{
    dmi_course_frame *f = frame;
    dmi_course_step *step = (dmi_course_step *)(f + 1);
    f->members = UINT64_MAX;
    f->steps = 3;
    f->parts = 1;
    step[0] = (dmi_course_step){.kind = DMI_COURSE_RUN};
    step[1] = (dmi_course_step){
        .kind = DMI_COURSE_REPEAT, .other = 2, .times = INT64_MAX, .asks = 1, .members = UINT64_MAX};
    step[2] = (dmi_course_step){.kind = DMI_COURSE_END, .other = 1};
}

static void no_steps(void *frame)
{
    ((dmi_course_frame *)frame)->members = UINT64_MAX;
}

static const struct {
    const char *name;
    uint32_t bytes;
    int kind;
    void (*change)(void *frame);
} damages[] = {
    {"another kind", sizeof(dmi_frame), DMI_FRAME_NOOP, other_kind},
    {"a pad of no bytes", sizeof(dmi_frame), DMI_FRAME_NOOP, pad},
    {"an odd length", sizeof(dmi_frame), DMI_FRAME_NOOP, odd_length},
    {"too short", sizeof(dmi_op_frame), DMI_FRAME_OP, too_short},
    {"one left out", sizeof(dmi_frame), DMI_FRAME_NOOP, later},
    {"one again", sizeof(dmi_frame), DMI_FRAME_NOOP, again},
    {"too many operands", sizeof(dmi_op_frame), DMI_FRAME_OP, operands},
    {"a long tail", sizeof(dmi_op_frame), DMI_FRAME_OP, long_tail},
    {"a long key", sizeof(dmi_op_frame), DMI_FRAME_OP, long_key},
    {"a strange operand", sizeof(dmi_op_frame) + 32, DMI_FRAME_OP, stranger},
    {"a group without a place", sizeof(dmi_op_frame), DMI_FRAME_OP, no_place},
    {"a long fragment", sizeof(dmi_layout_frame), DMI_FRAME_LAYOUT, long_fragment},
    {"a layout of nothing", sizeof(dmi_layout_frame) + sizeof(dmi_layout_spec), DMI_FRAME_LAYOUT, empty_layout},
    {"no layout", sizeof(dmi_create_frame), DMI_FRAME_CREATE, no_layout},
    {"an empty loop", sizeof(dmi_course_frame) + 3 * sizeof(dmi_course_step), DMI_FRAME_PROGRAM_COURSE,
     empty_loop},
    {"a course of nothing", sizeof(dmi_course_frame), DMI_FRAME_PROGRAM_COURSE, no_steps},
    {"no program", sizeof(dmi_program_run_frame), DMI_FRAME_PROGRAM_RUN, no_program},
};

static void test_damage(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof damages / sizeof *damages); i++) {
        for (int workers = 1; workers <= 3; workers += 2) {
            dm_session *s = open_session(workers, "log=error,watchdog_s=20");
            dm_array a = make_matrix(s, 8, NULL, 1);
            OK(dm_sync(s));
            next_layout = ((dmi_session *)atomic_load(&s->live))->layouts;
            send((dmi_session *)atomic_load(&s->live), damages[i].bytes, damages[i].kind, damages[i].change);
            dm_status status = dm_sync(s);
            if (status != DM_ERR_TRANSPORT || !strstr(dm_error_message(), " is damaged")) {
                fail_msg("%s: %s: %s", damages[i].name, dm_status_name(status), dm_error_message());
            }
            assert_int_equal(dm_fill(s, a, 1), DM_ERR_TRANSPORT);
            assert_int_not_equal(dm_finalize(s, &(int64_t){0}), DM_OK);
        }
    }
    dm_session *s = open_session(3, "log=error");
    dm_array a = make_matrix(s, 8, NULL, 2);
    matrix_is(s, a, 8, 2);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_damage, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
