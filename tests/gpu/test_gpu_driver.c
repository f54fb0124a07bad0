/* A driver whose N-th request to the host fails, and a library whose N-th allocation does, for many N: a new
 * session, products, transposes, sums, programs, files and a checkpoint on emulated GPUs. Each call is right or
 * says that it failed, the session ends, and the next one is as if nothing had been. With DMATH_TEST_FAULTS=all
 * every N; with a number a sample, the denser the larger it is. Then drivers that fail for ever from the N-th
 * request on, each in a process of its own: its session fails, and nobody waits for ever. */
#include "gpu_case.h"

#include <dmath/checkpoint.h>
#include <dmath/dmath.h>
#include <dmath/program.h>

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "support/try.h"

#ifndef DMATH_WITH_CUDA
enum { SIDE = 24, FIRST = 15, SAMPLE = 30, ALARM_S = 200 };
static char folder[64];

typedef struct arrays {
    dm_array a, b, c, sum;
    dm_program program;
} arrays;

/* b = 2 where a = 1: each element of c is 2 SIDE. */
static dm_status product_of(dm_session *s, const arrays *k)
{
    TRY(dm_fill(s, k->a, 1));
    TRY(dm_fill(s, k->b, 2));
    TRY(dm_gemm(s, DM_N, DM_N, 1, k->a, k->b, 0, k->c));
    TRY(dm_transpose(s, k->c, k->b));
    return dm_sum_dim(s, k->b, 0, k->sum);
}

static dm_status look(dm_session *s, dm_array x, int count, double each)
{
    static double values[SIDE * SIDE];
    TRY(dm_read(s, x, values));
    for (int i = 0; i < count; i++) {
        if (values[i] != each) {
            fail_msg("element %d is %g, not %g", i, values[i], each);
        }
    }
    return DM_OK;
}

/* x += y, of arrays alike, in the host's memory. */
static int add(const dm_task *t)
{
    for (int64_t b = 0; b < t->blocks[0]; b++) {
        const dm_block *x = &t->block[0][b], *y = &t->block[1][b];
        for (int64_t i = 0; i < x->extent[0]; i++) {
            for (int64_t j = 0; j < x->extent[1]; j++) {
                ((double *)x->data)[i * x->stride[0] + j * x->stride[1]] +=
                    ((const double *)y->data)[i * y->stride[0] + j * y->stride[1]];
            }
        }
    }
    return 0;
}

static dm_status files(dm_session *s, const arrays *k)
{
    char path[80];
    dm_array loaded;
    const dm_checkpoint_item item = {.name = "c", .array = k->c};
    snprintf(path, sizeof path, "%s/c.npy", folder);
    TRY(dm_array_save(s, k->c, path));
    TRY(dm_array_load(s, path, NULL, &loaded));
    dm_status status = look(s, loaded, SIDE * SIDE, 2 * SIDE);
    dm_status end = dm_array_destroy(s, loaded);
    TRY(status == DM_OK ? end : status);
    snprintf(path, sizeof path, "%s/point", folder);
    return dm_checkpoint_save(s, path, 1, &item, NULL, NULL);
}

static dm_status work(dm_session *s)
{
    arrays k = {0};
    dm_layout rows = dm_layout_rows(s), cols = dm_layout_cols(s);
    const int64_t shape[] = {SIDE, SIDE};
    TRY(dm_array_create(s, DM_F64, 2, shape, &rows, &k.a));
    TRY(dm_array_create(s, DM_F64, 2, shape, &cols, &k.b));
    TRY(dm_array_create(s, DM_F64, 2, shape, &rows, &k.c));
    TRY(dm_array_create(s, DM_F64, 1, shape, NULL, &k.sum));
    TRY(product_of(s, &k));
    TRY(look(s, k.sum, SIDE, 2.0 * SIDE * SIDE));
    TRY(dm_program_begin(s));
    dm_status status = product_of(s, &k), end = dm_program_end(s, &k.program);
    TRY(status == DM_OK ? end : status);
    for (int i = 0; i < 4; i++) {
        TRY(dm_program_run(s, k.program, 2, 0, NULL));
    }
    TRY(look(s, k.sum, SIDE, 2.0 * SIDE * SIDE));
    TRY(dm_fill(s, k.a, 3));
    TRY(dm_apply(s, "driver add", 2, (dm_array[]){k.a, k.c}, (int[]){DM_READWRITE, DM_READ}, NULL, 0));
    TRY(look(s, k.a, SIDE * SIDE, 3 + 2 * SIDE));
    return files(s, &k);
}

/* at: 0, or the number of the request that fails; of the whole session, or `later` behind its beginning: only
 * then there are graphs, which the option takes away. Returns what was said. */
static dm_status one_session(const char *options, const char *kind, long at, bool later)
{
    char text[256], fault[32];
    dm_session *s = NULL;
    snprintf(fault, sizeof fault, "%s:%ld", kind, at);
    snprintf(text, sizeof text, "device=emulated,share_gpu=1,log=error,%s%s%s", options,
             at && !later ? ",fault=" : "", at && !later ? fault : "");
    dm_config config = {.size = sizeof config, .workers = 2, .options = text};
    alarm(ALARM_S); /* a hang is a failure */
    dm_status status = dm_init(&config, &s);
    if (status == DM_OK) {
        if (at && later) {
            dmi_fault_plant(fault);
        }
        status = work(s);
        dm_status synced = dm_sync(s);
        status = status == DM_OK ? synced : status;
        dm_status end = dm_finalize(s, NULL);
        status = status == DM_OK ? end : status;
    }
    dmi_fault_plant("");
    if (status != DM_OK && !dm_error_message()[0]) {
        fail_msg("%s: %s without a text", fault, dm_status_name(status));
    }
    return status;
}

static void works(const char *options, const char *kind, long at, bool later)
{
    dm_status status = one_session(options, kind, at, later);
    if (status != DM_OK) {
        fail_msg("%s: %s: %s", options, dm_status_name(status), dm_error_message());
    }
}

static const char *const settings[] = {"", "program_device=on", "capture=1", "transport=mpi",
                                       "profile=profile.txt,trace=trace.json"};

static void test_every_request(void **state)
{
    (void)state;
    static const char *const kinds[] = {"driver", "malloc"};
    const char *given = getenv("DMATH_TEST_FAULTS");
    const bool all = given && strcmp(given, "all") == 0;
    const long sample = given && atol(given) > 0 ? atol(given) : SAMPLE;
    uint64_t random = 20261126;
    gpus_or_skip();
    for (size_t i = 0; i < 4 * sizeof settings / sizeof *settings; i++) {
        const char *options = settings[i / 4], *kind = kinds[i % 2];
        const bool later = i / 2 % 2 != 0;
        int said = 0, points = 0;
        works(options, kind, 0, false);
        works(options, kind, INT32_MAX, later);
        const long calls = (long)dmi_fault_calls();
        for (long at = 1; at <= calls; points++) {
            said += one_session(options, kind, at, later) != DM_OK;
            /* at first each is another one, later many are alike */
            at += all || at < FIRST ? 1 : random_in(&random, 1, DMI_MAX(8 * at / sample, 1));
        }
        works(options, kind, 0, false);
        print_message("%s %s%s: %ld requests, %d points, %d said so\n", options, kind, later ? " later" : "",
                      calls, points, said);
        assert_true(said > 0);
    }
}

/* A child's: 0: all is well, 1: the driver failed and it was said. */
static int without_driver(const char *options, long at)
{
    char text[128], fault[32];
    dm_session *s = NULL;
    snprintf(text, sizeof text, "device=emulated,share_gpu=1,log=error,%s", options);
    snprintf(fault, sizeof fault, "driver:%ld:on", at);
    dm_config config = {.size = sizeof config, .workers = 2, .options = text};
    alarm(ALARM_S);
    if (dm_init(&config, &s) != DM_OK) {
        return 2;
    }
    dmi_fault_plant(fault);
    dm_status status = work(s), end = dm_finalize(s, NULL);
    status = status == DM_OK ? end : status;
    return status == DM_OK ? 0 : dm_error_message()[0] ? 1 : 3;
}

/* Before a session of this process: a child has none of the GPUs that its parent has used. */
static void test_driver_gone(void **state)
{
    (void)state;
    if (dmi_cu_devices() == 0) {
        skip();
    }
    for (int i = 0; i < 2; i++) {
        int said = 0, points = 0, ended = 1;
        for (long at = 1; ended == 1; at += 1 + at / 6, points++) {
            int code = 0;
            fflush(stdout);
            pid_t child = fork();
            if (child == 0) {
                _exit(without_driver(settings[i], at));
            }
            assert_int_equal(waitpid(child, &code, 0), child);
            ended = WIFEXITED(code) ? WEXITSTATUS(code) : 4;
            if (ended > 1) {
                fail_msg("%s, driver:%ld:on: %s", settings[i], at,
                         ended == 2   ? "no session"
                         : ended == 3 ? "an error without a text"
                                      : "it hung or crashed");
            }
            said += ended;
        }
        print_message("%s driver gone: %d points, %d said so\n", settings[i], points, said);
        assert_true(said > 10);
    }
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/dmath-driver-XXXXXX");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1; /* profiles and traces go there, too */
}

static int remove_folder(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return chdir("/") != 0 || system(command) != 0;
}
#endif

int main(void)
{
#ifdef DMATH_WITH_CUDA
    puts("the driver is real: skipped");
    return 0;
#else
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_driver_gone, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_every_request, make_folder, remove_folder)};
    return dm_register("driver add", add) == DM_OK ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
#endif
}
