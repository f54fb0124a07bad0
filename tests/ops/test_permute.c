/* Permutations of dims, transposes. */
#include "support/cases.h"

static dmt_host *random_host(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape, int kind)
{
    dmt_host *h = dmt_host_make(&c->scratch, dtype, ndim, shape);
    dmt_host_random(h, &c->random, kind);
    return h;
}

static int random_shape(dmt_case *c, int64_t *shape)
{
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 12) ? DM_MAX_DIMS : 3);
    dmt_shape_random(c, ndim, dmt_chance(&c->random, 5) ? 60000 : 3000, shape);
    return ndim;
}

static dmt_host *permuted(dmt_case *c, const dmt_host *src, const int *perm, dm_dtype dtype)
{
    int64_t shape[DM_MAX_DIMS], index[DM_MAX_DIMS] = {0}, from[DM_MAX_DIMS];
    for (int d = 0; d < src->ndim; d++) {
        shape[d] = src->shape[perm[d]];
    }
    dmt_host *h = dmt_host_make(&c->scratch, dtype, src->ndim, shape);
    for (int64_t i = 0; i < h->count; i++) {
        for (int d = 0; d < h->ndim; d++) {
            from[perm[d]] = index[d];
        }
        h->v[i] = dmt_convert(src->dtype, dtype, src->v[dmt_linear(src->ndim, src->shape, from)]);
        dmt_next(h->ndim, shape, index);
    }
    return h;
}

/* A mixture of types may be refused here, as the header lists none; but it must not be done wrong. */
static void permute_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int perm[DM_MAX_DIMS];
    int ndim = random_shape(c, shape);
    dmt_shuffle(&c->random, ndim, perm);
    bool transpose = ndim == 2 && perm[0] == 1;
    dm_dtype source = dmt_dtype_random(c), target = dmt_chance(&c->random, 80) ? source : dmt_dtype_random(c);
    dmt_host *h = random_host(c, source, ndim, shape, DMT_WILD);
    dmt_host *want = permuted(c, h, perm, target);
    dmt_operand *src = dmt_operand_make(c, "src", h, 0);
    dmt_operand *dst =
        dmt_operand_make(c, "dst", random_host(c, target, ndim, want->shape, DMT_ODD), DMT_UNSET);
    dmt_say(c, "\n    perm");
    for (int d = 0; d < ndim; d++) {
        dmt_say(c, " %d", perm[d]);
    }
    dm_status status = transpose && dmt_chance(&c->random, 70)
                           ? dm_transpose(c->session, src->array, dst->array)
                           : dm_permute(c->session, src->array, perm, dst->array);
    if (status == DM_ERR_DTYPE && source != target) {
        dmt_operand_unchanged(c, dst);
        return;
    }
    dmt_status_is(c, status, DM_OK, transpose ? "dm_transpose or dm_permute" : "dm_permute");
    dmt_operand_check_same(c, dst, want);
    dmt_operand_unchanged(c, src);
}

static void transpose_case(dmt_case *c)
{
    int64_t shape[2];
    const int perm[] = {1, 0};
    dmt_shape_random(c, 2, 40000, shape);
    dmt_host *h = random_host(c, dmt_dtype_random(c), 2, shape, DMT_WILD);
    dmt_host *want = permuted(c, h, perm, h->dtype);
    dmt_operand *src = dmt_operand_make(c, "src", h, 0);
    dmt_operand *dst = dmt_operand_make(c, "dst", random_host(c, h->dtype, 2, want->shape, DMT_ODD), DMT_UNSET);
    DMT_OK(c, dm_transpose(c->session, src->array, dst->array));
    dmt_operand_check_same(c, dst, want);
}

static void test_permute(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "permute", .cases = 1500, .fn = permute_case});
}

static void test_transpose(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "transpose", .cases = 600, .fn = transpose_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permute),
        cmocka_unit_test(test_transpose),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
