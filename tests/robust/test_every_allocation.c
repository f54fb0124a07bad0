/* Each allocation of a session fails once: of its start, with a journal, of its profile, and of calls that the
 * forms of test_faults do not have: groups, layouts given block by block, programs whose loops look at a
 * number, reads with a time limit, checkpoints of the session. Each call is right or says that there is no
 * memory, and how much was asked for; the session ends, and the next one is right. DMATH_TEST_FAULTS=all: every
 * one; else the first 60 and a part of the others. */
#include "robust.h"

#include "base/fault.h"
#include "support/folder.h"
#include "support/try.h"

#include <dmath/checkpoint.h>
#include <dmath/control.h>
#include <dmath/group.h>
#include <dmath/index.h>
#include <dmath/profile.h>
#include <dmath/program.h>

enum { SIDE = 12, FIRST = 60, STEP = 17 };

static char folder[] = "/tmp/dmath-allocations-XXXXXX";

/* In a group of two, an array whose blocks lie where a table says. */
static dm_status groups(dm_session *s, const double *want)
{
    static const int64_t shape[] = {SIDE, SIDE}, block[] = {SIDE / 2, SIDE};
    static const int map[] = {1, 0};
    double got[SIDE * SIDE];
    dm_group group;
    dm_array a;
    TRY(dm_group_create(s, (int[]){0, 2}, 2, &group));
    TRY(dm_group_begin(s, group));
    const dm_layout layout = dm_layout_explicit(2, block, map, 2);
    dm_status status = dm_array_create(s, DM_F64, 2, shape, &layout, &a);
    status = status == DM_OK ? dm_array_write(s, a, NULL, NULL, want, 0) : status;
    status = status == DM_OK ? dm_group_sync(s, group) : status;
    TRY(dm_group_end(s));
    TRY(status);
    TRY(dm_array_read_within(s, a, NULL, NULL, got, 0, 60));
    assert_memory_equal(got, want, sizeof got);
    TRY(dm_group_destroy(s, group));
    return dm_array_destroy(s, a);
}

/* Halves x until it is below 2, and adds a number that is given before the run. */
static dm_status programs(dm_session *s)
{
    double got = 0;
    dm_program program;
    dm_array x;
    TRY(dm_array_create(s, DM_F64, 0, NULL, NULL, &x));
    TRY(dm_fill(s, x, 64));
    TRY(dm_program_begin(s));
    dm_status status = dm_program_repeat(s, 20);
    status = status == DM_OK ? dm_scale(s, 0.5, x, x) : status;
    status = status == DM_OK ? dm_program_repeat_until(s, 1, x, 2) : status;
    status = status == DM_OK ? dm_scale(s, 3, x, x) : status;
    if (status != DM_OK) {
        (void)!dm_program_end(s, NULL);
        return status;
    }
    TRY(dm_program_end(s, &program));
    TRY(dm_program_run(s, program, 1, 0, NULL));
    TRY(dm_read(s, x, &got));
    assert_true(got == 3);
    TRY(dm_program_destroy(s, program));
    return dm_array_destroy(s, x);
}

static dm_status rest(dm_session *s, const double *want)
{
    double got[SIDE * SIDE];
    char path[80];
    dm_array a, index, b;
    dm_layout layout = dm_layout_rows(s);
    TRY(dm_array_create(s, DM_F64, 2, (int64_t[]){SIDE, SIDE}, &layout, &a));
    TRY(dm_array_write(s, a, NULL, NULL, want, 0));
    TRY(dm_array_like(s, a, DM_F64, &b));
    TRY(dm_array_create(s, DM_I64, 1, (int64_t[]){SIDE}, NULL, &index));
    TRY(dm_fill_arange(s, index, 0, 1));
    TRY(dm_take(s, a, index, 0, DM_RAISE, b));
    TRY(dm_put(s, b, index, a, 0, DM_RAISE));
    TRY(dm_keep(s, &(dm_checkpoint_item)DM_KEEP_ARRAY("b", b)));
    snprintf(path, sizeof path, "%s/series", folder);
    TRY(dm_session_save(s, path, NULL, NULL));
    TRY(dm_session_load(s, path));
    TRY(dm_kept_array(s, "b", &b));
    TRY(dm_read(s, b, got));
    assert_memory_equal(got, want, sizeof got);
    return DM_OK;
}

/* The status of all of it; an error has a message, and one of memory says how much. */
static dm_status one(const char *fault, bool at_start)
{
    double want[SIDE * SIDE];
    char options[400];
    dm_session *s = NULL;
    element_matrix(SIDE, 3, want);
    snprintf(options, sizeof options,
             "device=cpu,log=error,interrupt=1,memory_limit=64M,journal='%s/journal',fault='%s'", folder,
             at_start ? fault : "");
    dm_config config = {sizeof config, 3, options};
    dm_status status = dm_init(&config, &s);
    if (status == DM_OK) {
        if (!at_start) {
            dmi_fault_plant(fault);
        }
        status = groups(s, want);
        status = status == DM_OK ? programs(s) : status;
        status = status == DM_OK ? rest(s, want) : status;
    }
    const char *text = dm_error_message();
    if (status == DM_ERR_NOMEM && !strstr(text, " bytes were asked for") && !strstr(text, "cannot start")) {
        fail_msg("%s: %s", fault, text);
    }
    if (status != DM_OK && status != DM_ERR_NOMEM && status != DM_ERR_POISONED && status != DM_ERR_IO) {
        fail_msg("%s: %s: %s", fault, dm_status_name(status), text);
    }
    if (s) {
        (void)!dm_finalize(s, NULL);
    }
    return status;
}

static void sweep(bool at_start)
{
    const char *given = getenv("DMATH_TEST_FAULTS");
    const bool all = given && strcmp(given, "all") == 0;
    int said = 0, points = 0;
    char fault[40];
    (void)one("", false); /* what happens once in a process */
    assert_int_equal(one("malloc:1000000000", at_start), DM_OK);
    const long calls = (long)dmi_fault_calls();
    for (long at = 1; at <= calls; at += all || at < FIRST ? 1 : STEP) {
        snprintf(fault, sizeof fault, "malloc:%ld", at);
        said += one(fault, at_start) != DM_OK;
        points++;
    }
    dmi_fault_plant("");
    assert_int_equal(one("", false), DM_OK);
    print_message("%ld allocations, %d points, %d said so\n", calls, points, said);
    assert_true(said > points / 4);
}

static void test_from_the_start(void **state)
{
    (void)state;
    sweep(true);
}

static void test_later(void **state)
{
    (void)state;
    sweep(false);
}

/* What a session tells of itself, in one session: another measures the machine first. */
static void test_profiles(void **state)
{
    (void)state;
    dm_session *s = open_session(2, "device=cpu,log=error,profile=/dev/null");
    dm_array a = make_matrix(s, SIDE, NULL, 1);
    matrix_is(s, a, SIDE, 1);
    for (int k = 0; k <= 4; k++) {
        char fault[40], *text = NULL;
        int count = 0;
        dm_profile_row rows[8] = {{.size = sizeof rows[0]}};
        for (int which = 0; which < 2; which++) {
            snprintf(fault, sizeof fault, "malloc:%d", k);
            dmi_fault_plant(fault);
            dm_status status = which ? dm_profile(s, &text) : dm_profile_rows(s, 8, rows, &count);
            bool met = k > 0 && dmi_fault_calls() >= k;
            dmi_fault_plant("");
            assert_int_equal(status, met ? DM_ERR_NOMEM : DM_OK);
            assert_true(met     ? strstr(dm_error_message(), " bytes were asked for") && !text
                        : which ? strstr(text, "read") != NULL
                                : count >= 2);
        }
        free(text);
    }
    OK(dm_array_destroy(s, a));
    close_session(s);
}

static int begin(void **state)
{
    (void)state;
    alarm(1000);
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    return dmt_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_from_the_start), cmocka_unit_test(test_later),
                                       cmocka_unit_test(test_profiles)};
    return cmocka_run_group_tests(tests, begin, end);
}
