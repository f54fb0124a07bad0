/* What a function asks of its GPU (dm_task_map, dm_task_fetch): rows that the GPU fetches from memory or from
 * the pages of a file, beside rows that the function writes; and what is not possible. On CPUs all answers are
 * 0. */
#include "support/refusal.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORKERS = 8, ROWS = 23, REGION = 1 << 16 /* bytes of a worker */ };

/* The memory that is fetched from, a region for each worker; and what the functions were answered. */
static const unsigned char *source;
static atomic_int answers[4], fetched;

enum { MAP, UNMAP };
typedef struct request {
    int kind;
    unsigned seed; /* of fetches */
    int64_t row;   /* bytes of a row */
} request;

static int ask(const dm_task *t)
{
    request r;
    memcpy(&r, t->args, sizeof r);
    const unsigned char *at = source + (int64_t)t->worker * REGION;
    const int answer = r.kind == UNMAP ? dm_task_unmap(t, at) : dm_task_map(t, at, REGION);
    atomic_fetch_add(&answers[answer], 1);
    return 0;
}

static unsigned hash(unsigned x)
{
    x = (x ^ 61) ^ x >> 16;
    x *= 9;
    x ^= x >> 4;
    x *= 0x27d4eb2dU;
    return x ^ x >> 15;
}

/* Where row `row` is in the region of its worker: anywhere. */
static int64_t place_of(const request *r, int64_t row)
{
    return (int64_t)hash(r->seed + (unsigned)row) % (REGION - r->row);
}

static bool is_fetched(const request *r, int64_t row)
{
    return hash(r->seed * 31 + (unsigned)row) % 3 > 0;
}

/* Some rows are fetched, the others written; from the last to the first. */
static int fetch_rows(const dm_task *t)
{
    request r;
    memcpy(&r, t->args, sizeof r);
    for (int64_t k = 0; k < t->blocks[0]; k++) {
        const dm_block *b = &t->block[0][k];
        for (int64_t i = b->extent[0]; i-- > 0;) {
            const int64_t row = b->start[0] + i;
            char *to = (char *)b->data + i * b->stride[0];
            const unsigned char *from = source + (int64_t)t->worker * REGION + place_of(&r, row);
            const int got = is_fetched(&r, row) ? dm_task_fetch(t, to, from, r.row) : 0;
            atomic_fetch_add(&fetched, got);
            if (!got) {
                memcpy(to, from, (size_t)r.row);
            }
        }
    }
    return 0;
}

/* What cannot be: each must be answered 0. */
static int ask_wrongly(const dm_task *t)
{
    const unsigned char *at = source + (int64_t)t->worker * REGION;
    if (t->blocks[0] == 0 || t->blocks[1] == 0) {
        return 0;
    }
    char *to = t->block[0][0].data, *other = t->block[1][0].data;
    const int64_t bytes = t->block[0][0].extent[0] * t->block[0][0].extent[1];
    const int got[] = {dm_task_fetch(t, to, at + REGION - 1, 2),
                       dm_task_fetch(t, to, at - 1, 2),
                       dm_task_fetch(t, to, at, REGION + 1),
                       dm_task_fetch(t, to + bytes - 1, at, 2),
                       dm_task_fetch(t, to - 1, at, 2),
                       dm_task_fetch(t, other, at, 1),
                       dm_task_fetch(t, to, at, 0),
                       dm_task_fetch(t, to, NULL, 1),
                       dm_task_fetch(t, NULL, at, 1),
                       dm_task_unmap(t, at + 1),
                       dm_task_map(t, NULL, 1),
                       dm_task_map(t, at, 0),
                       dm_task_map(t, at, -5)};
    for (size_t i = 0; i < sizeof got / sizeof *got; i++) {
        if (got[i]) {
            return dm_task_fail(t, "answer %d is %d", (int)i, got[i]);
        }
    }
    return 0;
}

static int fetch_twice(const dm_task *t)
{
    const unsigned char *at = source + (int64_t)t->worker * REGION;
    if (t->blocks[0] == 0 || !dm_task_fetch(t, t->block[0][0].data, at, 2)) {
        return t->gpu ? 0 : dm_task_fail(t, "a function has two fetches to one place"); /* as a GPU says */
    }
    return !dm_task_fetch(t, (char *)t->block[0][0].data + 1, at, 2);
}

static void apply(dmt_case *c, const char *name, dm_array x, int mode, request r)
{
    dm_apply_options options = DM_APPLY_OPTIONS_INIT;
    options.early = c->number % 2;
    memset(answers, 0, sizeof answers);
    DMT_OK(c, dm_apply_with(c->session, name, 1, &x, &mode, &r, sizeof r, &options));
}

/* All workers with a GPU have answered so, and all others 0. */
static void expect(dmt_case *c, int answer)
{
    DMT_OK(c, dm_sync(c->session));
    const int want = dmt_on_cpu() ? 0 : answer;
    if (atomic_load(&answers[want]) != c->workers) {
        dmt_fail(c, "%d of %d workers were answered %d", atomic_load(&answers[want]), c->workers, want);
    }
}

static void check_rows(dmt_case *c, dm_array x, const request *r, const unsigned char *from)
{
    unsigned char *got = malloc((size_t)(ROWS * r->row));
    assert_non_null(got);
    DMT_OK(c, dm_read(c->session, x, got));
    for (int64_t row = 0; row < ROWS; row++) {
        bool right = false; /* whichever worker has it */
        for (int w = 0; w < c->workers && !right; w++) {
            right =
                memcmp(got + row * r->row, from + (int64_t)w * REGION + place_of(r, row), (size_t)r->row) == 0;
        }
        if (!right) {
            dmt_fail(c, "row %d is not what was to be fetched", (int)row);
        }
    }
    free(got);
}

static void fetch_case(dmt_case *c)
{
    static const char path[] = "fetched";
    dm_session *s = c->session;
    const bool pages = c->number % 4 >= 2; /* of a file, that may only be read */
    unsigned char *made = aligned_alloc(4096, WORKERS * REGION);
    request r = {.row = dmt_int(&c->random, 1, 3000)};
    assert_non_null(made);
    for (int64_t i = 0; i < WORKERS * REGION; i++) {
        made[i] = (unsigned char)hash((unsigned)(i + c->number));
    }
    source = made;
    if (pages) {
        int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        assert_true(file >= 0 && write(file, made, WORKERS * REGION) == WORKERS * REGION);
        source = mmap(NULL, WORKERS * REGION, PROT_READ, MAP_SHARED, file, 0);
        close(file);
        unlink(path);
        assert_true(source != MAP_FAILED);
    }
    const dm_layout rows = dmt_chance(&c->random, 50) ? dm_layout_rows(s) : dm_layout_cyclic(s, 0, 2);
    dm_array x;
    DMT_OK(c, dm_array_create(s, DM_U8, 2, (int64_t[]){ROWS, r.row}, &rows, &x));
    DMT_OK(c, dm_fill(s, x, 1));
    r.kind = MAP;
    apply(c, "fetch_ask", x, DM_READWRITE, r);
    expect(c, 1);
    apply(c, "fetch_ask", x, DM_READWRITE, r);
    expect(c, 2);
    for (int i = 0; i < 3; i++) {
        r.seed = (unsigned)dmt_int(&c->random, 0, 1 << 20);
        atomic_store(&fetched, 0);
        apply(c, "fetch_rows", x, i == 1 ? DM_READWRITE : DM_WRITE, r);
        check_rows(c, x, &r, made);
        int want = 0;
        for (int64_t row = 0; row < ROWS; row++) {
            want += is_fetched(&r, row);
        }
        if (atomic_load(&fetched) != (dmt_on_cpu() ? 0 : want)) {
            dmt_fail(c, "%d rows of %d were fetched", atomic_load(&fetched), want);
        }
    }
    apply(c, "fetch_rows", x, DM_WRITE, r); /* on its way when the memory goes */
    r.kind = UNMAP;
    apply(c, "fetch_ask", x, DM_READWRITE, r);
    expect(c, 1);
    if (pages) {
        munmap((void *)(uintptr_t)source, WORKERS * REGION);
        source = made;
    }
    check_rows(c, x, &r, made);
    r.kind = UNMAP;
    apply(c, "fetch_ask", x, DM_READWRITE, r); /* not mapped any more */
    expect(c, 0);
    DMT_OK(c, dm_array_destroy(s, x));
    free(made);
}

static void wrong_case(dmt_case *c)
{
    dm_session *s = c->session;
    const int64_t shape[] = {ROWS, 5}, other[] = {ROWS, 6};
    const int modes[] = {DM_WRITE, DM_READ};
    const dm_layout rows = dm_layout_rows(s);
    unsigned char *made = aligned_alloc(4096, WORKERS * REGION);
    dm_array x[2], own;
    double got[ROWS * 5];
    assert_non_null(made);
    memset(made, 3, WORKERS * REGION);
    source = made;
    DMT_OK(c, dm_array_create(s, DM_U8, 2, shape, &rows, &x[0]));
    DMT_OK(c, dm_array_create(s, DM_U8, 2, other, &rows, &x[1]));
    DMT_OK(c, dm_array_create(s, DM_U8, 2, other, &rows, &own));
    DMT_OK(c, dm_fill(s, own, 7));
    DMT_OK(c, dm_fill(s, x[0], 7));
    DMT_OK(c, dm_fill(s, x[1], 7));
    apply(c, "fetch_ask", own, DM_READWRITE, (request){.kind = MAP});
    expect(c, 1);
    DMT_OK(c, dm_apply(s, "fetch_wrong", 2, x, modes, NULL, 0));
    DMT_OK(c, dm_sync(s));
    DMT_OK(c, dm_apply(s, "fetch_twice", 1, x, (int[]){DM_READWRITE}, NULL, 0));
    REFUSED(DMT_ONE(TASK), "two fetches to one place", dm_sync(s));
    REFUSED(DMT_ONE(POISONED), NULL, dm_read_as(s, x[0], got));
    DMT_OK(c, dm_array_destroy(s, x[0]));
    DMT_OK(c, dm_array_destroy(s, x[1]));
    apply(c, "fetch_ask", own, DM_READWRITE, (request){.kind = UNMAP});
    expect(c, 1);
    DMT_OK(c, dm_array_destroy(s, own));
    free(made);
}

/* A session ends with memory still mapped, which may go then. */
static void test_ends_mapped(void **state)
{
    (void)state;
    for (int i = 0; i < 3 && !dmt_launched(); i++) {
        const int64_t shape[] = {4}, workers = 2;
        const request r = {.kind = MAP};
        unsigned char *made = aligned_alloc(4096, WORKERS * REGION);
        dm_array x;
        int mode = DM_WRITE;
        assert_non_null(made);
        source = made;
        dm_session *s = dmt_session_open((int)workers, NULL);
        assert_int_equal(dm_array_create(s, DM_U8, 1, shape, NULL, &x), DM_OK);
        assert_int_equal(dm_apply(s, "fetch_ask", 1, &x, &mode, &r, sizeof r), DM_OK);
        assert_int_equal(dm_array_destroy(s, x), DM_OK);
        dmt_session_close(s, 0);
        memset(made, 1, WORKERS * REGION);
        free(made);
    }
}

static void test_fetch(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "fetch", .cases = 60, .fn = fetch_case});
}

static void test_wrong(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "fetch_wrong", .cases = 1, .each = true, .fn = wrong_case});
}

int main(void)
{
    if (dm_register("fetch_ask", ask) != DM_OK || dm_register("fetch_rows", fetch_rows) != DM_OK ||
        dm_register("fetch_wrong", ask_wrongly) != DM_OK || dm_register("fetch_twice", fetch_twice) != DM_OK) {
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fetch), cmocka_unit_test(test_wrong),
                                       cmocka_unit_test(test_ends_mapped)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
