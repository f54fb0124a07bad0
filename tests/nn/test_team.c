/* Teams that make the rows of a batch: every row is put once, what is said of them is in their order, whoever
 * made them, and an error is that of the first row. */
#include "net_case.h"

#include "data/team.h"

#include <stdatomic.h>
#include <time.h>

enum { FIRST = 5, ROWS = 37, EACH = 3, BATCHES = 40 };

typedef struct source {
    int64_t fails[2], damaged[3]; /* rows; -1: none */
    int late; /* which of those that fail does so after the other, where there are two threads */
    atomic_int made;
} source;

static bool is_one_of(const int64_t *list, int count, int64_t row)
{
    bool found = false;
    for (int i = 0; i < count; i++) {
        found = found || list[i] == row;
    }
    return found;
}

static dm_status make_row(source *s, int64_t batch, int64_t row, float *to, nn_page *page)
{
    char text[64];
    nanosleep(&(struct timespec){.tv_nsec = row * batch * 7919 % 50000}, NULL); /* they end in any order */
    if (is_one_of(s->damaged, 3, row)) {
        snprintf(text, sizeof text, "row %lld", (long long)row);
        nn_page_damaged(page, text);
        nn_page_damaged(page, "twice");
    }
    for (int i = 0; i < 2; i++) {
        if (row == s->fails[i]) {
            nanosleep(&(struct timespec){.tv_nsec = i == s->late ? 3000000 : 1000000}, NULL);
            return dm_error_set(DM_ERR_IO, "row %lld is missing", (long long)row);
        }
    }
    for (int i = 0; i < EACH; i++) {
        to[i] = (float)(1000 * batch + EACH * row + i);
    }
    return DM_OK;
}

static dm_status make(void *state, int64_t batch, const nn_rows *rows, nn_page *page)
{
    source *s = state;
    dm_status status = DM_OK;
    for (int64_t i = 0; status == DM_OK && i < rows->count; i++) {
        atomic_fetch_add(&s->made, 1);
        status = make_row(s, batch, rows->first + i, page->top[0] + i * EACH, page);
    }
    return status;
}

static const nn_feed_type type = {.name = "made up", .make = make};

typedef struct taken {
    float value[ROWS][EACH];
    atomic_int puts[ROWS];
} taken;

static void put(void *context, int64_t first, int64_t count, const nn_page *page)
{
    taken *t = context;
    for (int64_t i = 0; i < count; i++) {
        memcpy(t->value[first + i - FIRST], page->top[0] + i * EACH, sizeof t->value[0]);
        atomic_fetch_add(&t->puts[first + i - FIRST], 1);
    }
}

static void check_all(const taken *t, int64_t batch)
{
    for (int row = 0; row < ROWS; row++) {
        assert_int_equal(atomic_load(&t->puts[row]), 1);
        for (int i = 0; i < EACH; i++) {
            assert_true(t->value[row][i] == (float)(1000 * batch + EACH * (row + FIRST) + i));
        }
    }
}

static const nn_rows rows = {.tops = 1, .each = {EACH}, .first = FIRST, .count = ROWS};

static nn_team *open_team(source *s, int sharing)
{
    nn_team *t = NULL;
    CHECK(nn_team_open(&type, s, &rows, 0, sharing, &t));
    return t;
}

static void test_rows(void **state)
{
    (void)state;
    for (int sharing = 1; sharing <= 1000; sharing *= 1000) { /* all cores; one thread */
        source s = {.fails = {-1, -1}, .damaged = {-1, -1, -1}};
        nn_team *t = open_team(&s, sharing);
        for (int64_t batch = 0; batch < BATCHES; batch++) {
            taken all = {0};
            nn_page told;
            nn_team_make(t, batch, put, &all, &told);
            assert_int_equal(told.status, DM_OK);
            assert_int_equal(told.damaged, 0);
            assert_string_equal(told.why, "");
            check_all(&all, batch);
            assert_int_equal(atomic_load(&s.made), (batch + 1) * ROWS);
        }
        nn_team_close(t);
    }
}

static void test_damage(void **state)
{
    source s = {.fails = {-1, -1}, .damaged = {FIRST + 30, FIRST, FIRST + 7}};
    nn_team *t = open_team(&s, 1);
    (void)state;
    for (int64_t batch = 1; batch < BATCHES; batch++) {
        taken all = {0};
        nn_page told;
        nn_team_make(t, batch, put, &all, &told);
        assert_int_equal(told.damaged, 6);
        assert_string_equal(told.why, "row 5\ntwice\nrow 12\ntwice\nrow 35\ntwice\n");
        check_all(&all, batch);
    }
    nn_team_close(t);
}

/* The same row is named each time, and the next batch comes as if nothing had been. */
static void test_error(void **state)
{
    source s = {.damaged = {-1, -1, -1}};
    nn_team *t = open_team(&s, 1);
    (void)state;
    for (int64_t batch = 1; batch < BATCHES; batch++) {
        taken all = {0};
        nn_page told;
        s.fails[0] = batch % 2 ? FIRST + 12 : -1;
        s.fails[1] = batch % 2 ? FIRST + 3 : -1;
        s.late = batch % 4 == 1;
        nn_team_make(t, batch, put, &all, &told);
        if (batch % 2) {
            assert_int_equal(told.status, DM_ERR_IO);
            assert_string_equal(told.error, "row 8 is missing");
            assert_int_equal(atomic_load(&all.puts[3]), 0);
        } else {
            assert_int_equal(told.status, DM_OK);
            check_all(&all, batch);
        }
    }
    nn_team_close(t);
}

/* A source that says so gets its rows one at a time, in order. */
static dm_status make_next(void *state, int64_t batch, const nn_rows *of, nn_page *page)
{
    source *s = state;
    const int64_t number = atomic_fetch_add(&s->made, (int)of->count);
    (void)page;
    nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    return number == batch * ROWS + of->first - FIRST && atomic_load(&s->made) == number + of->count
               ? DM_OK
               : dm_error_set(DM_ERR_STATE, "row %lld came as number %lld", (long long)of->first,
                              (long long)number);
}

static void test_in_order(void **state)
{
    static const nn_feed_type ordered = {.name = "ordered", .make = make_next, .in_order = true};
    source s = {0};
    nn_team *t = NULL;
    (void)state;
    CHECK(nn_team_open(&ordered, &s, &rows, 0, 1, &t));
    for (int64_t batch = 0; batch < BATCHES; batch++) {
        taken all = {0};
        nn_page told;
        nn_team_make(t, batch, put, &all, &told);
        assert_int_equal(told.status, DM_OK);
    }
    nn_team_close(t);
}

static void test_unused(void **state)
{
    source s = {0};
    (void)state;
    nn_team_close(open_team(&s, 1));
    nn_team_close(NULL);
    assert_int_equal(atomic_load(&s.made), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_damage),
                                       cmocka_unit_test(test_error), cmocka_unit_test(test_in_order),
                                       cmocka_unit_test(test_unused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
