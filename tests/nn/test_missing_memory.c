/* Nets, solvers and files of data whose N-th allocation fails, for every N: the call says DM_ERR_NOMEM, for
 * what and how many bytes were asked for, and works when it is made again. The linker sends the program's
 * allocations through here; those of other libraries go their own way. */
#include "net_case.h"

#include <unistd.h>

static _Thread_local long countdown; /* of this thread; 0: nothing fails */
static _Thread_local bool failed;

static bool fails(void)
{
    bool now = countdown > 0 && --countdown == 0;
    failed = failed || now;
    return now;
}

#define WRAPPED(type, name, parameters, arguments)                                                             \
    type __real_##name parameters;                                                                             \
    type __wrap_##name parameters;                                                                             \
    type __wrap_##name parameters                                                                              \
    {                                                                                                          \
        return fails() ? NULL : __real_##name arguments;                                                       \
    }
WRAPPED(void *, malloc, (size_t bytes), (bytes))
WRAPPED(void *, calloc, (size_t count, size_t bytes), (count, bytes))
WRAPPED(void *, realloc, (void *at, size_t bytes), (at, bytes))
WRAPPED(char *, strdup, (const char *text), (text))
WRAPPED(FILE *, open_memstream, (char **text, size_t *bytes), (text, bytes))

static const char net_text[] = "name: 'small'\n" INPUTS CONV("c", "data", "num_output: 4 kernel_size: 3")
    SIMPLE("p", "Pooling", "c", "p", "pooling_param { pool: MAX kernel_size: 2 stride: 2 }")
        SIMPLE("r", "ReLU", "p", "p", "") IP("i", "p", "5") LOSS("i");
static const char solver_text[] =
    "net: 'net.prototxt' test_iter: 1 test_interval: 2 base_lr: 0.1 momentum: 0.9 lr_policy: 'fixed' "
    "max_iter: 4 snapshot_prefix: 'kept'\n";
static dm_net *net; /* for those below that look at one */

static dm_status open_and_close(void)
{
    dm_net *made = NULL;
    dm_status status = dm_net_open(session, "net.prototxt", NULL, &made);
    return status == DM_OK ? dm_net_close(made) : status;
}

static dm_status solve(void)
{
    dm_solver *made = NULL;
    dm_status status = dm_solver_open(session, "solver.prototxt", NULL, &made);
    if (status == DM_OK) {
        status = dm_solver_step(made, 1);
        status = status == DM_OK ? dm_solver_snapshot(made) : status;
        dm_status end = dm_solver_close(made);
        status = status == DM_OK ? end : status;
    }
    return status;
}

static dm_status make_by_calls(void)
{
    dm_prototxt *p = NULL;
    dm_status status = dm_prototxt_create("NetParameter", &p);
    status = status == DM_OK ? dm_prototxt_layer(p, "InnerProduct", "i", "data", "i") : status;
    status = status == DM_OK ? dm_prototxt_number(p, "i", "inner_product_param.num_output", 3) : status;
    dm_status end = dm_prototxt_destroy(p);
    return status == DM_OK ? end : status;
}

static dm_status text_of(dm_status (*call)(const dm_net *, char **))
{
    char *text = NULL;
    dm_status status = call(net, &text);
    free(text);
    return status;
}

static dm_status explain(const dm_net *of, char **text)
{
    return dm_net_explain_at((dm_net *)(uintptr_t)of, 1e9, 1e9, text);
}

static dm_status measure(const dm_net *of, char **text)
{
    return dm_net_time((dm_net *)(uintptr_t)of, 1, text);
}

static dm_status show_net(void)
{
    return text_of(dm_net_show);
}

static dm_status explain_net(void)
{
    return text_of(explain);
}

static dm_status time_net(void)
{
    return text_of(measure);
}

static dm_status save_and_load(void)
{
    dm_status status = dm_net_save(net, "weights.caffemodel");
    return status == DM_OK ? dm_net_load(net, "weights.caffemodel") : status;
}

static const struct {
    const char *name;
    dm_status (*run)(void);
} tasks[] = {{"a net", open_and_close},        {"a solver", solve},
             {"a message", make_by_calls},     {"a net shown", show_net},
             {"a net explained", explain_net}, {"a net timed", time_net},
             {"weights", save_and_load}};

static void test_every_allocation(void **state)
{
    (void)state;
    write_file("net.prototxt", net_text);
    write_file("solver.prototxt", solver_text);
    CHECK(dm_net_open(session, "net.prototxt", NULL, &net));
    write_random(net, "data", false, 0);
    write_random(net, "label", true, 5);
    for (int t = 0; t < COUNT(tasks); t++) {
        int said = 0;
        long n = 1;
        CHECK(tasks[t].run());
        for (bool met = true; met; n++) {
            failed = false;
            countdown = n;
            dm_status status = tasks[t].run();
            countdown = 0;
            met = failed;
            if (status != DM_OK &&
                (status != DM_ERR_NOMEM || !strstr(dm_error_message(), " bytes were asked for, "))) {
                fail_msg("%s, allocation %ld: %s: %s", tasks[t].name, n, dm_status_name(status),
                         dm_error_message());
            }
            assert_true(met || status == DM_OK);
            said += status != DM_OK;
        }
        CHECK(tasks[t].run());
        print_message("%s: %ld allocations, %d errors\n", tasks[t].name, n - 2, said);
        assert_true(said > 0);
    }
    CHECK(dm_net_close(net));
}

static void test_text(void **state)
{
    (void)state;
    assert_int_equal(dm_error_no_memory("an image", 12345), DM_ERR_NOMEM);
    assert_non_null(strstr(dm_error_message(), "no memory for an image; 12345 bytes were asked for, "));
    assert_non_null(strstr(dm_error_message(), " are free, this process has "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_text), cmocka_unit_test(test_every_allocation)};
    worker_count = 2;
    return cmocka_run_group_tests(tests, begin, end);
}
