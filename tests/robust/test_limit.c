/* dm_session_limit: every call that blocks, behind a command that does not end, returns DM_ERR_PENDING in time;
 * then the command ends, and what the call has left is what <dmath/control.h> says. */
#include "names_call.h"
#include "robust.h"

#include <math.h>
#include <sys/stat.h>

enum { ROWS = 6, COLS = 4, LONG = 1 << 15 };
#define LIMIT_S 0.05
#define WITHIN_S 5.0 /* of a machine that does much else */

static char held[240]; /* a command waits while this file exists: workers may be other processes of this host */

static int hold(const dm_task *task)
{
    const char *path = task->args;
    for (int i = 0; access(path, F_OK) == 0 && i < 60000; i++) {
        usleep(1000);
    }
    return 0;
}

static void hold_on(void)
{
    FILE *f = fopen(held, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
}

static void let_go(void)
{
    assert_int_equal(unlink(held), 0);
}

typedef struct work {
    dm_session *s;
    dm_array slow, a, index, mask, keys, out;
    dm_group group;
    dm_feed *feed;
    dm_event event;
    double host[ROWS * COLS + 1];
    int64_t step;
    const char *form;
} work;

static void counts_from(const work *k, dm_array a, double first)
{
    double got[ROWS * COLS];
    OK(dm_array_read(k->s, a, NULL, NULL, got, 0));
    for (int i = 0; i < ROWS * COLS; i++) {
        if (got[i] != first + i) {
            fail_msg("after %s: element %d is %g, not %g", k->form, i, got[i], first + i);
        }
    }
}

static void untouched(const work *k)
{
    for (int i = 0; i <= ROWS * COLS; i++) {
        assert_true(k->host[i] == -1);
    }
}

/* --- the calls; before: what must be there, by a call without a limit; then: what it has left --- */

static dm_status do_sync(work *k)
{
    return dm_sync(k->s);
}

static dm_status do_event(work *k)
{
    return dm_event_wait(k->s, k->event, -1);
}

static dm_status do_sync_within(work *k)
{
    return dm_sync_within(k->s, -1);
}

static dm_status do_group_sync(work *k)
{
    return dm_group_sync(k->s, k->group);
}

static dm_status do_counters(work *k)
{
    dm_counters c = {.size = sizeof c};
    return dm_counters_get(k->s, 0, &c);
}

static dm_status do_group_counters(work *k)
{
    dm_counters c = {.size = sizeof c};
    return dm_group_counters(k->s, k->group, &c);
}

static dm_status do_memory(work *k)
{
    dm_memory m = {.size = sizeof m};
    return dm_memory_report(k->s, 0, &m);
}

static dm_status do_trim(work *k)
{
    return dm_memory_trim(k->s);
}

static dm_status do_read(work *k)
{
    return dm_array_read(k->s, k->a, NULL, NULL, k->host, 0);
}

static dm_status do_read_part(work *k)
{
    return dm_array_read(k->s, k->a, (int64_t[]){1, 1}, (int64_t[]){3, 2}, k->host, 5);
}

static dm_status do_read_within(work *k)
{
    return dm_array_read_within(k->s, k->a, NULL, NULL, k->host, 0, -1);
}

static dm_status do_read_as(work *k)
{
    return dm_array_read_as(k->s, k->a, NULL, NULL, DM_F32, k->host, 0);
}

static dm_status do_item(work *k)
{
    return dm_item(k->s, k->a, (int64_t[]){1, 1}, k->host);
}

/* The caller's memory is another's at once. */
static dm_status do_write(work *k)
{
    double own[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) {
        own[i] = 50 + i;
    }
    dm_status status = dm_array_write(k->s, k->a, NULL, NULL, own, 0);
    memset(own, 0, sizeof own);
    return status;
}

static dm_status do_write_rows(work *k)
{
    double own[ROWS][COLS + 3];
    for (int i = 0; i < ROWS * COLS; i++) {
        own[i / COLS][i % COLS] = 50 + i;
    }
    dm_status status = dm_array_write(k->s, k->a, NULL, NULL, own, COLS + 3);
    memset(own, 0, sizeof own);
    return status;
}

static void was_written(work *k)
{
    counts_from(k, k->a, 50);
    OK(dm_fill_arange(k->s, k->a, 1, 1));
}

static void save_file(work *k)
{
    OK(dm_array_save(k->s, k->a, "limit.npy"));
}

static dm_status do_load(work *k)
{
    return dm_array_load(k->s, "limit.npy", NULL, &k->out);
}

static void no_file(work *k)
{
    (void)k;
    (void)unlink("saved.npy");
}

static dm_status do_save(work *k)
{
    dm_status status = dm_array_save(k->s, k->a, "saved.npy");
    assert_int_not_equal(access("saved.npy", F_OK), 0);
    return status;
}

static void was_saved(work *k)
{
    dm_array a;
    OK(dm_array_load(k->s, "saved.npy", NULL, &a));
    counts_from(k, a, 1);
    OK(dm_array_destroy(k->s, a));
}

#define ITEMS(k)                                                                                               \
    {                                                                                                          \
        DM_KEEP_ARRAY("a", (k)->a), DM_KEEP_VALUE("step", &(k)->step)                                          \
    }

static dm_status do_checkpoint(work *k)
{
    const dm_checkpoint_item items[] = ITEMS(k);
    char text[256];
    dm_status status = dm_checkpoint_save(k->s, "limits", 2, items, NULL, NULL);
    snprintf(text, sizeof text, "%s", dm_error_message());
    assert_int_equal(dm_checkpoint_exists("limits"), 0);
    return dm_error_set(status, "%s", text);
}

static void no_series(work *k)
{
    (void)k;
    assert_int_equal(system("rm -rf limits"), 0);
}

/* It went on; the next one waits for it. */
static void was_checkpointed(work *k)
{
    const dm_checkpoint_item items[] = ITEMS(k);
    dm_checkpoint_info info = {.size = sizeof info};
    OK(dm_checkpoint_save(k->s, "limits", 2, items, NULL, NULL));
    OK(dm_checkpoint_query("limits/00000001", 0, &info));
    OK(dm_checkpoint_verify("limits/00000001", NULL, NULL));
    OK(dm_checkpoint_query("limits/00000002", 0, &info));
}

static dm_status do_session_save(work *k)
{
    return dm_session_save(k->s, "limits", NULL, NULL);
}

static void series(work *k)
{
    const dm_checkpoint_item items[] = ITEMS(k);
    no_series(k);
    k->step = 5;
    OK(dm_checkpoint_save(k->s, "limits", 2, items, NULL, NULL));
    k->step = 6;
    OK(dm_fill(k->s, k->a, 0));
}

static dm_status do_checkpoint_load(work *k)
{
    const dm_checkpoint_item items[] = ITEMS(k);
    return dm_checkpoint_load(k->s, "limits", 2, items);
}

static void was_loaded(work *k)
{
    assert_int_equal(k->step, 6);
    counts_from(k, k->a, 1);
}

static dm_status do_session_load(work *k)
{
    return dm_session_load(k->s, "limits");
}

static void nothing_loaded(work *k)
{
    dm_array made;
    OK(dm_kept_array(k->s, "a", &made));
    assert_true(made.id == 0);
    OK(dm_fill_arange(k->s, k->a, 1, 1));
}

static dm_status do_checkpoint_array(work *k)
{
    return dm_checkpoint_array(k->s, "limits", "a", (dm_dtype)0, NULL, &k->out);
}

static dm_status do_take(work *k)
{
    return dm_take(k->s, k->a, k->index, 0, DM_RAISE, k->out);
}

static dm_status do_compress(work *k)
{
    return dm_compress(k->s, k->a, k->mask, 0, NULL, &k->out);
}

static dm_status do_unique(work *k)
{
    return dm_unique(k->s, k->a, &k->out, NULL, NULL);
}

static void long_rows(work *k)
{
    OK(dm_vector(k->s, DM_F64, LONG, &k->keys));
    OK(dm_fill_uniform(k->s, k->keys, 0, 1, 3));
}

static dm_status do_sort(work *k)
{
    return dm_sort(k->s, k->keys, 0, 0, k->keys);
}

static void sorted(work *k)
{
    static double got[LONG];
    OK(dm_fill_uniform(k->s, k->keys, 0, 1, 3)); /* undefined before */
    OK(dm_sort(k->s, k->keys, 0, 0, k->keys));
    OK(dm_array_read(k->s, k->keys, NULL, NULL, got, 0));
    for (int i = 1; i < LONG; i++) {
        assert_true(got[i - 1] <= got[i]);
    }
    OK(dm_array_destroy(k->s, k->keys));
}

static void make_feed(work *k)
{
    OK(dm_feed_create(k->s, DM_F64, 1, (int64_t[]){3}, 2, &k->feed));
}

static dm_status do_feed_restart(work *k)
{
    return dm_feed_restart(k->s, k->feed);
}

static dm_status do_feed_destroy(work *k)
{
    return dm_feed_destroy(k->feed);
}

static void end_feed(work *k)
{
    OK(dm_feed_destroy(k->feed));
}

static dm_status do_finalize(work *k)
{
    return dm_finalize(k->s, NULL);
}

/* A call that does not block, until the command ring is full: it is given whole, or not at all. */
static void one_ring(work *k)
{
    OK(dm_fill(k->s, k->a, 0));
    k->step = 0;
}

static dm_status do_fill_the_ring(work *k)
{
    dm_status status = DM_OK;
    for (; status == DM_OK && k->step < 1000000; k->step++) {
        status = dm_map(k->s, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", k->a)}, k->a);
    }
    k->step--;
    return status;
}

static void as_often(work *k)
{
    double got[ROWS * COLS];
    OK(dm_array_read(k->s, k->a, NULL, NULL, got, 0));
    assert_true(got[0] == (double)k->step && k->step > 10);
    OK(dm_fill_arange(k->s, k->a, 1, 1));
}

enum { NOTHING, OTHERS, ONE_HOST }; /* a second worker; workers on the host of the program */

static const struct form {
    const char *name;
    void (*before)(work *);
    dm_status (*call)(work *);
    void (*then)(work *);
    int needs;
} forms[] = {
    {"sync", NULL, do_sync, NULL, NOTHING},
    {"event_wait", NULL, do_event, NULL, NOTHING},
    {"sync_within", NULL, do_sync_within, NULL, NOTHING},
    {"group_sync", NULL, do_group_sync, NULL, NOTHING},
    {"counters", NULL, do_counters, NULL, NOTHING},
    {"group_counters", NULL, do_group_counters, NULL, NOTHING},
    {"memory", NULL, do_memory, NULL, NOTHING},
    {"memory_trim", NULL, do_trim, NULL, NOTHING},
    {"array_read", NULL, do_read, NULL, NOTHING},
    {"array_read of a part", NULL, do_read_part, NULL, NOTHING},
    {"array_read_within", NULL, do_read_within, NULL, NOTHING},
    {"array_read_as", NULL, do_read_as, NULL, NOTHING},
    {"item", NULL, do_item, NULL, NOTHING},
    {"array_write", NULL, do_write, was_written, NOTHING},
    {"array_write of rows", NULL, do_write_rows, was_written, NOTHING},
    {"array_load", save_file, do_load, NULL, NOTHING},
    {"array_save", no_file, do_save, was_saved, NOTHING},
    {"checkpoint_save", no_series, do_checkpoint, was_checkpointed, NOTHING},
    {"session_save", no_series, do_session_save, was_checkpointed, NOTHING},
    {"checkpoint_load", series, do_checkpoint_load, was_loaded, NOTHING},
    {"session_load", series, do_session_load, nothing_loaded, NOTHING},
    {"checkpoint_array", series, do_checkpoint_array, nothing_loaded, NOTHING},
    {"take", NULL, do_take, NULL, NOTHING},
    {"compress", NULL, do_compress, NULL, NOTHING},
    {"unique", NULL, do_unique, NULL, NOTHING},
    {"sort", long_rows, do_sort, sorted, OTHERS},
    {"feed_restart", make_feed, do_feed_restart, end_feed, ONE_HOST},
    {"feed_destroy", make_feed, do_feed_destroy, end_feed, ONE_HOST},
    {"finalize", NULL, do_finalize, NULL, NOTHING},
    {"a full command ring", one_ring, do_fill_the_ring, as_often, NOTHING},
};
enum { FORMS = sizeof forms / sizeof *forms };

static void open_work(work *k, int workers)
{
    int all[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    *k = (work){.s = open_session(workers, "log=error,ring=64K,sort_exchange=1")};
    dm_layout rows = dm_layout_rows(k->s), everywhere = dm_layout_replicated(k->s);
    OK(dm_array_create(k->s, DM_F64, 1, (int64_t[]){4}, &everywhere, &k->slow));
    OK(dm_array_create(k->s, DM_F64, 2, (int64_t[]){ROWS, COLS}, &rows, &k->a));
    OK(dm_array_create(k->s, DM_F64, 2, (int64_t[]){ROWS, COLS}, &rows, &k->out));
    OK(dm_vector(k->s, DM_I64, ROWS, &k->index));
    OK(dm_vector(k->s, DM_BOOL, ROWS, &k->mask));
    OK(dm_fill(k->s, k->slow, 0));
    OK(dm_fill_arange(k->s, k->a, 1, 1));
    OK(dm_fill_arange(k->s, k->index, 0, 1));
    OK(dm_fill(k->s, k->mask, 1));
    OK(dm_group_create(k->s, all, dm_workers(k->s), &k->group));
}

static void one_form(work *k, const struct form *form)
{
    for (int i = 0; i <= ROWS * COLS; i++) {
        k->host[i] = -1;
    }
    dm_array out = k->out;
    k->form = form->name;
    if (form->before) {
        form->before(k);
    }
    OK(dm_sync(k->s));
    hold_on();
    OK(dm_apply(k->s, "hold", 1, &k->slow, (int[]){DM_READWRITE}, held, sizeof held));
    OK(dm_event_record(k->s, &k->event));
    OK(dm_session_limit(k->s, LIMIT_S));
    for (int again = 0; again < 2; again++) { /* a limit of nothing as well */
        bool twice = form->then == NULL;
        double begin = seconds();
        dm_status status = form->call(k);
        double took = seconds() - begin;
        if (status != DM_ERR_PENDING || took > WITHIN_S || (again == 0 && took < LIMIT_S / 2) ||
            !names_call(dm_error_message())) {
            fail_msg("%s, %d workers: %s after %g s: %s", form->name, dm_workers(k->s), dm_status_name(status),
                     took, dm_error_message());
        }
        if (!twice) {
            break;
        }
        OK(dm_session_limit(k->s, 0));
    }
    untouched(k);
    assert_true(k->out.id == out.id);
    OK(dm_session_limit(k->s, -1));
    let_go();
    OK(dm_sync(k->s));
    untouched(k);
    if (form->then) {
        form->then(k);
    }
    counts_from(k, k->a, 1);
}

static void all_calls(int workers)
{
    work k;
    open_work(&k, workers);
    for (int i = 0; i < FORMS; i++) {
        const char *hosts = getenv("DMATH_PRETEND_HOSTS");
        bool there = forms[i].needs == OTHERS ? dm_workers(k.s) > 1
                                              : forms[i].needs == NOTHING || !hosts || atoi(hosts) < 2;
        if (there) {
            one_form(&k, &forms[i]);
        }
    }
    OK(dm_session_limit(k.s, 20)); /* and all goes well with one that is long enough */
    counts_from(&k, k.a, 1);
    OK(do_write_rows(&k));
    counts_from(&k, k.a, 50);
    int64_t alive;
    OK(dm_finalize(k.s, &alive));
    assert_int_equal(alive, 5);
}

static void test_calls(void **state)
{
    (void)state;
    static const int workers[] = {1, 3, 5};
    for (int w = 0; w < 3; w++) {
        all_calls(workers[w]);
    }
}

/* As ranks: a job has one session. */
static void test_ranks(void **state)
{
    (void)state;
    all_calls(0);
}

/* What fails when the time is over is reported by the call that waits for it. */
static void test_failures(void **state)
{
    (void)state;
    work k;
    open_work(&k, 3);
    assert_int_equal(dm_session_limit(k.s, (double)NAN), DM_ERR_ARG);
    for (int i = 0; i < 2; i++) { /* the workers cannot write; the file cannot have its name */
        assert_int_equal(mkdir("gone", 0777), 0);
        hold_on();
        OK(dm_apply(k.s, "hold", 1, &k.slow, (int[]){DM_READWRITE}, held, sizeof held));
        OK(dm_session_limit(k.s, LIMIT_S));
        assert_int_equal(dm_array_save(k.s, k.a, "gone/saved.npy"), DM_ERR_PENDING);
        assert_int_equal(i ? mkdir("gone/saved.npy", 0777) : system("rm -rf gone"), 0);
        OK(dm_session_limit(k.s, -1));
        let_go();
        assert_int_equal(dm_sync(k.s), DM_ERR_IO);
        assert_non_null(strstr(dm_error_message(), "saved.npy"));
        assert_non_null(strstr(dm_error_message(), " (array_save)"));
        assert_true(names_call(dm_error_message()));
        OK(dm_sync(k.s));
    }
    assert_int_equal(system("rm -rf gone"), 0);
    OK(dm_finalize(k.s, &(int64_t){0}));
}

/* A session that ends, with its time over, and then for good; what was left is freed (under ASan: all of it).
 */
static void test_end(void **state)
{
    (void)state;
    work k;
    open_work(&k, 3);
    hold_on();
    OK(dm_apply(k.s, "hold", 1, &k.slow, (int[]){DM_READWRITE}, held, sizeof held));
    OK(dm_session_limit(k.s, LIMIT_S));
    assert_int_equal(do_read(&k), DM_ERR_PENDING);
    assert_int_equal(do_write(&k), DM_ERR_PENDING);
    no_file(&k);
    assert_int_equal(do_save(&k), DM_ERR_PENDING);
    no_series(&k);
    assert_int_equal(do_checkpoint(&k), DM_ERR_PENDING);
    assert_int_equal(do_session_save(&k), DM_ERR_PENDING); /* waits for the one before */
    assert_non_null(strstr(dm_error_message(), "no other was begun"));
    assert_int_equal(do_finalize(&k), DM_ERR_PENDING);
    OK(dm_cancel(k.s));
    assert_int_equal(do_finalize(&k), DM_ERR_PENDING); /* the function still runs */
    let_go();
    OK(dm_session_limit(k.s, 20));
    dm_status status = dm_finalize(k.s, &(int64_t){0});
    assert_true(status == DM_ERR_CANCELLED || status == DM_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_calls, deadline),
        cmocka_unit_test_setup(test_failures, deadline),
        cmocka_unit_test_setup(test_end, deadline),
    };
    const struct CMUnitTest ranks[] = {cmocka_unit_test_setup(test_ranks, deadline)};
    OK(dm_register("hold", hold));
    snprintf(held, sizeof held, "/tmp/dmath-held-%d", (int)getpid());
    if (getenv("DMATH_TEST_LAUNCHED")) {
        return cmocka_run_group_tests(ranks, NULL, NULL);
    }
    (void)!system("rm -rf limits gone limit.npy saved.npy");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
