/* Status texts, log lines, the arena, what the kernel tells about processes. */
#include "base/base.h"
#include "base/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_status_names(void **state)
{
    (void)state;
    assert_string_equal(dmi_status_name(DM_OK), "OK");
    assert_string_equal(dmi_status_name(DM_ERR_SHAPE), "ERR_SHAPE");
    assert_string_equal(dmi_status_name(DM_ERR_INTERNAL), "ERR_INTERNAL");
    assert_string_equal(dmi_status_name((dm_status)-1), "?");
    assert_string_equal(dmi_status_name((dm_status)1000), "?");
}

static void test_fail_text(void **state)
{
    (void)state;
    assert_int_equal(dmi_fail(DM_ERR_ARG, "n is %d", 7), DM_ERR_ARG);
    assert_string_equal(dmi_error_text(), "n is 7");
    dmi_fail(DM_ERR_IO, "load: %s", dmi_error_text()); /* the old text as an argument */
    assert_string_equal(dmi_error_text(), "load: n is 7");

    char big[5000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    dmi_fail(DM_ERR_IO, "%s", big);
    size_t length = strlen(dmi_error_text());
    assert_true(length > 1000 && length < sizeof big);
    assert_string_equal(dmi_error_text() + length - 3, "...");
}

/* Memory that is not there: what was asked for, once, and what there is. */
static void test_fail_of_memory(void **state)
{
    (void)state;
    volatile size_t much = SIZE_MAX / 4;
    void *at = dmi_alloc_lines(2, much);
    assert_null(at);
    dmi_fail(DM_ERR_NOMEM, "no memory for a thing");
    char want[96];
    snprintf(want, sizeof want, "no memory for a thing; %zu bytes were asked for, ", 2 * much);
    assert_ptr_equal(strstr(dmi_error_text(), want), dmi_error_text());
    assert_null(strstr(dmi_error_text(), "-1"));
    dmi_fail(DM_ERR_NOMEM, "call: %s", dmi_error_text());
    const char *first = strstr(dmi_error_text(), "were asked for");
    assert_non_null(first);
    assert_null(strstr(first + 1, "were asked for"));

    at = dmi_alloc_lines(2, much);
    assert_null(at);
    dmi_api_begin(1); /* another call, which has asked for nothing */
    dmi_fail(DM_ERR_NOMEM, "of the call");
    assert_string_equal(dmi_error_text(), "of the call");
    dmi_api_begin(0);
}

static void *fail_elsewhere(void *arg)
{
    *(int *)arg = dmi_error_text()[0] == 0;
    dmi_fail(DM_ERR_ARG, "of the other thread");
    return NULL;
}

static void test_fail_is_per_thread(void **state)
{
    (void)state;
    dmi_fail(DM_ERR_ARG, "mine");
    pthread_t thread;
    int was_empty = 0;
    assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, &was_empty), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(was_empty);
    assert_string_equal(dmi_error_text(), "mine");
}

/* Runs `speak` with stderr going into a pipe and returns what was written. */
static void captured(void (*speak)(void), char *text, size_t bytes)
{
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(saved >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    speak();
    dup2(saved, STDERR_FILENO);
    close(saved);
    size_t have = 0;
    for (ssize_t got; have < bytes - 1 && (got = read(ends[0], text + have, bytes - 1 - have)) > 0;) {
        have += (size_t)got;
    }
    text[have] = 0;
    close(ends[0]);
}

static void speak_levels(void)
{
    dmi_log_set_who("worker 3");
    dmi_log_set_level(DMI_LOG_INFO);
    dmi_log(DMI_LOG_ERROR, "a %d", 1);
    dmi_log(DMI_LOG_INFO, "b");
    dmi_log(DMI_LOG_DEBUG, "never");
    dmi_log_set_level(DMI_LOG_TRACE);
    dmi_log(DMI_LOG_TRACE, "c %s", "%d");
}

static void speak_long(void)
{
    char big[9000];
    memset(big, 'y', sizeof big - 1);
    big[sizeof big - 1] = 0;
    dmi_log(DMI_LOG_WARN, "%s", big);
    dmi_log(DMI_LOG_WARN, "next");
}

static void *speak_from_thread(void *arg)
{
    (void)arg;
    dmi_log_set_who("other");
    dmi_log(DMI_LOG_WARN, "x");
    return NULL;
}

static void speak_threads(void)
{
    pthread_t thread;
    dmi_log_set_who("master");
    assert_int_equal(pthread_create(&thread, NULL, speak_from_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    dmi_log(DMI_LOG_WARN, "y");
    dmi_log_set_who("");
    dmi_log(DMI_LOG_WARN, "z");
}

static void test_log(void **state)
{
    (void)state;
    static char text[20000];
    captured(speak_levels, text, sizeof text);
    assert_string_equal(text, "dmath[worker 3] error: a 1\n"
                              "dmath[worker 3] info: b\n"
                              "dmath[worker 3] trace: c %d\n");
    captured(speak_long, text, sizeof text);
    char *end = strchr(text, '\n');
    assert_non_null(end);
    assert_memory_equal(end - 3, "...", 3);
    assert_string_equal(end + 1, "dmath[worker 3] warn: next\n");
    captured(speak_threads, text, sizeof text);
    assert_string_equal(text, "dmath[other] warn: x\ndmath[master] warn: y\ndmath warn: z\n");
    dmi_log_set_level(DMI_LOG_WARN);
    assert_true(dmi_log_on(DMI_LOG_WARN));
    assert_false(dmi_log_on(DMI_LOG_INFO));
}

/* Every block is zero when handed out, aligned, and still holds what was written when all are there. */
static void test_arena_blocks(void **state)
{
    (void)state;
    enum { BLOCKS = 3000 };
    static unsigned char *at[BLOCKS];
    static size_t size[BLOCKS];
    dmi_arena arena = {0};
    for (int round = 0; round < 2; round++) {
        uint64_t random = 12345;
        size_t total = 0;
        for (int i = 0; i < BLOCKS; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            size_t bits = 1 + (random >> 60); /* sizes of every magnitude up to 64 KiB */
            size[i] = (size_t)(random >> 33) & (((size_t)1 << bits) - 1);
            size[i] = i == 0 ? 100000 : i == 500 ? 3 << 20 : size[i];
            at[i] = dmi_arena_alloc(&arena, size[i]);
            assert_non_null(at[i]);
            assert_int_equal((uintptr_t)at[i] % 16, 0);
            for (size_t k = 0; k < size[i]; k++) {
                assert_int_equal(at[i][k], 0);
            }
            memset(at[i], i % 255 + 1, size[i]);
            total += size[i];
        }
        assert_true(arena.bytes == total);
        for (int i = 0; i < BLOCKS; i++) {
            for (size_t k = 0; k < size[i]; k++) {
                if (at[i][k] != i % 255 + 1) {
                    fail_msg("block %d was written over at %zu", i, k);
                }
            }
        }
        dmi_arena_free(&arena);
        assert_null(arena.head);
        assert_true(arena.bytes == 0);
    }
}

static void test_arena_edges(void **state)
{
    (void)state;
    dmi_arena arena = {0};
    void *a = dmi_arena_alloc(&arena, 0), *b = dmi_arena_alloc(&arena, 0);
    assert_non_null(a);
    assert_non_null(b);
    assert_true(a != b && arena.bytes == 0);
    assert_null(dmi_arena_alloc(&arena, SIZE_MAX));
    /* A refusal leaves it usable; a large request does not lose the rest of the small chunk. */
    char *c = dmi_arena_alloc(&arena, 16);
    assert_non_null(dmi_arena_alloc(&arena, 1 << 21));
    char *d = dmi_arena_alloc(&arena, 16);
    assert_ptr_equal(d, c + 16);
    dmi_arena_free(&arena);
    dmi_arena_free(&arena);
}

static void test_clock_and_mul(void **state)
{
    (void)state;
    int64_t before = dmi_now_ns(), product = 0;
    usleep(2000);
    assert_true(dmi_now_ns() - before >= 2000000);
    assert_true(dmi_mul_fits(INT64_C(3037000499), INT64_C(3037000499), &product));
    assert_true(product == INT64_C(3037000499) * INT64_C(3037000499));
    assert_false(dmi_mul_fits(INT64_C(3037000500), INT64_C(3037000500), &product));
}

/* A process that was started with an environment of more than one piece of reading. */
static void test_process(void **state)
{
    (void)state;
    enum { LONG = 5000 };
    static char text[LONG + 1] = "LONG=";
    char *environment[] = {"RANK=12", text, "RANKS=3", "LAST=", NULL}, *arguments[] = {"cat", NULL}, byte;
    int in[2], out[2];
    memset(text + 5, 'x', LONG - 5);
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        execve("/bin/cat", arguments, environment);
        _exit(1);
    }
    assert_int_equal(write(in[1], "x", 1), 1);
    assert_int_equal(read(out[0], &byte, 1), 1); /* it runs */
    static const char *const there[] = {"RANK=12", "RANKS=3", "LAST=", text};
    static const char *const missing[] = {"RANK=1", "RANK=123", "ANK=12", "", "LAST", "RANK", "x"};
    for (int i = 0; i < DMI_COUNT(there); i++) {
        assert_true(dmi_process_has(child, there[i]));
    }
    for (int i = 0; i < DMI_COUNT(missing); i++) {
        assert_false(dmi_process_has(child, missing[i]));
    }
    assert_int_equal(dmi_process_parent(child), getpid());
    assert_int_equal(dmi_process_parent(getpid()), getppid());
    close(in[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(dmi_process_has(child, "RANK=12"));
    assert_int_equal(dmi_process_parent(child), 0);
    close(in[0]);
    close(out[0]);
    close(out[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_names),
        cmocka_unit_test(test_fail_text),
        cmocka_unit_test(test_fail_of_memory),
        cmocka_unit_test(test_fail_is_per_thread),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_arena_blocks),
        cmocka_unit_test(test_arena_edges),
        cmocka_unit_test(test_clock_and_mul),
        cmocka_unit_test(test_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
