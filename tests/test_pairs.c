/* How workers that are threads try the memory of one another's GPUs when a session starts. The GPUs are host
 * memory here, so that each call of a device can fail, and a copy can do wrong, which drivers do. */
#include "launch/pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 3, ROOM = 1 << 16 };

static struct {
    int calls, fails; /* the number of the call that fails; 0: none */
    int wrong;        /* the device whose copies change a byte; -1: none */
    int current, connected[WORKERS], disconnected[WORKERS], rings;
} gpus;

static dm_status called(const char *what)
{
    return ++gpus.calls == gpus.fails ? dmi_fail(DM_ERR_INTERNAL, "%s fails", what) : DM_OK;
}

static dm_status use(int device)
{
    gpus.current = device;
    return called("use");
}

static dm_status connect_to(dmi_engine *e, int number, dmi_engine *peer)
{
    assert_int_equal(number, peer->config.me);
    gpus.connected[e->config.me]++;
    return called("connect");
}

static void disconnect(dmi_engine *e)
{
    gpus.disconnected[e->config.me]++;
}

static dm_status move(void *to, const void *from, int64_t bytes)
{
    memcpy(to, from, (size_t)bytes);
    return called("move");
}

static dm_status carry(dmi_engine *e, void *to, const void *from, int64_t bytes, int times, double *seconds)
{
    assert_int_equal(gpus.current, e->config.device_number);
    memcpy(to, from, (size_t)bytes);
    ((char *)to)[bytes / 2] ^= e->config.device_number == gpus.wrong;
    *seconds = 1e-3 * times;
    return called("carry");
}

static int count(void)
{
    return WORKERS;
}

static dm_status rates(dmi_engine *e, dmi_rates *out)
{
    (void)e;
    *out = (dmi_rates){.memory = 1.1e12};
    return called("rates");
}

static dm_status bare_ring(int number, int64_t bytes, int times, double *seconds)
{
    assert_int_equal(number, gpus.rings > 0 ? 2 : WORKERS);
    gpus.rings++;
    *seconds = (double)bytes * times * 1e-11;
    return called("bare_ring");
}

static const dmi_device device = {.use = use,
                                  .connect = connect_to,
                                  .disconnect = disconnect,
                                  .put = move,
                                  .get = move,
                                  .carry = carry,
                                  .count = count,
                                  .rates = rates,
                                  .bare_ring = bare_ring};
static dmi_engine *engine[WORKERS];

static dmi_pool *make_pool(int64_t limit)
{
    dmi_pool_config config = {.ops = dmi_slab_ops_anonymous(),
                              .slab_bytes = ROOM,
                              .limit_bytes = limit,
                              .align = 256,
                              .redzone = 256};
    dmi_pool *pool = NULL;
    assert_int_equal(dmi_pool_create(&config, &pool), DM_OK);
    return pool;
}

/* limit: of worker 1's memory; 0: none. */
static void begin(int fails, int64_t limit)
{
    memset(&gpus, 0, sizeof gpus);
    gpus.fails = fails;
    gpus.wrong = -1;
    for (int w = 0; w < WORKERS; w++) {
        engine[w] = calloc(1, sizeof *engine[w]);
        assert_non_null(engine[w]);
        engine[w]->config.me = engine[w]->config.device_number = w;
        engine[w]->config.pool = make_pool(w == 1 ? limit : 0);
    }
}

/* Nothing is left of the tries. A failure leaves nobody connected. */
static void end(dm_status status, int connected)
{
    int all = 0;
    for (int w = 0; w < WORKERS; w++) {
        dmi_pool_stats stats;
        dmi_pool_stats_get(engine[w]->config.pool, &stats);
        assert_int_equal(stats.live_allocations[DMI_OWNER_STAGING], 0);
        assert_int_equal(gpus.disconnected[w], status != DM_OK);
        all += gpus.connected[w];
        dmi_pool_destroy(engine[w]->config.pool);
        free(engine[w]);
    }
    assert_true(connected < 0 || all == connected);
}

static void test_all_pairs(void **state)
{
    static const int hosts[WORKERS] = {0, 0, 1};
    (void)state;
    begin(0, 0);
    dm_status status = dmi_pairs_connect(&device, engine, WORKERS, NULL);
    assert_int_equal(status, DM_OK);
    end(status, WORKERS * (WORKERS - 1));
    begin(0, 0);
    status = dmi_pairs_connect(&device, engine, WORKERS, hosts);
    assert_int_equal(status, DM_OK);
    end(status, 2); /* 0 and 1, both ways */
}

/* Whichever call fails, its text comes back. Giving memory back goes on without the device: two calls a pair.
 */
static void test_calls_that_fail(void **state)
{
    int passed = 0;
    (void)state;
    begin(0, 0);
    end(dmi_pairs_connect(&device, engine, WORKERS, NULL), WORKERS * (WORKERS - 1));
    for (int k = 1, calls = gpus.calls; k <= calls; k++) {
        begin(k, 0);
        dm_status status = dmi_pairs_connect(&device, engine, WORKERS, NULL);
        passed += status == DM_OK;
        assert_true(status == DM_OK || (status == DM_ERR_INTERNAL && strstr(dmi_error_text(), " fails")));
        end(status, -1);
    }
    assert_int_equal(passed, 2 * WORKERS * (WORKERS - 1));
}

static void test_bytes_that_are_wrong(void **state)
{
    (void)state;
    for (int from = 0; from < WORKERS; from++) {
        char text[80];
        begin(0, 0);
        gpus.wrong = from;
        snprintf(text, sizeof text, "bytes from GPU %d to GPU %d come out wrong", from, from == 0);
        dm_status status = dmi_pairs_connect(&device, engine, WORKERS, NULL);
        assert_int_equal(status, DM_ERR_TRANSPORT);
        assert_non_null(strstr(dmi_error_text(), text));
        end(status, -1);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    begin(0, 256);
    dm_status status = dmi_pairs_connect(&device, engine, WORKERS, NULL);
    assert_int_equal(status, DM_ERR_LIMIT);
    end(status, 1); /* 0 to 1 is the first pair */
}

static void test_rates(void **state)
{
    dmi_rates r = {.link = 7};
    (void)state;
    begin(0, 0);
    assert_int_equal(dmi_pairs_rates(&device, engine, 1, &r), DM_OK);
    assert_true(r.link == 0 && r.memory == 0 && gpus.calls == 0); /* nothing to choose */
    assert_int_equal(dmi_pairs_rates(&device, engine, WORKERS, &r), DM_OK);
    assert_true(r.memory > 0.9e12 && r.memory < 1.3e12 && r.link > 0);
    assert_int_equal(dmi_pairs_rates(&device, engine, 2, &r), DM_OK);
    assert_int_equal(gpus.rings, 2);
    gpus.fails = gpus.calls + 1;
    assert_int_equal(dmi_pairs_rates(&device, engine, WORKERS, &r), DM_ERR_INTERNAL);
    assert_non_null(strstr(dmi_error_text(), "rates fails"));
    gpus.fails = gpus.calls + 2;
    assert_int_equal(dmi_pairs_rates(&device, engine, 2, &r), DM_ERR_INTERNAL);
    assert_non_null(strstr(dmi_error_text(), "bare_ring fails"));
    end(DM_OK, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_pairs), cmocka_unit_test(test_calls_that_fail),
                                       cmocka_unit_test(test_bytes_that_are_wrong),
                                       cmocka_unit_test(test_no_memory), cmocka_unit_test(test_rates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
