/* one_hot, meshgrid, diagonals, compress, repeat against loops over indices */
#include "support/cases.h"

#include <dmath/index.h>
#include <string.h>

static dmt_host *random_host(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dmt_host *h = dmt_host_make(&c->scratch, dtype, ndim, shape);
    dmt_host_random(h, &c->random, DMT_ODD);
    return h;
}

static void one_hot_case(dmt_case *c)
{
    static const dm_dtype types[] = {DM_I64, DM_I32, DM_U8, DM_I8, DM_U32, DM_U64};
    int64_t shape[DM_MAX_DIMS], classes = dmt_int(&c->random, 0, 12);
    int ndim = (int)dmt_int(&c->random, 0, 2);
    dmt_shape_random(c, ndim, 200, shape);
    shape[ndim] = classes;
    dmt_host *h = dmt_host_make(&c->scratch, types[dmt_int(&c->random, 0, 5)], ndim, shape);
    dmt_host *want = dmt_host_make(&c->scratch, dmt_ewise_random(c), ndim + 1, shape);
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = (long double)dmt_int(&c->random, 0, 13);
        for (int64_t k = 0; k < classes; k++) {
            want->v[i * classes + k] = (long double)k == h->v[i];
        }
    }
    dmt_operand *indices = dmt_operand_make(c, "indices", h, 0),
                *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    if (!out->unset) {
        DMT_OK(c, dm_fill(c->session, out->array, 1));
    }
    DMT_OK(c, dm_one_hot(c->session, indices->array, out->array));
    dmt_operand_check_same(c, out, want);
    dmt_operand_unchanged(c, indices);
}

static void meshgrid_case(dmt_case *c)
{
    enum { MOST = 3 };
    int count = (int)dmt_int(&c->random, 1, MOST);
    int64_t shape[DM_MAX_DIMS], index[DM_MAX_DIMS];
    dm_array in[MOST], out[MOST];
    dmt_operand *outs[MOST];
    dmt_host *h[MOST], *want[MOST];
    dmt_shape_random(c, count, 2000, shape);
    for (int i = 0; i < count; i++) {
        h[i] = random_host(c, dmt_dtype_random(c), 1, &shape[i]);
        want[i] = dmt_host_make(&c->scratch, h[i]->dtype, count, shape);
        memset(index, 0, sizeof index);
        for (int64_t k = 0; k < want[i]->count; k++) {
            want[i]->v[k] = h[i]->v[index[i]];
            dmt_next(count, shape, index);
        }
        in[i] = dmt_operand_make(c, "array", h[i], 0)->array;
        outs[i] = dmt_operand_make(c, "out", want[i], DMT_UNSET);
        out[i] = outs[i]->array;
        if (!outs[i]->unset) {
            DMT_OK(c, dm_fill(c->session, out[i], 0));
        }
    }
    DMT_OK(c, dm_meshgrid(c->session, count, in, out));
    for (int i = 0; i < count; i++) {
        dmt_operand_check_same(c, outs[i], want[i]);
    }
}

static void diagonal_case(dmt_case *c)
{
    int64_t shape[2], offset, count = 0;
    dmt_shape_random(c, 2, 2000, shape);
    offset = dmt_int(&c->random, -shape[0] - 1, shape[1] + 1);
    dmt_host *h = random_host(c, dmt_dtype_random(c), 2, shape), *after = dmt_host_copy(&c->scratch, h);
    for (int64_t i = 0; i < shape[0]; i++) {
        count += i + offset >= 0 && i + offset < shape[1];
    }
    dmt_host *v = random_host(c, h->dtype, 1, &count), *want = dmt_host_make(&c->scratch, h->dtype, 1, &count);
    for (int64_t i = 0, k = 0; i < shape[0]; i++) {
        if (i + offset >= 0 && i + offset < shape[1]) {
            want->v[k] = h->v[i * shape[1] + i + offset];
            after->v[i * shape[1] + i + offset] = v->v[k++];
        }
    }
    dmt_operand *x = dmt_operand_make(c, "x", h, 0), *values = dmt_operand_make(c, "values", v, 0);
    dmt_operand *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    dmt_say(c, "\n    offset %lld", (long long)offset);
    if (!out->unset) {
        DMT_OK(c, dm_fill(c->session, out->array, 0));
    }
    DMT_OK(c, dm_diagonal(c->session, x->array, offset, out->array));
    dmt_operand_check_same(c, out, want);
    dmt_operand_unchanged(c, x);
    DMT_OK(c, dm_set_diagonal(c->session, x->array, offset, values->array));
    dmt_operand_check_same(c, x, after);
}

static void compress_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], chosen[DM_MAX_DIMS], index[DM_MAX_DIMS] = {0}, at = 0;
    int ndim = (int)dmt_int(&c->random, 1, 3), dim = (int)dmt_int(&c->random, 0, ndim - 1),
        percent = (int)dmt_int(&c->random, 0, 100);
    char text[400];
    dmt_layout layout;
    dm_array out;
    dmt_shape_random(c, ndim, 2000, shape);
    dmt_host *h = random_host(c, dmt_dtype_random(c), ndim, shape);
    dmt_host *mask = dmt_host_make(&c->scratch, dmt_chance(&c->random, 50) ? DM_BOOL : DM_F32, 1, &shape[dim]);
    memcpy(chosen, shape, sizeof chosen);
    chosen[dim] = 0;
    for (int64_t i = 0; i < mask->count; i++) {
        mask->v[i] = dmt_chance(&c->random, percent);
        chosen[dim] += mask->v[i] != 0;
    }
    dmt_host *want = dmt_host_make(&c->scratch, h->dtype, ndim, chosen);
    for (int64_t i = 0; i < h->count; i++) { /* the elements that stay keep their order */
        if (mask->v[index[dim]] != 0) {
            want->v[at++] = h->v[i];
        }
        dmt_next(ndim, shape, index);
    }
    dmt_operand *x = dmt_operand_make(c, "x", h, 0), *m = dmt_operand_make(c, "mask", mask, 0);
    dmt_layout_random(&layout, &c->scratch, &c->random, c->session, ndim, chosen);
    DMT_OK(c, dm_compress(c->session, x->array, m->array, dmt_chance(&c->random, 50) ? dim : dim - ndim,
                          layout.use, &out));
    if (!dmt_host_same(dmt_read(c, out, h->dtype, ndim, chosen), want, text, sizeof text)) {
        dmt_fail(c, "dim %d, %s: %s", dim, layout.text, text);
    }
    DMT_OK(c, dm_array_destroy(c->session, out));
    dmt_operand_unchanged(c, m);
}

static void repeat_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], wide[DM_MAX_DIMS], index[DM_MAX_DIMS] = {0}, from[DM_MAX_DIMS],
                                                   times = dmt_int(&c->random, 0, 4);
    int ndim = (int)dmt_int(&c->random, 1, 3), dim = (int)dmt_int(&c->random, 0, ndim - 1);
    dmt_shape_random(c, ndim, 1000, shape);
    memcpy(wide, shape, sizeof wide);
    wide[dim] = shape[dim] * times;
    dmt_host *h = random_host(c, dmt_dtype_random(c), ndim, shape),
             *want = dmt_host_make(&c->scratch, h->dtype, ndim, wide);
    for (int64_t i = 0; i < want->count; i++) {
        memcpy(from, index, sizeof from);
        from[dim] = 0;
        for (int64_t left = index[dim]; left >= times; left -= times) {
            from[dim]++;
        }
        want->v[i] = h->v[dmt_linear(ndim, shape, from)];
        dmt_next(ndim, wide, index);
    }
    dmt_operand *x = dmt_operand_make(c, "x", h, 0), *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    if (!out->unset) {
        DMT_OK(c, dm_fill(c->session, out->array, 0));
    }
    DMT_OK(c, dm_repeat(c->session, x->array, times, dim, out->array));
    dmt_operand_check_same(c, out, want);
    dmt_operand_unchanged(c, x);
}

#define TEST(which, number)                                                                                    \
    static void test_##which(void **state)                                                                     \
    {                                                                                                          \
        (void)state;                                                                                           \
        dmt_run(&(dmt_suite){.name = #which, .cases = number, .fn = which##_case});                            \
    }
TEST(one_hot, 200)
TEST(meshgrid, 200)
TEST(diagonal, 300)
TEST(compress, 250)
TEST(repeat, 200)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_hot), cmocka_unit_test(test_meshgrid),
                                       cmocka_unit_test(test_diagonal), cmocka_unit_test(test_compress),
                                       cmocka_unit_test(test_repeat)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
