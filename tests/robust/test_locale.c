/* A program whose locale has a decimal comma: what is written to be read again has points, and is read. */
#include "api/replay.h"
#include "robust.h"

#include <locale.h>

static char folder[] = "/tmp/dmath-locale-XXXXXX", journal[64], trace[64], profile[64];

/* The locale is made here: few systems have one. */
static bool has_comma(void)
{
    char command[256];
    snprintf(command, sizeof command, "localedef -c -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    (void)!system(command);
    setenv("LOCPATH", folder, 1);
    return setlocale(LC_ALL, "de_DE.UTF-8") && strcmp(localeconv()->decimal_point, ",") == 0;
}

static char *text_of(const char *path)
{
    FILE *from = fopen(path, "r");
    assert_non_null(from);
    char *text = NULL;
    size_t room = 0;
    assert_true(getdelim(&text, &room, 0, from) > 0);
    fclose(from);
    return text;
}

/* No comma between digits; in a timeline those stand between names. */
static void has_points(const char *path)
{
    char *text = text_of(path);
    assert_non_null(strchr(text, '.'));
    for (const char *at = strchr(text, ','); at; at = strchr(at + 1, ',')) {
        if (strchr("0123456789", at[-1]) && at[1] && strchr("0123456789", at[1])) {
            fail_msg("%s has %.20s", path, at - 1);
        }
    }
    free(text);
}

static double use(dm_session *s)
{
    dm_array a, b;
    double got = 0;
    OK(dm_vector(s, DM_F64, 10, &a));
    OK(dm_vector(s, DM_F64, 10, &b));
    OK(dm_fill(s, a, 1.25));
    OK(dm_map(s, "x * 0.75 + k", 2, (dm_map_arg[]){DM_ARG("x", a), DM_NUMBER("k", 0.5)}, b));
    OK(dm_item(s, b, (int64_t[]){9}, &got));
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    return got;
}

static void test_files(void **state)
{
    (void)state;
    if (!has_comma()) {
        skip();
    }
    char options[512];
    snprintf(options, sizeof options, "log=error,watchdog_s=600.5,journal=%s,trace=%s,profile=%s", journal,
             trace, profile);
    dm_session *s = open_session(2, options);
    assert_true(use(s) == 1.25 * 0.75 + 0.5);
    close_session(s);
    has_points(trace);
    has_points(profile);
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    s = open_session(2, "log=error");
    dm_status status = dmi_replay_run(s, journal, to);
    fclose(to);
    free(text);
    if (status != DM_OK) {
        fail_msg("%s", dm_error_message());
    }
    close_session(s);
    char *kept = text_of(journal);
    assert_non_null(strstr(kept, "0x1.4p+0"));
    free(kept);
    assert_string_equal(setlocale(LC_ALL, NULL), "de_DE.UTF-8"); /* the program's stays */
    char half[8];
    snprintf(half, sizeof half, "%.1f", 0.5);
    assert_string_equal(half, "0,5");
}

static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) {
        return 1;
    }
    snprintf(journal, sizeof journal, "%s/journal", folder);
    snprintf(trace, sizeof trace, "%s/trace", folder);
    snprintf(profile, sizeof profile, "%s/profile", folder);
    return 0;
}

static int end(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_files, deadline)};
    return cmocka_run_group_tests(tests, begin, end);
}
