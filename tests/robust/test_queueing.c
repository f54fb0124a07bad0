/* Commands wait in a queue, not the program; what does not depend on one another runs at once; nothing is lost
 * where the queue is as short as can be. */
#include "robust.h"

#include <math.h>

enum { ATTEMPTS = 6 }; /* at measurements, on a machine that others may use too */

static int64_t done_by(dm_session *s, int worker)
{
    dm_counters counters = {.size = sizeof counters};
    OK(dm_counters_get(s, worker, &counters));
    return counters.commands;
}

/* A thousand products are queued long before they are done: the calls take a small part of the time the work
 * takes. */
static bool thousand_products(int latency_us)
{
    enum { N = 48, PRODUCTS = 1000 };
    char options[64];
    snprintf(options, sizeof options, "link_latency_us=%d", latency_us);
    dm_session *s = open_session(3, options);
    dm_layout rows = dm_layout_rows(s);
    double a[N * N], b[N * N], want[N * N];
    dm_array left = make_matrix(s, N, &rows, 1), right = make_matrix(s, N, &rows, 2),
             out = make_matrix(s, N, &rows, 3);
    double begin = seconds(); /* the calls take microseconds, the work at least the latency each */
    for (int i = 0; i < PRODUCTS; i++) {
        OK(dm_gemm(s, DM_N, DM_N, 1, left, right, 0, out));
    }
    double issued = seconds() - begin;
    OK(dm_sync(s));
    double done = seconds() - begin;
    print_message("%d products: queued in %.1f ms, done in %.1f ms\n", PRODUCTS, issued * 1e3, done * 1e3);
    assert_true(done >= PRODUCTS * 1e-6 * latency_us);
    element_matrix(N, 1, a);
    element_matrix(N, 2, b);
    product(N, a, b, want);
    OK(read_matrix(s, out, N, want));
    assert_true(done_by(s, 0) >= PRODUCTS);
    OK(dm_array_destroy(s, left));
    OK(dm_array_destroy(s, right));
    OK(dm_array_destroy(s, out));
    close_session(s);
    return issued < done / 2;
}

static void test_thousand_products(void **state)
{
    (void)state;
    bool shown = false;
    for (int i = 0; i < ATTEMPTS && !shown; i++) {
        shown = thousand_products(300 << i);
    }
    assert_true(shown);
}

/* A map that is longer than the ring goes in parts, and a program that is far ahead waits. */
static void test_smallest_ring(void **state)
{
    (void)state;
    enum { SIDE = 60, WORKERS = 4 };
    static int map[SIDE * SIDE];
    dm_session *s = open_session(WORKERS, "ring=4096,link_latency_us=20");
    const int64_t block[2] = {1, 1};
    dm_array scattered[5];
    for (int turn = 0; turn < 5; turn++) { /* 14 400 bytes of map */
        for (int i = 0; i < SIDE * SIDE; i++) {
            map[i] = (i * (turn + 1) + i / 7) % WORKERS;
        }
        dm_layout layout = dm_layout_explicit(2, block, map, SIDE * SIDE);
        scattered[turn] = make_matrix(s, SIDE, &layout, turn);
    }
    dm_array plain = make_matrix(s, SIDE, NULL, 9);
    for (int i = 0; i < 400; i++) {
        OK(dm_copy(s, scattered[i % 5], plain));
        OK(dm_noop(s));
    }
    matrix_is(s, plain, SIDE, 399 % 5);
    for (int i = 0; i < 5; i++) {
        matrix_is(s, scattered[i], SIDE, i);
        OK(dm_array_destroy(s, scattered[i]));
    }
    for (int i = 0; i < 20000; i++) {
        OK(dm_noop(s));
    }
    char path[600];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = 0;
    dm_status status =
        dm_array_save(s, plain, path); /* does not fit in a command of this ring, nor in a name */
    assert_true(status == DM_ERR_ARG || status == DM_ERR_IO);
    matrix_is(s, plain, SIDE, 399 % 5);
    OK(dm_array_destroy(s, plain));
    close_session(s);
}

/* Copies back and forth between two workers, over a link of some milliseconds. */
static void ping_pong(dm_session *s, dm_array x, dm_array y, int turns)
{
    for (int i = 0; i < turns; i++) {
        OK(dm_copy(s, x, y));
        OK(dm_copy(s, y, x));
    }
}

static double time_of(dm_session *s, dm_array *pair[2], int chains, int turns)
{
    OK(dm_sync(s));
    double begin = seconds();
    for (int i = 0; i < chains; i++) { /* one after the other, as a program would */
        ping_pong(s, pair[i][0], pair[i][1], turns);
    }
    OK(dm_sync(s));
    return seconds() - begin;
}

static bool disjoint_groups(int latency_us)
{
    enum { N = 32, TURNS = 20 };
    char options[64];
    snprintf(options, sizeof options, "link_latency_us=%d", latency_us);
    dm_session *s = open_session(4, options);
    dm_array first[2], second[2], *pair[2] = {first, second};
    for (int i = 0; i < 2; i++) {
        dm_layout left = dm_layout_single(i), right = dm_layout_single(2 + i);
        first[i] = make_matrix(s, N, &left, 1);
        second[i] = make_matrix(s, N, &right, 2);
    }
    double one = time_of(s, pair, 1, TURNS), both = time_of(s, pair, 2, TURNS);
    print_message("one chain %.1f ms, two chains on other workers %.1f ms\n", one * 1e3, both * 1e3);
    assert_true(one >= 2 * TURNS * 1e-6 * latency_us);
    for (int i = 0; i < 2; i++) {
        matrix_is(s, first[i], N, 1);
        matrix_is(s, second[i], N, 2);
        OK(dm_array_destroy(s, first[i]));
        OK(dm_array_destroy(s, second[i]));
    }
    close_session(s);
    return both < 1.5 * one;
}

static void test_disjoint_groups(void **state)
{
    (void)state;
    bool shown = false;
    for (int i = 0; i < ATTEMPTS && !shown; i++) {
        shown = disjoint_groups(3000 << i);
    }
    assert_true(shown);
}

static double copies_and_products(dm_session *s, dm_array m[4], int copies, int products)
{
    OK(dm_sync(s));
    double begin = seconds();
    for (int i = 0; i < (copies > products ? copies : products); i++) {
        if (i < copies) {
            ping_pong(s, m[2], m[3], 1);
        }
        if (i < products) {
            OK(dm_gemm(s, DM_N, DM_N, 1, m[0], m[0], 0, m[1]));
        }
    }
    OK(dm_sync(s));
    return seconds() - begin;
}

/* A copy over a slow link and products on the same workers take as long as the longer of the two, not their
 * sum. */
static void test_copies_beside_products(void **state)
{
    (void)state;
    const int64_t shape[2] = {384, 384};
    dm_session *s = open_session(2, "link_latency_us=4000");
    dm_layout one = dm_layout_single(0), other = dm_layout_single(1);
    dm_array m[4];
    for (int i = 0; i < 2; i++) {
        OK(dm_array_create(s, DM_F64, 2, shape, &one, &m[i]));
        OK(dm_fill(s, m[i], 1));
    }
    m[2] = make_matrix(s, 16, &one, 1);
    m[3] = make_matrix(s, 16, &other, 2);
    (void)copies_and_products(s, m, 1, 1);
    bool beside = false;
    for (int attempt = 0; attempt < ATTEMPTS && !beside; attempt++) {
        double products = copies_and_products(s, m, 0, 10);
        int copies = (int)ceil(products / 8e-3);
        double copying = copies_and_products(s, m, copies, 0);
        double both = copies_and_products(s, m, copies, 10);
        print_message("products %.1f ms, copies %.1f ms, both %.1f ms\n", products * 1e3, copying * 1e3,
                      both * 1e3);
        beside = both < 0.85 * (products + copying);
    }
    assert_true(beside);
    for (int i = 0; i < 4; i++) {
        OK(dm_array_destroy(s, m[i]));
    }
    close_session(s);
}

/* Arrays come and go under commands that still use them. */
static void test_destroyed_under_way(void **state)
{
    (void)state;
    enum { N = 32 };
    dm_session *s = open_session(3, "link_latency_us=100");
    dm_layout rows = dm_layout_rows(s), columns = dm_layout_cols(s);
    dm_array a = make_matrix(s, N, &rows, 1), sum = make_matrix(s, N, &columns, 0);
    const int64_t shape[2] = {N, N}, corner[2] = {3, 4}, extent[2] = {5, 6};
    double want[MOST * MOST];
    OK(dm_fill(s, sum, 0));
    for (int i = 0; i < 300; i++) {
        dm_array t, v;
        OK(dm_array_create(s, DM_F64, 2, shape, i % 2 ? &rows : &columns, &t));
        OK(dm_copy(s, a, t));
        OK(dm_array_view(s, t, corner, extent, &v));
        OK(dm_array_destroy(s, t));
        OK(dm_scale(s, 3, v, v));
        OK(dm_array_destroy(s, v));
        OK(dm_axpby(s, 1, a, 1, sum));
    }
    element_matrix(N, 1, want);
    for (int i = 0; i < N * N; i++) {
        want[i] *= 300;
    }
    OK(read_matrix(s, sum, N, want));
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, sum));
    close_session(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_thousand_products, deadline),
        cmocka_unit_test_setup(test_smallest_ring, deadline),
        cmocka_unit_test_setup(test_disjoint_groups, deadline),
        cmocka_unit_test_setup(test_copies_beside_products, deadline),
        cmocka_unit_test_setup(test_destroyed_under_way, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
