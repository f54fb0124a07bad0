/* The timeline: a file of JSON that has each lane's steps on its own row, in order, within the time of the run;
 * an arrow from each push to its arrival; and rows of programs and groups. In process with three workers; with
 * DMATH_TEST_LAUNCHED the ranks of the job are the workers. */
#include "exec/trace.h"
#include "support/cases.h"

#include <dmath/dmath.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MOST = 16, TRACKS = 64, TIDS = (WORKERS_MOST + 2) * TRACKS, SLICES = 20000 };

/* --- a checker of JSON: returns what follows a value, NULL where there is none --- */

static const char *past_space(const char *at)
{
    return at + strspn(at, " \n\r\t");
}

static const char *json_string(const char *at)
{
    if (*at++ != '"') {
        return NULL;
    }
    while (*at != '"') {
        if ((unsigned char)*at < ' ' || *at == '\\') { /* none is escaped in these files */
            return NULL;
        }
        at++;
    }
    return at + 1;
}

static const char *json_value(const char *at);

static const char *json_list(const char *at, char close, bool pairs)
{
    at = past_space(at + 1);
    if (*at == close) {
        return at + 1;
    }
    for (;;) {
        if (pairs) {
            at = json_string(past_space(at));
            at = at ? past_space(at) : NULL;
            if (!at || *at++ != ':') {
                return NULL;
            }
        }
        at = json_value(at);
        if (!at) {
            return NULL;
        }
        at = past_space(at);
        if (*at == close) {
            return at + 1;
        }
        if (*at++ != ',') {
            return NULL;
        }
    }
}

static const char *json_value(const char *at)
{
    at = past_space(at);
    if (*at == '{') {
        return json_list(at, '}', true);
    }
    if (*at == '[') {
        return json_list(at, ']', false);
    }
    if (*at == '"') {
        return json_string(at);
    }
    char *end;
    (void)strtod(at, &end);
    return end > at && (*at == '-' || (*at >= '0' && *at <= '9')) ? end : NULL;
}

/* --- what the file says --- */

typedef struct row {
    int events, gemm, push, expect, other;
    int64_t bytes, flops;
    double last_us;
    char name[64];
} row;

typedef struct slice {
    int64_t begin_ns, end_ns;
    double ahead_us;
    int tid, peer;
    int64_t bytes, command;
    char name[64];
} slice;

typedef struct arrow {
    int64_t id, ns;
    int tid;
    bool arrives;
} arrow;

typedef struct timeline {
    row row[TIDS]; /* by the number of the track: 64 for each endpoint, the first one's from 64 on */
    slice slice[SLICES];
    arrow arrow[SLICES];
    int slices, arrows;
    double begin_us, end_us;
} timeline;

static const row *row_of(const timeline *t, int endpoint, int which)
{
    return &t->row[(endpoint + 1) * TRACKS + which];
}

static int64_t number(const char *line, const char *key)
{
    const char *at = strstr(line, key);
    return at ? strtoll(at + strlen(key), NULL, 10) : -1;
}

static void take_arrow(timeline *t, const char *line)
{
    arrow a = {.id = number(line, "\"id\":"),
               .tid = (int)number(line, "\"tid\":"),
               .arrives = strstr(line, "\"ph\":\"f\"")};
    a.ns = llround(1e3 * strtod(strstr(line, "\"ts\":") + strlen("\"ts\":"), NULL));
    assert_true(t->arrows < SLICES && a.id >= 0 && number(line, "\"pid\":") == a.tid / TRACKS);
    assert_int_equal(strstr(line, "\"bp\":\"e\"") != NULL,
                     a.arrives); /* bound to the event around it, not to the next one */
    t->arrow[t->arrows++] = a;
}

static void take_event(timeline *t, const char *line)
{
    char name[64];
    double ts, dur;
    int pid, tid;
    if (strstr(line, "\"cat\":\"transfer\"")) {
        take_arrow(t, line);
        return;
    }
    if (sscanf(line, "{\"name\":\"%63[^\"]\",\"ph\":\"X\",\"ts\":%lf,\"dur\":%lf,\"pid\":%d,\"tid\":%d,", name,
               &ts, &dur, &pid, &tid) != 5) {
        if (sscanf(line, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,", &pid, &tid) == 2) {
            assert_in_range(tid, 0, TIDS - 1);
            assert_int_equal(sscanf(strstr(line, "args"), "args\":{\"name\":\"%63[^\"]", t->row[tid].name), 1);
        }
        return;
    }
    assert_in_range(tid, 0, TIDS - 1);
    row *r = &t->row[tid];
    assert_int_equal(tid / TRACKS, pid);
    assert_true(dur > 0 && ts >= t->begin_us && ts + dur <= t->end_us);
    assert_true(ts >= r->last_us - 0.002); /* three decimals each: events of a row do not overlap */
    r->last_us = ts + dur;
    r->events++;
    assert_true(t->slices < SLICES);
    slice *kept = &t->slice[t->slices++];
    const char *ahead = strstr(line, "\"ahead_us\":");
    *kept = (slice){.begin_ns = llround(1e3 * ts),
                    .end_ns = llround(1e3 * ts) + llround(1e3 * dur),
                    .ahead_us = ahead ? strtod(ahead + strlen("\"ahead_us\":"), NULL) : 0,
                    .tid = tid,
                    .peer = (int)number(line, "\"peer\":"),
                    .bytes = number(line, "\"bytes\":"),
                    .command = number(line, "\"command\":")};
    strcpy(kept->name, name);
    const char *step = strchr(name, ' ');
    if (!step) { /* a command, in the row of a group */
        return;
    }
    *(strcmp(step, " push") == 0     ? &r->push
      : strcmp(step, " expect") == 0 ? &r->expect
      : strcmp(step, " gemm") == 0   ? &r->gemm
                                     : &r->other) += 1;
    assert_true(number(line, "\"command\":") > 0);
    r->bytes += DMI_MAX(number(line, "\"bytes\":"), 0);
    r->flops += DMI_MAX(number(line, "\"flops\":"), 0);
}

static char *load(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    long bytes = ftell(file);
    rewind(file);
    char *text = calloc(1, (size_t)bytes + 1);
    assert_int_equal(fread(text, 1, (size_t)bytes, file), bytes);
    fclose(file);
    return text;
}

static void read_timeline(const char *path, timeline *t)
{
    char *text = load(path);
    const char *end = json_value(text);
    assert_true(*text == '[' && end && *past_space(end) == 0);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        take_event(t, line);
    }
    free(text);
}

/* --- a run --- */

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

enum { N = 60 };

static void run_product(const char *path, timeline *t, dm_counters counters[WORKERS_MOST], int *workers)
{
    char options[128];
    dm_session *s;
    dm_array a, b, c;
    int64_t shape[2] = {N, N};
    static float host[N * N];
    snprintf(options, sizeof options, "gemm_algorithm=cyclic,lanes=1,trace=%s", path);
    dm_config config = DM_CONFIG_INIT;
    config.workers = getenv("DMATH_TEST_LAUNCHED") ? 0 : 3;
    config.options = options;
    t->begin_us = now_us() - 1;
    assert_int_equal(dm_init(&config, &s), DM_OK);
    *workers = dm_workers(s);
    assert_in_range(*workers, 1, WORKERS_MOST);
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &rows, &a), DM_OK);
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &cols, &b), DM_OK);
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &rows, &c), DM_OK);
    assert_int_equal(dm_fill(s, a, 1), DM_OK);
    assert_int_equal(dm_fill(s, b, 2), DM_OK);
    assert_int_equal(dm_gemm(s, DM_N, DM_N, 1.0, a, b, 0.0, c), DM_OK);
    assert_int_equal(dm_array_read(s, c, NULL, NULL, host, 0), DM_OK);
    for (int w = 0; w < *workers; w++) {
        counters[w] = (dm_counters){.size = sizeof counters[w]};
        assert_int_equal(dm_counters_get(s, w, &counters[w]), DM_OK);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dm_array_destroy(s, (dm_array[]){a, b, c}[i]), DM_OK);
    }
    assert_int_equal(dm_finalize(s, NULL), DM_OK);
    t->end_us = now_us() + 1;
    assert_true(host[0] == 2 * N && host[N * N - 1] == 2 * N);
}

/* The event of that kind around the end of an arrow. */
static const slice *slice_at(const timeline *t, const arrow *a, const char *kind)
{
    const slice *found = NULL;
    for (int i = 0; i < t->slices; i++) {
        const slice *s = &t->slice[i];
        const char *step = strchr(s->name, ' ');
        if (s->tid == a->tid && s->begin_ns <= a->ns && a->ns < s->end_ns && step &&
            strcmp(step + 1, kind) == 0) {
            assert_null(found);
            found = s;
        }
    }
    assert_non_null(found);
    return found;
}

/* Each push has an arrow, which ends in the arrival of its payload at the peer, and in no other. */
static void check_arrows(const timeline *t, int workers)
{
    const bool one_clock =
        dmt_on_cpu(); /* times of GPUs are measured from a moment that each takes for itself */
    int pushes = 0, begun = 0;
    for (int w = 0; w <= workers; w++) {
        pushes += row_of(t, w, 1)->push;
    }
    for (int i = 0; i < t->arrows; i++) {
        const arrow *from = &t->arrow[i], *to = NULL;
        if (from->arrives) {
            continue;
        }
        for (int j = 0; j < t->arrows; j++) {
            if (j != i && t->arrow[j].id == from->id) {
                assert_null(to);
                to = &t->arrow[j];
            }
        }
        assert_non_null(to);
        assert_true(to->arrives);
        const slice *push = slice_at(t, from, "push"), *expect = slice_at(t, to, "expect");
        assert_int_equal(push->peer, to->tid / TRACKS - 1);
        assert_int_equal(expect->peer, from->tid / TRACKS - 1);
        assert_int_equal(push->bytes, expect->bytes);
        assert_int_equal(push->command, expect->command);
        assert_true(push->ahead_us > 0 || from->ns < to->ns || !one_clock);
        begun++;
    }
    assert_int_equal(begun, pushes);
    assert_int_equal(t->arrows, 2 * pushes);
}

static void test_timeline(void **state)
{
    (void)state;
    static const char path[] = "timeline.json";
    static const char *const lanes[] = {"compute", "send", "receive"};
    static timeline t;
    dm_counters counters[WORKERS_MOST];
    int workers;
    run_product(path, &t, counters, &workers);
    read_timeline(path, &t);
    check_arrows(&t, workers);
    for (int w = 0; w <= workers; w++) {
        const row *compute = row_of(&t, w, 0), *send = row_of(&t, w, 1), *receive = row_of(&t, w, 2);
        char name[64], part[64];
        for (int l = 0; l < 3; l++) {
            snprintf(name, sizeof name, w < workers ? "worker %2$d %1$s" : "master %1$s", lanes[l], w);
            assert_string_equal(row_of(&t, w, l)->name, name);
        }
        if (w == workers) { /* the master: it takes what the workers send it */
            assert_int_equal(receive->expect, workers);
            assert_int_equal(receive->bytes, (int64_t)sizeof(float) * N * N);
            continue;
        }
        snprintf(part, sizeof part, "%s.%d.part", path, w);
        assert_int_not_equal(access(part, F_OK), 0);
        assert_int_equal(compute->gemm, workers);
        assert_int_equal(compute->push + compute->expect, 0);
        assert_int_equal(send->push, workers); /* to the others in the product, and to the master */
        assert_int_equal(send->events, send->push);
        assert_int_equal(receive->expect, workers - 1);
        assert_int_equal(receive->events, receive->expect);
        assert_int_equal(send->bytes, counters[w].bytes_sent);
        assert_int_equal(receive->bytes, counters[w].bytes_received);
        assert_int_equal(compute->flops, counters[w].flops);
        assert_int_equal(compute->events + send->events + receive->events, counters[w].steps);
    }
}

/* Two pipelines, each a program on a group of two workers: x = rows of (x y), 5 times. */
static void run_pipelines(const char *path, timeline *t)
{
    enum { PIPELINES = 2, RUNS = 5 };
    char options[128];
    dm_session *s;
    dm_group group[PIPELINES];
    dm_program program[PIPELINES];
    dm_config config = DM_CONFIG_INIT;
    snprintf(options, sizeof options, "trace=%s", path);
    config.workers = 4;
    config.options = options;
    t->begin_us = now_us() - 1;
    assert_int_equal(dm_init(&config, &s), DM_OK);
    for (int g = 0; g < PIPELINES; g++) {
        dm_array x, y, z;
        assert_int_equal(dm_group_create(s, (int[]){2 * g, 2 * g + 1}, 2, &group[g]), DM_OK);
        assert_int_equal(dm_group_begin(s, group[g]), DM_OK);
        assert_int_equal(dm_matrix(s, DM_F32, N, N, &x), DM_OK);
        assert_int_equal(dm_matrix(s, DM_F32, N, N, &y), DM_OK);
        assert_int_equal(dm_matrix(s, DM_F32, N, N, &z), DM_OK);
        assert_int_equal(dm_fill(s, x, 1), DM_OK);
        assert_int_equal(dm_fill_identity(s, y, 2), DM_OK);
        assert_int_equal(dm_program_begin(s), DM_OK);
        assert_int_equal(dm_matmul(s, x, y, z), DM_OK);
        assert_int_equal(dm_copy(s, z, x), DM_OK);
        assert_int_equal(dm_program_end(s, &program[g]), DM_OK);
        assert_int_equal(dm_program_run(s, program[g], RUNS, 0, NULL), DM_OK);
        assert_int_equal(dm_group_end(s), DM_OK);
    }
    int64_t alive;
    assert_int_equal(dm_finalize(s, &alive), DM_OK);
    t->end_us = now_us() + 1;
}

/* Each worker shows the runs of its own pipeline and no other, in the rows of programs and of its group. */
static void test_groups(void **state)
{
    (void)state;
    enum { PROGRAMS = DMI_STAMP_LANES, GROUPS, RUNS = 5 };
    static timeline t;
    if (getenv("DMATH_TEST_LAUNCHED")) { /* the ranks have left with the session before */
        skip();
    }
    run_pipelines("groups.json", &t);
    read_timeline("groups.json", &t);
    check_arrows(&t, 4);
    for (int w = 0; w < 4; w++) {
        char name[64];
        int group = w / 2, runs = 0;
        const row *programs = row_of(&t, w, PROGRAMS), *mine = row_of(&t, w, GROUPS + group);
        snprintf(name, sizeof name, "worker %d programs", w);
        assert_string_equal(programs->name, name);
        snprintf(name, sizeof name, "worker %d group %d", w, group + 1);
        assert_string_equal(mine->name, name);
        assert_int_equal(row_of(&t, w, GROUPS + 1 - group)->events, 0);
        assert_int_equal(programs->events, RUNS);
        assert_int_equal(mine->events, RUNS + 2); /* and the fills */
        for (int i = 0; i < t.slices; i++) {
            snprintf(name, sizeof name, "program %d run %d", group + 1, runs);
            runs += t.slice[i].tid == (w + 1) * TRACKS + PROGRAMS && strcmp(t.slice[i].name, name) == 0;
        }
        assert_int_equal(runs, RUNS);
    }
}

/* A full buffer counts what it drops, and no lane is in another's way. */
static void test_bounded(void **state)
{
    (void)state;
    dmi_engine e = {.config = {.me = 0, .endpoints = 1}, .lanes = DMI_LANES}; /* the master of nobody */
    dmi_instance inst = {.command = 1, .lane_of = {0, 1, 2}};
    dmi_step step = {.kind = DMI_STEP(gemm), .lane = DMI_LANE_COMPUTE, .peer = -1, .flops = 2};
    dmi_queued_step w = {.step = &step, .inst = &inst};
    e.trace = dmi_trace_create(2500);
    assert_non_null(e.trace);
    for (int i = 0; i < 3000; i++) {
        dmi_trace_step(&e, &w, 10 * i + 1, 10 * i + 5);
    }
    step.lane = DMI_LANE_SEND;
    dmi_trace_step(&e, &w, 1, 2);
    dmi_trace_join(&e, "bounded.json");
    dmi_trace_destroy(e.trace);
    static timeline t = {.end_us = 1e9};
    char *text = load("bounded.json");
    assert_non_null(json_value(text));
    assert_non_null(strstr(text, "\"dropped\":500"));
    free(text);
    read_timeline("bounded.json", &t);
    assert_int_equal(row_of(&t, 0, 0)->gemm, 2500);
    assert_int_equal(row_of(&t, 0, 1)->gemm, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_timeline), cmocka_unit_test(test_groups),
                                       cmocka_unit_test(test_bounded)};
    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
