/* Groups: where their arrays lie, who takes part in what, and that groups without a common worker do not wait
 * for each other. */
#include "support/refusal.h"

#include <dmath/index.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { SIDE = 24, COUNT = SIDE * SIDE };

static atomic_int may_end, ended, called;

/* A worker that is busy until it may end. */
static int wait_for_word(const dm_task *t)
{
    (void)t;
    for (int i = 0; i < 20000 && !atomic_load(&may_end); i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    atomic_fetch_add(&ended, 1);
    return 0;
}

/* Fails on every worker, on worker 0 first. */
static int fail_late(const dm_task *t)
{
    if (t->worker > 0) {
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return 1;
}

/* The last workers, from the last on. */
static dm_group backwards(dmt_case *c, int count, int *workers)
{
    dm_group group;
    for (int i = 0; i < count; i++) {
        workers[i] = c->workers - 1 - i;
    }
    DMT_OK(c, dm_group_create(c->session, workers, count, &group));
    return group;
}

static void owner_is(dmt_case *c, dm_array a, int64_t row, int64_t col, int want)
{
    int worker = -1;
    DMT_OK(c, dm_array_owner(c->session, a, (int64_t[]){row, col}, &worker));
    if (worker != want) {
        dmt_fail(c, "element %d, %d is at worker %d, not %d", (int)row, (int)col, worker, want);
    }
}

/* Layouts in a group count its workers. */
static void layouts_case(dmt_case *c)
{
    dm_session *s = c->session;
    int count = 1 + (int)dmt_int(&c->random, 0, c->workers - 1), worker[16], n = 0, got[16];
    int64_t shape[] = {SIDE, SIDE}, large[] = {200 * count, 8};
    dm_group group = backwards(c, count, worker);
    DMT_OK(c, dm_group_begin(s, group));
    if (dm_workers(s) != count) {
        dmt_fail(c, "%d workers, not %d", dm_workers(s), count);
    }
    dm_layout rows = dm_layout_rows(s), cyclic = dm_layout_cyclic(s, 1, 1),
              single = dm_layout_single(count - 1), copies = dm_layout_replicated(s),
              map = dm_layout_explicit(2, (int64_t[]){SIDE, SIDE}, &(int){count - 1}, 1),
              given = dm_layout_rows(s);
    given.grid[0] = given.nworkers = 1;
    given.workers = (int[]){0};
    dm_array a;
    DMT_OK(c, dm_array_create(s, DM_F64, 2, large, NULL, &a));
    owner_is(c, a, 0, 0, worker[0]);
    owner_is(c, a, 200 * count - 1, 0, worker[count - 1]);
    DMT_OK(c, dm_array_destroy(s, a));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &rows, &a));
    owner_is(c, a, 0, 0, worker[0]);
    DMT_OK(c, dm_array_destroy(s, a));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &cyclic, &a));
    owner_is(c, a, 0, count - 1, worker[count - 1]);
    DMT_OK(c, dm_array_destroy(s, a));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &single, &a));
    owner_is(c, a, 3, 3, worker[count - 1]);
    DMT_OK(c, dm_array_destroy(s, a));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &map, &a));
    owner_is(c, a, 3, 3, worker[count - 1]);
    DMT_OK(c, dm_array_destroy(s, a));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &copies, &a));
    owner_is(c, a, 3, 3, worker[0]);
    DMT_OK(c, dm_array_destroy(s, a));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &given, &a)); /* numbers of the session */
    owner_is(c, a, 3, 3, 0);
    DMT_OK(c, dm_array_destroy(s, a));
    single.single = count;
    DMT_REFUSED(c, DM_ERR_LAYOUT, dm_array_create(s, DM_F64, 2, shape, &single, &a));
    rows.grid[0] = count + 1;
    DMT_REFUSED(c, DM_ERR_LAYOUT, dm_array_create(s, DM_F64, 2, shape, &rows, &a));
    DMT_REFUSED(c, DM_ERR_STATE, dm_group_destroy(s, group));
    DMT_OK(c, dm_group_end(s));
    DMT_OK(c, dm_group_workers(s, group, 16, got, &n));
    if (n != count || memcmp(got, worker, (size_t)n * sizeof *got) != 0 || dm_workers(s) != c->workers) {
        dmt_fail(c, "group_workers gives others");
    }
    DMT_OK(c, dm_group_destroy(s, group));
}

/* Products in overlapping groups, and copies between them. */
static void products_case(dmt_case *c)
{
    dm_session *s = c->session;
    int worker[16], half = (c->workers + 1) / 2;
    int64_t shape[] = {SIDE, SIDE};
    static double a[COUNT], b[COUNT], got[COUNT], want[COUNT];
    dm_group first, second = backwards(c, half, worker);
    for (int i = 0; i < half; i++) {
        worker[i] = i;
    }
    DMT_OK(c, dm_group_create(s, worker, half, &first));
    dm_array x, y, z, w;
    DMT_OK(c, dm_group_begin(s, first));
    dm_layout cols = dm_layout_cols(s);
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &cols, &x));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, NULL, &y));
    DMT_OK(c, dm_group_begin(s, second));
    dm_layout rows = dm_layout_rows(s);
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &rows, &z));
    DMT_OK(c, dm_group_end(s));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, shape, &cols, &w));
    DMT_OK(c, dm_group_end(s));
    for (int i = 0; i < COUNT; i++) {
        a[i] = (double)dmt_int(&c->random, -4, 4);
        b[i] = (double)dmt_int(&c->random, -4, 4);
    }
    DMT_OK(c, dm_write(s, x, a));
    DMT_OK(c, dm_write(s, y, b));
    DMT_OK(c, dm_group_begin(s, first));
    DMT_OK(c, dm_matmul(s, x, y, w));
    DMT_OK(c, dm_group_end(s));
    DMT_OK(c, dm_copy(s, w, z));
    DMT_OK(c, dm_add(s, 1, z, 1, x, z)); /* across */
    DMT_OK(c, dm_read(s, z, got));
    for (int i = 0; i < SIDE; i++) {
        for (int j = 0; j < SIDE; j++) {
            want[i * SIDE + j] = a[i * SIDE + j];
            for (int k = 0; k < SIDE; k++) {
                want[i * SIDE + j] += a[i * SIDE + k] * b[k * SIDE + j];
            }
        }
    }
    if (memcmp(got, want, sizeof got) != 0) {
        dmt_fail(c, "the product is wrong");
    }
    dm_counters counters = {.size = sizeof counters};
    DMT_OK(c, dm_group_counters(s, first, &counters));
    if (counters.flops != 2 * SIDE * SIDE * SIDE) {
        dmt_fail(c, "the group has done %lld flops", (long long)counters.flops);
    }
    DMT_OK(c, dm_array_destroy(s, x));
    DMT_OK(c, dm_array_destroy(s, y));
    DMT_OK(c, dm_array_destroy(s, z));
    DMT_OK(c, dm_array_destroy(s, w));
    DMT_OK(c, dm_group_destroy(s, first));
    DMT_OK(c, dm_group_destroy(s, second));
}

/* One group is busy until the other has done all its commands, recorded and one by one. */
static void apart_case(dmt_case *c)
{
    dm_session *s = c->session;
    if (c->workers < 2 || dmt_launched()) { /* the function and this one have words in common */
        return;
    }
    int worker[16];
    dm_array busy, x, y;
    dm_program program;
    double got[COUNT] = {0};
    int done[2] = {-1, -1};
    dm_group lazy = backwards(c, 1, worker), diligent = {0};
    for (int i = 0; i < c->workers - 1; i++) {
        worker[i] = i;
    }
    DMT_OK(c, dm_group_create(s, worker, c->workers - 1, &diligent));
    atomic_store(&may_end, 0);
    atomic_store(&ended, 0);
    DMT_OK(c, dm_group_begin(s, lazy));
    DMT_OK(c, dm_matrix(s, DM_F64, SIDE, SIDE, &busy));
    DMT_OK(c, dm_fill(s, busy, 1));
    DMT_OK(c, dm_apply(s, "wait for word", 1, &busy, (int[]){DM_READWRITE}, NULL, 0));
    DMT_OK(c, dm_group_end(s));
    DMT_OK(c, dm_group_begin(s, diligent));
    DMT_OK(c, dm_matrix(s, DM_F64, SIDE, SIDE, &x));
    DMT_OK(c, dm_matrix(s, DM_F64, SIDE, SIDE, &y));
    DMT_OK(c, dm_fill(s, x, 2));
    DMT_OK(c, dm_fill(s, y, 0));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_matmul(s, x, x, y));
    DMT_OK(c, dm_scale(s, 0.5, y, y));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 3, 0, NULL));
    DMT_OK(c, dm_group_sync(s, diligent));
    DMT_OK(c, dm_write(s, x, got)); /* what wait in the group wait for its workers */
    DMT_OK(c, dm_read(s, y, got));
    DMT_OK(c, dm_group_wait(s, diligent, -1, &done[0]));
    DMT_OK(c, dm_group_wait(s, lazy, 0.01, &done[1]));
    if (atomic_load(&ended)) {
        dmt_fail(c, "the other group has ended");
    }
    if (done[0] != 1 || done[1] != 0) {
        dmt_fail(c, "group_wait says that %d of the diligent and %d of the lazy are done", done[0], done[1]);
    }
    atomic_store(&may_end, 1);
    DMT_OK(c, dm_group_wait(s, lazy, -1, &done[1]));
    if (done[1] != 1) {
        dmt_fail(c, "group_wait without a limit says that the group is at work");
    }
    if (atomic_load(&ended) != 1) {
        dmt_fail(c, "the function ran on %d workers", atomic_load(&ended));
    }
    DMT_OK(c, dm_read(s, y, got));
    if (got[0] != 2 * SIDE || got[COUNT - 1] != 2 * SIDE) {
        dmt_fail(c, "y is %g", got[0]);
    }
    DMT_OK(c, dm_group_end(s));
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_array_destroy(s, busy));
    DMT_OK(c, dm_array_destroy(s, x));
    DMT_OK(c, dm_array_destroy(s, y));
    DMT_OK(c, dm_group_destroy(s, lazy));
    DMT_OK(c, dm_group_destroy(s, diligent));
}

/* Steps that workers beside the group have done, and plans that they have made or used. */
static int64_t steps_of_others(dmt_case *c, const bool *member)
{
    int64_t steps = 0;
    for (int w = 0; w < c->workers; w++) {
        dm_counters counters = {.size = sizeof counters};
        DMT_OK(c, dm_counters_get(c->session, w, &counters));
        steps += member[w] ? 0 : counters.steps + counters.plans_made + counters.plans_reused;
    }
    return steps;
}

/* Scans, sorting, searches, counts and solves, whose temporaries lie on the workers of their operands. */
static void ordered_case(dmt_case *c)
{
    enum { N = 9000 }; /* a row that all workers would sort together */
    dm_session *s = c->session;
    const int64_t length[] = {N}, ten[] = {10}, square[] = {4, 4};
    int count = 1 + (int)dmt_int(&c->random, 0, c->workers - 1), worker[16];
    bool member[16] = {false};
    static double x[N], got[N];
    double sum = 0, bins[10], place[10], solved[16];
    dm_group group = backwards(c, count, worker);
    dm_array a, b, values, places, low, triangle, right;
    for (int i = 0; i < count; i++) {
        member[worker[i]] = true;
    }
    DMT_OK(c, dm_group_begin(s, group));
    dm_layout rows = dm_layout_rows(s);
    DMT_OK(c, dm_array_create(s, DM_F64, 1, length, &rows, &a));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, length, &rows, &b));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, ten, &rows, &values));
    DMT_OK(c, dm_array_create(s, DM_I64, 1, ten, &rows, &places));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, ten, &rows, &low));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, square, &rows, &triangle));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, square, &rows, &right));
    for (int i = 0; i < N; i++) {
        x[i] = (double)((i * 7919) % N); /* each number below N once */
    }
    DMT_OK(c, dm_write(s, a, x));
    DMT_OK(c, dm_sync(s));
    int64_t before = steps_of_others(c, member);
    DMT_OK(c, dm_cumulative_sum(s, a, 0, b));
    DMT_OK(c, dm_read(s, b, got));
    for (int i = 0; i < N; i++) {
        sum += x[i];
        if (got[i] != sum) {
            dmt_fail(c, "sum %d is %g, not %g", i, got[i], sum);
        }
    }
    DMT_OK(c, dm_sort(s, a, 0, 0, b));
    DMT_OK(c, dm_read(s, b, got));
    for (int i = 0; i < N; i++) {
        if (got[i] != i) {
            dmt_fail(c, "sorted element %d is %g", i, got[i]);
        }
    }
    DMT_OK(c, dm_topk(s, a, 0, 1, values, DM_NO_ARRAY));
    DMT_OK(c, dm_read(s, values, place));
    DMT_OK(c, dm_fill_arange(s, low, 0.5, 700));
    DMT_OK(c, dm_searchsorted(s, b, low, 0, places));
    DMT_OK(c, dm_array_read_as(s, places, NULL, NULL, DM_F64, got, 0));
    DMT_OK(c, dm_histogram(s, a, 0, N, DM_NO_ARRAY, values));
    DMT_OK(c, dm_read(s, values, bins));
    for (int i = 0; i < 10; i++) {
        if (place[i] != N - 1 - i || got[i] != 700 * i + 1 || bins[i] != N / 10) {
            dmt_fail(c, "number %d: largest %g, place %g, %g in a bin", i, place[i], got[i], bins[i]);
        }
    }
    DMT_OK(c, dm_fill_identity(s, triangle, 2));
    DMT_OK(c, dm_fill(s, right, 6));
    DMT_OK(c, dm_trsm(s, DM_LEFT, DM_LOWER, 0, DM_NONUNIT, 1, triangle, right));
    DMT_OK(c, dm_read(s, right, solved));
    if (solved[0] != 3 || solved[15] != 3) {
        dmt_fail(c, "solved: %g, %g", solved[0], solved[15]);
    }
    if (steps_of_others(c, member) != before) {
        dmt_fail(c, "workers beside the group have taken part");
    }
    DMT_OK(c, dm_group_end(s));
    dm_array all[] = {a, b, values, places, low, triangle, right};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        DMT_OK(c, dm_array_destroy(s, all[i]));
    }
    DMT_OK(c, dm_group_destroy(s, group));
}

enum { LINES = 7, WIDTH = 3, NAMED = 9, MOST = NAMED * WIDTH, CALLS = 6 };

/* One of the six calls by index, by rows: x [LINES, WIDTH] and box [NAMED, WIDTH]. */
static dm_status by_index(dm_session *s, int call, int mode, dm_array x, dm_array rows, dm_array each,
                          dm_array box)
{
    switch (call) {
    case 0:
        return dm_take(s, x, rows, 0, mode, box);
    case 1:
        return dm_take_along_dim(s, x, each, 0, mode, box);
    case 2:
        return dm_put(s, x, rows, box, 0, mode);
    case 3:
        return dm_put_along_dim(s, x, each, box, 0, mode);
    case 4:
        return dm_scatter_add(s, x, rows, box, 0, mode);
    default:
        return dm_scatter_add_along_dim(s, x, each, box, 0, mode);
    }
}

/* What it makes of x and box. */
static void index_expect(int call, int mode, const int32_t *number, double *x, double *box)
{
    for (int i = 0; i < MOST; i++) {
        int n = number[i / WIDTH];
        n = mode == DM_CLIP ? (n < 0 ? 0 : n >= LINES ? LINES - 1 : n) : ((n % LINES) + LINES) % LINES;
        double *line = &x[n * WIDTH + i % WIDTH];
        if (call < 2) {
            box[i] = *line;
        } else {
            *line = call < 4 ? box[i] : *line + box[i];
        }
    }
}

static void same_numbers(dmt_case *c, const char *what, dm_array a, const double *want, int count)
{
    double got[MOST];
    DMT_OK(c, dm_read(c->session, a, got));
    for (int i = 0; i < count; i++) {
        if (got[i] != want[i]) {
            dmt_fail(c, "%s: element %d is %g, not %g", what, i, got[i], want[i]);
        }
    }
}

/* Calls by index in a group of some workers, of arrays of the group and of arrays of all. Those of the group
 * leave the other workers out. */
static void indexed_case(dmt_case *c)
{
    dm_session *s = c->session;
    static const int modes[] = {DM_RAISE, DM_WRAP, DM_CLIP};
    const int64_t lines[] = {LINES, WIDTH}, taken[] = {NAMED, WIDTH};
    int count = 1 + (int)dmt_int(&c->random, 0, c->workers - 1), worker[16];
    bool member[16] = {false}, first = dmt_chance(&c->random, 50), inside = dmt_chance(&c->random, 75);
    for (int i = 0; i < count; i++) {
        worker[i] = first ? i : c->workers - 1 - i;
        member[worker[i]] = true;
    }
    dm_group group;
    DMT_OK(c, dm_group_create(s, worker, count, &group));
    DMT_OK(c, inside ? dm_group_begin(s, group) : DM_OK);
    dm_layout layout[] = {dm_layout_rows(s), dm_layout_replicated(s), dm_layout_cyclic(s, 0, 1),
                          dm_layout_single(0), dm_layout_default()};
    const dm_layout *of[4];
    for (int i = 0; i < 4; i++) {
        of[i] = &layout[dmt_int(&c->random, 0, 4)];
    }
    dm_array x, rows, each, box;
    DMT_OK(c, dm_array_create(s, DM_F64, 2, lines, of[0], &x));
    DMT_OK(c, dm_array_create(s, DM_I32, 1, taken, of[1], &rows));
    DMT_OK(c, dm_array_create(s, DM_I32, 2, taken, of[2], &each));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, taken, of[3], &box));
    DMT_OK(c, inside ? DM_OK : dm_group_begin(s, group));
    for (int i = 0; i < CALLS * 3; i++) {
        int call = i / 3, mode = modes[i % 3];
        int32_t number[NAMED], spread[MOST];
        double line[LINES * WIDTH], value[MOST];
        for (int k = 0; k < NAMED; k++) { /* each line once, but where numbers add up, and in box all */
            int turn = call == 2 || call == 3 ? k % LINES : (int)dmt_int(&c->random, 0, LINES - 1);
            number[k] = mode != DM_CLIP ? turn - (k % 2) * LINES : turn + (turn == LINES - 1) * 5;
        }
        for (int k = 0; k < MOST; k++) {
            spread[k] = number[k / WIDTH];
            value[k] = 100 + (double)(call == 2 || call == 3 ? k % (LINES * WIDTH) : k);
            line[k % (LINES * WIDTH)] = k % (LINES * WIDTH);
        }
        DMT_OK(c, dm_write(s, x, line));
        DMT_OK(c, dm_write(s, rows, number));
        DMT_OK(c, dm_write(s, each, spread));
        DMT_OK(c, dm_write(s, box, value));
        DMT_OK(c, dm_sync(s));
        int64_t before = steps_of_others(c, member);
        DMT_OK(c, by_index(s, call, mode, x, rows, each, box));
        index_expect(call, mode, number, line, value);
        same_numbers(c, "x", x, line, LINES * WIDTH);
        same_numbers(c, "box", box, value, MOST);
        if (inside && steps_of_others(c, member) != before) {
            dmt_fail(c, "call %d: workers beside the group have taken part", call);
        }
        if (mode == DM_RAISE) {
            number[NAMED - 1] = spread[MOST - 1] = LINES;
            DMT_OK(c, dm_write(s, rows, number));
            DMT_OK(c, dm_write(s, each, spread));
            DMT_REFUSED(c, DM_ERR_ARG, by_index(s, call, mode, x, rows, each, box));
            same_numbers(c, "x as it was", x, line, LINES * WIDTH);
        }
    }
    DMT_OK(c, dm_group_end(s));
    dm_array all[] = {x, rows, each, box};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        DMT_OK(c, dm_array_destroy(s, all[i]));
    }
    DMT_OK(c, dm_group_destroy(s, group));
}

static int count_call(const dm_task *t)
{
    (void)t;
    atomic_fetch_add(&called, 1);
    return 0;
}

/* A program of a group is planned and run by the group alone, functions of the user included, which also run on
 * workers of the group that hold nothing. */
static void program_case(dmt_case *c)
{
    enum { RUNS = 5 };
    dm_session *s = c->session;
    int count = 1 + (int)dmt_int(&c->random, 0, c->workers - 1), worker[16];
    bool member[16] = {false};
    const int64_t one[] = {1};
    double got[COUNT], sum = 0;
    dm_group group = backwards(c, count, worker);
    dm_array x, y, t, single, total;
    dm_program program, called_alone;
    for (int i = 0; i < count; i++) {
        member[worker[i]] = true;
    }
    DMT_OK(c, dm_group_begin(s, group));
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    DMT_OK(c, dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &rows, &x));
    DMT_OK(c, dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &cols, &y));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, one, NULL, &single));
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &total));
    DMT_OK(c, dm_fill(s, x, 1));
    DMT_OK(c, dm_fill(s, y, 2));
    DMT_OK(c, dm_fill(s, single, 0));
    int64_t before = steps_of_others(c, member);
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_array_like(s, x, DM_F64, &t));
    DMT_OK(c, dm_add(s, 1, x, 1, y, t));
    DMT_OK(c, dm_transpose(s, t, y));
    DMT_OK(c, dm_array_destroy(s, t));
    DMT_OK(c, dm_sum(s, y, NULL, 0, 1, 0, total));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_apply(s, "count call", 1, &single, (int[]){DM_READWRITE}, NULL, 0));
    DMT_OK(c, dm_program_end(s, &called_alone));
    DMT_OK(c, dm_program_run(s, program, RUNS, 0, NULL));
    DMT_OK(c, dm_program_run_until(s, program, RUNS, 1, total, -1, 0, NULL));
    DMT_OK(c, dm_group_sync(s, group));
    DMT_OK(c, dm_read(s, y, got));
    DMT_OK(c, dm_read(s, total, &sum));
    if (got[0] != 2 + 2 * RUNS || got[COUNT - 1] != 2 + 2 * RUNS || sum != (2 + 2 * RUNS) * COUNT) {
        dmt_fail(c, "y is %g, its sum %g", got[0], sum);
    }
    atomic_store(&called, 0);
    DMT_OK(c, dm_program_run(s, called_alone, RUNS, 0, NULL));
    DMT_OK(c, dm_sync(s));
    if (!dmt_launched() && atomic_load(&called) != RUNS * count) {
        dmt_fail(c, "the function ran %d times, not on %d workers in %d runs", atomic_load(&called), count,
                 RUNS);
    }
    DMT_OK(c, dm_group_end(s));
    DMT_OK(c, dm_program_destroy(s, program));
    DMT_OK(c, dm_program_destroy(s, called_alone));
    if (steps_of_others(c, member) != before) {
        dmt_fail(c, "workers beside the group have planned or done something");
    }
    dm_array all[] = {x, y, single, total};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        DMT_OK(c, dm_array_destroy(s, all[i]));
    }
    DMT_OK(c, dm_group_destroy(s, group));
}

static int fail_here(const dm_task *t)
{
    return dm_task_fail(t, "as it must");
}

/* A function fails at a group's worker, and what it writes is read, inside the group: the read says which
 * command it was, and arrays of others are what they were. */
static void poisoned_case(dmt_case *c)
{
    dm_session *s = c->session;
    int64_t shape[] = {SIDE};
    double x[SIDE];
    int worker[16];
    dm_array a, b;
    dm_group group = backwards(c, 1 + c->workers / 2, worker);
    DMT_OK(c, dm_array_create(s, DM_F64, 1, shape, NULL, &b));
    DMT_OK(c, dm_fill(s, b, 3));
    DMT_OK(c, dm_group_begin(s, group));
    DMT_OK(c, dm_array_create(s, DM_F64, 1, shape, NULL, &a));
    DMT_OK(c, dm_fill(s, a, 1));
    DMT_OK(c, dm_apply(s, "fail here", 1, &a, (int[]){DM_WRITE}, NULL, 0));
    dm_status first = dm_group_sync(s, group);
    if (first != DM_ERR_TASK || !strstr(dm_error_message(), "as it must")) {
        dmt_fail(c, "group_sync: %s: %s", dm_status_name(first), dm_error_message());
    }
    for (int i = 0; i < 2; i++) {
        REFUSED(DMT_ONE(POISONED), "(apply)", dm_read(s, a, x));
    }
    DMT_OK(c, dm_fill(s, a, 2));
    DMT_OK(c, dm_read(s, a, x));
    DMT_OK(c, dm_group_end(s));
    for (int i = 0; i < SIDE; i++) {
        if (x[i] != 2) {
            dmt_fail(c, "element %d is %g", i, x[i]);
        }
    }
    DMT_OK(c, dm_read(s, b, x));
    if (x[SIDE - 1] != 3) {
        dmt_fail(c, "an array of others is %g", x[SIDE - 1]);
    }
    DMT_OK(c, dm_array_destroy(s, a));
    DMT_OK(c, dm_array_destroy(s, b));
    DMT_OK(c, dm_group_destroy(s, group));
}

/* A group that has begun and ended, and a matrix of ones on it. */
static dm_group group_with(dmt_case *c, const int *workers, int count, dm_array *x)
{
    dm_group group;
    DMT_OK(c, dm_group_create(c->session, workers, count, &group));
    DMT_OK(c, dm_group_begin(c->session, group));
    dm_layout rows = dm_layout_rows(c->session);
    DMT_OK(c, dm_array_create(c->session, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &rows, x));
    DMT_OK(c, dm_fill(c->session, *x, 1));
    DMT_OK(c, dm_group_end(c->session));
    return group;
}

/* The commands given so far are done, and what has failed is not told. */
static void await_quietly(dmt_case *c)
{
    dm_event event;
    int done = 0;
    DMT_OK(c, dm_event_record(c->session, &event));
    while (!done) {
        DMT_OK(c, dm_event_done(c->session, event, &done));
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

/* A failure is told to who waits for a worker of its command, once: not to another group. */
static void failures_case(dmt_case *c)
{
    dm_session *s = c->session;
    if (c->workers < 2) {
        return;
    }
    int first[] = {0}, last[] = {c->workers - 1}, both[] = {0, c->workers - 1}, done = 0;
    double got[COUNT];
    dm_array x, y, z;
    dm_program program;
    dm_counters counters = {.size = sizeof counters};
    dm_group here = group_with(c, first, 1, &x), there = group_with(c, last, 1, &y),
             across = group_with(c, both, 2, &z);
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_require_range(s, y, 5, 6));
    DMT_OK(c, dm_scale(s, 2, y, y));
    DMT_OK(c, dm_program_end(s, &program));
    /* of the other group: a program, then a call */
    for (int i = 0; i < 2; i++) {
        DMT_OK(c, i == 0 ? dm_program_run(s, program, 1, 0, NULL) : dm_require_range(s, y, 5, 6));
        await_quietly(c);
        DMT_OK(c, dm_group_sync(s, here));
        DMT_OK(c, dm_group_wait(s, here, -1, &done));
        DMT_OK(c, dm_group_counters(s, here, &counters));
        DMT_OK(c, dm_group_begin(s, here));
        DMT_OK(c, dm_read(s, x, got)); /* waits for the group */
        DMT_OK(c, dm_group_end(s));
        DMT_REFUSED(c, DM_ERR_VALUE, i == 0 ? dm_group_sync(s, there) : dm_sync(s));
        DMT_OK(c, dm_group_sync(s, there));
        DMT_OK(c, dm_sync(s));
        DMT_OK(c, dm_fill(s, y, 1));
    }
    /* of one that shares a worker with each: told to one of them alone, though two workers report it */
    for (int i = 0; i < 2; i++) {
        DMT_OK(c, dm_require_range(s, z, 5, 6));
        await_quietly(c);
        DMT_REFUSED(c, DM_ERR_VALUE, dm_group_sync(s, i == 0 ? here : there));
        DMT_OK(c, dm_group_sync(s, i == 0 ? there : here));
        DMT_OK(c, dm_group_sync(s, across));
        DMT_OK(c, dm_sync(s));
        DMT_OK(c, dm_fill(s, z, 1));
    }
    /* one of each: the earliest is told, and the others are counted with it */
    DMT_OK(c, dm_require_range(s, x, 5, 6));
    DMT_OK(c, dm_require_range(s, y, 5, 6));
    DMT_OK(c, dm_require_range(s, z, 5, 6));
    await_quietly(c);
    DMT_REFUSED(c, DM_ERR_VALUE, dm_group_sync(s, there));
    DMT_REFUSED(c, DM_ERR_VALUE, dm_group_sync(s, here));
    DMT_OK(c, dm_sync(s));
    DMT_OK(c, dm_program_destroy(s, program));
    dm_array all[] = {x, y, z};
    dm_group groups[] = {here, there, across};
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_array_destroy(s, all[i]));
        DMT_OK(c, dm_group_destroy(s, groups[i]));
    }
}

/* Reports of the workers of one command that come one after the other are one failure. */
static void late_failure_case(dmt_case *c)
{
    dm_session *s = c->session;
    if (c->workers < 2) {
        return;
    }
    int both[] = {0, c->workers - 1};
    dm_array x, z;
    dm_group first = group_with(c, both, 1, &x), across = group_with(c, both, 2, &z), last;
    DMT_OK(c, dm_group_create(s, both + 1, 1, &last));
    DMT_OK(c, dm_group_begin(s, across));
    DMT_OK(c, dm_apply(s, "fail late", 1, &z, (int[]){DM_READWRITE}, NULL, 0));
    DMT_OK(c, dm_group_end(s));
    int done = 7;
    DMT_REFUSED(c, DM_ERR_TASK, dm_group_wait(s, first, -1, &done));
    if (done != 7) {
        dmt_fail(c, "a wait that fails has set `done`");
    }
    DMT_OK(c, dm_group_sync(s, last));
    DMT_OK(c, dm_sync(s));
    DMT_OK(c, dm_array_destroy(s, x));
    DMT_OK(c, dm_array_destroy(s, z));
    DMT_OK(c, dm_group_destroy(s, first));
    DMT_OK(c, dm_group_destroy(s, last));
    DMT_OK(c, dm_group_destroy(s, across));
}

static dm_counters counters_of(dmt_case *c, dm_group group)
{
    dm_counters counters = {.size = sizeof counters};
    DMT_OK(c, dm_group_counters(c->session, group, &counters));
    return counters;
}

enum { COUNTERS = 8 };

static void add_counters(dm_counters k, int64_t sign, int64_t *sum)
{
    const int64_t of[COUNTERS] = {k.steps, k.bytes_sent, k.bytes_received, k.messages_sent, k.messages_received,
                                  k.flops, k.plans_made, k.plans_reused};
    for (int i = 0; i < COUNTERS; i++) {
        sum[i] += sign * of[i];
    }
}

/* What all workers have done, but for the number of commands: groups count those of calls alone. */
static void add_workers(dmt_case *c, int64_t sign, int64_t *sum)
{
    for (int w = 0; w < c->workers; w++) {
        dm_counters counters = {.size = sizeof counters};
        DMT_OK(c, dm_counters_get(c->session, w, &counters));
        add_counters(counters, sign, sum);
    }
}

static void counted(dmt_case *c, const char *what, int64_t got, int64_t want)
{
    if (got != want) {
        dmt_fail(c, "%s: %lld, not %lld", what, (long long)got, (long long)want);
    }
}

/* A group counts what was given in it, whoever else uses its workers; all groups together did what the workers
 * did. */
static void counters_case(dmt_case *c)
{
    enum { FILLS = 10, PASSES = 3 };
    dm_session *s = c->session;
    if (c->workers < 2) {
        return;
    }
    int first[] = {0}, last[] = {c->workers - 1}, both[] = {0, c->workers - 1};
    int64_t whole[COUNTERS] = {0}, grouped[COUNTERS] = {0};
    dm_array x, y, z, t, product, left;
    dm_program program;
    dm_group here = group_with(c, first, 1, &x), there = group_with(c, last, 1, &y),
             across = group_with(c, both, 2, &z), never;
    DMT_OK(c, dm_group_create(s, both, 2, &never));
    DMT_OK(c, dm_group_begin(s, across));
    dm_layout cols = dm_layout_cols(s);
    DMT_OK(c, dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &cols, &t));
    DMT_OK(c, dm_group_end(s));
    DMT_OK(c, dm_array_like(s, y, DM_F64, &product));
    DMT_OK(c, dm_array_create(s, DM_F64, 0, NULL, NULL, &left));
    DMT_OK(c, dm_fill(s, left, PASSES));
    counted(c, "fills in groups", counters_of(c, across).commands, 2);
    add_counters(counters_of(c, here), -1, grouped);
    add_counters(counters_of(c, there), -1, grouped);
    add_counters(counters_of(c, across), -1, grouped);
    add_workers(c, -1, whole);

    DMT_OK(c, dm_group_begin(s, here));
    for (int i = 0; i < FILLS; i++) {
        DMT_OK(c, dm_scale(s, 1, x, x));
    }
    DMT_OK(c, dm_group_end(s));
    dm_counters a = counters_of(c, here), b = counters_of(c, there);
    counted(c, "calls of the first group", a.commands, 1 + FILLS);
    counted(c, "calls of the other", b.commands, 1);
    DMT_OK(c, dm_group_begin(s, here));
    DMT_OK(c, dm_group_begin(s, there)); /* the inner one counts */
    DMT_OK(c, dm_matmul(s, y, y, product));
    DMT_OK(c, dm_group_end(s));
    DMT_OK(c, dm_group_end(s));
    counted(c, "flops of the first group", counters_of(c, here).flops, 0);
    counted(c, "flops of the other", counters_of(c, there).flops, 2 * SIDE * SIDE * SIDE);
    counted(c, "commands of the first group", counters_of(c, here).commands, 1 + FILLS);

    DMT_OK(c, dm_group_begin(s, across));
    DMT_OK(c, dm_copy(s, z, t)); /* each sends half of its half */
    DMT_OK(c, dm_group_end(s));
    dm_counters k = counters_of(c, across);
    counted(c, "commands across", k.commands, 4);
    counted(c, "bytes sent", k.bytes_sent, COUNT * 8 / 2);
    counted(c, "bytes received", k.bytes_received, COUNT * 8 / 2);
    counted(c, "messages sent", k.messages_sent, 2);
    counted(c, "messages received", k.messages_received, 2);
    counted(c, "bytes that the first group sent", counters_of(c, here).bytes_sent, 0);

    /* a program with a loop that looks at a value: one command a run, of the group in which it was recorded */
    DMT_OK(c, dm_group_begin(s, across));
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_copy(s, z, t));
    DMT_OK(c, dm_program_repeat(s, 100));
    DMT_OK(c, dm_copy(s, t, z));
    DMT_OK(c, dm_map(s, "left - 1", 1, (dm_map_arg[]){DM_ARG("left", left)}, left));
    DMT_OK(c, dm_program_repeat_until(s, 1, left, 0.5));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_group_end(s));
    k = counters_of(c, across);
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    dm_counters after = counters_of(c, across);
    counted(c, "commands of a run", after.commands - k.commands, 2);
    if (after.bytes_sent - k.bytes_sent < (1 + PASSES) * COUNT * 8 / 2) {
        dmt_fail(c, "a run has sent %lld bytes", (long long)(after.bytes_sent - k.bytes_sent));
    }
    counted(c, "commands of a group that has none", counters_of(c, never).commands, 0);
    counted(c, "steps of a group that has none", counters_of(c, never).steps, 0);

    add_workers(c, 1, whole);
    add_counters(counters_of(c, here), 1, grouped);
    add_counters(counters_of(c, there), 1, grouped);
    add_counters(counters_of(c, across), 1, grouped);
    for (int i = 0; i < COUNTERS; i++) {
        if (whole[i] != grouped[i]) {
            dmt_fail(c, "number %d: the workers %lld, their groups %lld", i, (long long)whole[i],
                     (long long)grouped[i]);
        }
    }
    DMT_OK(c, dm_program_destroy(s, program));
    dm_array all[] = {x, y, z, t, product, left};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        DMT_OK(c, dm_array_destroy(s, all[i]));
    }
    dm_group groups[] = {here, there, across, never};
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_group_destroy(s, groups[i]));
    }
}

/* A group that takes the place of one whose commands may still run counts from zero. */
static void places_case(dmt_case *c)
{
    enum { GROUPS = 20 };
    dm_session *s = c->session;
    int one[] = {c->workers - 1};
    dm_array x;
    dm_group group = group_with(c, one, 1, &x), before;
    for (int i = 0; i < GROUPS; i++) {
        DMT_OK(c, dm_group_begin(s, group));
        for (int k = 0; k < 3 + i; k++) {
            DMT_OK(c, dm_scale(s, 1, x, x));
        }
        DMT_OK(c, dm_group_end(s));
        if (i % 3 == 0) {
            counted(c, "commands", counters_of(c, group).commands, 3 + i + (i == 0));
        }
        before = group;
        DMT_OK(c, dm_group_create(s, one, 1, &group));
        DMT_OK(c, dm_group_destroy(s, before));
        if (i % 2 == 0) { /* the next but one takes the same place */
            before = group;
            DMT_OK(c, dm_group_create(s, one, 1, &group));
            DMT_OK(c, dm_group_destroy(s, before));
        }
        if (i % 5 == 0) {
            counted(c, "commands of a new group", counters_of(c, group).commands, 0);
        }
    }
    DMT_OK(c, dm_array_destroy(s, x));
    DMT_OK(c, dm_group_destroy(s, group));
}

static void refusals_case(dmt_case *c)
{
    dm_session *s = c->session;
    dm_group group = {0}, zero = {0};
    dm_counters counters = {.size = 1};
    int two[] = {0, 0}, n, out;
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_create(s, NULL, 1, &group));
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_create(s, two, 1, NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_create(s, two, 0, &group));
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_create(s, two, c->workers + 1, &group));
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_create(s, &c->workers, 1, &group));
    if (c->workers > 1) {
        DMT_REFUSED(c, DM_ERR_ARG, dm_group_create(s, two, 2, &group));
    }
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_group_begin(s, zero));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_group_sync(s, zero));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_group_wait(s, zero, 0, &n));
    DMT_REFUSED(c, DM_ERR_STATE, dm_group_end(s));
    DMT_OK(c, dm_group_destroy(s, zero));
    DMT_OK(c, dm_group_create(s, two, 1, &group));
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_counters(s, group, &counters));
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_counters(s, group, NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_wait(s, group, 0, NULL));
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_wait(s, group, NAN, &n));
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_workers(s, group, 0, &out, &n));
    DMT_REFUSED(c, DM_ERR_ARG, dm_group_workers(s, group, 0, NULL, NULL));
    DMT_OK(c, dm_group_destroy(s, group));
    DMT_REFUSED(c, DM_ERR_HANDLE, dm_group_destroy(s, group));
    for (int i = 0; i < 100; i++) { /* those that have their places are others */
        dm_group before = group, other;
        DMT_OK(c, dm_group_create(s, two, 1, &group));
        DMT_REFUSED(c, DM_ERR_HANDLE, dm_group_begin(s, before));
        DMT_OK(c, dm_group_create(s, two, 1, &other));
        DMT_OK(c, dm_group_destroy(s, group));
        DMT_REFUSED(c, DM_ERR_HANDLE, dm_group_sync(s, group));
        DMT_OK(c, dm_group_sync(s, other));
        DMT_OK(c, dm_group_destroy(s, other));
    }
}

static void test_all(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*fn)(dmt_case *c);
        int cases;
        const char *options;
    } part[] = {{"groups_layouts", layouts_case, 3},
                {"groups_products", products_case, 3},
                {"groups_apart", apart_case, 2},
                {"groups_ordered", ordered_case, 15},
                {"groups_indexed", indexed_case, 80},
                {"groups_indexed_exchange", indexed_case, 40, "index_algorithm=exchange"},
                {"groups_indexed_fetch", indexed_case, 20, "index_algorithm=fetch"},
                {"groups_indexed_list", indexed_case, 20, "index_algorithm=list"},
                {"groups_indexed_lend", indexed_case, 20, "index_algorithm=lend"},
                {"groups_programs", program_case, 15},
                {"groups_poisoned", poisoned_case, 3},
                {"groups_failures", failures_case, 5},
                {"groups_late", late_failure_case, 3},
                {"groups_counters", counters_case, 3},
                {"groups_places", places_case, 3},
                {"groups_refusals", refusals_case, 1}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        dmt_run(&(dmt_suite){
            .name = part[i].name, .cases = part[i].cases, .fn = part[i].fn, .options = part[i].options});
    }
}

int main(void)
{
    if (dm_register("wait for word", wait_for_word) != DM_OK ||
        dm_register("count call", count_call) != DM_OK || dm_register("fail here", fail_here) != DM_OK ||
        dm_register("fail late", fail_late) != DM_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
