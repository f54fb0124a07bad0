/* The gradient of pooling: against loops */
#include "support/layers.h"

#include <math.h>

enum { X, DY, DX };

/* The same from the numbers in the windows that forward wrote. */
static void by_which(dmt_case *c, const dmt_pool *v, const dmt_layer *l, const dmt_sums *sums)
{
    dm_array y, which;
    dmt_operand *dx = dmt_operand_make(c, "dx", sums->want, DMT_UNSET);
    DMT_OK(c, dm_array_like(c->session, l->array[DY], 0, &y));
    DMT_OK(c, dm_array_create(c->session, DM_U8, 4, v->y, NULL, &which));
    DMT_OK(c, dm_pool_forward(c->session, &v->pool, l->array[X], y, which));
    DMT_OK(c, dm_pool_backward_which(c->session, &v->pool, which, l->array[DY], dx->array));
    dmt_operand_check(c, dx, sums->want, sums->bound);
    DMT_OK(c, dm_array_destroy(c->session, y));
    DMT_OK(c, dm_array_destroy(c->session, which));
}

static void back_case(dmt_case *c)
{
    dmt_pool v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    int64_t elements[DMT_POOL_MOST], size;
    dmt_pool_random(c, &v);
    v.pool.relu = dmt_chance(&c->random, 30);
    dmt_host *x = dmt_layer_add(c, &l, "x", 0, 4, v.x);
    dmt_host_random(x, &c->random, dmt_chance(&c->random, 50) ? DMT_SMALL : DMT_SMOOTH);
    dmt_host *dy = dmt_layer_add(c, &l, "dy", 0, 4, v.y);
    dmt_layer_add(c, &l, "dx", 0, 4, v.x);
    l.left_out[X] = v.pool.method == DM_POOL_AVERAGE;
    dmt_layer_make(c, &l, 1u << DX);
    dmt_sums sums = dmt_sums_make(c, l.host[DX]);
    for (int64_t i = 0; i < dy->count; i++) {
        int64_t n = dmt_pool_window(&v, i, elements, &size), best = -1;
        for (int64_t k = 0; k < n; k++) {
            best = best < 0 || x->v[elements[k]] > x->v[best] ? elements[k] : best;
            if (v.pool.method == DM_POOL_AVERAGE) {
                dmt_sums_add(&sums, elements[k], dy->v[i], 1.0L / (long double)size);
            }
        }
        if (v.pool.method == DM_POOL_MAX && best >= 0 && (!v.pool.relu || x->v[best] > 0)) {
            dmt_sums_add(&sums, best, dy->v[i], 1);
        }
    }
    sums.terms += 30 * sums.want->count;
    dmt_sums_end(&sums, NULL, 0, dmt_layer_eps(&l));
    DMT_OK(c, dm_pool_backward(c->session, &v.pool, l.array[X], l.array[DY], l.array[DX]));
    dmt_operand_check(c, l.operand[DX], sums.want, sums.bound);
    if (v.pool.method == DM_POOL_MAX) {
        by_which(c, &v, &l, &sums);
    }
    if (v.pool.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, dm_pool_backward(c->session, &v.pool, alone.array[X], alone.array[DY], alone.array[DX]));
        dmt_layer_same(c, &l, &alone, DX);
    }
}

static void test_pooling_back(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "pooling_back", .cases = 400, .fn = back_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pooling_back)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
