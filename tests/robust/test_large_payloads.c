/* A large payload has a lane of its own: small ones pass it, and it still goes on. What has come is told by
 * counters, not by clocks: links are pretended to be slow (on emulated GPUs: DMATH_EMULATED_COPY_US). */
#include "robust.h"

#include "master/session.h"

enum { FROM, TO, WORKERS };                  /* workers */
enum { LARGE = 2 << 20, BESIDE = 64 << 10 }; /* elements: 16 MiB, 512 KiB */
enum { MANY = 200, TARGETS = 4 };
static const int64_t LARGE_BYTES = LARGE * (int64_t)sizeof(double);
static atomic_int ran; /* the task, at TO */

static int note(const dm_task *task)
{
    if (task->worker == TO) {
        atomic_store(&ran, 1);
    }
    return 0;
}

static dm_array make(dm_session *s, int64_t length, int worker, double value)
{
    dm_array x;
    dm_layout single = dm_layout_single(worker);
    OK(dm_array_create(s, DM_F64, 1, &length, &single, &x));
    OK(dm_fill(s, x, value));
    return x;
}

static void check_sum(dm_session *s, dm_array x, double want)
{
    dm_array total;
    double got = 0;
    OK(dm_array_create(s, DM_F64, 0, NULL, NULL, &total));
    OK(dm_sum(s, x, NULL, 0, 1, 0, total));
    OK(dm_read(s, total, &got));
    assert_true(got == want);
    OK(dm_array_destroy(s, total));
}

/* Once the task has run: bytes and messages that have come to TO since. dm_counters_get would wait for all
 * commands. */
static dm_counters received_when_noted(dm_session *s, const dm_counters *before)
{
    while (atomic_load(&ran) == 0) {
        usleep(200);
    }
    dm_counters now = dmi_counters_of((dmi_session *)atomic_load(&s->live), TO);
    now.bytes_received -= before->bytes_received;
    now.messages_received -= before->messages_received;
    return now;
}

static dm_counters counters(dm_session *s)
{
    dm_counters now = {.size = sizeof now};
    OK(dm_sync(s));
    OK(dm_counters_get(s, TO, &now));
    atomic_store(&ran, 0);
    return now;
}

/* A copy of 16 MiB; then a sum whose addend is 8 bytes, and a task that needs the sum. Bytes of the copy that
 * have come when the task runs. */
static int64_t come_before_sum(const char *options, bool in_program)
{
    const int64_t shape[1] = {WORKERS};
    const double values[WORKERS] = {2, 3};
    const int dims[1] = {0};
    dm_session *s = open_session(WORKERS, options);
    dm_layout rows = dm_layout_rows(s), single = dm_layout_single(TO);
    dm_array from = make(s, LARGE, FROM, 1), to = make(s, LARGE, TO, 0), x, sum;
    dm_program program = {0};
    OK(dm_array_create(s, DM_F64, 1, shape, &rows, &x));
    OK(dm_array_create(s, DM_F64, 0, NULL, &single, &sum));
    OK(dm_write(s, x, values));
    dm_counters before = counters(s);
    if (in_program) {
        OK(dm_program_begin(s));
    }
    OK(dm_copy(s, from, to));
    OK(dm_sum(s, x, dims, 1, 1, 0, sum));
    OK(dm_apply(s, "note", 1, &sum, (int[]){DM_READ}, NULL, 0));
    if (in_program) {
        OK(dm_program_end(s, &program));
        OK(dm_program_run(s, program, 1, 0, NULL));
    }
    int64_t come = received_when_noted(s, &before).bytes_received;
    double got = 0;
    OK(dm_read(s, sum, &got));
    assert_true(got == values[0] + values[1]);
    check_sum(s, to, LARGE);
    if (in_program) {
        OK(dm_program_destroy(s, program));
    }
    dm_array all[] = {from, to, x, sum};
    for (int i = 0; i < 4; i++) {
        OK(dm_array_destroy(s, all[i]));
    }
    close_session(s);
    return come;
}

static void test_small_passes(void **state)
{
    (void)state;
    int64_t commands = come_before_sum("link_gbps=0.01", false),
            program = come_before_sum("link_gbps=0.01", true);
    int64_t behind = come_before_sum("link_gbps=0.01,large_payload=0", true);
    print_message(
        "the sum had its addend after %lld bytes of %lld; in a program after %lld, in one lane after %lld\n",
        (long long)commands, (long long)LARGE_BYTES, (long long)program, (long long)behind);
    assert_true(commands < LARGE_BYTES);
    assert_true(program < LARGE_BYTES);
    assert_true(behind >= LARGE_BYTES);
}

/* Behind a large copy so many small ones that the link is never idle: the large one comes long before their
 * end. */
static void test_large_goes_on(void **state)
{
    (void)state;
    dm_session *s = open_session(WORKERS, "link_gbps=0.05");
    dm_array from = make(s, LARGE / 2, FROM, 1), to = make(s, LARGE / 2, TO, 0),
             beside = make(s, BESIDE, FROM, 3);
    dm_array target[TARGETS];
    for (int i = 0; i < TARGETS; i++) {
        target[i] = make(s, BESIDE, TO, 0);
    }
    dm_counters before = counters(s);
    OK(dm_copy(s, from, to));
    OK(dm_apply(s, "note", 1, &to, (int[]){DM_READ}, NULL, 0));
    for (int i = 0; i < MANY; i++) {
        OK(dm_copy(s, beside, target[i % TARGETS]));
    }
    int64_t come = received_when_noted(s, &before).messages_received;
    print_message("%lld payloads had come with the large one, of %d\n", (long long)come - 1, MANY);
    assert_true(come - 1 < MANY / 2);
    check_sum(s, to, LARGE / 2);
    for (int i = 0; i < TARGETS; i++) {
        check_sum(s, target[i], 3.0 * BESIDE);
        OK(dm_array_destroy(s, target[i]));
    }
    OK(dm_array_destroy(s, from));
    OK(dm_array_destroy(s, to));
    OK(dm_array_destroy(s, beside));
    close_session(s);
}

int main(void)
{
    if (dm_register("note", note) != DM_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_small_passes, deadline),
                                       cmocka_unit_test_setup(test_large_goes_on, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
