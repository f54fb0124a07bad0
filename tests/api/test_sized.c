/* Structures of older and newer headers. */
#include "base/sized.h"
#include "support/cases.h"

#include <stdlib.h>
#include <string.h>

typedef struct thing {
    size_t size;
    int64_t first, second, third; /* the first version ended with `first` */
} thing;

static thing *given(size_t size, size_t memory)
{
    thing *t = malloc(memory); /* its end is where a sanitizer sees it */
    assert_non_null(t);
    memset(t, 0, memory);
    memcpy(t, &size, sizeof size);
    return t;
}

static void test_inputs(void **state)
{
    (void)state;
    const size_t least = DMI_SIZED_LEAST(thing, first);
    thing known;
    for (size_t size = 0; size <= 2 * sizeof known; size++) {
        thing *t = given(size, DMI_MAX(size, sizeof(size_t)));
        for (size_t i = sizeof(size_t); i < size && i < sizeof known; i++) {
            ((char *)t)[i] = (char)(i + 1);
        }
        memset(&known, 0x55, sizeof known);
        dm_status status = dmi_sized_take(t, least, &known, sizeof known, "t: start anew");
        assert_int_equal(status, size < least ? DM_ERR_ARG : DM_OK);
        for (size_t i = sizeof(size_t); i < sizeof known && status == DM_OK; i++) {
            assert_int_equal(((char *)&known)[i], i < size ? (char)(i + 1) : 0);
        }
        if (size > sizeof known) { /* something that is not known, and not zero */
            ((char *)t)[size - 1] = 1;
            assert_int_equal(dmi_sized_take(t, least, &known, sizeof known, "t: start anew"), DM_ERR_ARG);
            assert_non_null(strstr(dm_error_message(), "t: start anew"));
        }
        free(t);
    }
    thing *t = given(DMI_SIZED_MOST + 1, sizeof *t);
    assert_int_equal(dmi_sized_take(t, least, &known, sizeof known, "t"), DM_ERR_ARG);
    assert_non_null(strstr(dm_error_message(), "its size is 4097, not 16 to 4096"));
    free(t);
}

static void test_outputs(void **state)
{
    (void)state;
    thing known;
    memset(&known, 0x66, sizeof known);
    for (size_t size = DMI_SIZED_LEAST(thing, first); size <= 2 * sizeof known; size++) {
        thing *t = given(size, size);
        memset((char *)t + sizeof(size_t), 0x77, size - sizeof(size_t));
        assert_int_equal(dmi_sized_check(t, DMI_SIZED_LEAST(thing, first), "t"), DM_OK);
        dmi_sized_give(&known, sizeof known, t);
        assert_true(t->size == size);
        for (size_t i = sizeof(size_t); i < size; i++) {
            assert_int_equal(((char *)t)[i], i < sizeof known ? 0x66 : 0);
        }
        free(t);
    }
}

/* A newer header's structures, as the public calls take them. */
#define NEWER(type)                                                                                            \
    struct {                                                                                                   \
        type known;                                                                                            \
        int64_t unknown;                                                                                       \
    }

static void test_calls(void **state)
{
    (void)state;
    if (dmt_launched()) {
        skip();
    }
    dm_session *s = NULL;
    dm_array a;
    const int64_t shape[] = {3, 3};
    NEWER(dm_config) config = {.known = DM_CONFIG_INIT};
    config.known.size = sizeof config;
    config.known.workers = 2;
    config.unknown = 1;
    assert_int_equal(dm_init(&config.known, &s), DM_ERR_ARG);
    assert_ptr_equal(strstr(dm_error_message(), "init: "), dm_error_message());
    config.unknown = 0;
    assert_int_equal(dm_init(&config.known, &s), DM_OK);
    NEWER(dm_layout) layout = {.known = dm_layout_cols(s), .unknown = 1};
    layout.known.size = sizeof layout;
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &layout.known, &a), DM_ERR_ARG);
    layout.unknown = 0;
    assert_int_equal(dm_array_create(s, DM_F32, 2, shape, &layout.known, &a), DM_OK);
    NEWER(dm_array_info) info = {.known.size = sizeof info, .unknown = 1};
    assert_int_equal(dm_array_query(s, a, &info.known), DM_OK);
    assert_true(info.known.size == sizeof info && info.known.grid[1] == 2 && info.unknown == 0);
    NEWER(dm_gemm_options) options = {.known.size = sizeof options, .unknown = 1};
    assert_int_equal(dm_fill(s, a, 1), DM_OK);
    assert_int_equal(dm_gemm_with(s, DM_N, DM_N, 1, a, a, 0, a, &options.known), DM_ERR_ARG);
    assert_non_null(strstr(dm_error_message(), "gemm_with"));
    NEWER(dm_counters) counters = {.known.size = sizeof counters, .unknown = 1};
    assert_int_equal(dm_counters_get(s, 0, &counters.known), DM_OK);
    assert_true(counters.known.commands > 0 && counters.unknown == 0);
    NEWER(dm_memory) memory = {.known.size = sizeof memory, .unknown = 1};
    assert_int_equal(dm_memory_report(s, 0, &memory.known), DM_OK);
    assert_true(memory.known.arrays > 0 && memory.unknown == 0);
    memory.known.size = 0;
    assert_int_equal(dm_memory_report(s, 0, &memory.known), DM_ERR_ARG);
    assert_int_equal(dm_array_destroy(s, a), DM_OK);
    assert_int_equal(dm_finalize(s, NULL), DM_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
