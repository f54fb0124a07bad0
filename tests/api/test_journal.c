/* Journals: every call of a session run again, on the same number of workers and on others, gives the same;
 * damaged journals are errors that name the line. */
#include "robust/fault_forms.h"

#include "../support/child.h"
#include "api/replay.h"
#include "base/fault.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static char folder[] = "/tmp/dmath-journal-XXXXXX", journal[64], there[64];

/* FNV-1a once more. */
static uint32_t hash_of(const void *bytes, size_t count)
{
    const unsigned char *b = bytes;
    uint32_t hash = 2166136261u;
    while (count-- > 0) {
        hash = (hash ^ *b++) * 16777619u;
    }
    return hash;
}

static uint32_t reads[1000]; /* what the journaled session has read */
static int read_count;

static void read_out(fixture *f, dm_array a)
{
    static double values[4096];
    dm_array_info info = {.size = sizeof info};
    OK(dm_array_query(f->s, a, &info));
    size_t bytes = dm_dtype_bytes(info.dtype);
    for (int d = 0; d < info.ndim; d++) {
        bytes *= (size_t)info.shape[d];
    }
    assert_true(bytes <= sizeof values && read_count < 1000);
    OK(dm_array_read(f->s, a, NULL, NULL, values, 0));
    reads[read_count++] = hash_of(values, bytes);
}

/* Not those that round differently on another number of workers, nor a reshape, which depends on where blocks
 * end. */
static bool exact(int i)
{
    static const char *const inexact[] = {"tanh",
                                          "fill_normal",
                                          "fill_uniform",
                                          "softmax",
                                          "log_softmax",
                                          "standardise",
                                          "layer_norm",
                                          "covariance",
                                          "distances",
                                          "var",
                                          "norm",
                                          "rot",
                                          "map",
                                          "trsm",
                                          "trsv",
                                          "conv",
                                          "pool",
                                          "inner",
                                          "program",
                                          "reshape",
                                          "cosine_distances",
                                          "cross_entropy",
                                          "map_random",
                                          "sum_random",
                                          NULL};
    for (int k = 0; inexact[k]; k++) {
        if (strcmp(forms[i].name, inexact[k]) == 0) {
            return false;
        }
    }
    return true;
}

/* A session with a journal: every call of the table once, its results read. */
static void keep(int workers, bool exact_only)
{
    char options[128];
    fixture f = {.folder = folder};
    int64_t index[SIDE], n = SIDE;
    double values[SIDE];
    read_count = 0;
    snprintf(options, sizeof options, "log=error,journal=%s", journal);
    f.s = open_session(workers, options);
    dm_layout cols = dm_layout_cols(f.s), cyclic = dm_layout_cyclic(f.s, 0, 2),
              everywhere = dm_layout_replicated(f.s), one = dm_layout_single(workers - 1);
    f.a = make_matrix(f.s, SIDE, NULL, 1);
    f.b = make_matrix(f.s, SIDE, &cols, 2);
    f.c = make_matrix(f.s, SIDE, &cyclic, 3);
    f.d = make_matrix(f.s, SIDE, &everywhere, 3);
    OK(dm_array_create(f.s, DM_F64, 1, &n, &one, &f.v));
    OK(dm_array_create(f.s, DM_F64, 1, &n, NULL, &f.w));
    OK(dm_array_create(f.s, DM_F64, 1, &n, NULL, &f.u));
    OK(dm_array_create(f.s, DM_I64, 1, &n, NULL, &f.index));
    for (int i = 0; i < SIDE; i++) {
        index[i] = i * 5 % SIDE;
        values[i] = i % 5;
    }
    OK(dm_array_write(f.s, f.v, NULL, NULL, values, 0));
    OK(dm_array_write(f.s, f.w, NULL, NULL, values, 0));
    OK(dm_array_write(f.s, f.index, NULL, NULL, index, 0));
    for (int i = 0; i < FORM_COUNT; i++) {
        if ((exact_only && !exact(i)) ||
            strcmp(forms[i].name, "feed") == 0) { /* whose data journals do not have */
            continue;
        }
        f.outs = 0;
        OK(dm_fill_arange(f.s, f.c, 0, 1));
        OK(dm_fill_arange(f.s, f.d, 5, 1));
        OK(dm_fill_arange(f.s, f.u, 1, 2));
        OK(dm_scope_begin(f.s));
        OK(forms[i].run(&f));
        for (int k = 0; k < f.outs; k++) {
            read_out(&f, f.out[k]);
        }
        OK(dm_scope_end(f.s, NULL, 0));
    }
    dm_array refused;
    assert_int_not_equal(dm_matrix(f.s, DM_F64, -1, 2, &refused), DM_OK); /* kept as one that failed */
    OK(dm_finalize(f.s, &(int64_t){0}));
}

/* The journal again; its output. */
static dm_status run(int workers, char **text)
{
    size_t bytes;
    FILE *to = open_memstream(text, &bytes);
    dm_session *s = open_session(workers, "log=error");
    dm_status status = dmi_replay_run(s, journal, to);
    fclose(to);
    dm_status end = dm_finalize(s, &(int64_t){0});
    return status == DM_OK ? end : status;
}

/* Whose reads are those of the session, but for those that the table's own calls make. */
static void same_reads(const char *text)
{
    int at = 0;
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        unsigned number, hash;
        if (sscanf(line, "line %u array_read %x", &number, &hash) == 2 && at < read_count &&
            hash == reads[at]) {
            at++;
        }
    }
    assert_int_equal(at, read_count);
}

static void test_again(void **state)
{
    (void)state;
    char *first = NULL, *second = NULL;
    keep(3, false);
    OK(run(3, &first));
    OK(run(3, &second));
    assert_string_equal(first, second);
    assert_non_null(strstr(first, "matrix failed when it was kept (ERR_"));
    same_reads(first);
    int arrays = 0;
    for (const char *at = first; (at = strstr(at, "\narray a")) != NULL; at++) {
        arrays++;
    }
    assert_int_equal(arrays, 8);
    free(first);
    free(second);
}

static void test_other_workers(void **state)
{
    (void)state;
    static const int workers[] = {1, 2, 5};
    char *here = NULL;
    keep(3, true);
    assert_true(read_count > 60);
    OK(run(3, &here));
    for (int i = 0; i < 3; i++) {
        char *there_text = NULL;
        OK(run(workers[i], &there_text));
        same_reads(there_text);
        assert_string_equal(here, there_text);
        free(there_text);
    }
    free(here);
}

/* No memory for one thing or another while a journal is replayed, and none that is there: it says so. Handles
 * are kept in a table that grows. */
static void test_no_memory(void **state)
{
    (void)state;
    enum { ARRAYS = 40 };
    dm_array x[ARRAYS];
    char options[128], *whole = NULL;
    snprintf(options, sizeof options, "log=error,journal=%s", journal);
    dm_session *s = open_session(2, options);
    for (int i = 0; i < ARRAYS; i++) {
        OK(dm_vector(s, DM_F64, 3, &x[i]));
    }
    OK(dm_finalize(s, &(int64_t){0}));
    OK(run(2, &whole));
    bool met = true;
    int said = 0;
    for (int at = 1; met; at++) {
        char fault[40], *text = NULL;
        size_t bytes;
        FILE *to = open_memstream(&text, &bytes);
        s = open_session(2, "log=error");
        snprintf(fault, sizeof fault, "malloc:%d:worker=-1", at);
        dmi_fault_plant(fault);
        dm_status status = dmi_replay_run(s, journal, to);
        met = dmi_fault_calls() >= at;
        dmi_fault_plant("");
        fclose(to);
        if (status == DM_OK) {
            assert_string_equal(text, whole);
        } else if (!met || (status != DM_ERR_NOMEM && !strstr(dm_error_message(), "memory"))) {
            fail_msg("%s: %s: %s", fault, dm_status_name(status), dm_error_message());
        }
        said += status != DM_OK;
        free(text);
        OK(dm_finalize(s, &(int64_t){0}));
    }
    assert_true(said > ARRAYS);
    free(whole);
    s = open_session(1, "log=error");
    assert_int_equal(dmi_replay_run(s, "/nowhere/journal", stdout), DM_ERR_IO);
    assert_string_equal(dm_error_message(), "/nowhere/journal: No such file or directory");
    close_session(s);
}

/* Data that are too many are not kept, and others take their place, the same ones each time. */
static void large(dm_dtype dtype)
{
    enum { N = 300 };
    static double values[N * N]; /* zeros, which every type has */
    char *first = NULL, *second = NULL, options[128];
    snprintf(options, sizeof options, "log=error,journal=%s", journal);
    dm_session *s = open_session(2, options);
    dm_array a;
    OK(dm_matrix(s, dtype, N, N, &a));
    OK(dm_array_write(s, a, NULL, NULL, values, 0));
    OK(dm_finalize(s, &(int64_t){0}));
    OK(run(1, &first));
    OK(run(4, &second));
    assert_string_equal(first, second);
    char of_zeros[64];
    snprintf(of_zeros, sizeof of_zeros, "%08x",
             hash_of(values, sizeof values / (size_t)(dtype == DM_F64   ? 1
                                                      : dtype == DM_F32 ? 2
                                                                        : 8)));
    assert_null(strstr(first, of_zeros));
    free(first);
    free(second);
}

static void test_large(void **state)
{
    (void)state;
    static const dm_dtype dtypes[] = {DM_F64, DM_F32, DM_U8, DM_BOOL};
    for (int i = 0; i < 4; i++) {
        large(dtypes[i]);
    }
}

/* A second session at the same time keeps nothing, and leaves the first one's journal alone. */
static void test_two_sessions(void **state)
{
    (void)state;
    char options[128], *text = NULL;
    snprintf(options, sizeof options, "log=error,journal=%s", journal);
    dm_session *first = open_session(2, options), *second = open_session(2, options);
    dm_array a, b;
    OK(dm_matrix(first, DM_F64, 3, 4, &a));
    OK(dm_matrix(second, DM_F64, 5, 6, &b));
    OK(dm_fill(second, b, 1));
    OK(dm_finalize(second, &(int64_t){0}));
    OK(dm_fill(first, a, 2));
    OK(dm_finalize(first, &(int64_t){0}));
    OK(run(2, &text));
    assert_non_null(strstr(text, "3x4"));
    assert_null(strstr(text, "5x6"));
    free(text);
}

static char *contents(size_t *bytes)
{
    static char text[1 << 19];
    FILE *from = fopen(journal, "r");
    assert_non_null(from);
    *bytes = fread(text, 1, sizeof text - 1, from);
    fclose(from);
    text[*bytes] = 0;
    return text;
}

/* Of options from a program with an older header as many bytes are kept as there are, and a replay takes them.
 */
static void test_older_options(void **state)
{
    (void)state;
    const size_t size = offsetof(dm_conv, unused);
    char options[128], *text = NULL;
    snprintf(options, sizeof options, "log=error,journal=%s", journal);
    dm_conv now = DM_CONV_INIT, *older = malloc(size);
    assert_non_null(older);
    now.size = size;
    memcpy(older, &now, size);
    dm_session *s = open_session(2, options);
    dm_array x, w, y;
    OK(dm_array_create(s, DM_F32, 4, (int64_t[]){2, 3, 3, 2}, NULL, &x));
    OK(dm_array_create(s, DM_F32, 4, (int64_t[]){4, 1, 1, 2}, NULL, &w));
    OK(dm_array_create(s, DM_F32, 4, (int64_t[]){2, 3, 3, 4}, NULL, &y));
    OK(dm_conv_forward(s, older, x, w, DM_NO_ARRAY, y));
    OK(dm_finalize(s, &(int64_t){0}));
    free(older);
    size_t bytes;
    const char *kept = strstr(contents(&bytes), "conv_forward");
    assert_non_null(kept);
    assert_int_equal(strspn(strstr(kept, " x") + 2, "0123456789abcdef"), 2 * size);
    OK(run(1, &text));
    free(text);
}

static void replace_journal(const char *text, size_t bytes)
{
    FILE *to = fopen(journal, "w");
    assert_non_null(to);
    assert_int_equal(fwrite(text, 1, bytes, to), bytes);
    assert_int_equal(fclose(to), 0);
}

static dm_status run_quietly(void)
{
    char *text = NULL;
    dm_status status = run(2, &text);
    free(text);
    return status;
}

static uint64_t drawn(uint64_t *seed, uint64_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

static uint64_t seed_of_test(void)
{
    const char *given = getenv("DMATH_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("DMATH_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static void short_journal(void)
{
    char options[128];
    snprintf(options, sizeof options, "log=error,journal=%s", journal);
    fixture f = {.folder = folder, .s = open_session(2, options)};
    dm_layout cols = dm_layout_cols(f.s);
    f.a = make_matrix(f.s, SIDE, &cols, 1);
    f.b = make_matrix(f.s, SIDE, NULL, 2);
    f.c = make_matrix(f.s, SIDE, NULL, 3);
    OK(form_gemm(&f));
    f.outs = 0;
    OK(form_map(&f));
    OK(form_view(&f));
    f.outs = 0;
    OK(form_sum_rows(&f));
    OK(form_write(&f));
    OK(form_read(&f));
    OK(dm_finalize(f.s, &(int64_t){0}));
}

static void test_damaged(void **state)
{
    (void)state;
    static char copy[1 << 19];
    size_t bytes;
    uint64_t seed = seed_of_test();
    short_journal();
    char *text = contents(&bytes);
    memcpy(copy, text, bytes + 1);
    OK(run_quietly());
    for (int i = 0; i < 60; i++) { /* one byte */
        size_t at = drawn(&seed, bytes);
        int line = 1;
        char is[24];
        for (size_t k = 0; k < at; k++) {
            line += copy[k] == '\n';
        }
        snprintf(is, sizeof is, "line %d ", line);
        char *changed = memcpy(text, copy, bytes + 1);
        changed[at] ^= (char)(1 << drawn(&seed, 7));
        replace_journal(changed, bytes);
        assert_int_equal(run_quietly(), DM_ERR_IO);
        if (line > 1 && !strstr(dm_error_message(), is)) {
            fail_msg("byte %zu of line %d: %s", at, line, dm_error_message());
        }
    }
    replace_journal(copy, bytes / 2);
    assert_int_equal(run_quietly(), DM_ERR_IO);
    assert_non_null(strstr(dm_error_message(), "the journal ends inside it"));
    replace_journal("", 0);
    assert_int_equal(run_quietly(), DM_ERR_IO);
    replace_journal("nothing of the kind\n", 20);
    assert_int_equal(run_quietly(), DM_ERR_IO);
}

/* Lines that are wrong, with hashes that are right: any error, and nothing worse. */
static void test_wrong_lines(void **state)
{
    (void)state;
    static char copy[1 << 19], made[1 << 20];
    static const char *const words[] = {"-",  "0",  "-1",     "70000", "a0", "affffffffff", "p1", "x",
                                        "x0", "h1", "0x1p+0", "l",     "8",  "~",           "="};
    size_t bytes;
    uint64_t seed = seed_of_test();
    int errors = 0;
    short_journal();
    const char *text = contents(&bytes);
    memcpy(copy, text, bytes + 1);
    for (int i = 0; i < 150; i++) {
        size_t at = 0, wrong = drawn(&seed, 24);
        size_t number = 0;
        for (const char *line = copy; *line; line = strchr(line, '\n') + 1, number++) {
            size_t begin = at, length = strcspn(line, "~") - 1;
            if (number != wrong) {
                memcpy(made + at, line, length);
                at += length;
            } else { /* another word in place of one */
                size_t word = drawn(&seed, length);
                while (word > 0 && line[word - 1] != ' ') {
                    word--;
                }
                size_t behind = word + strcspn(line + word, " ~");
                at += (size_t)sprintf(made + at, "%.*s%s%.*s", (int)word, line,
                                      words[drawn(&seed, sizeof words / sizeof *words)],
                                      (int)(length > behind ? length - behind : 0), line + behind);
            }
            at += (size_t)sprintf(made + at, " ~%08x\n", hash_of(made + begin, at - begin));
        }
        replace_journal(made, at);
        errors += run_quietly() != DM_OK;
    }
    assert_true(errors > 50);
}

/* Lists that are shorter than what the call takes, and what a line cannot hold. Each is refused before the
 * call. */
static void test_short_lists(void **state)
{
    (void)state;
    static const struct {
        const char *line, *error;
    } wrong[] = {
        {"array_create 0 3 2 4 3 - 1 = 0 a9", "a list is shorter"},
        {"scope_end 1 a1 2 = 0", "a list is shorter"},
        {"min a1 1 0 2 a1 = 0", "a list is shorter"},
        {"concatenate 2 1 a1 0 a1 = 0", "a list is shorter"},
        {"array_view a1 1 0 2 1 1 1 = 0 a9", "a list is shorter"},
        {"permute a1 1 0 a1 = 0", "a list is shorter"},
        {"array_read a1 1 0 2 1 1 0 = 0", "a list is shorter"},
        {"array_write a1 2 0 0 1 1 x00 0 = 0", "a list is shorter"},
        {"quantile a1 1 0x1p-1 2 0 a1 = 0", "a list is shorter"},
        {"map x61 2 1 x61 a1 0 0x0p+0 0 a1 = 0", "a list is shorter"},
        {"program_run p0 1 1 1 a1 = 0", "a list is shorter"},
        {"apply x66 1 1 a1 1 0 x0011 9 = 0", "a list is shorter"},
        {"concatenate 100000000 100000000 a1 0 a1 = 0", "a greater one than its line"},
        {"split a1 0 100000000 - 1 = 0", "more than its line can name"},
        {"conv_forward x0000 a1 a1 a1 a1 = 0", "options are shorter"},
        {"conv_forward x4000000000000000 a1 a1 a1 a1 = 0", "options are shorter"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *const lines[] = {"dmath-journal 1 2", "matrix 9 4 3 1 = 0 a1", wrong[i].line};
        char text[512];
        size_t at = 0;
        for (int k = 0; k < 3; k++) {
            at += (size_t)sprintf(text + at, "%s ~%08x\n", lines[k], hash_of(lines[k], strlen(lines[k])));
        }
        replace_journal(text, at);
        dm_status status = run_quietly();
        if (status != DM_ERR_IO || !strstr(dm_error_message(), "line 3 is damaged: ") ||
            !strstr(dm_error_message(), wrong[i].error)) {
            fail_msg("%s: %s", wrong[i].line, status == DM_OK ? "no error" : dm_error_message());
        }
    }
}

static void remove_series(void)
{
    static const char *const names[] = {"series", "whole"};
    for (int i = 0; i < 2; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)dmt_remove_folder(path);
    }
}

/* A pipeline on each of two groups; total = what both have made. */
static void two_groups(fixture *f, int workers, dm_array x[2], dm_array total)
{
    dm_session *s = f->s;
    dm_group group[2];
    dm_array y;
    for (int g = 0; g < 2; g++) {
        int list[8], half = (workers + 1) / 2, count = 0;
        for (int w = g ? workers - half : 0; count < half; w++) {
            list[count++] = w;
        }
        OK(dm_group_create(s, list, count, &group[g]));
        OK(dm_group_begin(s, group[g]));
        dm_layout rows = dm_layout_rows(s), last = dm_layout_single(count - 1),
                  everywhere = dm_layout_replicated(s);
        OK(dm_array_create(s, DM_F64, 2, (int64_t[]){8, 8}, &rows, &x[g]));
        OK(dm_array_create(s, DM_F64, 2, (int64_t[]){8, 8}, g ? &last : &everywhere, &y));
        OK(dm_fill_arange(s, x[g], g, 1));
        OK(dm_matmul(s, x[g], x[g], y));
        OK(dm_group_end(s));
        OK(dm_group_sync(s, group[g]));
        if (g == 1) {
            OK(dm_copy(s, y, x[0]));
        }
        read_out(f, y);
        OK(dm_array_destroy(s, y));
    }
    OK(dm_sum_dim(s, x[0], 0, total));
    OK(dm_group_destroy(s, group[0]));
}

/* Groups, a checkpoint of a list, the whole session, and both loaded again. */
static void groups_and_checkpoints(int workers)
{
    char options[128], series[96], whole[96];
    double number = 1.5;
    int64_t step = 0;
    uint64_t seed;
    dm_event event;
    dm_array x[2], y, total;
    snprintf(series, sizeof series, "%s/series", folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(options, sizeof options, "log=error,journal=%s", journal);
    fixture f = {.s = open_session(workers, options)};
    read_count = 0;
    OK(dm_keep(f.s, &(dm_checkpoint_item)DM_KEEP_VALUE("step", &step)));
    OK(dm_vector(f.s, DM_F64, 8, &total));
    two_groups(&f, workers, x, total);
    step = 7;
    dm_checkpoint_item items[] = {DM_KEEP_ARRAY("total", total), DM_KEEP_VALUE("number", &number)};
    OK(dm_checkpoint_save(f.s, series, 2, items, NULL, &event));
    OK(dm_fill(f.s, total, 0));
    OK(dm_event_wait(f.s, event, 60));
    number = 0;
    OK(dm_checkpoint_load(f.s, series, 2, items));
    assert_true(number == 1.5);
    read_out(&f, total);
    OK(dm_keep(f.s, &(dm_checkpoint_item)DM_KEEP_ARRAY("total", total)));
    OK(dm_random_next(f.s, &seed));
    OK(dm_session_save(f.s, whole, NULL, NULL));
    OK(dm_fill(f.s, total, 0));
    step = 0;
    OK(dm_session_load(f.s, whole));
    assert_int_equal(step, 7);
    OK(dm_kept_array(f.s, "total", &y));
    assert_true(y.id == total.id);
    OK(dm_kept_array(f.s, "nobody", &y));
    assert_true(y.id == 0);
    OK(dm_kept_array(f.s, "array/2", &y)); /* x of the second group, made anew */
    assert_true(y.id != x[1].id);
    OK(dm_sum_dim(f.s, y, 1, total));
    read_out(&f, total);
    OK(dm_finalize(f.s, &(int64_t){0}));
    remove_series();
}

/* A replay's own checkpoint has what the program's values were. */
static void same_values(void)
{
    char whole[96];
    int64_t step = 0;
    uint64_t seed, next;
    dm_session *s = open_session(2, "log=error");
    OK(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_VALUE("step", &step)));
    snprintf(whole, sizeof whole, "%s/whole", folder);
    OK(dm_session_load(s, whole));
    OK(dm_random_get(s, &seed, &next));
    assert_true(step == 7 && seed == 0 && next == 1);
    OK(dm_finalize(s, &(int64_t){0}));
}

static void test_groups_and_checkpoints(void **state)
{
    (void)state;
    static const int kept[] = {4, 3, 1}, workers[] = {4, 1, 2, 3, 5, 8};
    for (int k = 0; k < 3; k++) {
        char *first = NULL;
        groups_and_checkpoints(kept[k]);
        for (int i = 0; i < 6; i++) {
            char *text = NULL;
            OK(run(workers[i], &text));
            same_reads(text);
            assert_null(strstr(text, "do not keep"));
            if (first) {
                assert_string_equal(text, first);
            }
            same_values();
            remove_series();
            free(first);
            first = text;
        }
        free(first);
    }
}

/* A write whose time was over is done all the same, and a replay does it; a feed's data are said to be missing.
 */
static void test_late_and_unkept(void **state)
{
    (void)state;
    char options[128], *text = NULL;
    double values[6] = {1, 2, 3, 4, 5, 6};
    snprintf(options, sizeof options, "log=error,journal=%s", journal);
    dm_session *s = open_session(2, options);
    fixture f = {.s = s};
    dm_array a;
    dm_feed *feed;
    void *buffer;
    read_count = 0;
    OK(dm_vector(s, DM_F64, 6, &a));
    OK(dm_fill_uniform(s, a, 0, 1, 3));
    OK(dm_session_limit(s, 0));
    dm_status status = dm_array_write(s, a, NULL, NULL, values, 0);
    assert_true(status == DM_ERR_PENDING || status == DM_OK);
    OK(dm_session_limit(s, -1));
    OK(dm_sync_within(s, 60));
    read_out(&f, a);
    OK(dm_feed_create(s, DM_F64, 1, (int64_t[]){6}, 1, &feed));
    OK(dm_feed_take(feed, 10, &buffer));
    memset(buffer, 0, sizeof values);
    OK(dm_feed_put(feed));
    OK(dm_array_feed(s, a, feed, 10));
    OK(dm_feed_destroy(feed));
    OK(dm_finalize(s, &(int64_t){0}));
    OK(run(3, &text));
    same_reads(text);
    assert_non_null(strstr(text, "array_feed: journals do not keep this call"));
    free(text);
}

static int64_t journal_bytes(void)
{
    struct stat st;
    return stat(journal, &st) == 0 ? (int64_t)st.st_size : -1;
}

/* A child of fork calls on its parent's session, and lives longer than that. */
static void test_forked(void **state)
{
    (void)state;
    char options[128], byte, *text = NULL;
    int to_child[2], from_child[2], status = 0;
    dm_array a;
    snprintf(options, sizeof options, "log=error,journal=%s", journal);
    assert_int_equal(pipe(to_child) | pipe(from_child), 0);
    dm_session *s = open_session(2, options);
    OK(dm_vector(s, DM_F64, 3, &a));
    int64_t bytes = journal_bytes();
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        CHECK(dm_fill(s, a, 1) == DM_ERR_STATE && dm_sync(s) == DM_ERR_STATE);
        CHECK(write(from_child[1], "x", 1) == 1);
        CHECK(read(to_child[0], &byte, 1) == 1);
        exit(0); /* with all that exit() does */
    }
    assert_int_equal(read(from_child[0], &byte, 1), 1);
    assert_int_equal(journal_bytes(), bytes);
    OK(dm_fill(s, a, 2));
    OK(dm_finalize(s, &(int64_t){0}));
    s = open_session(1, options); /* the child does not hold the file */
    OK(dm_vector(s, DM_F64, 4321, &a));
    OK(dm_finalize(s, &(int64_t){0}));
    assert_non_null(strstr(contents(&(size_t){0}), " 4321 1 = 0"));
    bytes = journal_bytes();
    assert_true(write(to_child[1], "x", 1) == 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(journal_bytes(), bytes);
    for (int i = 0; i < 2; i++) {
        close(to_child[i]);
        close(from_child[i]);
    }
    OK(run(2, &text));
    free(text);
}

static int begin(void **state)
{
    (void)state;
    alarm(1000);
    assert_non_null(mkdtemp(folder));
    snprintf(journal, sizeof journal, "%s/journal", folder);
    snprintf(there, sizeof there, "%s/there.npy", folder);
    OK(dm_register("negate", negate));
    dm_session *s = open_session(2, "log=error");
    dm_array a = make_matrix(s, SIDE, NULL, 3);
    OK(dm_array_save(s, a, there));
    OK(dm_array_destroy(s, a));
    close_session(s);
    return 0;
}

static int end(void **state)
{
    (void)state;
    char saved[64];
    snprintf(saved, sizeof saved, "%s/saved.npy", folder);
    (void)unlink(saved);
    (void)unlink(journal);
    (void)unlink(there);
    remove_series();
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_again),           cmocka_unit_test(test_other_workers),
        cmocka_unit_test(test_large),           cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_two_sessions),    cmocka_unit_test(test_older_options),
        cmocka_unit_test(test_damaged),         cmocka_unit_test(test_wrong_lines),
        cmocka_unit_test(test_short_lists),     cmocka_unit_test(test_groups_and_checkpoints),
        cmocka_unit_test(test_late_and_unkept),
        cmocka_unit_test(test_forked),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
