/* Whole sessions saved and loaded, on other numbers of workers: arrays come back by their names, with types and
 * layouts; so do values and the generator. The expected elements are the program's own. */
#include "robust/robust.h"

static const int workers_of[] = {1, 2, 3, 5, 8};
enum { COUNTS = 5, ROWS = 7, COLS = 5 };

static void keep_array(dm_session *s, const char *name, dm_array a)
{
    OK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_ARRAY(name, a)));
}

static void keep_step(dm_session *s, int64_t *step)
{
    OK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_VALUE("step", step)));
}

/* All elements are first, first + 1 and so on. */
static void counts_from(dm_session *s, dm_array a, int first)
{
    double got[64];
    dm_array_info info = {.size = sizeof info};
    OK(dm_array_query(s, a, &info));
    int64_t count = 1;
    for (int d = 0; d < info.ndim; d++) {
        count *= info.shape[d];
    }
    assert_true(count <= 64);
    OK(dm_array_read_as(s, a, NULL, NULL, DM_F64, got, 0));
    for (int i = 0; i < count; i++) {
        assert_true(got[i] == first + i);
    }
}

static dm_array array_of(dm_session *s, dm_dtype dtype, const dm_layout *layout, int first)
{
    dm_array a;
    OK(dm_array_create(s, dtype, 2, (int64_t[]){ROWS, COLS}, layout, &a));
    OK(dm_fill_arange(s, a, first, 1));
    return a;
}

static dm_array named(dm_session *s, const char *name)
{
    dm_array a = {1};
    OK(dm_kept_array(s, name, &a));
    assert_true(a.id != 0);
    return a;
}

static int none_named(dm_session *s, const char *name)
{
    dm_array a = {1};
    OK(dm_kept_array(s, name, &a));
    return a.id == 0;
}

/* "weights" 1, a view of it "corner"; without names 100, 200 and 300, of which the second is destroyed. */
static void save(int workers, const char *path, int named_only, uint64_t *next)
{
    dm_session *s = open_session(workers, "log=error");
    int64_t step = 77;
    uint64_t unused;
    dm_checkpoint_options options = DM_CHECKPOINT_OPTIONS_INIT;
    options.named = named_only;
    dm_layout cyclic = dm_layout_cyclic(s, 1, 2), everywhere = dm_layout_replicated(s);
    dm_array first = array_of(s, DM_I32, NULL, 100), weights = array_of(s, DM_F32, &cyclic, 1),
             second = array_of(s, DM_F64, NULL, 200), third = array_of(s, DM_F64, &everywhere, 300), corner,
             part;
    OK(dm_array_view(s, weights, (int64_t[]){0, 1}, (int64_t[]){1, 3}, &corner));
    OK(dm_array_view(s, third, (int64_t[]){0, 1}, (int64_t[]){1, 3}, &part)); /* without a name: not saved */
    OK(dm_array_destroy(s, second));
    keep_array(s, "weights", weights);
    keep_array(s, "corner", corner);
    keep_step(s, &step);
    OK(dm_random_set(s, 5, 0));
    for (int i = 0; i < 3; i++) {
        OK(dm_random_next(s, &unused));
    }
    OK(dm_session_save(s, path, &options, NULL));
    OK(dm_random_next(s, next));
    OK(dm_array_destroy(s, first));
    OK(dm_finalize(s, &(int64_t){0}));
}

static void load(int saved_on, int workers, const char *path, int named_only, uint64_t next)
{
    dm_session *s = open_session(workers, "log=error");
    int64_t step = -1;
    uint64_t got;
    dm_array_info info = {.size = sizeof info};
    dm_array other = array_of(s, DM_F64, NULL, 9); /* nobody's business */
    keep_step(s, &step);
    OK(dm_session_load(s, path));
    assert_int_equal(step, 77);
    OK(dm_random_next(s, &got));
    assert_true(got == next);
    dm_array weights = named(s, "weights");
    OK(dm_array_query(s, weights, &info));
    assert_int_equal(info.dtype, DM_F32);
    assert_int_equal(info.is_view, 0);
    if (workers == saved_on && workers > 1) {
        assert_int_equal(info.grid[0], 1);
        assert_int_equal(info.grid[1], workers);
        assert_int_equal(info.block[1], 2);
    }
    counts_from(s, weights, 1);
    counts_from(s, named(s, "corner"), 2);
    counts_from(s, other, 9);
    if (named_only) {
        assert_true(none_named(s, "array/1"));
    } else {
        counts_from(s, named(s, "array/1"), 100);
        counts_from(s, named(s, "array/2"), 300);
        OK(dm_array_query(s, named(s, "array/2"), &info));
        assert_int_equal(info.replicas, workers == saved_on ? workers : 1);
    }
    assert_true(none_named(s, "array/3") && none_named(s, "step") && none_named(s, "session/generator"));
    /* once more: names stay, the array without one gets the first that is free */
    OK(dm_session_save(s, path, NULL, NULL));
    dm_checkpoint_info item = {.size = sizeof item};
    bool found = false;
    for (int i = 0; i < (named_only ? 5 : 7); i++) {
        OK(dm_checkpoint_query(path, i, &item));
        found = found || strcmp(item.name, named_only ? "array/1" : "array/3") == 0;
    }
    assert_true(found);
    assert_int_equal(dm_checkpoint_query(path, named_only ? 5 : 7, &item), DM_ERR_ARG);
    OK(dm_checkpoint_verify(path, NULL, NULL));
    int64_t alive;
    OK(dm_finalize(s, &alive));
    assert_int_equal(alive, named_only ? 3 : 5);
}

static void test_workers(void **unused)
{
    (void)unused;
    for (int i = 0; i < COUNTS; i++) {
        for (int k = 0; k < COUNTS; k++) {
            char path[40];
            uint64_t next;
            snprintf(path, sizeof path, "whole%d-%d", i, k);
            save(workers_of[i], path, (i + k) % 2, &next);
            load(workers_of[i], workers_of[k], path, (i + k) % 2, next);
        }
    }
}

/* Names that are there before are filled, whatever their layout and type; with an event the call does not wait.
 */
static void test_filled(void **unused)
{
    (void)unused;
    dm_session *s = open_session(3, "log=error");
    dm_event event;
    dm_layout cols = dm_layout_cols(s);
    dm_array a = array_of(s, DM_I32, NULL, 1), b = array_of(s, DM_F64, &cols, 0);
    keep_array(s, "a", a);
    OK(dm_session_save(s, "filled", NULL, &event));
    OK(dm_fill(s, a, 0));
    OK(dm_event_wait(s, event, 60));
    keep_array(s, "a", b);
    OK(dm_session_load(s, "filled"));
    counts_from(s, b, 1);
    counts_from(s, named(s, "array/1"), 0); /* b, as it was */
    OK(dm_finalize(s, &(int64_t){0}));
}

/* What is wrong is said, and leaves nothing behind. */
static void test_errors(void **unused)
{
    (void)unused;
    dm_session *s = open_session(2, "log=error");
    int64_t step = 4;
    dm_array a = array_of(s, DM_F64, NULL, 1), flat;
    dm_checkpoint_options options = DM_CHECKPOINT_OPTIONS_INIT;
    options.named = 2;
    assert_int_equal(dm_session_save(s, "errors", &options, NULL), DM_ERR_ARG);
    assert_non_null(strstr(dm_error_message(), "session_save: options.named is 2"));
    assert_int_equal(dm_session_save(s, "", NULL, NULL), DM_ERR_ARG);
    assert_int_equal(dm_session_load(s, NULL), DM_ERR_ARG);
    assert_int_equal(dm_session_load(s, "errors"), DM_ERR_IO);
    assert_int_equal(dm_kept_array(s, NULL, &a), DM_ERR_ARG);
    keep_array(s, "a", a);
    OK(dm_session_save(s, "errors", NULL, NULL));
    OK(dm_vector(s, DM_F64, 3, &flat));
    keep_array(s, "a", flat);
    assert_int_equal(dm_session_load(s, "errors"), DM_ERR_SHAPE);
    OK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_VALUE("a", &step)));
    assert_int_equal(dm_session_load(s, "errors"), DM_ERR_ARG);
    OK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_VALUE("session/generator", &step)));
    assert_int_equal(dm_session_save(s, "errors", NULL, NULL), DM_ERR_ARG);
    OK(dm_keep(s, &(dm_checkpoint_item){.name = "session/generator"}));
    OK(dm_keep(s, &(dm_checkpoint_item){.name = "a"}));
    OK(dm_array_destroy(s, flat));
    /* a damaged file: the arrays that were made before go again, and their names */
    dm_checkpoint_info info = {.size = sizeof info};
    OK(dm_checkpoint_query("errors", 0, &info));
    char path[800];
    snprintf(path, sizeof path, "%s/%s", info.folder, info.file);
    FILE *f = fopen(path, "r+");
    assert_non_null(f);
    assert_int_equal(fseek(f, -1, SEEK_END), 0);
    assert_int_equal(fputc(1, f), 1);
    fclose(f);
    assert_int_equal(dm_session_load(s, "errors"), DM_ERR_FORMAT);
    assert_true(none_named(s, "a"));
    keep_array(s, "a", a);
    OK(dm_array_destroy(s, a));
    assert_int_equal(dm_session_save(s, "errors", NULL, NULL), DM_ERR_HANDLE);
    assert_int_equal(dm_kept_array(s, "a", &flat), DM_ERR_HANDLE);
    close_session(s);
}

/* Arrays of a feed are the session's own; an empty session has its generator. */
static void test_empty(void **unused)
{
    (void)unused;
    dm_session *s = open_session(2, "log=error");
    dm_feed *feed;
    uint64_t seed = 0, next;
    OK(dm_feed_create(s, DM_F32, 1, (int64_t[]){4}, 2, &feed));
    OK(dm_random_set(s, 8, 9));
    OK(dm_session_save(s, "empty", NULL, NULL));
    dm_checkpoint_info info = {.size = sizeof info};
    OK(dm_checkpoint_query("empty", 0, &info));
    assert_string_equal(info.name, "session/generator");
    assert_int_equal(dm_checkpoint_query("empty", 1, &info), DM_ERR_ARG);
    assert_int_equal(dm_checkpoint_query("empty", -1, &info), DM_ERR_ARG);
    assert_int_equal(dm_checkpoint_query("empty", 0, NULL), DM_ERR_ARG);
    assert_int_equal(dm_checkpoint_query("", 0, &info), DM_ERR_ARG);
    assert_int_equal(dm_checkpoint_query(NULL, 0, &info), DM_ERR_ARG);
    assert_false(dm_checkpoint_exists(NULL) || dm_checkpoint_exists("") || dm_checkpoint_exists("nowhere"));
    /* another program's checkpoint, with something else under the name of the generator */
    OK(dm_checkpoint_save(s, "other", 1, (dm_checkpoint_item[]){DM_KEEP_VALUE("session/generator", &seed)},
                          NULL, NULL));
    assert_int_equal(dm_session_load(s, "other"), DM_ERR_FORMAT);
    assert_non_null(strstr(dm_error_message(), "session/generator is no generator"));
    uint64_t three[3] = {0};
    const dm_checkpoint_item item = {.name = "session/generator", .dtype = DM_U64, .value = three, .count = 3};
    assert_int_equal(dm_checkpoint_load(s, "other", 1, &item), DM_ERR_SHAPE);
    assert_non_null(
        strstr(dm_error_message(), "the value session/generator has 3 numbers, 1 in the checkpoint"));
    OK(dm_random_set(s, 1, 1));
    OK(dm_session_load(s, "empty"));
    OK(dm_random_get(s, &seed, &next));
    assert_true(seed == 8 && next == 9);
    OK(dm_feed_destroy(feed));
    close_session(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_workers, deadline),
        cmocka_unit_test_setup(test_filled, deadline),
        cmocka_unit_test_setup(test_errors, deadline),
        cmocka_unit_test_setup(test_empty, deadline),
    };
    return system("rm -rf whole* filled errors empty") == 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
