/* Short forms: each does what the longer call does. */
#include "support/refusal.h"

#include <math.h>
#include <string.h>

static void like_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, 3);
    dmt_shape_random(c, ndim, 2000, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_SMALL);
    dmt_operand *a = dmt_operand_make(c, "a", h, 0);
    dm_dtype dtype = dmt_chance(&c->random, 50) ? (dm_dtype)0 : dmt_dtype_random(c);
    dm_array b;
    dm_array_info one = {.size = sizeof one}, other = {.size = sizeof other};
    DMT_OK(c, dm_array_like(c->session, a->array, dtype, &b));
    DMT_OK(c, dm_array_query(c->session, a->array, &one));
    DMT_OK(c, dm_array_query(c->session, b, &other));
    if (other.dtype != (dtype ? dtype : h->dtype) || other.is_view || other.ndim != ndim ||
        other.replicas != one.replicas || memcmp(other.shape, one.shape, sizeof one.shape) != 0) {
        dmt_fail(c, "the new array has another shape or type");
    }
    bool rectangle = a->view && !a->reshaped;
    for (int d = 0; d < ndim && !rectangle; d++) {
        if (other.grid[d] != one.grid[d] || other.block[d] != one.block[d]) {
            dmt_fail(c, "dim %d: blocks of %d on %d workers, not of %d on %d", d, (int)other.block[d],
                     other.grid[d], (int)one.block[d], one.grid[d]);
        }
    }
    int64_t index[DM_MAX_DIMS] = {0};
    for (int64_t i = 0; i < h->count && !rectangle; i++) {
        int here = -1, there = -2;
        dmt_unlinear(ndim, shape, i, index);
        DMT_OK(c, dm_array_owner(c->session, a->array, index, &here));
        DMT_OK(c, dm_array_owner(c->session, b, index, &there));
        if (here != there) {
            dmt_fail(c, "element %d: worker %d, not %d", (int)i, there, here);
        }
    }
    DMT_OK(c, dm_copy(c->session, a->array, b)); /* it is an array that works */
    dmt_host *got = dmt_read(c, b, other.dtype, ndim, shape);
    for (int64_t i = 0; i < h->count; i++) {
        if (got->v[i] != dmt_convert(h->dtype, other.dtype, h->v[i])) {
            dmt_fail(c, "element %d is %Lg", (int)i, got->v[i]);
        }
    }
    DMT_OK(c, dm_array_destroy(c->session, b));
}

static void item_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], index[DM_MAX_DIMS] = {0};
    int ndim = (int)dmt_int(&c->random, 0, 4);
    dmt_shape_random(c, ndim, 500, shape);
    dmt_host *h = dmt_host_make(&c->scratch, dmt_dtype_random(c), ndim, shape);
    dmt_host_random(h, &c->random, DMT_ODD);
    dmt_operand *a = dmt_operand_make(c, "a", h, 0);
    for (int turn = 0; turn < 6 && h->count > 0; turn++) {
        int64_t i = dmt_int(&c->random, 0, h->count - 1);
        dmt_unlinear(ndim, shape, i, index);
        double value = 7.25, want = (double)dmt_convert(h->dtype, DM_F64, a->value->v[i]);
        DMT_OK(c, dm_item(c->session, a->array, ndim ? index : NULL, &value));
        if (value != want && !(isnan(value) && isnan(want))) {
            dmt_fail(c, "item %d is %g, not %g", (int)i, value, want);
        }
        i = dmt_int(&c->random, 0, h->count - 1);
        dmt_unlinear(ndim, shape, i, index);
        int number = h->dtype == DM_BOOL ? turn % 2 : turn + 1;
        DMT_OK(c, dm_set_item(c->session, a->array, ndim ? index : NULL, number));
        a->value->v[i] = number;
    }
    dmt_operand_unchanged(c, a);
}

static void rows_case(dmt_case *c)
{
    const int64_t shape[] = {11, 3, 2}, part[] = {4, 3, 2}, lo[] = {5, 0, 0};
    dmt_host *h = dmt_host_make(&c->scratch, DM_I32, 3, shape),
             *want = dmt_host_make(&c->scratch, DM_I32, 3, part);
    dmt_host_random(h, &c->random, DMT_WILD);
    dmt_operand *a = dmt_operand_make(c, "a", h, 0);
    dm_array view;
    char text[200];
    DMT_OK(c, dm_rows(c->session, a->array, 5, 4, &view));
    dmt_host_take(h, lo, want);
    if (!dmt_host_same(dmt_read(c, view, DM_I32, 3, part), want, text, sizeof text)) {
        dmt_fail(c, "%s", text);
    }
    DMT_OK(c, dm_fill(c->session, view, 4)); /* of the array itself */
    dmt_host_set(want, 4);
    dmt_host_put(a->value, lo, want);
    dmt_operand_unchanged(c, a);
    DMT_OK(c, dm_array_destroy(c->session, view));
}

/* A vector, a product and a sum over a dim, of numbers that are exact. */
static void sums_case(dmt_case *c)
{
    dm_session *s = c->session;
    enum { M = 5, K = 7, N = 3 };
    double a[M][K], b[K][N], got[M][N], sum[N];
    dm_array x, y, z, v;
    for (int i = 0; i < M * K; i++) {
        a[i / K][i % K] = i % 5 - 2;
    }
    for (int i = 0; i < K * N; i++) {
        b[i / N][i % N] = i % 7 - 3;
    }
    DMT_OK(c, dm_matrix(s, DM_F64, M, K, &x));
    DMT_OK(c, dm_matrix(s, DM_F64, K, N, &y));
    DMT_OK(c, dm_matrix(s, DM_F64, M, N, &z));
    DMT_OK(c, dm_vector(s, DM_F64, N, &v));
    DMT_OK(c, dm_write(s, x, &a[0][0]));
    DMT_OK(c, dm_write(s, y, &b[0][0]));
    DMT_OK(c, dm_fill(s, z, NAN)); /* not read */
    DMT_OK(c, dm_fill(s, v, NAN));
    DMT_OK(c, dm_matmul(s, x, y, z));
    DMT_OK(c, dm_sum_dim(s, z, 0, v));
    DMT_OK(c, dm_read(s, z, &got[0][0]));
    DMT_OK(c, dm_read(s, v, sum));
    for (int j = 0; j < N; j++) {
        double column = 0;
        for (int i = 0; i < M; i++) {
            double want = 0;
            for (int k = 0; k < K; k++) {
                want += a[i][k] * b[k][j];
            }
            assert_true(got[i][j] == want);
            column += want;
        }
        assert_true(sum[j] == column);
    }
    dm_array all[] = {x, y, z, v};
    for (int i = 0; i < 4; i++) {
        DMT_OK(c, dm_array_destroy(s, all[i]));
    }
}

static void errors_case(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    dm_array out, scalar;
    double value = 5;
    const int64_t inside[] = {1, 1}, outside[] = {1, 5}, below[] = {-1, 0};
    DMT_OK(c, dm_array_create(s, DM_F32, 0, NULL, NULL, &scalar));
    REFUSED(DMT_ONE(ARG), "shape", dm_vector(s, DM_F32, -1, &out));
    REFUSED(DMT_ONE(DTYPE), "dtype", dm_array_like(s, t.f, (dm_dtype)77, &out));
    REFUSED(DMT_ONE(ARG), "out", dm_array_like(s, t.f, DM_F32, NULL));
    REFUSED(DMT_ONE(HANDLE), "a", dm_array_like(s, DM_NO_ARRAY, DM_F32, &out));
    REFUSED(DMT_ONE(ARG), "first", dm_rows(s, t.f, -1, 2, &out));
    REFUSED(DMT_ONE(ARG), "count", dm_rows(s, t.f, 3, 4, &out));
    REFUSED(DMT_ONE(ARG), "count", dm_rows(s, t.f, 3, INT64_MAX, &out));
    REFUSED(DMT_ONE(SHAPE), "a", dm_rows(s, scalar, 0, 1, &out));
    REFUSED(DMT_ONE(ARG), "out", dm_rows(s, t.f, 0, 1, NULL));
    REFUSED(DMT_ONE(ARG), "index", dm_item(s, t.f, NULL, &value));
    REFUSED(DMT_ONE(ARG), "index", dm_item(s, t.f, outside, &value));
    REFUSED(DMT_ONE(ARG), "index", dm_item(s, t.f, below, &value));
    REFUSED(DMT_ONE(ARG), "value", dm_item(s, t.f, inside, NULL));
    REFUSED(DMT_ONE(ARG), "index", dm_set_item(s, t.f, outside, 1));
    REFUSED(DMT_ONE(ARG), "value", dm_set_item(s, t.whole, inside, 0.5));
    REFUSED(DMT_ONE(ARG), "dim", dm_sum_dim(s, t.f, 2, t.row));
    REFUSED(DMT_ONE(ARG), "dim", dm_sum_dim(s, t.f, -1, t.row));
    REFUSED(DMT_ONE(SHAPE), "out", dm_sum_dim(s, t.f, 1, t.row));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_matmul(s, t.f, t.g, t.wide));
    assert_true(value == 5);
    DMT_OK(c, dm_array_destroy(s, scalar));
    dmt_things_end(c, &t);
}

static void test_like(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "like", .cases = 500, .fn = like_case});
}

static void test_item(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "item", .cases = 300, .fn = item_case});
}

static void test_rows(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "rows", .cases = 50, .fn = rows_case});
}

static void test_sums(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "short_sums", .cases = 5, .fn = sums_case});
}

DMT_ONE_CASE(errors_case)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_like), cmocka_unit_test(test_item),        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_sums), cmocka_unit_test(test_errors_case),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
