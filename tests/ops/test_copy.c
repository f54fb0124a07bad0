/* Copies, conversions, remaps. */
#include "support/cases.h"

#include <math.h>

static dmt_host *converted(dmt_case *c, const dmt_host *src, dm_dtype dtype)
{
    dmt_host *h = dmt_host_make(&c->scratch, dtype, src->ndim, src->shape);
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = dmt_convert(src->dtype, dtype, src->v[i]);
    }
    return h;
}

static dmt_host *random_host(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape, int kind)
{
    dmt_host *h = dmt_host_make(&c->scratch, dtype, ndim, shape);
    dmt_host_random(h, &c->random, kind);
    return h;
}

/* Case k copies from layout kind k / KINDS to kind k % KINDS, the types going round with k. */
static void pair_case(dmt_case *c)
{
    static const int64_t shapes[][3] = {{7, 11, 1}, {13, 5, 3}, {1, 17, 2}, {24, 2, 0}, {3, 4, 5}};
    static const int ndims[] = {2, 3, 2, 2, 3};
    int pick = (int)(c->number % 5);
    int from = (int)(c->number / DMT_KINDS), to = (int)(c->number % DMT_KINDS);
    dm_dtype source = dmt_dtypes[(c->number + c->workers) % DMT_DTYPES];
    dm_dtype target = dmt_dtypes[(c->number / DMT_DTYPES) % DMT_DTYPES];
    dmt_layout a, b;
    dmt_layout_kind(&a, &c->scratch, c->session, ndims[pick], shapes[pick], from);
    dmt_layout_kind(&b, &c->scratch, c->session, ndims[pick], shapes[pick], to);
    dmt_host *h = random_host(c, source, ndims[pick], shapes[pick], DMT_WILD);
    dmt_host *junk = random_host(c, target, ndims[pick], shapes[pick], DMT_SMOOTH);
    dmt_operand *src = dmt_operand_plain(c, "src", h, a.use, a.text);
    dmt_operand *dst = dmt_operand_plain(c, "dst", junk, b.use, b.text);
    DMT_OK(c, dm_copy(c->session, src->array, dst->array));
    dmt_operand_check_same(c, dst, converted(c, h, target));
    dmt_operand_unchanged(c, src);
}

/* A source of fewer or shorter dims is repeated. */
static void broadcast_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], narrow[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 1, 4);
    dmt_shape_random(c, ndim, 3000, shape);
    int narrow_ndim = dmt_shape_narrowed(c, ndim, shape, narrow);
    dmt_host *h = random_host(c, dmt_dtype_random(c), narrow_ndim, narrow, DMT_ODD);
    dmt_host *junk = random_host(c, dmt_dtype_random(c), ndim, shape, DMT_SMOOTH);
    dmt_operand *src = dmt_operand_make(c, "src", h, 0);
    dmt_operand *dst = dmt_operand_make(c, "dst", junk, DMT_UNSET);
    DMT_OK(c, dm_copy(c->session, src->array, dst->array));
    dmt_host *want = dmt_host_copy(&c->scratch, junk);
    for (int64_t i = 0; i < want->count; i++) {
        want->v[i] = dmt_convert(h->dtype, want->dtype, h->v[dmt_broadcast(h, want, i)]);
    }
    dmt_operand_check_same(c, dst, want);
    dmt_operand_unchanged(c, src);
}

/* Numbers around which conversions go wrong: halfway between two, at the ends of ranges, subnormal. */
static void add_neighbours(dmt_host *h, int64_t *used, long double v)
{
    long double tries[] = {
        v, nextafter((double)v, INFINITY), nextafter((double)v, -INFINITY), v + 1, v - 1, v + 0.5L, v - 0.5L};
    for (int i = 0; i < 7; i++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            if (*used < h->count) {
                h->v[(*used)++] = dmt_from_real(h->dtype, (long double)sign * tries[i]);
            }
        }
    }
}

static dmt_host *hard_numbers(dmt_case *c, dm_dtype dtype)
{
    /* Each type's largest finite number, the halfway point to Inf, smallest normal and subnormal numbers and
     * their halves; points halfway between two 16-bit numbers that a detour by f32 would round differently. */
    static const long double points[] = {
        0,
        1,
        0x1p-1074L,
        0x1p-1022L,
        0x1p-149L,
        0x1p-150L,
        0x1p-126L,
        0x1p-24L,
        0x1p-25L,
        0x1p-14L,
        0x1p-133L,
        0x1p-134L,
        65504.0L,
        65519.0L,
        65520.0L,
        65536.0L,
        0x1.fffffep127L,
        0x1.ffffffp127L,
        0x1.fep127L,
        0x1.ffp127L,
        255.0L,
        256.0L,
        127.0L,
        2147483647.0L,
        2147483648.0L,
        4294967296.0L,
        0x1p53L,
        0x1p63L,
        0x1p64L,
        1 + 0x1p-11L,
        1 + 0x1p-11L + 0x1p-40L,
        1 + 3 * 0x1p-11L - 0x1p-40L,
        1 + 0x1p-8L,
        1 + 0x1p-8L + 0x1p-40L,
        1 + 3 * 0x1p-8L - 0x1p-40L,
        0x1.8p-24L + 0x1p-60L,
        16777217.0L,
        2049.0L,
        257.0L,
    };
    const int64_t count = (int64_t)(sizeof points / sizeof points[0]) * 14 + 3;
    dmt_host *h = dmt_host_make(&c->scratch, dtype, 1, &count);
    int64_t used = 0;
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        add_neighbours(h, &used, points[i]);
    }
    h->v[used] = dmt_is_float(dtype) ? (long double)NAN : dmt_int_min(dtype);
    h->v[used + 1] = dmt_is_float(dtype) ? (long double)INFINITY : dmt_int_max(dtype);
    h->v[used + 2] = dmt_is_float(dtype) ? -(long double)INFINITY : 0;
    return h;
}

/* Every pair of types on every bit pattern of the short types, on the hard numbers of all, and on random ones.
 */
static void convert_case(dmt_case *c)
{
    dm_dtype source = dmt_dtypes[c->number / DMT_DTYPES], target = dmt_dtypes[c->number % DMT_DTYPES];
    dmt_host *h = hard_numbers(c, source);
    if (dmt_bytes(source) <= 2) {
        const int64_t all = dmt_bytes(source) == 2 ? 65536 : 256;
        h = dmt_host_make(&c->scratch, source, 1, &all);
        for (int64_t i = 0; i < all; i++) {
            h->v[i] = dmt_decode(source, &i);
        }
    }
    const int64_t more = 3000;
    dmt_host *inputs[] = {h, random_host(c, source, 1, &more, DMT_WILD)};
    for (int i = 0; i < 2; i++) {
        dmt_operand *src = dmt_operand_plain(c, "src", inputs[i], NULL, "default");
        dmt_operand *dst = dmt_operand_plain(c, "dst", dmt_host_make(&c->scratch, target, 1, &inputs[i]->count),
                                             NULL, "default");
        DMT_OK(c, dm_copy(c->session, src->array, dst->array));
        dmt_operand_check_same(c, dst, converted(c, inputs[i], target));
    }
}

static int random_shape(dmt_case *c, int64_t *shape)
{
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 12) ? DM_MAX_DIMS : 3);
    dmt_shape_random(c, ndim, dmt_chance(&c->random, 5) ? 60000 : 3000, shape);
    return ndim;
}

static void copy_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = random_shape(c, shape);
    dm_dtype source = dmt_dtype_random(c), target = dmt_chance(&c->random, 50) ? source : dmt_dtype_random(c);
    dmt_host *h = random_host(c, source, ndim, shape, DMT_WILD);
    dmt_operand *src = dmt_operand_make(c, "src", h, 0);
    dmt_operand *dst = dmt_operand_make(c, "dst", random_host(c, target, ndim, shape, DMT_ODD), DMT_UNSET);
    DMT_OK(c, dm_copy(c->session, src->array, dst->array));
    dmt_operand_check_same(c, dst, converted(c, h, target));
    dmt_operand_unchanged(c, src);
}

/* The same elements are no overlap: nothing is to be done. */
static void copy_self_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = random_shape(c, shape);
    dmt_operand *x = dmt_operand_make(c, "x", random_host(c, dmt_dtype_random(c), ndim, shape, DMT_WILD), 0);
    DMT_OK(c, dm_copy(c->session, x->array, x->array));
    dmt_operand_unchanged(c, x);
}

/* Two disjoint rectangles of one array do not overlap. */
static void copy_within_case(dmt_case *c)
{
    int64_t shape[2] = {dmt_int(&c->random, 2, 30), dmt_int(&c->random, 1, 20)};
    int64_t extent[2] = {dmt_int(&c->random, 1, shape[0] / 2), shape[1]};
    int64_t from[2] = {dmt_int(&c->random, 0, shape[0] / 2 - extent[0]), 0};
    int64_t to[2] = {dmt_int(&c->random, shape[0] / 2, shape[0] - extent[0]), 0};
    dmt_host *h = random_host(c, dmt_dtype_random(c), 2, shape, DMT_WILD);
    dmt_operand *x = dmt_operand_make(c, "x", h, 0);
    dm_array src, dst;
    dmt_say(c, "\n    rows %d at %d to %d", (int)extent[0], (int)from[0], (int)to[0]);
    DMT_OK(c, dm_array_view(c->session, x->array, from, extent, &src));
    DMT_OK(c, dm_array_view(c->session, x->array, to, extent, &dst));
    DMT_OK(c, dm_copy(c->session, src, dst));
    dmt_host *part = dmt_host_make(&c->scratch, h->dtype, 2, extent);
    dmt_host_take(h, from, part);
    dmt_host_put(h, to, part);
    dmt_operand_check_same(c, x, h);
    DMT_OK(c, dm_array_destroy(c->session, src));
    DMT_OK(c, dm_array_destroy(c->session, dst));
}

/* A chain of copies through random layouts gives back what went in; nothing waits in between. */
static void chain_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = random_shape(c, shape);
    dm_dtype dtype = dmt_dtype_random(c);
    dmt_host *h = random_host(c, dtype, ndim, shape, DMT_WILD);
    dmt_operand *link[5];
    for (int i = 0; i < 5; i++) {
        link[i] = dmt_operand_make(c, "link", i == 0 ? h : random_host(c, dtype, ndim, shape, DMT_SMOOTH), 0);
    }
    for (int i = 1; i < 5; i++) {
        DMT_OK(c, dm_copy(c->session, link[i - 1]->array, link[i]->array));
    }
    for (int i = 4; i >= 0; i--) {
        dmt_operand_check_same(c, link[i], h);
    }
}

static void test_layout_pairs(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "copy_pairs", .cases = DMT_KINDS * DMT_KINDS, .fn = pair_case, .each = true});
}

static void test_conversions(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){
        .name = "convert", .cases = DMT_DTYPES * DMT_DTYPES, .fn = convert_case, .workers = 2, .each = true});
}

static void test_copy(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "copy", .cases = 1200, .fn = copy_case});
}

static void test_broadcast(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "copy_broadcast", .cases = 800, .fn = broadcast_case});
}

static void test_copy_self(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "copy_self", .cases = 100, .fn = copy_self_case});
}

static void test_copy_within(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "copy_within", .cases = 200, .fn = copy_within_case});
}

static void test_chain(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "copy_chain", .cases = 200, .fn = chain_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layout_pairs), cmocka_unit_test(test_conversions),
                                       cmocka_unit_test(test_copy),         cmocka_unit_test(test_copy_self),
                                       cmocka_unit_test(test_copy_within),  cmocka_unit_test(test_chain),
                                       cmocka_unit_test(test_broadcast)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
