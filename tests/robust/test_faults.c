/* The K-th allocation of the process fails, for calls of many ops, for each K: either the call is right all the
 * same, or it or the wait after it returns an error that names a call; then nothing hangs, other arrays are
 * what they were, the next calls are right, and nothing is left over. A sample of the points runs here.
 * DMATH_TEST_FAULTS=all: every point; =10000: a sample of about so many; =gemm:7:1: one point, which is call,
 * allocation, variant of c's layout; =gemm::1: all allocations of a call. */
#include "fault_forms.h"
#include "names_call.h"

#include "base/fault.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

enum { WORKERS = 3, ARRAYS = 8, SAMPLE = 400, NEVER = 1000000000 };
#ifdef DMATH_WITH_CUDA
enum { VARIANTS = 3, PLACES = 1 };
#else
enum { VARIANTS = 4, PLACES = 2 }; /* the last one: on emulated GPUs */
#endif
#define ON_GPUS "device=emulated,share_gpu=1,"

static char now[128]; /* the point, for a hang */
static int points, hits, recovered, wrong;

static void hangs(int signal)
{
    (void)signal;
    (void)!write(STDERR_FILENO, "hangs: ", 7);
    (void)!write(STDERR_FILENO, now, strlen(now));
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(1);
}

static void complain(const char *what, dm_status status)
{
    wrong++;
    fprintf(stderr, "%s: %s (%s: %s)\n", now, what, dm_status_name(status),
            status == DM_OK ? "" : dm_error_message());
}

#define EXPECT(call) expect_ok((call), #call)
static bool expect_ok(dm_status status, const char *call)
{
    if (status != DM_OK) {
        complain(call, status);
    }
    return status == DM_OK;
}

static dm_array vector_of(dm_session *s, int seed)
{
    double values[SIDE];
    dm_array x;
    const int64_t n = SIDE;
    dm_layout rows = dm_layout_rows(s);
    OK(dm_array_create(s, DM_F64, 1, &n, &rows, &x));
    for (int i = 0; i < SIDE; i++) {
        values[i] = element(seed, i, 2);
    }
    OK(dm_array_write(s, x, NULL, NULL, values, 0));
    return x;
}

static bool restore(fixture *f)
{
    double values[SIDE * SIDE];
    element_matrix(SIDE, 3, values);
    bool ok = EXPECT(dm_array_write(f->s, f->c, NULL, NULL, values, 0)) &&
              EXPECT(dm_array_write(f->s, f->d, NULL, NULL, values, 0)) &&
              EXPECT(dm_array_write(f->s, f->u, NULL, NULL, values, 0));
    f->outs = 0;
    return ok;
}

static void set_up(fixture *f, int variant)
{
    f->s = open_session(WORKERS, variant == 3 ? ON_GPUS "sort_exchange=1,log=error,fault=''"
                                              : "device=cpu,sort_exchange=1,log=error,fault=''");
    dm_layout rows = dm_layout_rows(f->s), cols = dm_layout_cols(f->s),
              of_c = variant == 1   ? dm_layout_cyclic(f->s, 1, 2)
                     : variant == 2 ? dm_layout_replicated(f->s)
                                    : rows;
    int64_t index[SIDE];
    const int64_t n = SIDE;
    for (int i = 0; i < SIDE; i++) {
        index[i] = i * 5 % SIDE;
    }
    f->a = make_matrix(f->s, SIDE, &rows, 1);
    f->b = make_matrix(f->s, SIDE, &cols, 2);
    f->c = make_matrix(f->s, SIDE, &of_c, 3);
    f->d = make_matrix(f->s, SIDE, &cols, 3);
    f->v = vector_of(f->s, 4);
    f->w = vector_of(f->s, 5);
    f->u = vector_of(f->s, 6);
    OK(dm_array_create(f->s, DM_I64, 1, &n, &rows, &f->index));
    OK(dm_array_write(f->s, f->index, NULL, NULL, index, 0));
    (void)restore(f);
}

/* What the call has written, one after the other; the status of reading it. */
static dm_status results(fixture *f, char *to, size_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < f->outs; i++) {
        dm_array_info info = {.size = sizeof info};
        TRY(dm_array_query(f->s, f->out[i], &info));
        TRY(dm_array_read(f->s, f->out[i], NULL, NULL, to + *bytes, 0));
        size_t count = 1;
        for (int d = 0; d < info.ndim; d++) {
            count *= (size_t)info.shape[d];
        }
        *bytes += count * 8; /* no element is larger */
    }
    return DM_OK;
}

/* Does it say how much memory was asked for, and what there is? A thread that cannot be started has asked for
 * none; what a call finds of a session that has failed before says what happened there. */
static bool names_memory(const char *text)
{
    static const char *const others[] = {"cannot start", "cannot pin", "GPU", "The session has failed",
                                         "the session has ended"};
    bool numbers = strstr(text, " bytes were asked for, ") && strstr(text, " are free, this process has ");
    for (int i = 0; i < (int)(sizeof others / sizeof others[0]) && !numbers; i++) {
        numbers = strstr(text, others[i]) != NULL;
    }
    return numbers;
}

static void check_error(dm_status status, const char *text)
{
    if (status != DM_ERR_NOMEM && status != DM_ERR_POISONED &&
        !(status == DM_ERR_IO && strstr(text, "memory"))) {
        complain("the error is of another kind", status);
    } else if (!names_call(text)) {
        complain("the error names no call", status);
    } else if (status == DM_ERR_NOMEM && !names_memory(text)) {
        complain("the error says nothing of memory", status);
    }
}

enum { MOST_BYTES = 1 << 16 };

static char before[MOST_BYTES], after[MOST_BYTES];

/* Everything else is what it was, and the call is right now; bytes: of what it wrote before, if it was right
 * then. */
static void check_after(fixture *f, int form, size_t bytes)
{
    size_t again = 0;
    matrix_is(f->s, f->a, SIDE, 1);
    matrix_is(f->s, f->b, SIDE, 2);
    if (!restore(f) || !EXPECT(dm_scope_begin(f->s)) || !EXPECT(forms[form].run(f)) || !EXPECT(dm_sync(f->s)) ||
        !EXPECT(results(f, after, &again)) || !EXPECT(dm_scope_end(f->s, NULL, 0))) {
        return;
    }
    if (bytes > 0 && (bytes != again || memcmp(before, after, bytes) != 0)) {
        complain("no error, but the result is another", DM_OK);
    }
}

static void close_down(fixture *f)
{
    int64_t alive = 0;
    for (int w = 0; w < WORKERS; w++) {
        dm_memory memory = {.size = sizeof memory};
        if (EXPECT(dm_memory_report(f->s, w, &memory)) && memory.workspace != 0) {
            complain("workspace is left over", DM_OK);
        }
    }
    if (EXPECT(dm_finalize(f->s, &alive)) && alive != ARRAYS) {
        complain("arrays are left over", DM_OK);
    }
}

/* Returns how many allocations there were. */
static int64_t one_point(const char *folder, int form, int variant, int64_t at)
{
    char text[64], said[2048];
    size_t bytes = 0;
    fixture f = {.folder = folder};
    snprintf(now, sizeof now, "%s:%lld:%d", forms[form].name, (long long)at, variant);
    snprintf(text, sizeof text, "malloc:%lld", (long long)at);
    alarm(60);
    set_up(&f, variant);
    EXPECT(dm_scope_begin(f.s));
    EXPECT(dm_sync(f.s));
    memset(before, 0, sizeof before);
    memset(after, 0, sizeof after);
    dmi_fault_plant(text);
    dm_status status = forms[form].run(&f);
    snprintf(said, sizeof said, "%s", dm_error_message());
    dm_status end = dm_sync(f.s);
    int64_t calls = dmi_fault_calls();
    if (status != DM_OK || end != DM_OK) {
        check_error(status != DM_OK ? status : end, status != DM_OK ? said : dm_error_message());
    }
    dmi_fault_plant("");
    if (status == DM_OK && end == DM_OK && !EXPECT(results(&f, before, &bytes))) {
        bytes = 0;
    }
    points++;
    hits += calls >= at;
    recovered += calls >= at && bytes > 0;
    EXPECT(dm_sync(f.s));
    EXPECT(dm_scope_end(f.s, NULL, 0));
    check_after(&f, form, bytes);
    close_down(&f);
    return calls;
}

/* Starting and ending a session: an error, or a session that is right. */
static int64_t one_start(int64_t at, bool gpus)
{
    char options[96];
    dm_session *s = NULL;
    dm_config config = DM_CONFIG_INIT;
    config.workers = WORKERS;
    config.options = options;
    snprintf(now, sizeof now, "start:%lld:%d", (long long)at, gpus);
    snprintf(options, sizeof options, "%slog=error,fault='malloc:%lld'", gpus ? ON_GPUS : "device=cpu,",
             (long long)at);
    alarm(60);
    dm_status status = dm_init(&config, &s);
    if (status != DM_OK) {
        check_error(status, dm_error_message());
    }
    int64_t calls = dmi_fault_calls();
    if (status == DM_OK) {
        dm_array a = DM_NO_ARRAY;
        status = dm_matrix(s, DM_F64, SIDE, SIDE, &a);
        status = status == DM_OK ? dm_fill(s, a, 1) : status;
        dm_status end = dm_sync(s);
        EXPECT(dm_finalize(s, NULL));
        calls = dmi_fault_calls();
        if (status != DM_OK || end != DM_OK) {
            status = DM_ERR_NOMEM;
        }
    }
    dmi_fault_plant("");
    points++;
    hits += calls >= at;
    recovered += calls >= at && status == DM_OK;
    s = open_session(WORKERS, "device=cpu,log=error");
    dm_array b = make_matrix(s, SIDE, NULL, 4);
    matrix_is(s, b, SIDE, 4);
    EXPECT(dm_finalize(s, NULL));
    return calls;
}

static uint64_t drawn(uint64_t *seed, uint64_t below)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % below;
}

static void every_point(const char *folder)
{
    for (int place = 0; place < PLACES; place++) {
        int64_t starts = one_start(NEVER, place);
        for (int64_t at = 1; at <= starts; at++) {
            one_start(at, place);
        }
    }
    printf("%d points of starts and ends, %d wrong\n", points, wrong);
    for (int form = 0; form < FORM_COUNT; form++) {
        for (int variant = 0; variant < VARIANTS; variant++) {
            int64_t calls = one_point(folder, form, variant, NEVER);
            for (int64_t at = 1; at <= calls; at++) {
                one_point(folder, form, variant, at);
            }
        }
        printf("%s: %d points so far, %d wrong\n", forms[form].name, points, wrong);
        fflush(stdout);
    }
}

static void sample(const char *folder, uint64_t *seed)
{
    for (int place = 0; place < PLACES; place++) {
        int64_t starts = one_start(NEVER, place);
        for (int i = 0; i < SAMPLE / (place ? 80 : 8); i++) {
            one_start(1 + (int64_t)drawn(seed, (uint64_t)starts), place);
        }
    }
    for (int form = 0; form < FORM_COUNT; form++) {
        int variant = drawn(seed, 25) == 0
                          ? VARIANTS - 1
                          : (int)drawn(seed, 3); /* sessions on GPUs take a tenth of a second */
        int64_t calls = one_point(folder, form, variant, NEVER);
        for (int i = 0; i < SAMPLE / FORM_COUNT && calls > 0; i++) {
            one_point(folder, form, variant, 1 + (int64_t)drawn(seed, (uint64_t)calls));
        }
    }
}

static void samples(const char *folder, int count)
{
    const char *given = getenv("DMATH_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("DMATH_TEST_SEED=%llu\n", (unsigned long long)seed);
    do {
        sample(folder, &seed);
        printf("%d points so far, %d wrong\n", points, wrong);
        fflush(stdout);
    } while (points < count);
}

/* "gemm:7:1": form, allocation, variant; "gemm": all of it. */
static void one(const char *folder, const char *which)
{
    size_t length = strcspn(which, ":");
    long long at = 0;
    int variant = 0;
    (void)sscanf(which + length, ":%lld:%d", &at, &variant);
    (void)sscanf(which + length, "::%d", &variant);
    if (strncmp(which, "start", length) == 0) {
        int64_t last = at ? at : one_start(NEVER, variant);
        for (int64_t i = at ? at : 1; i <= last; i++) {
            one_start(i, variant);
        }
    }
    for (int form = 0; form < FORM_COUNT; form++) {
        if (strlen(forms[form].name) == length && strncmp(forms[form].name, which, length) == 0) {
            int64_t last = at ? at : one_point(folder, form, variant, NEVER);
            for (int64_t i = at ? at : 1; i <= last; i++) {
                one_point(folder, form, variant, i);
            }
        }
    }
}

static void test_allocations(void **state)
{
    (void)state;
    char folder[] = "/tmp/dmath-faults-XXXXXX", path[96];
    const char *which = getenv("DMATH_TEST_FAULTS");
    signal(SIGALRM, hangs);
    assert_non_null(mkdtemp(folder));
    setenv("DMATH_EMULATED_GPUS", "2", 1);
    OK(dm_register("negate", negate));
    dm_session *s = open_session(2, "log=error,device=cpu");
    dm_array a = make_matrix(s, SIDE, NULL, 3);
    snprintf(path, sizeof path, "%s/there.npy", folder);
    OK(dm_array_save(s, a, path));
    OK(dm_finalize(s, NULL));
    if (!which) {
        samples(folder, 0);
    } else if (which[strspn(which, "0123456789")] == 0) {
        samples(folder, atoi(which));
    } else if (strcmp(which, "all") == 0) {
        every_point(folder);
    } else {
        one(folder, which);
    }
    printf("%d points: %d met, %d of them right all the same, %d wrong\n", points, hits, recovered, wrong);
    (void)unlink(path);
    snprintf(path, sizeof path, "%s/saved.npy", folder);
    (void)unlink(path);
    assert_int_equal(rmdir(folder), 0); /* no file is left over */
    assert_int_equal(wrong, 0);
}

/* --- files: every write, read, fsync and rename of saving over a file and loading it */

/* The file holds matrix `seed`, and its folder nothing else. */
static void file_is(const char *folder, const char *path, int seed)
{
    int files = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        files += e->d_name[0] != '.';
    }
    closedir(dir);
    if (files != 1) {
        complain("files are left over", DM_OK);
    }
    dm_session *s = open_session(2, "log=error,fault=''");
    dm_array a = DM_NO_ARRAY;
    if (EXPECT(dm_array_load(s, path, NULL, &a))) {
        matrix_is(s, a, SIDE, seed);
    }
    EXPECT(dm_finalize(s, NULL));
}

/* Returns true if the fault was met. */
static bool one_file_fault(const char *folder, const char *path, const char *kind, int at, const char *how)
{
    char text[64];
    dm_session *s = open_session(WORKERS, "log=error,fault=''");
    dm_array old = make_matrix(s, SIDE, NULL, 8), new = make_matrix(s, SIDE, NULL, 9), read = DM_NO_ARRAY;
    OK(dm_array_save(s, old, path));
    snprintf(text, sizeof text, "%s:%d%s", kind, at, how);
    snprintf(now, sizeof now, "%s", text);
    alarm(60);
    dmi_fault_plant(text);
    dm_status saved = dm_array_save(s, new, path);
    char said[512];
    snprintf(said, sizeof said, "%s", saved == DM_OK ? "" : dm_error_message());
    dm_status loaded = saved == DM_OK ? dm_array_load(s, path, NULL, &read) : DM_OK;
    bool met = dmi_fault_calls() >= at, fails = met && strcmp(how, ":short") != 0;
    if (loaded != DM_OK) {
        snprintf(said, sizeof said, "%s", dm_error_message());
    }
    dmi_fault_plant("");
    points++;
    if (fails != (saved != DM_OK || loaded != DM_OK)) {
        complain(fails ? "no error" : said, saved);
    } else if (fails && (!strstr(said, path) ||
                         !strstr(said, strcmp(how, ":enospc") == 0 ? "No space left" : "Input/output"))) {
        complain(said, DM_OK);
    }
    if (loaded == DM_OK && saved == DM_OK) {
        matrix_is(s, read, SIDE, 9);
    }
    OK(dm_finalize(s, NULL));
    /* The last fsync is that of the folder, when the new file is in place. */
    file_is(folder, path, saved == DM_OK || strstr(said, "is written") ? 9 : 8);
    return met;
}

static void test_files(void **state)
{
    (void)state;
    static const char *const kinds[][2] = {{"write", ""},       {"write", ":eio"}, {"write", ":enospc"},
                                           {"write", ":short"}, {"fsync", ""},     {"rename", ""},
                                           {"read", ""}};
    char folder[] = "/tmp/dmath-faults-XXXXXX", path[96];
    wrong = points = 0;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.npy", folder);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int at = 1;
        while (at < 40 && one_file_fault(folder, path, kinds[i][0], at, kinds[i][1])) {
            at++;
        }
        assert_in_range(at, 2, 39);
    }
    (void)unlink(path);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(wrong, 0);
}

/* Deliveries that are late, and in other orders, change nothing. */
static void test_delay(void **state)
{
    (void)state;
    static char late[MOST_BYTES];
    int64_t delays = 0;
    wrong = 0;
    for (int form = 0; form < FORM_COUNT; form += 3) {
        for (int turn = 0; turn < 2; turn++) {
            char text[64];
            size_t bytes = 0;
            fixture f = {.folder = "/tmp"};
            if (forms[form].run == form_load || forms[form].run == form_save) {
                continue;
            }
            snprintf(text, sizeof text, "delay:%d", form + 1);
            snprintf(now, sizeof now, "%s of %s", text, forms[form].name);
            alarm(60);
            set_up(&f, 1);
            memset(turn ? late : before, 0, MOST_BYTES);
            dmi_fault_plant(turn ? text : "");
            EXPECT(dm_scope_begin(f.s));
            EXPECT(forms[form].run(&f));
            EXPECT(results(&f, turn ? late : before, &bytes));
            delays += turn ? dmi_fault_calls() : 0;
            dmi_fault_plant("");
            EXPECT(dm_scope_end(f.s, NULL, 0));
            close_down(&f);
        }
        if (memcmp(before, late, MOST_BYTES) != 0) {
            complain("the result is another", DM_OK);
        }
    }
    assert_true(delays > 100);
    assert_int_equal(wrong, 0);
}

/* The process dies in a step, as if by the kernel, and only there. */
static void test_death(void **state)
{
    (void)state;
    for (int step = 1; step <= 3; step++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            char options[64];
            dm_session *s = NULL;
            snprintf(options, sizeof options, "log=error,fault='death:%d:worker=1'", step);
            dm_config config = {sizeof config, WORKERS, options};
            const int64_t shape[2] = {SIDE, SIDE};
            dm_array a;
            int done = 0;
            if (dm_init(&config, &s) == DM_OK && dm_array_create(s, DM_F64, 2, shape, NULL, &a) == DM_OK) {
                dm_layout rows = dm_layout_rows(s);
                dm_array b;
                for (; done < 2 && dm_array_create(s, DM_F64, 2, shape, &rows, &b) == DM_OK &&
                       dm_fill(s, b, 1) == DM_OK && dm_sync(s) == DM_OK;
                     done++) {
                }
            }
            _exit(done);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(step <= 2 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                              : WIFEXITED(status) && WEXITSTATUS(status) == 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_death),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_delay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
