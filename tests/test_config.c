/* The configuration: defaults, environment, options, and what is said of a mistake. */
#include "base/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

/* Every test begins without a variable of ours. */
static int clean(void **state)
{
    (void)state;
    for (char **at = environ; *at;) {
        char name[200];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*at, "="), *at);
        if (strncmp(name, "DMATH_", 6) == 0) {
            unsetenv(name);
            at = environ;
        } else {
            at++;
        }
    }
    return 0;
}

static dmi_config load(const char *options)
{
    dmi_config config;
    memset(&config, 0xee, sizeof config);
    dm_status status = dmi_config_load(&config, options);
    if (status != DM_OK) {
        fail_msg("%s: %s", options ? options : "no options", dmi_error_text());
    }
    return config;
}

static void test_defaults(void **state)
{
    (void)state;
    dmi_config c = load(NULL);
    assert_int_equal(c.workers, 0);
    assert_int_equal(c.log, DMI_LOG_WARN);
    assert_int_equal(c.transport, DMI_TRANSPORT_AUTO);
    assert_int_equal(c.pretend_hosts, 0);
    assert_true(c.link_gbps == 0 && c.link_latency_us == 0);
    assert_true(c.memory_limit == 0 && c.gemm_workspace == 0);
    assert_int_equal(c.gemm_algorithm, 0);
    assert_true(c.slab == 64 << 20 && c.ring == 1 << 20);
    assert_true(!c.sync && !c.explain && c.pool_debug == (DMI_POOL_DEBUG[0] == '1'));
    assert_true(c.watchdog_s == 120 && c.spin_us == -1);
    assert_string_equal(c.trace, "");
    assert_string_equal(c.fault, "");
    assert_int_equal(c.blas_threads, 1);
    assert_int_equal(c.plan_cache, 4096);
    dmi_config d = load(""), e = load(" , ,");
    assert_memory_equal(&c, &d, sizeof c);
    assert_memory_equal(&c, &e, sizeof c);
}

static void test_every_type(void **state)
{
    (void)state;
    dmi_config c = load("workers=7,log=trace,link_gbps=12.5e1,memory_limit=3G,sync=1,trace=run.json");
    assert_int_equal(c.workers, 7);
    assert_int_equal(c.log, DMI_LOG_TRACE);
    assert_true(c.link_gbps == 125.0 && c.memory_limit == INT64_C(3) << 30 && c.sync);
    assert_string_equal(c.trace, "run.json");
    assert_int_equal(c.plan_cache, 4096); /* the rest as it was */
}

static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"4096", 4096},
                {"4096B", 4096},
                {"64k", 65536},
                {"64K", 65536},
                {"64KB", 65536},
                {"64KiB", 65536},
                {"64kib", 65536},
                {"64M", 64 << 20},
                {"1GiB", 1 << 30},
                {"2T", INT64_C(2) << 40},
                {"0", 0},
                {"'5M'", 5 << 20},
                {"8388607T", INT64_C(8388607) << 40},
                {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"",       "K",    "-1",   "64Q",  "1.5G",     "64 M",
                                      "64MiBi", "64MM", "64iB", "0x10", "8388608T", "9223372036854775808",
                                      "1e3",    "64M B"};
    char text[100];
    for (int i = 0; i < DMI_COUNT(good); i++) {
        snprintf(text, sizeof text, "memory_limit=%s", good[i].text);
        assert_true(load(text).memory_limit == good[i].value);
    }
    for (int i = 0; i < DMI_COUNT(bad); i++) {
        dmi_config c;
        snprintf(text, sizeof text, "memory_limit=%s", bad[i]);
        assert_int_equal(dmi_config_load(&c, text), DM_ERR_CONFIG);
    }
}

static void test_words(void **state)
{
    (void)state;
    static const char *const yes[] = {"1", "true", "TRUE", "yes", "on"}, *const no[] = {"0", "false", "No",
                                                                                        "off"};
    char text[100];
    for (int i = 0; i < DMI_COUNT(yes); i++) {
        snprintf(text, sizeof text, "sync=%s", yes[i]);
        assert_true(load(text).sync);
    }
    for (int i = 0; i < DMI_COUNT(no); i++) {
        snprintf(text, sizeof text, "replicas=%s", no[i]);
        assert_false(load(text).replicas);
    }
    static const char *const algorithms[] = {"auto", "cyclic", "stationary", "contract", "two_block", "panels", "fused", "ring"};
    for (int i = 0; i < DMI_COUNT(algorithms); i++) {
        snprintf(text, sizeof text, "gemm_algorithm=%s", algorithms[i]);
        assert_int_equal(load(text).gemm_algorithm, i);
    }
    static const char *const sums[] = {"auto", "direct", "scatter"};
    for (int i = 0; i < DMI_COUNT(sums); i++) {
        snprintf(text, sizeof text, "reduce_algorithm=%s", sums[i]);
        assert_int_equal(load(text).reduce_algorithm, i);
    }
    assert_int_equal(load("transport=Direct").transport, DMI_TRANSPORT_DIRECT);
    assert_int_equal(load("transport=mpi").transport, DMI_TRANSPORT_MPI);
    assert_int_equal(load("log=error").log, DMI_LOG_ERROR);
    assert_int_equal(load("log=info").log, DMI_LOG_INFO);
    assert_int_equal(load("log=debug").log, DMI_LOG_DEBUG);
}

static void test_option_text(void **state)
{
    (void)state;
    dmi_config c = load(" workers = 3 ,\n trace = 'a:3, then = more' , SPIN_US=-1,");
    assert_int_equal(c.workers, 3);
    assert_true(c.spin_us == -1);
    assert_string_equal(c.trace, "a:3, then = more");
    assert_string_equal(load("trace=' a b '").trace, " a b ");
    assert_string_equal(load("trace= a b ").trace, "a b");
    assert_string_equal(load("trace=").trace, "");
    assert_string_equal(load("trace=''").trace, "");
    assert_string_equal(load("trace=a=b").trace, "a=b");
    char text[DMI_CONFIG_TEXT + 10] = "trace=";
    memset(text + 6, 'x', DMI_CONFIG_TEXT - 1);
    assert_string_equal(load(text).trace, text + 6);
}

static void test_faults(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "compute:1",
                                       "compute:9223372036854775807",
                                       "alloc:0",
                                       "prepare:12",
                                       "prepares:3",
                                       "version",
                                       "malloc:7",
                                       "malloc:7:worker=0",
                                       "write:2:enospc",
                                       "write:2",
                                       "write:1:short",
                                       "death:9:worker=12",
                                       "delay:20261123",
                                       "illegal:9:worker=1"};
    static const char *const bad[] = {"compute",    "compute:",    "compute:x", "compute:-1",
                                      "compute:1x", "compute:1:2", "computer",  "nothing",
                                      "versions",   "version:1",   "alloc: 1",  ":1",
                                      "Compute:1",  "compute:N",   "alloc:9223372036854775808",
                                      "malloc:7:", "malloc:7:worker=", "malloc:7:worker=x", "malloc:7:worker=1:", "malloc:N:worker=1",
                                      "write:enospc", "write:1:full", "write:1:enospc1", "delay"};
    char text[100];
    for (int i = 0; i < DMI_COUNT(good); i++) {
        snprintf(text, sizeof text, "fault='%s'", good[i]);
        assert_string_equal(load(text).fault, good[i]);
    }
    for (int i = 0; i < DMI_COUNT(bad); i++) {
        dmi_config c;
        snprintf(text, sizeof text, "fault='%s'", bad[i]);
        assert_int_equal(dmi_config_load(&c, text), DM_ERR_CONFIG);
        assert_non_null(strstr(dmi_error_text(), "option fault="));
        assert_non_null(strstr(dmi_error_text(), "compute:N"));
    }
}

/* Each mistake, and the words that must be in the text. */
static const struct {
    const char *options, *words[3];
} mistakes[] = {
    {"workers=many", {"workers=many", "a whole number from 0", ""}},
    {"workers=1,sync=1,WORKERS=2", {"option workers", "twice", "workers=2"}},
    {"trace=a,trace=a", {"option trace", "twice", ""}},
    {"fault=comptue:1", {"option fault=comptue:1", "one of", "compute:N"}},
    {"bind=all", {"bind=all", "one of auto", "none"}},
    {"gemm_compute=bf16", {"gemm_compute=bf16", "one of f32", "tf32"}},
    {"workers=-1", {"workers=-1", "a whole number from 0", ""}},
    {"workers=99999999999999999999", {"99999999999999999999", "to 65536", ""}},
    {"workers=3x", {"workers=3x", "a whole number", ""}},
    {"workers=", {"workers=", "a whole number", ""}},
    {"workers=65537", {"workers=65537", "to 65536", ""}},
    {"blas_threads=0", {"blas_threads=0", "from 1", ""}},
    {"workers", {"option workers", "no value", ""}},
    {"workers,sync=1", {"option workers", "no value", ""}},
    {"=3", {"has no name", "", ""}},
    {"worker=3", {"option worker", "unknown", "did you mean workers"}},
    {"gemm_algorthm=cyclic", {"gemm_algorthm", "cyclic", "did you mean gemm_algorithm"}},
    {"watchdog=3", {"option watchdog", "unknown", "did you mean watchdog_s"}},
    {"transport=tcp", {"transport=tcp", "one of auto", "direct|mpi"}},
    {"transport=aut", {"transport=aut", "one of auto", ""}},
    {"transport=autodirect", {"transport=autodirect", "one of", ""}},
    {"transport=auto|direct", {"transport=auto|direct", "one of", ""}},
    {"log=", {"log=", "error|warn|info|debug|trace", ""}},
    {"sync=maybe", {"sync=maybe", "true", ""}},
    {"slab=64Q", {"slab=64Q", "64M", "at least 4K"}},
    {"slab=100", {"slab=100", "at least 4K", ""}},
    {"ring=2G", {"ring=2G", "at most 1G", ""}},
    {"link_gbps=-1", {"link_gbps=-1", "a number from 0", ""}},
    {"link_gbps=nan", {"link_gbps=nan", "a number", ""}},
    {"link_gbps=inf", {"link_gbps=inf", "a number", ""}},
    {"link_gbps=1;5", {"link_gbps=1;5", "a number", ""}},
    {"spin_us=-2", {"spin_us=-2", "from -1", ""}},
    {"trace='abc", {"option trace", "closing '", ""}},
    {"trace='abc' d,sync=1", {"option trace", "follows", ""}},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(mistakes); i++) {
        dmi_config c, untouched;
        memset(&c, 0x5a, sizeof c);
        memset(&untouched, 0x5a, sizeof untouched);
        assert_int_equal(dmi_config_load(&c, mistakes[i].options), DM_ERR_CONFIG);
        assert_memory_equal(&c, &untouched, sizeof c);
        for (int k = 0; k < 3; k++) {
            if (!strstr(dmi_error_text(), mistakes[i].words[k])) {
                fail_msg("%s: %s (wanted: %s)", mistakes[i].options, dmi_error_text(), mistakes[i].words[k]);
            }
        }
    }
    char text[2000] = "trace=";
    dmi_config c;
    memset(text + 6, 'x', DMI_CONFIG_TEXT);
    assert_int_equal(dmi_config_load(&c, text), DM_ERR_CONFIG);
    assert_non_null(strstr(dmi_error_text(), "at most 255 bytes"));
    memset(text, 'k', sizeof text - 2); /* a long key */
    strcpy(text + sizeof text - 3, "=1");
    assert_int_equal(dmi_config_load(&c, text), DM_ERR_CONFIG);
}

static void test_environment(void **state)
{
    (void)state;
    setenv("DMATH_WORKERS", "5", 1);
    setenv("DMATH_SLAB", " 1M ", 1);
    setenv("DMATH_TRACE", "a,b='c'", 1); /* no quotes needed, none taken off */
    setenv("DMATH_RING", "", 1);         /* as if not set */
    setenv("DMATH_WATCHDOG_S", "0.5", 1);
    dmi_config c = load("watchdog_s=7");
    assert_int_equal(c.workers, 5);
    assert_true(c.slab == 1 << 20 && c.ring == 1 << 20 && c.watchdog_s == 7);
    assert_string_equal(c.trace, "a,b='c'");
    setenv("DMATH_FAULT", "later", 1);
    assert_int_equal(dmi_config_load(&c, NULL), DM_ERR_CONFIG);
    assert_non_null(strstr(dmi_error_text(), "DMATH_FAULT=later"));
    unsetenv("DMATH_FAULT");

    setenv("DMATH_GEMM_ALGORITHM", "fast", 1);
    assert_int_equal(dmi_config_load(&c, NULL), DM_ERR_CONFIG);
    assert_non_null(strstr(dmi_error_text(), "DMATH_GEMM_ALGORITHM=fast"));
    assert_non_null(strstr(dmi_error_text(), "auto|cyclic|stationary|contract|two_block|panels|fused|ring"));
    assert_int_equal(c.workers, 5);
    /* an option does not heal it: the user is told all the same */
    assert_int_equal(dmi_config_load(&c, "gemm_algorithm=auto"), DM_ERR_CONFIG);
}

static void test_unknown_variables(void **state)
{
    (void)state;
    setenv("DMATH_WORKRES", "5", 1);
    setenv("DMATH_slab", "1M", 1);
    setenv("DMATH_TEST_SEED", "5", 1);
    setenv("DMATH_CUDA", "ON", 1);
    setenv("DMATH_RING", "1M", 1);
    setenv("DMATHX", "1", 1);
    char text[4000];
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    dmi_config c;
    dm_status status = dmi_config_load(&c, NULL);
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t got = 0;
    for (ssize_t more; (more = read(ends[0], text + got, sizeof text - 1 - (size_t)got)) > 0;) {
        got += more;
    }
    text[got] = 0;
    close(ends[0]);
    unsetenv("DMATHX");
    assert_int_equal(status, DM_OK);
    assert_int_equal(c.workers, 0);
    assert_true(c.slab == 64 << 20);
    assert_non_null(
        strstr(text, "dmath warn: the environment variable DMATH_WORKRES is unknown; did you mean DMATH_WORKERS?"));
    assert_non_null(strstr(text, "DMATH_slab is unknown; did you mean DMATH_SLAB?"));
    assert_null(strstr(text, "SEED"));
    assert_null(strstr(text, "CUDA"));
    assert_null(strstr(text, "RING"));
    assert_null(strstr(text, "DMATHX"));
}

/* The decimal point is one also where the program's locale has a comma. */
static void test_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "de_DE"};
    bool found = false;
    for (int i = 0; i < DMI_COUNT(names) && !found; i++) {
        found = setlocale(LC_ALL, names[i]) != NULL;
    }
    if (!found) {
        skip();
    }
    assert_true(load("link_gbps=2.5").link_gbps == 2.5);
    setlocale(LC_ALL, "C");
}

/* What print writes: a line a setting, and its values can be given back as options. */
static void test_print(void **state)
{
    (void)state;
    dmi_config c =
        load("workers=9,slab=96K,link_gbps=0.25,sync=yes,log=debug,trace='my, file',gemm_algorithm=two_block,"
             "memory_limit=5000,spin_us=100");
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    assert_non_null(file);
    dmi_config_print(&c, file);
    fclose(file);
    char options[4000] = "", *rest = NULL;
    int lines = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char key[40], value[300];
        lines++;
        assert_int_equal(sscanf(line, "%39s", key), 1);
        assert_non_null(strstr(line, "default "));
        if (strcmp(key, "trace") == 0) {
            assert_non_null(strstr(line, "my, file"));
            strcat(options, "trace='my, file',");
        } else {
            assert_int_equal(sscanf(line, "%*s %299s", value), 1);
            snprintf(options + strlen(options), sizeof options - strlen(options), "%s=%s,", key, value);
        }
    }
    free(text);
#define ONE(...) +1
    assert_int_equal(lines, 0 DMI_CONFIG_MAP(ONE, ONE, ONE, ONE, ONE, ONE)); /* a line a row */
#undef ONE
    assert_non_null(strstr(options, "slab=96K,"));
    assert_non_null(strstr(options, "memory_limit=5000,"));
    assert_non_null(strstr(options, "gemm_algorithm=two_block,"));
    dmi_config d = load(options);
    assert_memory_equal(&c, &d, sizeof c);
}

/* Options that were cut and changed at random are read or refused, never more. */
static void test_any_text(void **state)
{
    (void)state;
    const char *good = "workers=3,slab=64M,trace='a,b',sync=on,link_gbps=1.5,log=warn";
    uint64_t random = 5;
    int taken = 0;
    for (int i = 0; i < 100000; i++) {
        char *text = strdup(good);
        for (int k = 0; k < 1 + i % 4; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[(random >> 33) % strlen(good)] = "',= 9kM\0x-\n"[(random >> 50) % 11];
        }
        dmi_config c;
        dm_status status = dmi_config_load(&c, text);
        assert_true(status == DM_OK || status == DM_ERR_CONFIG);
        taken += status == DM_OK;
        free(text);
    }
    assert_in_range(taken, 1000, 99000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_defaults, clean),    cmocka_unit_test_setup(test_every_type, clean),
        cmocka_unit_test_setup(test_bytes, clean),       cmocka_unit_test_setup(test_words, clean),
        cmocka_unit_test_setup(test_option_text, clean), cmocka_unit_test_setup(test_mistakes, clean),
        cmocka_unit_test_setup(test_environment, clean), cmocka_unit_test_setup(test_unknown_variables, clean),
        cmocka_unit_test_setup(test_locale, clean),      cmocka_unit_test_setup(test_print, clean),
        cmocka_unit_test_setup(test_any_text, clean),    cmocka_unit_test_setup(test_faults, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
