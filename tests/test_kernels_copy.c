/* Copies over products of runs, all pairs of types, against one element at a time. */
#include "copy_cases.h"
#include "kernels/direct.h"

static void naive(const dmi_copy *d, int dim, int64_t a, int64_t b, const char *src, char *dst)
{
    if (dim == d->ndim) {
        const char *from = src + a * width_of(d->src_dtype);
        char *to = dst + b * width_of(d->dst_dtype);
        if (d->src_dtype == d->dst_dtype) {
            memcpy(to, from, (size_t)width_of(d->src_dtype));
        } else {
            convert_one(d->src_dtype, from, d->dst_dtype, to);
        }
        return;
    }
    for (int64_t r = 0; r < d->nrun[dim]; r++) {
        const dmi_run *run = &d->run[dim][r];
        for (int64_t i = 0; i < run->len; i++) {
            naive(d, dim + 1, a + (run->a + i) * d->src_stride[dim], b + (run->b + i) * d->dst_stride[dim], src,
                  dst);
        }
    }
}

static void check_copy(rng *r, geometry *g, dm_dtype from, dm_dtype to)
{
    size_t bytes = (size_t)(g->dst_span * width_of(to));
    g->d.src_dtype = from;
    g->d.dst_dtype = to;
    char *src = random_array(r, from, g->src_span), *dst = random_array(r, to, g->dst_span),
         *expected = malloc(bytes);
    assert_non_null(expected);
    memcpy(expected, dst, bytes);
    naive(&g->d, 0, g->d.src_offset, g->d.dst_offset, src, expected);
    dmi_run_copy(dmi_backend_cpu(), NULL, &g->d, src, dst);
    check_same("copy", to, dst, expected, g->dst_span);
    free(src);
    free(dst);
    free(expected);
}

static void test_all_pairs(void **state)
{
    (void)state;
    rng r = {1};
    for (int round = 0; round < 40; round++) {
        for (int ndim = 0; ndim <= 4; ndim++) {
            geometry g;
            int64_t longest = ndim <= 1 ? 2000 : ndim == 2 ? 40 : 5;
            make_geometry(&r, ndim, longest, &g);
            for (int pair = 0; pair < ALL_DTYPES * ALL_DTYPES; pair++) {
                check_copy(&r, &g, all_dtypes[pair / ALL_DTYPES], all_dtypes[pair % ALL_DTYPES]);
                pair += round % 20 == 0 ? 0 : (int)rng_in(&r, 0, 30);
            }
            free_geometry(&g);
        }
    }
}

static void test_eight_dims(void **state)
{
    (void)state;
    rng r = {2};
    for (int round = 0; round < 6; round++) {
        geometry g;
        do {
            make_geometry(&r, 8, 2, &g);
            if (g.d.count > 0 && g.d.count < 20000 && g.src_span < 1000000 && g.dst_span < 1000000) {
                break;
            }
            free_geometry(&g);
        } while (true);
        check_copy(&r, &g, DM_F32, DM_F32);
        check_copy(&r, &g, DM_I64, DM_BF16);
        free_geometry(&g);
    }
}

/* Whole matrices, transposed or not, around the sizes of tiles and chunks. */
static void test_matrices(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 64, 127, 128, 129, 300};
    rng r = {3};
    for (int i = 0; i < DMI_COUNT(sizes); i++) {
        for (int j = 0; j < DMI_COUNT(sizes); j++) {
            for (int form = 0; form < 4; form++) {
                geometry g;
                make_matrix(0, sizes[i], sizes[j], form, 0, &g);
                dm_dtype t = all_dtypes[(i + j + form) % ALL_DTYPES];
                check_copy(&r, &g, t, t);
                check_copy(&r, &g, t, all_dtypes[(i * 3 + j) % ALL_DTYPES]);
                free_geometry(&g);
            }
        }
    }
}

/* Large enough to be written past the caches, from any address. */
static void test_large_transposes(void **state)
{
    (void)state;
    static const int64_t shape[][3] = {
        {1100, 1100, DM_F32}, {2051, 515, DM_I64}, {2100, 2113, DM_U8}, {65, 40000, DM_BF16}};
    rng r = {6};
    for (int i = 0; i < DMI_COUNT(shape); i++) {
        int64_t rows = shape[i][0], cols = shape[i][1], bytes = width_of((dm_dtype)shape[i][2]);
        for (int64_t offset = 0; offset < 3; offset++) {
            dmi_run run[2] = {{0, 0, 0, rows}, {0, 0, 0, cols}};
            dmi_copy d = {.ndim = 2, .nrun = {1, 1}, .run = {&run[0], &run[1]}, .count = rows * cols};
            d.src_dtype = d.dst_dtype = (dm_dtype)shape[i][2];
            d.src_stride[0] = cols;
            d.src_stride[1] = 1;
            d.dst_stride[0] = 1;
            d.dst_stride[1] = rows + offset;
            d.dst_offset = offset;
            int64_t span = offset + cols * (rows + offset);
            char *src = malloc((size_t)(rows * cols * bytes)), *dst = calloc((size_t)span, (size_t)bytes);
            char *expected = calloc((size_t)span, (size_t)bytes);
            assert_true(src != NULL && dst != NULL && expected != NULL);
            for (int64_t k = 0; k + 8 <= rows * cols * bytes; k += 8) {
                uint64_t bits = rng_next(&r);
                memcpy(src + k, &bits, 8);
            }
            memset(src + rows * cols * bytes / 8 * 8, 7, (size_t)(rows * cols * bytes % 8));
            naive(&d, 0, 0, offset, src, expected);
            dmi_run_copy(dmi_backend_cpu(), NULL, &d, src, dst);
            assert_memory_equal(dst, expected, (size_t)(span * bytes));
            free(src);
            free(dst);
            free(expected);
        }
    }
}

static void test_many_short_runs(void **state)
{
    (void)state;
    rng r = {4};
    for (int round = 0; round < 20; round++) {
        geometry g;
        make_short_runs(&r, 200, 200, 1, 0, &g);
        check_copy(&r, &g, DM_F32, DM_F32);
        check_copy(&r, &g, DM_F16, DM_F64);
        free_geometry(&g);
    }
}

static void test_pack_unpack(void **state)
{
    (void)state;
    rng r = {5};
    for (int round = 0; round < 200; round++) {
        geometry g;
        dmi_arena arena = {0};
        dmi_copy packed, unpacked;
        make_geometry(&r, (int)rng_in(&r, 0, 4), 5, &g);
        g.d.src_dtype = g.d.dst_dtype = DM_I32;
        assert_true(dmi_copy_pack(&g.d, &packed, &arena));
        assert_true(dmi_copy_unpack(&g.d, &unpacked, &arena));
        size_t bytes = (size_t)g.dst_span * 4;
        char *src = random_array(&r, DM_I32, g.src_span), *dst = random_array(&r, DM_I32, g.dst_span);
        char *expected = malloc(bytes), *message = malloc((size_t)g.d.count * 4 + 1);
        assert_true(expected != NULL && message != NULL);
        memcpy(expected, dst, bytes);
        naive(&g.d, 0, g.d.src_offset, g.d.dst_offset, src, expected);
        dmi_run_copy(dmi_backend_cpu(), NULL, &packed, src, message);
        dmi_run_copy(dmi_backend_cpu(), NULL, &unpacked, message, dst);
        check_same("unpacked", DM_I32, dst, expected, g.dst_span);
        assert_int_equal(packed.dst_offset, 0);
        free(src);
        free(dst);
        free(expected);
        free(message);
        dmi_arena_free(&arena);
        free_geometry(&g);
    }
}

/* The message is in row-major order of the dims. */
static void test_pack_order(void **state)
{
    (void)state;
    dmi_arena arena = {0};
    dmi_run rows[2] = {{0, 0, 9, 1}, {0, 2, 3, 1}}, cols[1] = {{0, 1, 0, 2}};
    dmi_copy packed, d = {.ndim = 2,
                          .src_dtype = DM_I32,
                          .dst_dtype = DM_I32,
                          .nrun = {2, 1},
                          .run = {rows, cols},
                          .src_stride = {1, 3},
                          .dst_stride = {7, 2},
                          .count = 4};
    const int32_t src[9] = {0,  10, 20, 1, 11,
                            21, 2,  12, 22}; /* element (i, j) of a 3x3 stored by columns: 10i + j */
    int32_t message[4];
    assert_true(dmi_copy_pack(&d, &packed, &arena));
    dmi_run_copy(dmi_backend_cpu(), NULL, &packed, src, message);
    const int32_t expected[4] = {1, 2, 21, 22};
    assert_memory_equal(message, expected, sizeof expected);
    dmi_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_pairs),       cmocka_unit_test(test_eight_dims),
        cmocka_unit_test(test_matrices),        cmocka_unit_test(test_large_transposes),
        cmocka_unit_test(test_many_short_runs), cmocka_unit_test(test_pack_unpack),
        cmocka_unit_test(test_pack_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
