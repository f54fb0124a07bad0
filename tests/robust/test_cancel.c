/* dm_cancel at random moments of products, copies, user functions, programs, saves and sorts: the wait returns
 * soon, what was cancelled is poisoned or whole, and the session goes on. By hand with DMATH_TEST_CANCELS=1000.
 */
#include "base/process.h"
#include "robust.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum {
    N = 24,
    LONG = 1 << 15,
    WORKERS = 3,
    TRIES = 60,
    MOST_TRIES = 4000,
    RUNS = 3, /* of the program */
    LONG_NAPS = 600,
    NAP_US = 5000, /* the longest step */
    TRY_S = 200    /* a hang is a failure: the process dies of SIGALRM */
};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HALF_WITHIN_S 1.0
#else
#define HALF_WITHIN_S (0.1 + NAP_US / 1e6)
#endif
#define ALL_WITHIN_S 15.0
static dm_session *running;
static atomic_int naps[WORKERS]; /* that have begun, of each worker of this process */

typedef struct cancelling {
    int after_us;
    atomic_bool done;
    double begun, starved; /* when it was called, and how long threads had waited for a processor before */
    int naps[WORKERS];     /* when it had returned */
    dm_status status;
} cancelling;

/* Seconds for which the threads of this process, or of all ranks, could have run and had no processor. What is
 * waited for takes longer on a machine that does much else, by so much at most. */
static double starved(void)
{
    const bool ranks = getenv("DMATH_TEST_LAUNCHED") != NULL;
    double sum = 0;
    DIR *all = opendir("/proc");
    assert_non_null(all);
    for (struct dirent *process; (process = readdir(all));) {
        const int pid = atoi(process->d_name);
        if (pid == 0 || (pid != getpid() && !(ranks && dmi_process_parent(pid) == getppid()))) {
            continue;
        }
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/task", pid);
        DIR *threads = opendir(path);
        for (struct dirent *thread; threads && (thread = readdir(threads));) {
            dmi_thread_times t;
            if (atoi(thread->d_name) && dmi_thread_times_get(pid, atoi(thread->d_name), &t)) {
                sum += (double)t.waited_ns * 1e-9;
            }
        }
        if (threads) {
            closedir(threads);
        }
    }
    closedir(all);
    return sum;
}

/* What is computed: c = d = (a b)', by calls of their own; q = (a b)', by a program; w = v, sorted; a file that
 * has a. */
typedef struct work {
    dm_session *s;
    dm_array a, b, c, d, p, q, v, w;
    dm_program program;
    char folder[32], path[64];
    double straight[N * N], across[N * N], sorted[LONG];
    int returned[8]; /* how often which call said that it was cancelled; the last: dm_sync */
    double took[8][MOST_TRIES];
} work;

static int nap(const dm_task *task)
{
    atomic_fetch_add(&naps[task->worker % WORKERS], 1);
    usleep(NAP_US);
    return 0;
}

static void *cancel_later(void *context)
{
    cancelling *cancel = context;
    usleep((useconds_t)cancel->after_us);
    cancel->starved = starved();
    cancel->begun = seconds();
    cancel->status = dm_cancel(running);
    for (int w = 0; w < WORKERS; w++) {
        cancel->naps[w] = atomic_load(&naps[w]);
    }
    atomic_store(&cancel->done, true);
    return NULL;
}

/* How long it took, but for the time without a processor. */
static double took_s(const cancelling *cancel, double end)
{
    double took = end - cancel->begun - (starved() - cancel->starved);
    return took > 0 ? took : 0;
}

static int by_value(const void *left, const void *right)
{
    double x = *(const double *)left, y = *(const double *)right;
    return (x > y) - (x < y);
}

static void set_up(work *k, dm_session *s)
{
    double left[N * N], right[N * N];
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    *k = (work){.s = s, .folder = "/tmp/dmath-cancel-XXXXXX"};
    assert_non_null(mkdtemp(k->folder));
    snprintf(k->path, sizeof k->path, "%s/a.npy", k->folder);
    element_matrix(N, 1, left);
    element_matrix(N, 2, right);
    product(N, left, right, k->straight);
    for (int i = 0; i < N * N; i++) {
        k->across[i] = k->straight[i % N * N + i / N];
    }
    k->a = make_matrix(s, N, &rows, 1);
    k->b = make_matrix(s, N, &cols, 2);
    k->c = make_matrix(s, N, &rows, 3);
    k->d = make_matrix(s, N, &cols, 4);
    k->p = make_matrix(s, N, &rows, 3);
    k->q = make_matrix(s, N, &cols, 4);
    dm_array *const vectors[] = {&k->v, &k->w};
    for (int i = 0; i < 2; i++) {
        const int64_t n = LONG;
        OK(dm_array_create(s, DM_F64, 1, &n, &rows, vectors[i]));
        OK(dm_fill_uniform(s, *vectors[i], 1, 2, 7));
    }
    OK(dm_array_read(s, k->v, NULL, NULL, k->sorted, 0));
    qsort(k->sorted, LONG, sizeof k->sorted[0], by_value);
    OK(dm_program_begin(s));
    OK(dm_gemm(s, DM_N, DM_N, 1, k->a, k->b, 0, k->p));
    OK(dm_apply(s, "naps", 1, &k->p, (int[]){DM_READWRITE}, NULL, 0));
    OK(dm_transpose(s, k->p, k->q));
    OK(dm_program_end(s, &k->program));
}

static void tear_down(work *k)
{
    const dm_array all[] = {k->a, k->b, k->c, k->d, k->p, k->q, k->v, k->w};
    OK(dm_program_destroy(k->s, k->program));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        OK(dm_array_destroy(k->s, all[i]));
    }
    (void)unlink(k->path);
    assert_int_equal(rmdir(k->folder), 0);
}

static dm_status one_call(work *k, int number)
{
    switch (number) {
    case 0:
        return dm_gemm(k->s, DM_N, DM_N, 1, k->a, k->b, 0, k->c);
    case 1:
        return dm_transpose(k->s, k->c, k->d);
    case 2:
        return dm_apply(k->s, "naps", 1, &k->d, (int[]){DM_READWRITE}, NULL, 0);
    case 3:
        return dm_copy(k->s, k->d, k->c);
    case 4:
        return dm_program_run(k->s, k->program, RUNS, 0, NULL);
    case 5:
        return dm_sort(k->s, k->v, 0, 0, k->w);
    default:
        return dm_array_save(k->s, k->a, k->path);
    }
}
enum { SORT = 5, SAVE = 6, CALLS = 7, ALL_CALLS = (1 << CALLS) - 1, MOST_NAPS = RUNS /* of one call */ };

/* The calls of the set `which`, until one says that it was cancelled, or nothing more is to be queued. */
static dm_status some_turns(work *k, int turns, int which, cancelling *cancel, int *by)
{
    dm_status status = DM_OK;
    for (int i = 0; i < turns && status == DM_OK; i++) {
        for (int number = 0; number < CALLS && status == DM_OK; number++) {
            if (!(which >> number & 1)) {
                continue;
            }
            if (cancel && atomic_load(&cancel->done)) {
                return DM_OK;
            }
            status = one_call(k, number);
            *by = number;
        }
    }
    return status;
}

static bool equals(const double *values, const double *want)
{
    return memcmp(values, want, N * N * sizeof *values) == 0;
}

/* What may have been cancelled is what it was, what it shall be, or not to be read. Returns how many are not.
 */
static int look(work *k)
{
    double values[N * N], before[2][N * N];
    static double numbers[LONG];
    const dm_array all[] = {k->c, k->d, k->p, k->q};
    int poisoned = 0;
    element_matrix(N, 3, before[0]);
    element_matrix(N, 4, before[1]);
    for (int i = 0; i < 4; i++) {
        dm_status status = read_matrix(k->s, all[i], N, NULL);
        assert_true(status == DM_OK || status == DM_ERR_POISONED);
        poisoned += status != DM_OK;
        if (status == DM_OK) {
            OK(dm_array_read(k->s, all[i], NULL, NULL, values, 0));
            assert_true(equals(values, before[i % 2]) || equals(values, k->across) ||
                        equals(values, k->straight));
        }
    }
    dm_status status = dm_array_read(k->s, k->w, NULL, NULL, numbers, 0);
    assert_true(status == DM_OK || status == DM_ERR_POISONED);
    poisoned += status != DM_OK;
    assert_true(status != DM_OK || numbers[0] == 0 || memcmp(numbers, k->sorted, sizeof numbers) == 0);
    matrix_is(k->s, k->a, N, 1);
    matrix_is(k->s, k->b, N, 2);
    return poisoned;
}

/* The folder has the file alone, whole, or nothing. */
static void look_at_file(work *k, bool there)
{
    DIR *folder = opendir(k->folder);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "a.npy") != 0) {
            fail_msg("%s was left", entry->d_name);
        }
    }
    closedir(folder);
    dm_array loaded;
    if (there || access(k->path, F_OK) == 0) {
        OK(dm_array_load(k->s, k->path, NULL, &loaded));
        matrix_is(k->s, loaded, N, 1);
        OK(dm_array_destroy(k->s, loaded));
    }
}

static void write_matrix(dm_session *s, dm_array x, int seed)
{
    double values[N * N];
    element_matrix(N, seed, values);
    OK(dm_array_write(s, x, NULL, NULL, values, 0));
}

static bool cancelled_after(work *k, int after_us, int which, int *poisoned)
{
    cancelling cancel = {.after_us = after_us};
    pthread_t thread;
    write_matrix(k->s, k->c, 3);
    write_matrix(k->s, k->d, 4);
    write_matrix(k->s, k->p, 3);
    write_matrix(k->s, k->q, 4);
    OK(dm_fill(k->s, k->w, 0));
    OK(dm_sync(k->s));
    (void)unlink(k->path);
    running = k->s;
    assert_int_equal(pthread_create(&thread, NULL, cancel_later, &cancel), 0);
    int by = CALLS, turns = which & (1 << SORT | 1 << SAVE) ? 12 : 36; /* without these all is queued at once */
    dm_status status = some_turns(k, turns, which, &cancel, &by);
    if (status == DM_OK) {
        by = CALLS;
        status = dm_sync(k->s);
    }
    double end = seconds();
    int begun[WORKERS];
    for (int w = 0; w < WORKERS; w++) {
        begun[w] = atomic_load(&naps[w]);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    OK(cancel.status);
    assert_true(status == DM_OK || status == DM_ERR_CANCELLED);
    if (status == DM_ERR_CANCELLED) {
        assert_non_null(strstr(dm_error_message(), "it was cancelled"));
        k->took[by][k->returned[by]++] = took_s(&cancel, end);
        for (int w = 0; w < WORKERS;
             w++) { /* the step that had begun, and those of a call that was queued behind the cancel */
            assert_in_range(begun[w] - cancel.naps[w], 0, 1 + MOST_NAPS);
        }
    }
    OK(dm_sync(k->s));
    int unreadable = look(k);
    assert_true(unreadable == 0 || status == DM_ERR_CANCELLED);
    *poisoned += unreadable > 0;
    look_at_file(k, false);
    OK(some_turns(k, 1, ALL_CALLS, NULL, &by)); /* and it goes on */
    OK(read_matrix(k->s, k->c, N, k->across));
    OK(read_matrix(k->s, k->d, N, k->across));
    OK(read_matrix(k->s, k->q, N, k->across));
    assert_int_equal(look(k), 0);
    look_at_file(k, true);
    return status == DM_ERR_CANCELLED;
}

static void took(work *k, const char *call, int number)
{
    int count = k->returned[number], late = 0;
    assert_true(count > 0);
    qsort(k->took[number], (size_t)count, sizeof k->took[number][0], by_value);
    for (int i = 0; i < count; i++) {
        late += k->took[number][i] > HALF_WITHIN_S;
    }
    double half = k->took[number][count / 2], slowest = k->took[number][count - 1];
    print_message(
        "told by %s %d times: half after at most %.4f s, the slowest after %.3f s, %d after more than %.3f s\n",
        call, count, half, slowest, late, HALF_WITHIN_S);
    assert_true(half < HALF_WITHIN_S);
    assert_true(slowest < ALL_WITHIN_S);
}

static void test_random_moments(void **state)
{
    (void)state;
    const char *given = getenv("DMATH_TEST_CANCELS"), *given_seed = getenv("DMATH_TEST_SEED");
    unsigned seed = given_seed ? (unsigned)atoi(given_seed) : (unsigned)time(NULL);
    int wanted = given ? atoi(given) : TRIES, cancelled = 0, poisoned = 0, tries = 0;
    work *k = malloc(sizeof *k);
    assert_non_null(k);
    assert_in_range(wanted, 1, MOST_TRIES / 4);
    dm_session *s = open_session(WORKERS, "log=error");
    print_message("seed %u\n", seed);
    set_up(k, s);
    for (; tries < wanted || (cancelled <= wanted / 2 && tries < 4 * wanted);
         tries++) { /* a slow machine may cancel too late */
        int without =
            (tries % 2 ? 0 : 1 << SORT) | (tries / 2 % 2 ? 0 : 1 << SAVE); /* these wait for what is queued */
        seed = seed * 1103515245 + 12345;
        alarm(TRY_S);
        cancelled += cancelled_after(k, (int)(seed >> 8) % 200000, ALL_CALLS & ~without, &poisoned);
    }
    print_message("%d of %d were cancelled, %d of them left arrays that cannot be read\n", cancelled, tries,
                  poisoned);
    assert_true(cancelled > wanted / 2);
    assert_true(poisoned > wanted / 4);
    took(k, "sort", SORT);
    took(k, "save", SAVE);
    took(k, "sync", CALLS);
    tear_down(k);
    free(k);
    close_session(s);
}

static void test_nothing(void **state)
{
    (void)state;
    dm_session *s = open_session(WORKERS, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1);
    OK(dm_sync(s));
    OK(dm_cancel(s));
    OK(dm_sync(s));
    matrix_is(s, a, N, 1);
    OK(dm_fill(s, a, 2));
    OK(dm_sync(s));
    OK(dm_array_destroy(s, a));
    close_session(s);
    assert_int_equal(dm_cancel(s), DM_ERR_STATE);
    assert_int_equal(dm_cancel(NULL), DM_ERR_HANDLE);
}

static void on_alarm(int signal_number)
{
    (void)signal_number;
    (void)!dm_cancel(running);
}

static int long_nap(const dm_task *task)
{
    atomic_fetch_add(&naps[task->worker], 1);
    usleep(100000);
    return 0;
}

/* From a signal handler: most commands of a minute in all are not begun. */
static void test_signal(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1);
    struct sigaction act = {.sa_handler = on_alarm}, before;
    running = s;
    assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
    for (int i = 0; i < LONG_NAPS; i++) {
        OK(dm_apply(s, "long naps", 1, &a, (int[]){DM_READWRITE}, NULL, 0));
    }
    int before_naps = atomic_load(&naps[0]);
    alarm(1);
    assert_int_equal(dm_sync(s), DM_ERR_CANCELLED);
    assert_true(atomic_load(&naps[0]) - before_naps < LONG_NAPS / 2);
    alarm(0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    OK(dm_array_destroy(s, a));
    close_session(s);
}

/* Runs that would take days, in a row or in loops of the program, on all workers or on some, with transfers or
 * without. */
static void test_long_runs(void **state)
{
    (void)state;
    enum { SHAPES = 4 };
    const int64_t for_ever = INT64_C(1) << 40;
    for (int workers = 1; workers <= WORKERS; workers++) {
        dm_session *s = open_session(workers, "log=error");
        dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s), one = dm_layout_single(workers - 1);
        dm_array a = make_matrix(s, N, &rows, 1), b = make_matrix(s, N, &cols, 2),
                 c = make_matrix(s, N, &one, 3);
        running = s;
        for (int shape = 0; shape < SHAPES; shape++) {
            cancelling cancel = {.after_us = 30000};
            pthread_t thread;
            dm_program program;
            OK(dm_program_begin(s));
            if (shape > 0) {
                OK(dm_program_repeat(s, shape > 1 ? 3 : for_ever));
                OK(dm_copy(s, c, c));
                OK(dm_program_repeat(s, shape > 2 ? 5 : for_ever));
            }
            OK(dm_transpose(s, a, b));
            OK(dm_transpose(s, b, a));
            if (shape > 0) {
                OK(dm_program_repeat_end(s));
                OK(dm_program_repeat_end(s));
            }
            OK(dm_program_end(s, &program));
            OK(dm_program_run(s, program, for_ever, 0, NULL));
            alarm(TRY_S);
            assert_int_equal(pthread_create(&thread, NULL, cancel_later, &cancel), 0);
            assert_int_equal(dm_sync(s), DM_ERR_CANCELLED);
            double end = seconds();
            assert_int_equal(pthread_join(thread, NULL), 0);
            OK(cancel.status);
            double took = took_s(&cancel, end);
            print_message("%d workers, loops %d: told after %.4f s, without processors %.4f s less\n", workers,
                          shape, end - cancel.begun, end - cancel.begun - took);
            assert_true(took < ALL_WITHIN_S);
            OK(dm_program_run(s, program, 0, 0, NULL));
            write_matrix(s, a, 1);
            OK(dm_program_destroy(s, program));
            matrix_is(s, a, N, 1);
        }
        const dm_array all[] = {a, b, c};
        for (int i = 0; i < 3; i++) {
            OK(dm_array_destroy(s, all[i]));
        }
        close_session(s);
    }
}

static int register_naps(void **state)
{
    (void)state;
    return dm_register("naps", nap) != DM_OK || dm_register("long naps", long_nap) != DM_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_random_moments, deadline),
        cmocka_unit_test_setup(test_nothing, deadline),
        cmocka_unit_test_setup(test_signal, deadline),
        cmocka_unit_test_setup(test_long_runs, deadline),
    };
    if (getenv("DMATH_TEST_LAUNCHED")) { /* one session a job */
        cmocka_set_test_filter("test_random_moments");
    }
    return cmocka_run_group_tests(tests, register_naps, NULL);
}
