/* Emulated GPUs: the order of streams, events, words that are waited for, copies, and memory that another
 * process maps. The program runs itself once more as that process. */
#include "base/fault.h"
#include "device/emulated/emulated.h"
#include "device/runtime.h"
#include "dmath/dmath.h"
#include "kernels/cuda/cuda.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORDS = 256, BLOCK_BYTES = 5000 };

static void ok(dm_status status)
{
    if (status != DM_OK) {
        fail_msg("%s: %s", dmi_status_name(status), dmi_error_text());
    }
}

static void nap(int64_t us)
{
    struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static dmi_stream stream(void)
{
    dmi_stream s = NULL;
    ok(dmi_cu_stream_create(&s));
    return s;
}

static dmi_event event(bool timing)
{
    dmi_event e = NULL;
    ok(dmi_cu_event_create(timing, &e));
    return e;
}

/* Words of device memory, all zero. */
static uint32_t *words(void)
{
    uint32_t *w = dmi_cu_malloc(WORDS * sizeof *w);
    assert_non_null(w);
    ok(dmi_cu_zero(w, WORDS * sizeof *w));
    return w;
}

/* The word becomes the value when the stream gets there. */
static void raise_word(dmi_stream s, uint32_t *word, uint32_t value)
{
    ok(dmi_cu_copy(s, word, &value, sizeof value));
}

static uint32_t word_now(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* --- streams and events --------------------------------------------------------------------- */
static void test_order(void **state)
{
    (void)state;
    dmi_stream a = stream(), b = stream();
    dmi_event e = event(false);
    uint32_t *w = words(), seen[201];
    for (uint32_t round = 1; round <= 200; round++) { /* a writes, b carries it on, a waits for that */
        raise_word(a, &w[0], round);
        ok(dmi_cu_event_record(e, a));
        ok(dmi_cu_event_after(b, e));
        ok(dmi_cu_copy(b, &w[round], &w[0], sizeof *w));
        ok(dmi_cu_event_record(e, b));
        ok(dmi_cu_event_after(a, e));
    }
    ok(dmi_cu_stream_wait(b));
    assert_true(dmi_cu_event_reached(e));
    ok(dmi_cu_copy(b, seen, w, sizeof seen));
    for (uint32_t round = 1; round <= 200; round++) {
        assert_int_equal(seen[round], round);
    }
    dmi_cu_event_destroy(e);
    dmi_cu_stream_destroy(a);
    dmi_cu_stream_destroy(b);
    dmi_cu_release(w);
}

static void test_never_recorded(void **state)
{
    (void)state;
    dmi_stream a = stream();
    dmi_event e = event(true), f = event(true);
    double seconds;
    assert_true(dmi_cu_event_reached(e));
    ok(dmi_cu_event_after(a, e));
    ok(dmi_cu_stream_wait(a));
    assert_int_equal(dmi_cu_event_between(e, f, &seconds), DM_ERR_INTERNAL);
    dmi_cu_event_destroy(e);
    dmi_cu_event_destroy(f);
    dmi_cu_event_destroy(NULL);
    dmi_cu_stream_destroy(a);
    dmi_cu_stream_destroy(NULL);
}

/* What CUDA refuses, and the library never does. */
static void test_misuse(void **state)
{
    (void)state;
    dmi_stream a = stream();
    dmi_event there;
    dmi_graph *graph = NULL;
    char pageable[8];
    ok(dmi_cu_use(1));
    there = event(false);
    ok(dmi_cu_use(0));
    assert_int_equal(dmi_cu_event_record(there, a), DM_ERR_INTERNAL);
    assert_int_equal(dmi_cu_set(pageable, 0, sizeof pageable), DM_ERR_INTERNAL);
    assert_int_equal(dmi_cu_capture_end(a, &graph), DM_ERR_INTERNAL);
    ok(dmi_cu_capture_begin(a));
    assert_int_equal(dmi_cu_capture_begin(a), DM_ERR_INTERNAL);
    ok(dmi_cu_capture_end(a, &graph));
    dmi_cu_graph_destroy(graph);
    dmi_cu_event_destroy(there);
    dmi_cu_stream_destroy(a);
}

/* A wait is for the record that was the latest when it was asked for, whatever is recorded later. */
static void test_latest_record(void **state)
{
    (void)state;
    dmi_stream slow = stream(), fast = stream(), later = stream(), waiting = stream(), eager = stream();
    dmi_event e = event(false), done = event(false);
    uint32_t *gate = words();
    ok(dmi_cu_wait_value(slow, gate, 1));
    ok(dmi_cu_event_record(e, slow));
    assert_false(dmi_cu_event_reached(e));
    ok(dmi_cu_event_after(waiting, e));
    ok(dmi_cu_event_record(done, waiting));
    ok(dmi_cu_event_record(e, fast)); /* reached at once, but not what was waited for */
    ok(dmi_cu_stream_wait(fast));
    assert_true(dmi_cu_event_reached(e));
    ok(dmi_cu_event_after(eager, e));
    ok(dmi_cu_wait_value(later, gate, 2));
    ok(dmi_cu_event_record(e, later)); /* is not waited for by eager or waiting */
    ok(dmi_cu_stream_wait(eager));
    nap(2000);
    assert_false(dmi_cu_event_reached(done));
    raise_word(fast, gate, 1);
    ok(dmi_cu_stream_wait(waiting));
    assert_true(dmi_cu_event_reached(done));
    assert_false(dmi_cu_event_reached(e));
    dmi_cu_event_destroy(e); /* before it is reached */
    raise_word(fast, gate, 2);
    dmi_cu_event_destroy(done);
    dmi_stream all[] = {slow, later, waiting, eager, fast};
    for (int i = 0; i < DMI_COUNT(all); i++) {
        dmi_cu_stream_destroy(all[i]);
    }
    dmi_cu_release(gate);
}

static void test_timing(void **state)
{
    (void)state;
    dmi_stream a = stream(), b = stream();
    dmi_event from = event(true), to = event(true), plain = event(false);
    uint32_t *gate = words();
    double seconds = -1;
    ok(dmi_cu_event_record(from, a));
    ok(dmi_cu_wait_value(a, gate, 1));
    ok(dmi_cu_event_record(to, a));
    ok(dmi_cu_event_record(plain, a));
    assert_int_equal(dmi_cu_event_between(from, to, &seconds), DM_ERR_INTERNAL);
    while (!dmi_cu_event_reached(from)) {
        nap(100);
    }
    nap(5000);
    raise_word(b, gate, 1);
    ok(dmi_cu_stream_wait(a));
    ok(dmi_cu_event_between(from, to, &seconds));
    assert_true(seconds >= 0.004 && seconds < 60);
    assert_int_equal(dmi_cu_event_between(from, plain, &seconds), DM_ERR_INTERNAL);
    dmi_cu_event_destroy(from);
    dmi_cu_event_destroy(to);
    dmi_cu_event_destroy(plain);
    dmi_cu_stream_destroy(a);
    dmi_cu_stream_destroy(b);
    dmi_cu_release(gate);
}

/* --- words that are waited for ---------------------------------------------------------------- */
/* Two streams hand a block to and fro; the word that says so comes behind the block. */
static void test_wait_values(void **state)
{
    (void)state;
    enum { N = 1000, ROUNDS = 100 };
    dmi_stream s[2] = {stream(), stream()};
    uint32_t *counter = words(), *block[2], first = UINT32_MAX - ROUNDS, host[N];
    block[0] = dmi_cu_malloc(sizeof host);
    block[1] = dmi_cu_malloc(sizeof host);
    assert_true(block[0] != NULL && block[1] != NULL);
    for (int i = 0; i < 2; i++) {
        raise_word(s[i], &counter[i], first); /* the values pass zero on their way */
        ok(dmi_cu_stream_wait(s[i]));
    }
    for (uint32_t round = 1; round <= 2 * ROUNDS; round++) {
        for (uint32_t i = 0; i < N; i++) {
            host[i] = round * N + i;
        }
        ok(dmi_cu_wait_value(s[0], &counter[1], first + round - 1));
        ok(dmi_cu_copy(s[0], block[0], host, sizeof host)); /* of pageable memory: taken now */
        raise_word(s[0], &counter[0], first + round);
        ok(dmi_cu_wait_value(s[1], &counter[0], first + round));
        ok(dmi_cu_copy(s[1], block[1], block[0], sizeof host));
        raise_word(s[1], &counter[1], first + round);
    }
    ok(dmi_cu_copy(s[1], host, block[1], sizeof host));
    for (uint32_t i = 0; i < N; i++) {
        assert_int_equal(host[i], 2 * ROUNDS * N + i);
    }
    assert_int_equal(word_now(&counter[0]), first + 2 * ROUNDS);
    assert_int_equal(dmi_cu_wait_value(s[0], host, 1), DM_ERR_INTERNAL);
    dmi_cu_stream_destroy(s[0]);
    dmi_cu_stream_destroy(s[1]);
    dmi_cu_release(block[0]);
    dmi_cu_release(block[1]);
    dmi_cu_release(counter);
}

/* What waits for what never comes does not keep a program from ending, and nothing behind it is done. */
static void test_wait_for_ever(void **state)
{
    (void)state;
    dmi_stream a = stream(), b = stream();
    dmi_event e = event(false);
    uint32_t *w = words();
    ok(dmi_cu_wait_value(a, &w[0], 1));
    raise_word(a, &w[1], 7);
    ok(dmi_cu_event_record(e, a));
    ok(dmi_cu_event_after(b, e));
    int64_t begin = dmi_now_ns();
    dmi_cu_stream_destroy(a);
    assert_true(dmi_now_ns() - begin < INT64_C(30000000000));
    assert_int_equal(word_now(&w[1]), 0);
    ok(dmi_cu_stream_wait(b)); /* nor does it keep others waiting */
    dmi_cu_event_destroy(e);
    dmi_cu_stream_destroy(b);
    dmi_cu_release(w);
}

/* --- copies ----------------------------------------------------------------------------------- */
static void test_host_memory(void **state)
{
    (void)state;
    dmi_stream a = stream(), b = stream();
    uint32_t *gate = words();
    char pageable[100], back[100], *pinned = dmi_cu_malloc_host(100), *device = dmi_cu_malloc(200);
    assert_true(pinned != NULL && device != NULL);
    memset(pageable, 1, sizeof pageable);
    memset(pinned, 1, 100);
    ok(dmi_cu_wait_value(a, gate, 1));
    ok(dmi_cu_copy(a, device, pageable, 100));
    ok(dmi_cu_copy(a, device + 100, pinned, 100));
    memset(pageable, 2, sizeof pageable);
    memset(pinned, 2, 100);
    raise_word(b, gate, 1);
    ok(dmi_cu_copy(a, back, device, 100)); /* and waits */
    assert_int_equal(back[0], 1);
    assert_int_equal(back[99], 1);
    ok(dmi_cu_copy(a, back, device + 100, 100));
    assert_int_equal(back[0], 2);
    ok(dmi_cu_pin(back, sizeof back)); /* now to be waited for */
    assert_int_equal(dmi_cu_pin(back, 1), DM_ERR_INTERNAL);
    ok(dmi_cu_wait_value(a, gate, 2));
    ok(dmi_cu_copy(a, back, device, 100));
    assert_int_equal(back[0], 2);
    raise_word(b, gate, 2);
    ok(dmi_cu_stream_wait(a));
    assert_int_equal(back[0], 1);
    dmi_cu_unpin(back);
    assert_int_equal(dmi_cu_copy(a, device + 150, pinned, 51), DM_ERR_INTERNAL);
    dmi_cu_release_host(pinned);
    dmi_cu_release(device);
    dmi_cu_release(gate);
    dmi_cu_stream_destroy(a);
    dmi_cu_stream_destroy(b);
}

static void test_copies_2d(void **state)
{
    (void)state;
    enum { BYTES = 4096 };
    dmi_stream s = stream();
    unsigned char *device = dmi_cu_malloc(BYTES), src[BYTES], expected[BYTES], got[BYTES];
    assert_non_null(device);
    for (int i = 0; i < BYTES; i++) {
        src[i] = (unsigned char)(i * 7 + i / 256);
    }
    for (int64_t width = 1; width <= 64; width = width * 3 + 1) {
        for (int64_t height = 0; height <= 20; height += 5) {
            int64_t from = width + 3, to = width + width % 5;
            memset(expected, 9, BYTES);
            ok(dmi_cu_copy(s, device, expected, BYTES));
            ok(dmi_cu_copy_2d(s, device + 1, to, src + 2, from, width, height));
            for (int64_t i = 0; i < width * height; i++) {
                expected[1 + i / width * to + i % width] = src[2 + i / width * from + i % width];
            }
            memset(got, 0, BYTES);
            ok(dmi_cu_copy_2d(s, got, BYTES, device, BYTES, BYTES, 1));
            assert_memory_equal(got, expected, BYTES);
        }
    }
    assert_int_equal(dmi_cu_copy_2d(s, device, 3, src, 4, 4, 2), DM_ERR_INTERNAL);
    assert_int_equal(dmi_cu_copy_2d(s, device, BYTES, src, BYTES, 1, 2), DM_ERR_INTERNAL);
    dmi_cu_release(device);
    dmi_cu_stream_destroy(s);
}

/* --- devices and their memory ------------------------------------------------------------------ */
static void test_devices(void **state)
{
    (void)state;
    char bus[32], model[64];
    assert_int_equal(dmi_cu_devices(), 2);
    assert_int_equal(dmi_cu_use(2), DM_ERR_STATE);
    assert_int_equal(dmi_cu_use(-1), DM_ERR_STATE);
    ok(dmi_cu_name(1, bus, sizeof bus, model, sizeof model));
    assert_string_equal(bus, "");
    assert_string_equal(model, "emulated 1");
    setenv("DMATH_EMULATED_BUS_IDS", "0000:1b:00.0,0000:9c:00.0", 1);
    ok(dmi_cu_name(1, bus, sizeof bus, model, sizeof model));
    assert_string_equal(bus, "0000:9c:00.0");
    unsetenv("DMATH_EMULATED_BUS_IDS");
    assert_true(dmi_cu_can_peer(0, 1));
    ok(dmi_cu_peer(1));
    ok(dmi_cu_peer(1));
    dmi_queue *q = NULL;
    assert_int_equal(dmi_cuda_queue_create(2, &q), DM_ERR_STATE);
    assert_null(q);
    dmi_cuda_queue_destroy(q);
}

/* What the environment says and is not understood: an error that names it. */
static void test_settings(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *accepted;
    } bad[] = {
        {"DMATH_EMULATED_GPUS", "abc", "from 0 to 64"}, {"DMATH_EMULATED_GPUS", "65", "from 0 to 64"},
        {"DMATH_EMULATED_GPUS", "-1", "from 0 to 64"},  {"DMATH_EMULATED_GPU_MEMORY", "1X", "64M"},
        {"DMATH_EMULATED_GPU_MEMORY", "all", "64M"},    {"DMATH_EMULATED_DELAY_US", "1e3", "from 0 to 1000000"},
        {"DMATH_EMULATED_CUDA_MPI", "never", "false"},
    };
    dm_config config = {sizeof config, 1, "device=emulated"};
    for (int i = 0; i < DMI_COUNT(bad); i++) {
        char before[32] = "";
        const char *old = getenv(bad[i].name);
        snprintf(before, sizeof before, "%s", old ? old : "");
        setenv(bad[i].name, bad[i].value, 1);
        dm_session *s = NULL;
        assert_int_equal(dm_init(&config, &s), DM_ERR_CONFIG);
        assert_null(s);
        assert_non_null(strstr(dm_error_message(), bad[i].name));
        assert_non_null(strstr(dm_error_message(), bad[i].value));
        assert_non_null(strstr(dm_error_message(), bad[i].accepted));
        setenv(bad[i].name, before, 1); /* set to nothing: as if not set */
    }
    ok(dmi_cu_settings());
    int64_t unused, total;
    setenv("DMATH_EMULATED_GPU_MEMORY", "1M", 1);
    ok(dmi_cu_use(0));
    ok(dmi_cu_memory(&unused, &total));
    assert_int_equal(total, 1 << 20);
    setenv("DMATH_EMULATED_GPU_MEMORY", "67108864", 1);
}

static void test_memory(void **state)
{
    (void)state;
    int64_t unused, total, before;
    ok(dmi_cu_memory(&before, &total));
    assert_int_equal(total, INT64_C(64) << 20);
    unsigned char *p = dmi_cu_malloc(40 << 20);
    assert_non_null(p);
    assert_true(p[0] != 0 && p[(1 << 20) - 1] != 0); /* not zeroed */
    ok(dmi_cu_memory(&unused, &total));
    assert_int_equal(unused, before - (40 << 20));
    assert_null(dmi_cu_malloc(40 << 20));
    assert_null(dmi_cu_malloc(0));
    ok(dmi_cu_use(1)); /* the other has its own */
    unsigned char *other = dmi_cu_malloc(40 << 20);
    assert_non_null(other);
    uint32_t *w = words();
    ok(dmi_cu_use(0));
    dmi_stream s = stream();
    assert_int_equal(dmi_cu_wait_value(s, w, 1), DM_ERR_INTERNAL); /* of the other device */
    dmi_cu_stream_destroy(s);
    dmi_cu_release(p);
    p = dmi_cu_malloc(64 << 20);
    assert_non_null(p);
    dmi_cu_release(p);
    dmi_cu_release(other);
    dmi_cu_release(w);
    dmi_cu_release(NULL);
    ok(dmi_cu_memory(&unused, &total));
    assert_int_equal(unused, before);
}

/* Giving memory back waits for what the device's streams have still to do with it. */
static void test_release_waits(void **state)
{
    (void)state;
    dmi_stream s = stream();
    char *from = dmi_cu_malloc(1 << 20), *to = dmi_cu_malloc(1 << 20), last;
    assert_true(from != NULL && to != NULL);
    ok(dmi_cu_zero(from, 1 << 20));
    for (int i = 0; i < 20; i++) {
        ok(dmi_cu_copy(s, to, from, 1 << 20));
    }
    dmi_cu_release(from);
    ok(dmi_cu_copy(s, &last, to + (1 << 20) - 1, 1));
    assert_int_equal(last, 0);
    dmi_cu_release(to);
    dmi_cu_stream_destroy(s);
}

/* A call that cannot be captured fails, whichever comes first is named at the end, and everything is as before.
 */
static void test_captures(void **state)
{
    (void)state;
    enum { BYTES = 64 };
    ok(dmi_cu_use(0));
    dmi_stream s = stream(), other = stream(), made = NULL;
    dmi_event e = event(false);
    char *device = dmi_cu_malloc(BYTES), *pinned = dmi_cu_malloc_host(BYTES), plain[BYTES] = {0};
    dmi_graph *graph = NULL;
    assert_non_null(device);
    assert_non_null(pinned);
    assert_int_not_equal(dmi_cu_capture_end(s, &graph), DM_OK);
    ok(dmi_cu_capture_begin(s));
    assert_int_not_equal(dmi_cu_capture_begin(other), DM_OK);
    assert_null(dmi_cu_malloc(BYTES));
    assert_null(dmi_cu_malloc_host(BYTES));
    assert_int_not_equal(dmi_cu_stream_create(&made), DM_OK);
    assert_int_not_equal(dmi_cu_stream_wait(s), DM_OK);
    assert_int_not_equal(dmi_cu_move(device, plain, BYTES), DM_OK);
    assert_int_not_equal(dmi_cu_set(device, 1, BYTES), DM_OK);
    assert_int_not_equal(dmi_cu_pin(plain, BYTES), DM_OK);
    assert_int_not_equal(dmi_cu_event_record(e, s), DM_OK);
    assert_int_not_equal(dmi_cu_event_after(s, e), DM_OK);
    assert_int_not_equal(dmi_cu_copy(s, device, plain, BYTES), DM_OK);
    dmi_cu_release(device); /* which stays, as does the pinned memory */
    dmi_cu_release_host(pinned);
    ok(dmi_cu_event_record(e, other)); /* no part of the capture */
    assert_int_not_equal(dmi_cu_capture_end(other, &graph), DM_OK);
    assert_int_not_equal(dmi_cu_capture_end(s, &graph), DM_OK);
    assert_non_null(strstr(dmi_error_text(), "the capture was broken by an allocation"));
    assert_null(graph);
    ok(dmi_cu_set(device, 1, BYTES));
    ok(dmi_cu_capture_begin(s));
    ok(dmi_cu_copy(s, pinned, device, BYTES));
    ok(dmi_cu_capture_end(s, &graph));
    ok(dmi_cu_graph_upload(graph, s));
    ok(dmi_cu_graph_launch(graph, s));
    dmi_cu_graph_destroy(graph); /* while it is on the stream */
    dmi_cu_graph_destroy(NULL);
    ok(dmi_cu_stream_wait(s));
    assert_int_equal(pinned[BYTES - 1], 1);
    dmi_cu_release(device);
    dmi_cu_release_host(pinned);
    dmi_cu_event_destroy(e);
    dmi_cu_event_destroy(NULL);
    dmi_cu_stream_destroy(s);
    dmi_cu_stream_destroy(other);
    dmi_cu_stream_destroy(NULL);
}

/* What is captured of a second stream comes where the first follows it, and no earlier. */
static void test_second_stream(void **state)
{
    (void)state;
    ok(dmi_cu_use(0));
    dmi_stream s = stream(), second = stream();
    dmi_event here = event(false), one = event(false), two = event(false);
    dmi_graph *graph = NULL;
    char *device = dmi_cu_malloc(4), *pinned = dmi_cu_malloc_host(4);
    assert_non_null(device);
    assert_non_null(pinned);
    assert_int_not_equal(dmi_cu_capture_mark(here, s), DM_OK); /* nothing is captured */
    assert_int_not_equal(dmi_cu_capture_after(s, here), DM_OK);
    for (int joined = 1; joined >= 0; joined--) {
        memcpy(pinned, (char[]){1, 2, 3, 0}, 4);
        ok(dmi_cu_set(device, 0, 4));
        ok(dmi_cu_capture_begin(s));
        ok(dmi_cu_capture_mark(here, s));
        ok(dmi_cu_capture_after(second, here));
        ok(dmi_cu_copy(second, device, pinned, 1)); /* 1, over the 3 that is put later and comes earlier */
        ok(dmi_cu_capture_mark(one, second));
        ok(dmi_cu_copy(second, device + 1, pinned, 1)); /* 1, over 2 */
        ok(dmi_cu_capture_mark(two, second));
        ok(dmi_cu_copy(s, device, pinned + 2, 1));
        ok(dmi_cu_capture_after(s, one));
        ok(dmi_cu_capture_after(s, one)); /* again: nothing */
        ok(dmi_cu_copy(s, device + 1, pinned + 1, 1));
        if (!joined) {
            break;
        }
        ok(dmi_cu_capture_after(s, two));
        ok(dmi_cu_capture_end(s, &graph));
        ok(dmi_cu_graph_launch(graph, s));
        ok(dmi_cu_copy(s, pinned, device, 4));
        ok(dmi_cu_stream_wait(s));
        assert_memory_equal(pinned, ((char[]){1, 1, 0, 0}), 4);
        dmi_cu_graph_destroy(graph);
    }
    assert_int_not_equal(dmi_cu_capture_end(s, &graph), DM_OK);
    assert_non_null(strstr(dmi_error_text(), "a stream that none follows"));
    dmi_cu_release(device);
    dmi_cu_release_host(pinned);
    dmi_cu_event_destroy(here);
    dmi_cu_event_destroy(one);
    dmi_cu_event_destroy(two);
    dmi_cu_stream_destroy(s);
    dmi_cu_stream_destroy(second);
}

/* Places that are not what a call takes. */
static void test_wrong_places(void **state)
{
    (void)state;
    enum { BYTES = 64 };
    ok(dmi_cu_use(0));
    dmi_stream s = stream();
    char *device = dmi_cu_malloc(BYTES), *pinned = dmi_cu_malloc_host(BYTES), plain[BYTES] = {0};
    dmi_cu_handle handle;
    void *opened = NULL;
    double seconds = 0;
    assert_non_null(device);
    assert_non_null(pinned);
    assert_null(dmi_cu_malloc(0));
    assert_null(dmi_cu_malloc_host(0));
    assert_int_not_equal(dmi_cu_set(plain, 0, BYTES), DM_OK);
    assert_int_not_equal(dmi_cu_set(device, 0, BYTES + 1), DM_OK);
    assert_int_not_equal(dmi_cu_copy(s, device, pinned, BYTES + 1), DM_OK);
    assert_int_not_equal(dmi_cu_copy(s, device + 1, pinned, BYTES), DM_OK);
    assert_int_not_equal(dmi_cu_copy_2d(s, device, 8, pinned, 8, -1, 2), DM_OK);
    assert_int_not_equal(dmi_cu_copy_2d(s, device, 8, pinned, 8, 4, -1), DM_OK);
    assert_int_not_equal(dmi_cu_copy_2d(s, device, 8, pinned, 4, 6, 2), DM_OK);
    assert_int_not_equal(dmi_cu_copy_2d(s, device, 4, pinned, 8, 6, 2), DM_OK);
    assert_int_not_equal(dmi_cu_copy_2d(s, device, INT64_C(1) << 40, pinned, 8, 6, 2), DM_OK);
    ok(dmi_cu_copy_2d(s, device, 8, pinned, 8, 0, 2));
    ok(dmi_cu_copy_2d(s, device, 8, pinned, 8, 2, 0));
    assert_int_not_equal(dmi_cu_wait_value(s, (uint32_t *)(void *)plain, 1), DM_OK);
    assert_int_not_equal(dmi_cu_wait_value(s, (uint32_t *)(void *)(device + 2), 1), DM_OK);
    assert_int_not_equal(dmi_cu_wait_value(s, (uint32_t *)(void *)(device + BYTES), 1), DM_OK);
    assert_int_not_equal(dmi_cu_export(device + 1, &handle), DM_OK);
    assert_int_not_equal(dmi_cu_export(pinned, &handle), DM_OK);
    ok(dmi_cu_export(device, &handle));
    assert_int_not_equal(dmi_cu_open(&handle, &opened), DM_OK); /* by the process that made it */
    assert_int_not_equal(dmi_cu_pin(pinned, BYTES), DM_OK);
    ok(dmi_cu_pin(plain, BYTES));
    dmi_cu_unpin(NULL);
    dmi_cu_unpin(device);
    dmi_cu_unpin(pinned + 1);
    dmi_cu_unpin(plain);
    dmi_cu_unpin(plain);
    dmi_cu_close(NULL);
    dmi_cu_close(plain);
    dmi_cu_release(NULL);
    dmi_cu_release(plain);
    dmi_cu_release_host(NULL);
    dmi_cu_release_host(plain);
    assert_int_not_equal(dmi_cu_peer(0), DM_OK);
    assert_int_not_equal(dmi_cu_peer(99), DM_OK);
    dmi_event plain_event = event(false), timed = event(true), never = event(true);
    ok(dmi_cu_event_record(plain_event, s));
    ok(dmi_cu_event_record(timed, s));
    ok(dmi_cu_stream_wait(s));
    assert_int_not_equal(dmi_cu_event_between(plain_event, timed, &seconds), DM_OK);
    assert_int_not_equal(dmi_cu_event_between(timed, never, &seconds), DM_OK);
    ok(dmi_cu_event_between(timed, timed, &seconds));
    dmi_cu_event_destroy(plain_event);
    dmi_cu_event_destroy(timed);
    dmi_cu_event_destroy(never);
    dmi_cu_release(device);
    dmi_cu_release_host(pinned);
    dmi_cu_stream_destroy(s);
}

/* What the driver asks the host for, refused one by one: a call that fails has left nothing. */
static void test_requests_refused(void **state)
{
    (void)state;
    enum { BYTES = 70000 };
    static char plain[BYTES];
    int64_t before = 0, after = 0, total = 0;
    int failed[8] = {0};
    ok(dmi_cu_use(0));
    dmi_stream s = stream(), made = NULL;
    ok(dmi_cu_memory(&before, &total));
    char *device = dmi_cu_malloc(BYTES);
    for (int call = 0; call < 8; call++) {
        for (int at = 1; at < 12; at++) {
            char text[32];
            void *p = NULL;
            dmi_event e = NULL;
            dmi_graph *graph = NULL;
            dm_status status = DM_OK;
            made = NULL;
            ok(dmi_cu_capture_begin(s));
            ok(dmi_cu_capture_end(s, &graph)); /* an empty one, to be destroyed in any case */
            dmi_cu_graph_destroy(graph);
            graph = NULL;
            if (call == 5) {
                ok(dmi_cu_capture_begin(s));
            }
            snprintf(text, sizeof text, call == 6 ? "malloc:%d" : "driver:%d", at);
            dmi_fault_plant(text);
            switch (call) {
            case 0:
                p = dmi_cu_malloc(BYTES);
                break;
            case 1:
            case 6: /* the memory itself is not there */
                p = dmi_cu_malloc_host(BYTES);
                break;
            case 2:
                status = dmi_cu_pin(plain, BYTES);
                break;
            case 3:
                status = dmi_cu_stream_create(&made);
                break;
            case 4:
                status = dmi_cu_event_create(false, &e);
                break;
            case 7: /* of memory that is read at the call */
                status = dmi_cu_copy(s, device, plain, BYTES);
                break;
            default:
                status = dmi_cu_capture_end(s, &graph);
            }
            dmi_fault_plant("");
            bool memory = call < 2 || call == 6;
            failed[call] += memory ? !p : status != DM_OK;
            assert_true(status == DM_OK || status == DM_ERR_NOMEM);
            if (call == 0) {
                dmi_cu_release(p);
            } else if (memory) {
                dmi_cu_release_host(p);
            }
            dmi_cu_unpin(plain);
            dmi_cu_stream_destroy(made);
            dmi_cu_event_destroy(e);
            dmi_cu_graph_destroy(graph);
        }
        assert_in_range(failed[call], 1, 10);
    }
    ok(dmi_cu_stream_wait(s));
    dmi_cu_release(device);
    ok(dmi_cu_memory(&after, &total));
    assert_int_equal(before, after);
    dmi_cu_stream_destroy(s);
}

static void test_ranges(void **state)
{
    (void)state;
    static const char *const names[] = {"fill", "copy"};
    char path[] = "/tmp/dmath-ranges-XXXXXX", text[256] = "", line[128];
    assert_null(dmi_cu_ranges_create("test", names, 2));
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    setenv("DMATH_EMULATED_RANGES", "/nowhere/at/all", 1);
    assert_null(dmi_cu_ranges_create("test", names, 2));
    setenv("DMATH_EMULATED_RANGES", "", 1);
    assert_null(dmi_cu_ranges_create("test", names, 2));
    setenv("DMATH_EMULATED_RANGES", path, 1);
    dmi_cu_ranges *r = dmi_cu_ranges_create("test", names, 2);
    assert_non_null(r);
    dmi_cu_range_push(r, 1, 7);
    dmi_cu_range_pop(r);
    dmi_cu_ranges_destroy(r);
    dmi_cu_ranges_destroy(NULL);
    unsetenv("DMATH_EMULATED_RANGES");
    assert_true(read(fd, text, sizeof text - 1) > 0);
    snprintf(line, sizeof line, "%d begin copy 7\n%d end\n", (int)gettid(), (int)gettid());
    assert_string_equal(text, line);
    close(fd);
    unlink(path);
}

/* --- another process ------------------------------------------------------------------------------ */
/* The child waits for a block here, changes it, and brings it back. counter[0]: blocks that came, counter[1]:
 * blocks that the parent has. */
static int child(const char *text)
{
    dmi_cu_handle handle;
    void *opened = NULL;
    for (size_t i = 0; i < sizeof handle.bytes; i++) {
        unsigned byte = 0;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) {
            return 2;
        }
        handle.bytes[i] = (unsigned char)byte;
    }
    dmi_stream s = NULL;
    uint32_t *mine = dmi_cu_malloc(WORDS * sizeof *mine), host[BLOCK_BYTES / 4], one = 1;
    bool said = mine && dmi_cu_use(1) == DM_OK;
    for (int at = 1; said && !opened; at++) { /* each request that it makes of the host fails once */
        char fault[32];
        snprintf(fault, sizeof fault, "driver:%d", at);
        dmi_fault_plant(fault);
        dm_status status = dmi_cu_open(&handle, &opened);
        bool met = dmi_fault_calls() >= at;
        dmi_fault_plant("");
        said = status == DM_OK ? at > 3 : met && !opened;
        if (met && opened) { /* a descriptor that cannot be closed harms nothing */
            dmi_cu_close(opened);
            opened = NULL;
        }
    }
    if (!said || dmi_cu_stream_create(&s) != DM_OK) {
        fprintf(stderr, "%s\n", dmi_error_text());
        return 3;
    }
    uint32_t *counter = opened, *block = counter + WORDS;
    while (word_now(&counter[0]) != 1) {
        nap(200);
    }
    bool right = dmi_cu_copy(s, host, block, sizeof host) == DM_OK;
    for (uint32_t i = 0; i < BLOCK_BYTES / 4; i++) {
        right = right && host[i] == 3 * i;
        host[i] = 5 * i;
    }
    right = right && dmi_cu_copy(s, block, host, sizeof host) == DM_OK;
    right = right && dmi_cu_copy(s, &counter[1], &one, sizeof one) == DM_OK && dmi_cu_stream_wait(s) == DM_OK;
    dmi_cu_stream_destroy(s);
    dmi_cu_close(opened);
    dmi_cu_release(mine);
    return right ? 0 : 4;
}

static pid_t start_child(const dmi_cu_handle *handle)
{
    char text[2 * sizeof handle->bytes + 1];
    for (size_t i = 0; i < sizeof handle->bytes; i++) {
        snprintf(text + 2 * i, 3, "%02x", handle->bytes[i]);
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", "test_emulated_gpu", "child", text, (char *)NULL);
        _exit(9);
    }
    return pid;
}

/* A child made by fork has the devices' tables, and none of their threads. */
static void test_fork(void **state)
{
    (void)state;
    int result = -1;
    ok(dmi_cu_use(0));
    ok(dmi_cu_settings());
    pid_t pid = fork();
    if (pid == 0) {
        _exit(dmi_cu_settings() == DM_ERR_STATE ? 0 : 1);
    }
    assert_true(pid > 0 && waitpid(pid, &result, 0) == pid);
    assert_int_equal(result, 0);
}

static void test_processes(void **state)
{
    (void)state;
    dmi_stream s = stream();
    uint32_t *counter = dmi_cu_malloc(WORDS * sizeof *counter + BLOCK_BYTES), *block = counter + WORDS;
    uint32_t host[BLOCK_BYTES / 4];
    dmi_cu_handle handle;
    void *opened = NULL;
    int result = -1;
    assert_non_null(counter);
    ok(dmi_cu_zero(counter, WORDS * sizeof *counter));
    ok(dmi_cu_export(counter, &handle));
    assert_int_equal(dmi_cu_export(counter + 1, &handle), DM_ERR_INTERNAL);
    assert_int_equal(dmi_cu_open(&handle, &opened), DM_ERR_INTERNAL); /* in the same process, as CUDA has it */
    assert_null(opened);
    pid_t pid = start_child(&handle);
    assert_true(pid > 0);
    for (uint32_t i = 0; i < BLOCK_BYTES / 4; i++) {
        host[i] = 3 * i;
    }
    ok(dmi_cu_copy(s, block, host, sizeof host));
    raise_word(s, &counter[0], 1);
    ok(dmi_cu_wait_value(s, &counter[1], 1));
    dmi_event back = event(false);
    ok(dmi_cu_event_record(back, s));
    for (int i = 0; i < 600 && !dmi_cu_event_reached(back); i++) {
        nap(50000);
        assert_int_equal(waitpid(pid, &result, WNOHANG) > 0 && result != 0, 0);
    }
    assert_true(dmi_cu_event_reached(back));
    ok(dmi_cu_copy(s, host, block, sizeof host));
    for (uint32_t i = 0; i < BLOCK_BYTES / 4; i++) {
        assert_int_equal(host[i], 5 * i);
    }
    if (result != 0) {
        assert_int_equal(waitpid(pid, &result, 0), pid);
    }
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    dmi_cu_event_destroy(back);
    dmi_cu_stream_destroy(s);
    dmi_cu_release(counter);
}

/* The first tests once more with pauses between operations. */
static int set_delay(void **state)
{
    (void)state;
    return setenv("DMATH_EMULATED_DELAY_US", "300", 1);
}
static int clear_delay(void **state)
{
    (void)state;
    return unsetenv("DMATH_EMULATED_DELAY_US");
}
#define DELAYED(test)                                                                                          \
    {                                                                                                          \
#test "_delayed", test, set_delay, clear_delay, NULL                                                   \
    }

/* A device that fails beside all calls: commands under way are failures, not results. */
static void test_lost_device(void **state)
{
    (void)state;
    dm_config config = DM_CONFIG_INIT;
    dm_session *s = NULL;
    dm_array a;
    float value;
    config.workers = 2;
    config.options = "device=emulated,log=error,slab=1M";
    ok(dm_init(&config, &s));
    ok(dm_matrix(s, DM_F32, 64, 64, &a));
    ok(dm_fill(s, a, 1));
    ok(dm_sync(s));
    dmi_emu_lose(1, "a planted fault");
    dmi_emu_lose(0, "another");
    ok(dm_fill(s, a, 2));
    assert_int_equal(dm_sync(s), DM_ERR_INTERNAL);
    assert_non_null(strstr(dm_error_message(), "a planted fault"));
    assert_non_null(strstr(dm_error_message(), "(fill) failed on worker "));
    assert_non_null(strstr(dm_error_message(), "worker 1")); /* who has found it, or whom that one names */
    while (dm_sync(s) != DM_OK) { /* the other worker's */
    }
    dmi_emu_lose(0, NULL);
    assert_int_equal(dm_array_read(s, a, (const int64_t[]){0, 0}, (const int64_t[]){1, 1}, &value, 0),
                     DM_ERR_POISONED);
    while (dm_sync(s) != DM_OK) {
    }
    ok(dm_array_destroy(s, a));
    ok(dm_finalize(s, NULL));
}

int main(int argc, char **argv)
{
#ifdef DMATH_WITH_CUDA
    (void)argc;
    (void)argv;
    (void)child;
    puts("this build has CUDA in place of emulated GPUs");
    return 0;
#endif
    setenv("DMATH_EMULATED_GPUS", "2", 1);
    setenv("DMATH_EMULATED_GPU_MEMORY", "67108864", 1);
    if (argc == 3 && strcmp(argv[1], "child") == 0) {
        return child(argv[2]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_never_recorded),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_latest_record),
        cmocka_unit_test(test_timing),
        cmocka_unit_test(test_wait_values),
        cmocka_unit_test(test_wait_for_ever),
        cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_copies_2d),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_release_waits),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_second_stream),
        cmocka_unit_test(test_wrong_places),
        cmocka_unit_test(test_requests_refused),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_lost_device),
        DELAYED(test_order),
        DELAYED(test_latest_record),
        DELAYED(test_wait_values),
        DELAYED(test_host_memory),
        DELAYED(test_release_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
