/* The pool on real memory: red zones, and the slabs of a host. */
#include "memory/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void test_redzones(void **state)
{
    (void)state;
    dmi_pool_config config = {
        .ops = dmi_slab_ops_anonymous(), .slab_bytes = 1 << 20, .align = 64, .redzone = 128};
    dmi_pool *pool;
    assert_int_equal(dmi_pool_create(&config, &pool), DM_OK);
    dmi_log_set_level(DMI_LOG_ERROR);
    static const int at[] = {-128, -1, 0, 99, 100, 127, 128, 255}; /* of a block of 100 bytes */
    dmi_allocation around[2], block;
    assert_int_equal(dmi_pool_alloc(pool, 1, 0, &around[0]), DM_OK);
    assert_int_equal(dmi_pool_alloc(pool, 100, DMI_OWNER_STAGING, &block), DM_OK);
    assert_int_equal(dmi_pool_alloc(pool, 1, 0, &around[1]), DM_OK);
    for (int i = 0; i < DMI_COUNT(at); i++) {
        bool inside = at[i] >= 0 && at[i] < 100;
        ((char *)block.base)[at[i]] ^= 1;
        assert_int_equal(dmi_pool_free(pool, &block, NULL), inside ? DM_OK : DM_ERR_INTERNAL);
        if (!inside) {
            assert_non_null(strstr(dmi_error_text(), at[i] < 0
                                                         ? "zone before an allocation of 100 bytes (staging"
                                                         : "zone after an allocation of 100 bytes (staging"));
        }
        void *base = block.base; /* freed all the same, and clean when handed out again */
        assert_int_equal(dmi_pool_alloc(pool, 100, DMI_OWNER_STAGING, &block), DM_OK);
        assert_ptr_equal(block.base, base);
        memset(block.base, 0, 100);
    }
    assert_int_equal(dmi_pool_free(pool, &block, NULL), DM_OK);
    assert_int_equal(dmi_pool_free(pool, &around[0], NULL), DM_OK);
    assert_int_equal(dmi_pool_free(pool, &around[1], NULL), DM_OK);
    dmi_log_set_level(DMI_LOG_WARN);
    dmi_pool_destroy(pool);
}

/* KiB of address space of this process. */
static long address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages * 4;
}

static void test_host_slabs(void **state)
{
    (void)state;
    static const int64_t sizes[] = {64, 4096, 5000, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 7 << 20, 64 << 20};
    dmi_slab_ops ops = dmi_slab_ops_anonymous();
    int grown = 0;
    for (int round = 0; round < 20; round++) {
        long before = address_space();
        char *slab[DMI_COUNT(sizes)];
        for (int i = 0; i < DMI_COUNT(sizes); i++) {
            slab[i] = ops.get(ops.context, i, sizes[i]);
            assert_non_null(slab[i]);
            assert_int_equal((uintptr_t)slab[i] % (sizes[i] >= 2 << 20 ? 2 << 20 : 4096), 0);
            assert_int_equal(slab[i][0] | slab[i][sizes[i] / 2] | slab[i][sizes[i] - 1], 0);
            slab[i][0] = slab[i][sizes[i] - 1] = 1;
        }
        for (int i = 0; i < DMI_COUNT(sizes); i++) {
            ops.give_back(ops.context, i, slab[i], sizes[i]);
        }
        grown += address_space() > before;
    }
    assert_in_range(grown, 0, 5); /* libraries may have taken something meanwhile, but not in every round */
    assert_null(ops.get(ops.context, 0, INT64_MAX));
    assert_null(ops.get(ops.context, 0, INT64_MAX / 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redzones),
        cmocka_unit_test(test_host_slabs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
