/* Large copies have lanes of their own on CPUs: a small one called behind does not wait for them, and commands
 * on the same arrays keep their order (adr/0087). */
#include "support/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- who waits for whom --- */

enum { LARGE = 1 << 20, SMALL = 100, TRIES = 4 };

/* When worker 2 has the payload of so many bytes, by its timeline, in us; -1: it is not there. */
static double arrival(dmt_case *c, const char *path, int64_t bytes)
{
    FILE *file = fopen(path, "r");
    char line[1000], size[40];
    double end = -1;
    if (!file) {
        dmt_fail(c, "no timeline in %s", path);
    }
    snprintf(size, sizeof size, "\"bytes\":%lld,", (long long)bytes);
    while (fgets(line, sizeof line, file)) {
        double at, takes;
        if (sscanf(line, "{\"name\":\"copy expect\",\"ph\":\"X\",\"ts\":%lf,\"dur\":%lf", &at, &takes) == 2 &&
            strstr(line, size)) {
            end = at + takes;
        }
    }
    fclose(file);
    return end;
}

static dm_array vector_at(dmt_case *c, dm_session *s, int64_t elements, int worker)
{
    dm_layout layout = dm_layout_single(worker);
    dm_array x;
    DMT_OK(c, dm_array_create(s, DM_F64, 1, &elements, &layout, &x));
    DMT_OK(c, dm_fill(s, x, worker));
    return x;
}

/* A large copy from worker 0 to 2 and a small one from 1 to 2, on slow links. True: the small one is there
 * first. */
static bool small_is_first(dmt_case *c, double ms)
{
    static const char path[] = "large_copies.json";
    char options[100];
    int64_t alive;
    snprintf(options, sizeof options, "link_gbps=%g,trace=%s", 8 * LARGE / (ms * 1e6), path);
    dm_session *s = dmt_session_open(3, options);
    dm_array a = vector_at(c, s, LARGE, 0), b = vector_at(c, s, LARGE, 2), x = vector_at(c, s, SMALL, 1),
             y = vector_at(c, s, SMALL, 2);
    DMT_OK(c, dm_sync(s));
    DMT_OK(c, dm_copy(s, a, b));
    DMT_OK(c, dm_copy(s, x, y));
    DMT_OK(c, dm_sync(s));
    DMT_OK(c, dm_finalize(s, &alive));
    double large = arrival(c, path, 8 * LARGE), small = arrival(c, path, 8 * SMALL);
    (void)remove(path);
    if (large < 0 || small < 0) {
        dmt_fail(c, "the timeline has no arrivals");
    }
    return small < large;
}

/* The machine may be busy, so longer and longer transfers are tried. */
static void pass_case(dmt_case *c)
{
    bool first = false;
    double ms = 30;
    for (int i = 0; i < TRIES && !first; i++, ms *= 3) {
        first = small_is_first(c, ms);
    }
    if (!first) {
        dmt_fail(c, "a small copy waits for a large one of another sender");
    }
}

static void test_pass(void **state)
{
    (void)state;
    if (dmt_on_cpu()) { /* links can be slowed down there */
        dmt_run(
            &(dmt_suite){.name = "large_copies_pass", .cases = 1, .each = true, .fn = pass_case, .workers = 3});
    }
}

/* --- in order --- */

enum { ARRAYS = 5, SIDE = 12, CALLS = 40 };

static dm_layout draw_layout(dmt_case *c)
{
    dm_session *s = c->session;
    switch (dmt_int(&c->random, 0, 3)) {
    case 0:
        return dm_layout_rows(s);
    case 1:
        return dm_layout_cols(s);
    case 2:
        return dm_layout_single((int)dmt_int(&c->random, 0, c->workers - 1));
    default:
        return dm_layout_replicated(s);
    }
}

/* All copies are large here; others work on the same arrays before and after them. */
static void order_case(dmt_case *c)
{
    static double want[ARRAYS][SIDE * SIDE], got[SIDE * SIDE];
    dm_session *s = c->session;
    dm_array x[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        dm_layout layout = draw_layout(c);
        DMT_OK(c, dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &layout, &x[i]));
        for (int k = 0; k < SIDE * SIDE; k++) {
            want[i][k] = (double)dmt_int(&c->random, -9, 9);
        }
        DMT_OK(c, dm_write(s, x[i], want[i]));
    }
    for (int i = 0; i < CALLS; i++) {
        int a = (int)dmt_int(&c->random, 0, ARRAYS - 1), b = (int)dmt_int(&c->random, 0, ARRAYS - 2);
        b += b >= a;
        bool turned = dmt_chance(&c->random, 30), copies = dmt_chance(&c->random, 60);
        if (copies) {
            DMT_OK(c, turned ? dm_transpose(s, x[a], x[b]) : dm_copy(s, x[a], x[b]));
        } else {
            DMT_OK(c, dm_add(s, 1, x[a], -1, x[b], x[b]));
        }
        for (int k = 0; k < SIDE * SIDE; k++) {
            double v = want[a][turned && copies ? k % SIDE * SIDE + k / SIDE : k];
            want[b][k] = copies ? v : v - want[b][k];
        }
    }
    for (int i = 0; i < ARRAYS; i++) {
        DMT_OK(c, dm_read(s, x[i], got));
        if (memcmp(got, want[i], sizeof got) != 0) {
            dmt_fail(c, "array %d is not what the calls make of it in their order", i);
        }
    }
}

static void test_order(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "large_copies_order",
                         .cases = 40,
                         .fn = order_case,
                         .scope = true,
                         .options = "reduce_chunk=8"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pass), cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
