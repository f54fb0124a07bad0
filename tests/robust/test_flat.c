/* Memory, descriptors, threads and mappings stay what they are: over many mixed commands in a session, and over
 * many sessions, with random workers, options and commands. Brief here; by hand for as long as wanted:
 * DMATH_TEST_FLAT=50 DMATH_TEST_SEED=1 build/dev/tests/test_flat test_sessions: 50 times as much, 1000
 * sessions. On emulated GPUs with DMATH_DEVICE=emulated DMATH_EMULATED_GPUS=2 DMATH_SHARE_GPU=1.
 * scripts/soak.sh --sessions runs both. DMATH_TEST_COMMANDS=N build/dev/tests/test_flat test_commands: N
 * commands, after each tenth of them a look; soak.sh --commands. */
#include "fault_forms.h"

#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>

enum { WORKERS = 3, ROUNDS = 6, SESSIONS = 20, WARM = 5 };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLACK_MAPS = 4096 }; /* the sanitizer's own */
#else
enum { SLACK_MAPS = 12 };
#endif
/* A session's handle is never freed, so that its use afterwards is an error (adr/0004). A worker keeps the
 * memory of up to 128 commands for the next ones, 2 KiB each in the mean, and the more of it the busier the
 * machine is. The rest of the slack is fragments. */
enum { HANDLE_BYTES = 256, KEPT_BYTES = WORKERS * 128 * 2048, SLACK_BYTES = (128 << 10) + KEPT_BYTES };

typedef struct state_of_process {
    int files, threads, maps;
    size_t heap; /* in use */
} state_of_process;

static int entries(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir)) {
        n++;
    }
    closedir(dir);
    return n;
}

static int lines_of(const char *path)
{
    int n = 0;
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    for (int c; (c = fgetc(from)) != EOF;) {
        n += c == '\n';
    }
    fclose(from);
    return n;
}

static state_of_process look(void)
{
    struct mallinfo2 heap = mallinfo2();
    return (state_of_process){entries("/proc/self/fd"), entries("/proc/self/task"), lines_of("/proc/self/maps"),
                              heap.uordblks};
}

/* Threads that have been joined may take a moment to leave /proc. */
static state_of_process settled(int threads)
{
    state_of_process now = look();
    for (int i = 0; i < 200 && now.threads > threads; i++) {
        usleep(10000);
        now = look();
    }
    return now;
}

static void is_flat(const char *what, state_of_process before, size_t more)
{
    state_of_process now = settled(before.threads);
    print_message("%s: files %d to %d, threads %d to %d, maps %d to %d, heap %zu to %zu\n", what, before.files,
                  now.files, before.threads, now.threads, before.maps, now.maps, before.heap, now.heap);
    assert_int_equal(now.files, before.files);
    assert_int_equal(now.threads, before.threads);
    assert_in_range(now.maps, 0, before.maps + SLACK_MAPS);
    assert_in_range(now.heap, 0, before.heap + more + SLACK_BYTES);
}

static int times(void)
{
    const char *given = getenv("DMATH_TEST_FLAT");
    return given ? atoi(given) : 1;
}

static dm_array vector_of(dm_session *s)
{
    dm_array x;
    const int64_t n = SIDE;
    dm_layout rows = dm_layout_rows(s);
    OK(dm_array_create(s, DM_F64, 1, &n, &rows, &x));
    OK(dm_fill_arange(s, x, 0, 1));
    return x;
}

static void set_up(fixture *f, int workers, const char *options, const char *folder)
{
    const int64_t n = SIDE;
    *f = (fixture){.s = open_session(workers, options), .folder = folder};
    dm_layout rows = dm_layout_rows(f->s), cols = dm_layout_cols(f->s);
    f->a = make_matrix(f->s, SIDE, &rows, 1);
    f->b = make_matrix(f->s, SIDE, &cols, 2);
    f->c = make_matrix(f->s, SIDE, &rows, 3);
    f->d = make_matrix(f->s, SIDE, &cols, 3);
    f->v = vector_of(f->s);
    f->w = vector_of(f->s);
    f->u = vector_of(f->s);
    OK(dm_array_create(f->s, DM_I64, 1, &n, &rows, &f->index));
    OK(dm_fill_arange(f->s, f->index, 0, 1));
}

static void every_form(fixture *f)
{
    for (int i = 0; i < FORM_COUNT; i++) {
        OK(dm_scope_begin(f->s));
        f->outs = 0;
        OK(forms[i].run(f));
        OK(dm_scope_end(f->s, NULL, 0));
        OK(dm_fill(f->s, f->c, 1)); /* or its elements grow without end */
        OK(dm_fill(f->s, f->d, 2));
        OK(dm_fill(f->s, f->u, 3));
    }
    OK(dm_sync(f->s));
}

/* Commands that the session has given to its workers. */
static uint64_t commands_given(dm_session *s)
{
    dm_event event;
    OK(dm_event_record(s, &event));
    return event.last;
}

static void save_there(const char *folder, char *path, size_t room)
{
    dm_session *s = open_session(2, "log=error");
    dm_array a = make_matrix(s, SIDE, NULL, 3);
    snprintf(path, room, "%s/there.npy", folder);
    OK(dm_array_save(s, a, path));
    OK(dm_array_destroy(s, a));
    close_session(s);
}

static void test_commands(void **state)
{
    (void)state;
    char folder[] = "/tmp/dmath-flat-XXXXXX", path[96];
    fixture f;
    assert_non_null(mkdtemp(folder));
    save_there(folder, path, sizeof path);
    set_up(&f, WORKERS, "log=error", folder);
    for (int i = 0; i < 2; i++) {
        every_form(&f);
    }
    state_of_process before = look();
    const char *given = getenv("DMATH_TEST_COMMANDS");
    uint64_t wanted = given ? strtoull(given, NULL, 10) : 0, tenth = 1;
    for (int i = 0; i < ROUNDS * times() || commands_given(f.s) < wanted; i++) {
        every_form(&f);
        if (wanted > 0 && commands_given(f.s) >= wanted / 10 * tenth) {
            tenth++;
            print_message("%" PRIu64 " ", commands_given(f.s));
            is_flat("commands", before, 0);
        }
    }
    print_message("%" PRIu64 " ", commands_given(f.s));
    is_flat("commands", before, 0);
    OK(dm_finalize(f.s, &(int64_t){0}));
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/saved.npy", folder);
    (void)unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

/* A few random forms, except those that leave a file. */
static void some_forms(fixture *f, unsigned *seed)
{
    for (int k = rand_r(seed) % 4; k > 0; k--) {
        int which = rand_r(seed) % FORM_COUNT;
        if (strcmp(forms[which].name, "save") != 0 && strcmp(forms[which].name, "load") != 0 &&
            strcmp(forms[which].name, "checkpoint") != 0 && strcmp(forms[which].name, "session") != 0) {
            f->outs = 0;
            dm_status status = forms[which].run(f);
            OK(status == DM_ERR_UNSUPPORTED ? DM_OK : status); /* a new shape, with this number of workers */
        }
    }
}

static void one_session(int i, unsigned *seed)
{
    static const char *const options[] = {"log=error", "log=error,pool_debug=1", "log=error,replicas=0",
                                          "log=error,plan_cache=3,slab=1M"};
    fixture f;
    set_up(&f, 1 + rand_r(seed) % 4, options[rand_r(seed) % 4], "/nowhere");
    dm_array a = make_matrix(f.s, SIDE, NULL, i % 7), b = make_matrix(f.s, SIDE, NULL, 1);
    OK(dm_gemm(f.s, DM_N, DM_T, 1, a, a, 0, b));
    matrix_is(f.s, a, SIDE, i % 7);
    some_forms(&f, seed);
    if (i % 3 == 0) { /* the rest ends with arrays that are there */
        OK(dm_array_destroy(f.s, a));
        OK(dm_array_destroy(f.s, b));
    }
    OK(dm_finalize(f.s, &(int64_t){0}));
}

static void test_sessions(void **state)
{
    (void)state;
    const char *given = getenv("DMATH_TEST_SEED");
    unsigned seed = given ? (unsigned)strtoull(given, NULL, 10) : 1;
    int sessions = SESSIONS * times();
    for (int i = 0; i < 4 * WARM; i++) {
        one_session(i, &seed);
    }
    state_of_process before = settled(entries("/proc/self/task"));
    for (int i = 0; i < sessions; i++) {
        one_session(i, &seed);
    }
    print_message("%d sessions, seed %s\n", sessions, given ? given : "1");
    is_flat("sessions", before, (size_t)sessions * HANDLE_BYTES);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands),
        cmocka_unit_test(test_sessions),
    };
    if (dm_register("negate", negate) != DM_OK) {
        return 2;
    }
    if (argc > 1) { /* that one alone */
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
