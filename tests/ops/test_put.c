/* Elements of x that indices name along a dim = values, or += values, against loops */
#include "index_cases.h"

#include <string.h>

static long double sum_of(dm_dtype dtype, long double a, long double b)
{
    if (dtype == DM_BOOL) {
        return a != 0 || b != 0;
    }
    if (!dmt_is_float(dtype)) { /* wraps */
        return dmt_from_whole(dtype, (int64_t)(dmt_wrapped(a) + dmt_wrapped(b)));
    }
    return dtype == DM_F64 ? (long double)((double)a + (double)b) : dmt_from_real(dtype, a + b);
}

static void put_case(dmt_case *c)
{
    index_case k;
    int64_t index[DM_MAX_DIMS] = {0}, narrow[DM_MAX_DIMS];
    bool adds = dmt_chance(&c->random, 50);
    dm_dtype dtype = adds && dmt_chance(&c->random, 60) ? (dmt_chance(&c->random, 50) ? DM_F32 : DM_F16)
                                                        : dmt_dtype_random(c);
    index_case_random(c, &k, dtype);
    int narrow_ndim = k.ndim;
    memcpy(narrow, k.positions, sizeof narrow);
    if (dmt_chance(&c->random, 20)) {
        narrow_ndim = dmt_shape_narrowed(c, k.ndim, k.positions, narrow);
    }
    dmt_host *v = dmt_host_make(&c->scratch, dtype, narrow_ndim, narrow),
             *want = dmt_host_copy(&c->scratch, k.x);
    dmt_host *positions = dmt_host_make(&c->scratch, DM_U8, k.ndim, k.positions);
    dmt_host_random(v, &c->random, DMT_ODD);
    for (int64_t i = 0; i < positions->count; i++) {
        int64_t at = index_meant(index_at(k.indices, index, k.dim, k.along), k.mode, k.shape[k.dim]);
        long double *to = &want->v[replaced(want, index, k.dim, at)],
                    value = v->v[dmt_broadcast(v, positions, i)];
        *to = adds ? sum_of(dtype, *to, value) : value;
        dmt_next(k.ndim, k.positions, index);
    }
    dmt_operand *x = dmt_operand_make(c, "x", k.x, 0);
    dmt_operand *indices = dmt_operand_make(c, "indices", k.indices, 0);
    dmt_operand *values = dmt_operand_make(c, "values", v, 0);
    int dim = dim_given(c, &k);
    dmt_say(c, adds ? "\n    adds" : "\n    puts");
    if (k.along && adds) {
        DMT_OK(c, dm_scatter_add_along_dim(c->session, x->array, indices->array, values->array, dim, k.mode));
    } else if (k.along) {
        DMT_OK(c, dm_put_along_dim(c->session, x->array, indices->array, values->array, dim, k.mode));
    } else if (adds) {
        DMT_OK(c, dm_scatter_add(c->session, x->array, indices->array, values->array, dim, k.mode));
    } else {
        DMT_OK(c, dm_put(c->session, x->array, indices->array, values->array, dim, k.mode));
    }
    dmt_operand_check_same(c, x, want);
    dmt_operand_unchanged(c, indices);
    dmt_operand_unchanged(c, values);
}

static void test_put(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        dmt_run(&(dmt_suite){.name = i == 0   ? "put"
                                     : i == 1 ? "put fetch"
                                              : "put exchange",
                             .cases = i == 0 ? 300 : 700,
                             .fn = put_case,
                             .options = index_options[i]});
    }
}

/* Complex numbers, part by part: taken and added. */
static void complex_case(dmt_case *c)
{
    enum { N = 9, M = 20 };
    dm_c64 x[N], want[N], v[M], taken[M];
    int64_t n = N, m = M, at[M];
    dm_layout rows = dm_layout_rows(c->session);
    dm_array a, i, b, t;
    for (int k = 0; k < N; k++) {
        x[k] = want[k] = (dm_c64){(float)k, (float)-k};
    }
    for (int k = 0; k < M; k++) {
        at[k] = dmt_int(&c->random, 0, N - 1);
        v[k] = (dm_c64){(float)dmt_int(&c->random, -9, 9), (float)dmt_int(&c->random, -9, 9)};
        want[at[k]].re += v[k].re;
        want[at[k]].im += v[k].im;
    }
    DMT_OK(c, dm_array_create(c->session, DM_C64, 1, &n, &rows, &a));
    DMT_OK(c, dm_array_create(c->session, DM_I64, 1, &m, &rows, &i));
    DMT_OK(c, dm_array_create(c->session, DM_C64, 1, &m, &rows, &b));
    DMT_OK(c, dm_array_create(c->session, DM_C64, 1, &m, &rows, &t));
    DMT_OK(c, dm_write(c->session, a, x));
    DMT_OK(c, dm_write(c->session, i, at));
    DMT_OK(c, dm_write(c->session, b, v));
    DMT_OK(c, dm_scatter_add(c->session, a, i, b, 0, DM_RAISE));
    DMT_OK(c, dm_take(c->session, a, i, 0, DM_CLIP, t));
    DMT_OK(c, dm_read(c->session, a, x));
    DMT_OK(c, dm_read(c->session, t, taken));
    for (int k = 0; k < M; k++) {
        if (memcmp(&x[at[k]], &want[at[k]], sizeof *x) != 0 ||
            memcmp(&taken[k], &want[at[k]], sizeof *x) != 0) {
            dmt_fail(c, "element %lld is %g + %g i", (long long)at[k], (double)x[at[k]].re,
                     (double)x[at[k]].im);
        }
    }
    dm_array all[] = {a, i, b, t};
    for (int k = 0; k < 4; k++) {
        DMT_OK(c, dm_array_destroy(c->session, all[k]));
    }
}

static void test_complex_put(void **state)
{
    (void)state;
    for (int k = 1; k < 3; k++) {
        dmt_run(
            &(dmt_suite){.name = "put complex", .cases = 20, .fn = complex_case, .options = index_options[k]});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_put), cmocka_unit_test(test_complex_put)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
