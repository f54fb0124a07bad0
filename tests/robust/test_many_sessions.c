/* Sessions at once, one after the other, and after their end. */
#include "robust.h"

#include <dirent.h>
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { N = 24 };

static void work(dm_session *s, int seed)
{
    double a[N * N], b[N * N], want[N * N];
    dm_layout rows = dm_layout_rows(s), columns = dm_layout_cols(s);
    dm_array x = make_matrix(s, N, &rows, seed), y = make_matrix(s, N, &rows, seed + 1);
    dm_array z = make_matrix(s, N, &columns, seed + 2);
    OK(dm_gemm(s, DM_N, DM_N, 1, x, y, 0, z));
    element_matrix(N, seed, a);
    element_matrix(N, seed + 1, b);
    product(N, a, b, want);
    OK(read_matrix(s, z, N, want));
    OK(dm_array_destroy(s, x));
    OK(dm_array_destroy(s, y));
    OK(dm_array_destroy(s, z));
}

static void test_turns_in_one_thread(void **state)
{
    (void)state;
    enum { SESSIONS = 5 };
    dm_session *s[SESSIONS];
    dm_array a[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        s[i] = open_session(1 + i, "");
        a[i] = make_matrix(s[i], N, NULL, i);
    }
    for (int turn = 0; turn < 20; turn++) {
        for (int i = 0; i < SESSIONS; i++) {
            work(s[i], turn + i);
        }
    }
    for (int i = 0; i < SESSIONS; i++) {
        for (int other = 0; other < SESSIONS; other++) {
            double value[N * N];
            dm_status status = dm_array_read(s[i], a[other], NULL, NULL, value, 0);
            assert_int_equal(status, i == other ? DM_OK : DM_ERR_HANDLE);
            assert_true(i == other || strstr(dm_error_message(), "another session"));
            assert_true(i == other || dm_array_destroy(s[i], a[other]) == DM_ERR_HANDLE);
            assert_true(i == other || dm_copy(s[i], a[i], a[other]) == DM_ERR_HANDLE);
        }
        matrix_is(s[i], a[i], N, i);
    }
    for (int i = 0; i < SESSIONS; i++) {
        OK(dm_array_destroy(s[i], a[i]));
        close_session(s[i]);
    }
}

static void *thread_main(void *arg)
{
    const int *number = arg;
    for (int turn = 0; turn < 5; turn++) {
        dm_session *s = open_session(1 + *number % 3, "");
        for (int i = 0; i < 10; i++) {
            work(s, *number + i);
        }
        /* the text of a failure belongs to the thread that met it */
        char options[80], word[64];
        snprintf(word, sizeof word, "nonsense_%d", *number);
        snprintf(options, sizeof options, "%s=1", word);
        dm_config config = {sizeof config, 1, options};
        dm_session *none = NULL;
        assert_int_equal(dm_init(&config, &none), DM_ERR_CONFIG);
        assert_non_null(strstr(dm_error_message(), word));
        close_session(s);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 6 };
    pthread_t thread[THREADS];
    int number[THREADS];
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&thread[i], NULL, thread_main, &number[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    }
}

static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n;
}

static long resident_kib(void)
{
    long pages = 0, size = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &size, &pages), 2);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_one_after_the_other(void **state)
{
    (void)state;
    int threads = 0, files = 0;
    long memory = 0;
    for (int turn = 0; turn < 60; turn++) {
        dm_session *s = open_session(1 + turn % 4, turn % 2 ? "pool_debug=1" : "");
        work(s, turn);
        close_session(s);
        if (turn == 9) {
            threads = entries("/proc/self/task");
            files = entries("/proc/self/fd");
            memory = resident_kib();
        }
    }
    /* A thread that was joined may stand in /proc for a moment more. */
    for (int i = 0; i < 1000 && entries("/proc/self/task") > threads; i++) {
        usleep(10000);
    }
    assert_int_equal(entries("/proc/self/task"), threads);
    assert_int_equal(entries("/proc/self/fd"), files);
    print_message("50 sessions: %ld KiB resident became %ld KiB\n", memory, resident_kib());
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(resident_kib() < memory + 4096);
#endif
}

static void test_after_the_end(void **state)
{
    (void)state;
    const int64_t shape[2] = {2, 2};
    double value[4];
    char *text = NULL;
    int64_t alive = -1;
    dm_counters counters = {.size = sizeof counters};
    dm_memory memory = {.size = sizeof memory};
    dm_array_info info = {.size = sizeof info};
    dm_array out = {77};
    dm_session *s = open_session(2, "log=error");
    dm_array a = make_matrix(s, N, NULL, 1), v;
    const int64_t lo[2] = {0, 0};
    OK(dm_array_view(s, a, lo, shape, &v));
    OK(dm_finalize(s, &alive));
    assert_int_equal(alive, 2);
    alive = -1;
    assert_int_equal(dm_finalize(s, &alive), DM_ERR_STATE);
    assert_int_equal(alive, -1);
    assert_int_equal(dm_sync(s), DM_ERR_STATE);
    assert_int_equal(dm_noop(s), DM_ERR_STATE);
    assert_int_equal(dm_workers(s), 0);
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, NULL, &out), DM_ERR_STATE);
    assert_int_equal(dm_matrix(s, DM_F32, 2, 2, &out), DM_ERR_STATE);
    assert_int_equal(dm_array_destroy(s, a), DM_ERR_STATE);
    assert_int_equal(dm_array_query(s, a, &info), DM_ERR_STATE);
    assert_int_equal(dm_array_view(s, a, lo, shape, &out), DM_ERR_STATE);
    assert_int_equal(dm_array_reshape(s, a, 2, shape, &out), DM_ERR_STATE);
    assert_int_equal(dm_array_read(s, a, NULL, NULL, value, 0), DM_ERR_STATE);
    assert_int_equal(dm_array_write(s, a, NULL, NULL, value, 0), DM_ERR_STATE);
    assert_int_equal(dm_array_load(s, "/tmp/none.npy", NULL, &out), DM_ERR_STATE);
    assert_int_equal(dm_array_save(s, a, "/tmp/none.npy"), DM_ERR_STATE);
    assert_int_equal(dm_fill(s, a, 1), DM_ERR_STATE);
    assert_int_equal(dm_copy(s, a, v), DM_ERR_STATE);
    assert_int_equal(dm_gemm(s, DM_N, DM_N, 1, a, a, 0, v), DM_ERR_STATE);
    assert_int_equal(dm_explain_begin(s), DM_ERR_STATE);
    assert_int_equal(dm_explain_end(s, &text), DM_ERR_STATE);
    assert_int_equal(dm_counters_get(s, 0, &counters), DM_ERR_STATE);
    assert_int_equal(dm_memory_report(s, 0, &memory), DM_ERR_STATE);
    assert_int_equal(dm_memory_trim(s), DM_ERR_STATE);
    assert_true(out.id == 77);
    /* layouts made for a session that has ended are refused where they are used */
    dm_layout dead = dm_layout_rows(s);
    dm_session *t = open_session(2, "");
    dm_status status = dm_array_create(t, DM_F32, 2, shape, &dead, &out);
    assert_true(status == DM_OK || status == DM_ERR_LAYOUT || status == DM_ERR_ARG);
    if (status == DM_OK) {
        OK(dm_array_destroy(t, out));
    }
    assert_int_equal(dm_array_destroy(t, a), DM_ERR_HANDLE);
    close_session(t);
}

/* Where nothing launched the program, MPI is left alone. */
static void test_mpi_is_left_alone(void **state)
{
    (void)state;
    int flag = -1;
    dm_session *s = open_session(2, "");
    work(s, 1);
    MPI_Initialized(&flag);
    assert_int_equal(flag, 0);
    close_session(s);
    MPI_Finalized(&flag);
    assert_int_equal(flag, 0);
}

enum { LEAVES_BY_RETURN, LEAVES_BY_EXIT, LEAVES_BY_ABORT, LEAVES_BY_KILL, WAYS };

_Noreturn static void child_main(int way)
{
    alarm(90);
    dm_session *s = open_session(3, "log=error,link_latency_us=100");
    dm_layout rows = dm_layout_rows(s);
    dm_array a = make_matrix(s, MOST, &rows, 1), b = make_matrix(s, MOST, &rows, 2),
             c = make_matrix(s, MOST, &rows, 3);
    for (int i = 0; i < 2000; i++) {
        OK(dm_gemm(s, DM_N, DM_N, 1, a, b, 0, c));
    }
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (way == LEAVES_BY_ABORT) {
        abort();
    } else if (way == LEAVES_BY_KILL) {
        raise(SIGKILL);
    } else if (way == LEAVES_BY_EXIT) {
        exit(7);
    }
    _exit(7);
}

/* A program that leaves without dm_finalize, its workers busy, is gone at once. */
static void test_leaving_without_finalize(void **state)
{
    (void)state;
    for (int round = 0; round < 3 * WAYS; round++) {
        int way = round % WAYS, status = 0;
        fflush(NULL);
        double begin = seconds();
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            child_main(way);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(seconds() - begin < 60);
        if (way == LEAVES_BY_ABORT || way == LEAVES_BY_KILL) {
            assert_true(WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), way == LEAVES_BY_ABORT ? SIGABRT : SIGKILL);
        } else {
            assert_true(WIFEXITED(status));
            assert_int_equal(WEXITSTATUS(status), 7);
        }
    }
}

/* Threads or memory for the workers run out in the middle of dm_init: an error, and nothing is left behind. */
static void test_too_many_workers(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* they need the address space themselves */
#endif
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        dm_session *s = open_session(2, "log=error");
        close_session(s); /* what is loaded once is there */
        int threads = entries("/proc/self/task"), bad = 0;
        struct rlimit space = {0, 0};
        for (int mib = 64; mib <= 2048 && !bad; mib *= 2) {
            long size = 0;
            FILE *f = fopen("/proc/self/statm", "r");
            bad = !f || fscanf(f, "%ld", &size) != 1;
            fclose(f);
            space.rlim_max = RLIM_INFINITY;
            space.rlim_cur = (rlim_t)size * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)mib << 20);
            bad = bad || setrlimit(RLIMIT_AS, &space) != 0;
            dm_config config = {sizeof config, 300, "log=error"};
            dm_session *many = NULL;
            dm_status status = dm_init(&config, &many);
            if (status == DM_OK) {
                status = dm_finalize(many, NULL);
                bad = bad || status != DM_OK;
            } else {
                bad = bad || status != DM_ERR_NOMEM || !*dm_error_message();
            }
            for (int i = 0; i < 1000 && entries("/proc/self/task") > threads; i++) {
                usleep(10000);
            }
            bad = bad || entries("/proc/self/task") > threads;
        }
        _exit(bad);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_turns_in_one_thread, deadline),
        cmocka_unit_test_setup(test_many_threads, deadline),
        cmocka_unit_test_setup(test_one_after_the_other, deadline),
        cmocka_unit_test_setup(test_after_the_end, deadline),
        cmocka_unit_test_setup(test_mpi_is_left_alone, deadline),
        cmocka_unit_test_setup(test_leaving_without_finalize, deadline),
        cmocka_unit_test_setup(test_too_many_workers, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
