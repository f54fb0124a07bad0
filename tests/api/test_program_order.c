/* What the critical path of a program waits for goes first: a small transfer that a long chain needs overtakes
 * a large one that was recorded before it, and the bits stay the same. */
#include "support/cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 1024, SMALL = 256, CHAIN = 30, MOST = 400 };

typedef struct arrays {
    dm_array large, large_turned, small, turned;
} arrays;

static arrays make(dmt_case *c, dm_session *s)
{
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    const int64_t large[] = {LARGE, LARGE}, small[] = {SMALL, SMALL};
    arrays a;
    DMT_OK(c, dm_array_create(s, DM_F32, 2, large, &rows, &a.large));
    DMT_OK(c, dm_array_create(s, DM_F32, 2, large, &cols, &a.large_turned));
    DMT_OK(c, dm_array_create(s, DM_F32, 2, small, &rows, &a.small));
    DMT_OK(c, dm_array_create(s, DM_F32, 2, small, &cols, &a.turned));
    DMT_OK(c, dm_fill_uniform(s, a.large, -1, 1, 1));
    DMT_OK(c, dm_fill_uniform(s, a.small, -1, 1, 2));
    return a;
}

/* The large transfer first, and a kernel that waits for it; then the small one, and what needs it. */
static void record(dmt_case *c, dm_session *s, const arrays *a, dm_program *out)
{
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_copy(s, a->large, a->large_turned));
    DMT_OK(c, dm_scale(s, 2, a->large_turned, a->large_turned));
    DMT_OK(c, dm_copy(s, a->small, a->turned));
    for (int i = 0; i < CHAIN; i++) {
        DMT_OK(c, dm_map(s, "sin(3 * x) + 0.25 * x", 1, (dm_map_arg[]){DM_ARG("x", a->turned)}, a->turned));
    }
    DMT_OK(c, dm_program_end(s, out));
}

/* The bytes of the first push of a worker's, by its timeline. */
static int64_t first_push(dmt_case *c, const char *path)
{
    FILE *file = fopen(path, "r");
    char line[1000];
    double first = 0;
    int64_t bytes = -1;
    if (!file) {
        dmt_fail(c, "no timeline in %s", path);
    }
    while (fgets(line, sizeof line, file)) {
        double at;
        const char *size = strstr(line, "\"bytes\":");
        if (sscanf(line, "{\"name\":\"copy push\",\"ph\":\"X\",\"ts\":%lf", &at) == 1 && size &&
            (bytes < 0 || at < first)) {
            first = at;
            bytes = strtoll(size + strlen("\"bytes\":"), NULL, 10);
        }
    }
    fclose(file);
    (void)remove(path);
    return bytes;
}

static void run_way(dmt_case *c, const char *way, float *large, float *small, int64_t *bytes)
{
    char options[200], path[64], *text = NULL;
    const int64_t workers = 2;
    snprintf(path, sizeof path, "order_%s.json", way);
    snprintf(options, sizeof options, "link_gbps=0.4,program_join=0,program_order=%s,trace=%s", way, path);
    dm_session *s = dmt_session_open((int)workers, options);
    arrays a = make(c, s);
    dm_program program;
    int64_t alive;
    record(c, s, &a, &program);
    DMT_OK(c, dm_explain_begin(s));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    DMT_OK(c, dm_explain_end(s, &text));
    if ((strstr(text, "reordered") != NULL) != (strcmp(way, "critical") == 0)) {
        dmt_fail(c, "program_order=%s: %s", way, text);
    }
    free(text);
    DMT_OK(c, dm_program_run(s, program, 2, 0, NULL));
    DMT_OK(c, dm_read(s, a.large_turned, large));
    DMT_OK(c, dm_read(s, a.turned, small));
    DMT_OK(c, dm_finalize(s, &alive));
    *bytes = first_push(c, path);
}

static void overtake_case(dmt_case *c)
{
    static float large[2][LARGE * LARGE], small[2][SMALL * SMALL];
    const int64_t half = sizeof(float) / 2 / 2; /* of an element, what a worker sends of an array */
    int64_t bytes[2];
    run_way(c, "recorded", large[0], small[0], &bytes[0]);
    run_way(c, "critical", large[1], small[1], &bytes[1]);
    if (memcmp(large[0], large[1], sizeof large[0]) != 0 || memcmp(small[0], small[1], sizeof small[0]) != 0) {
        dmt_fail(c, "the results differ");
    }
    if (bytes[0] != half * LARGE * LARGE || bytes[1] != half * SMALL * SMALL) {
        dmt_fail(c, "the first push has %lld bytes in the order as recorded, and %lld in the other",
                 (long long)bytes[0], (long long)bytes[1]);
    }
}

/* A message names a call by its place in the recording. */
static void messages_case(dmt_case *c)
{
    dm_session *s = c->session;
    arrays a = make(c, s);
    dm_program program;
    DMT_OK(c, dm_program_begin(s));
    DMT_OK(c, dm_copy(s, a.large, a.large_turned));
    DMT_OK(c, dm_require_range(s, a.large_turned, -1, 1));
    DMT_OK(c, dm_copy(s, a.small, a.turned));
    for (int i = 0; i < CHAIN; i++) {
        DMT_OK(c, dm_map(s, "x + 1", 1, (dm_map_arg[]){DM_ARG("x", a.turned)}, a.turned));
    }
    DMT_OK(c, dm_require_range(s, a.turned, -1, 1));
    DMT_OK(c, dm_program_end(s, &program));
    DMT_OK(c, dm_program_run(s, program, 1, 0, NULL));
    dmt_status_is(c, dm_sync(s), DM_ERR_VALUE, "dm_sync");
    if (!strstr(dm_error_message(), "its call 34 of 34, require_range")) {
        dmt_fail(c, "the message is: %s", dm_error_message());
    }
    DMT_OK(c, dm_program_destroy(s, program));
}

static void test_overtake(void **state)
{
    (void)state;
    if (dmt_on_cpu()) { /* links can be slowed down there */
        dmt_run(&(dmt_suite){
            .name = "order_overtake", .cases = 1, .each = true, .fn = overtake_case, .workers = 2});
    }
}

static void test_messages(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "order_messages",
                         .cases = 1,
                         .each = true,
                         .fn = messages_case,
                         .scope = true,
                         .workers = 2,
                         .options = "link_gbps=0.4"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_overtake), cmocka_unit_test(test_messages)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
