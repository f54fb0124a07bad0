/* concatenate, stack, split, tile, roll, flip and pad against loops over indices */
#include "support/cases.h"

#include <dmath/index.h>
#include <string.h>

enum { MOST_ARRAYS = 4 };

static dmt_host *random_host(dmt_case *c, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dmt_host *h = dmt_host_make(&c->scratch, dtype, ndim, shape);
    dmt_host_random(h, &c->random, DMT_ODD);
    return h;
}

static int either_dim(dmt_case *c, int dim, int ndim)
{
    return dmt_chance(&c->random, 50) ? dim : dim - ndim;
}

static void concatenate_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], lo[DM_MAX_DIMS] = {0};
    int ndim = (int)dmt_int(&c->random, 1, 4), dim = (int)dmt_int(&c->random, 0, ndim - 1);
    int count = (int)dmt_int(&c->random, 1, MOST_ARRAYS);
    dm_dtype to = dmt_dtype_random(c);
    dmt_host *part[MOST_ARRAYS];
    dm_array arrays[MOST_ARRAYS];
    dmt_shape_random(c, ndim, 1000, shape);
    int64_t total = 0;
    for (int i = 0; i < count; i++) {
        shape[dim] = dmt_int(&c->random, 0, 9);
        total += shape[dim];
        part[i] = random_host(c, dmt_chance(&c->random, 50) ? to : dmt_dtype_random(c), ndim, shape);
    }
    shape[dim] = total;
    dmt_host *want = random_host(c, to, ndim, shape);
    dmt_operand *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    for (int i = 0; i < count; i++) {
        dmt_host *converted = dmt_host_make(&c->scratch, to, ndim, part[i]->shape);
        for (int64_t k = 0; k < converted->count; k++) {
            converted->v[k] = dmt_convert(part[i]->dtype, to, part[i]->v[k]);
        }
        dmt_host_put(want, lo, converted);
        lo[dim] += part[i]->shape[dim];
        arrays[i] = dmt_operand_make(c, "array", part[i], 0)->array;
    }
    DMT_OK(c, dm_concatenate(c->session, count, arrays, either_dim(c, dim, ndim), out->array));
    dmt_operand_check_same(c, out, want);
}

static void stack_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], wide[DM_MAX_DIMS], index[DM_MAX_DIMS] = {0};
    int ndim = (int)dmt_int(&c->random, 0, 3), dim = (int)dmt_int(&c->random, 0, ndim);
    int count = (int)dmt_int(&c->random, 1, MOST_ARRAYS);
    dm_dtype dtype = dmt_dtype_random(c);
    dmt_host *part[MOST_ARRAYS];
    dm_array arrays[MOST_ARRAYS];
    dmt_shape_random(c, ndim, 1000, shape);
    for (int i = 0; i < count; i++) {
        part[i] = random_host(c, dtype, ndim, shape);
        arrays[i] = dmt_operand_make(c, "array", part[i], 0)->array;
    }
    for (int d = 0; d <= ndim; d++) {
        wide[d] = d == dim ? count : shape[d - (d > dim)];
    }
    dmt_host *want = dmt_host_make(&c->scratch, dtype, ndim + 1, wide);
    for (int64_t k = 0; k < want->count; k++) {
        int64_t from[DM_MAX_DIMS] = {0};
        for (int d = 0; d < ndim; d++) {
            from[d] = index[d + (d >= dim)];
        }
        want->v[k] = part[index[dim]]->v[dmt_linear(ndim, shape, from)];
        dmt_next(ndim + 1, wide, index);
    }
    dmt_operand *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    if (!out->unset) {
        DMT_OK(c, dm_fill(c->session, out->array, 0));
    }
    DMT_OK(c, dm_stack(c->session, count, arrays, either_dim(c, dim, ndim + 1), out->array));
    dmt_operand_check_same(c, out, want);
}

static void split_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], sizes[MOST_ARRAYS], lo[DM_MAX_DIMS] = {0};
    int ndim = (int)dmt_int(&c->random, 1, 3), dim = (int)dmt_int(&c->random, 0, ndim - 1);
    int count = (int)dmt_int(&c->random, 1, MOST_ARRAYS);
    bool equal = dmt_chance(&c->random, 40);
    dm_array parts[MOST_ARRAYS];
    dmt_shape_random(c, ndim, 1000, shape);
    shape[dim] = 0;
    for (int i = 0; i < count; i++) {
        sizes[i] = equal && i > 0 ? sizes[0] : dmt_int(&c->random, 0, 7);
        shape[dim] += sizes[i];
    }
    dmt_host *h = random_host(c, dmt_dtype_random(c), ndim, shape);
    dmt_operand *x = dmt_operand_make(c, "x", h, 0);
    DMT_OK(c, dm_split(c->session, x->array, either_dim(c, dim, ndim), count, equal ? NULL : sizes, parts));
    for (int i = 0; i < count; i++) {
        char text[400];
        shape[dim] = sizes[i];
        dmt_host *want = dmt_host_make(&c->scratch, h->dtype, ndim, shape);
        dmt_host_take(h, lo, want);
        lo[dim] += sizes[i];
        if (!dmt_host_same(dmt_read(c, parts[i], h->dtype, ndim, shape), want, text, sizeof text)) {
            dmt_fail(c, "part %d: %s", i, text);
        }
        DMT_OK(c, dm_array_destroy(c->session, parts[i]));
    }
    sizes[0] = h->shape[dim] + 1;
    DMT_REFUSED(c, DM_ERR_ARG, dm_split(c->session, x->array, dim, count, sizes, parts));
}

/* out's element at index[] is x's at index[d] mapped by `map`. */
typedef int64_t mapping(const void *context, int dim, int64_t index, int64_t n);

static dmt_host *mapped(dmt_case *c, const dmt_host *x, const int64_t *shape, mapping *map, const void *context,
                        long double otherwise)
{
    dmt_host *want = dmt_host_make(&c->scratch, x->dtype, x->ndim, shape);
    int64_t index[DM_MAX_DIMS] = {0}, from[DM_MAX_DIMS];
    for (int64_t k = 0; k < want->count; k++) {
        bool inside = true;
        for (int d = 0; d < x->ndim; d++) {
            from[d] = map(context, d, index[d], x->shape[d]);
            inside = inside && from[d] >= 0;
        }
        want->v[k] = inside ? x->v[dmt_linear(x->ndim, x->shape, from)] : otherwise;
        dmt_next(x->ndim, shape, index);
    }
    return want;
}

static int64_t by_tile(const void *context, int dim, int64_t index, int64_t n)
{
    (void)context;
    (void)dim;
    while (index >= n) {
        index -= n;
    }
    return index;
}

typedef struct shift {
    int dim, mode;
    int64_t by;
    const int64_t *before;
} shift;

static int64_t by_roll(const void *context, int dim, int64_t index, int64_t n)
{
    const shift *s = context;
    for (int64_t k = 0; k < n && dim == s->dim; k++) { /* who comes here? */
        int64_t to = k + s->by;
        while (to < 0) {
            to += n;
        }
        while (to >= n) {
            to -= n;
        }
        if (to == index) {
            return k;
        }
    }
    return index;
}

static int64_t by_flip(const void *context, int dim, int64_t index, int64_t n)
{
    const shift *s = context;
    return dim == s->dim ? n - 1 - index : index;
}

/* A walk from the first element of x, step by step. */
static int64_t by_pad(const void *context, int dim, int64_t index, int64_t n)
{
    const shift *s = context;
    int64_t steps = index - s->before[dim], at = 0, way = steps < 0 ? -1 : 1;
    if (s->mode == DM_PAD_CONSTANT) {
        return steps >= 0 && steps < n ? steps : -1;
    }
    for (int64_t k = 0; k != steps; k += steps < 0 ? -1 : 1) {
        int64_t next = at + way;
        if (next >= 0 && next < n) {
            at = next;
        } else if (s->mode == DM_PAD_WRAP) {
            at = next < 0 ? n - 1 : 0;
        } else if (s->mode != DM_PAD_EDGE) { /* turns; REFLECT takes the step back at once */
            way = -way;
            at += s->mode == DM_PAD_REFLECT && n > 1 ? way : 0;
        }
    }
    return at;
}

static void moved_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], wide[DM_MAX_DIMS], times[DM_MAX_DIMS], before[DM_MAX_DIMS], after[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 1, 3), kind = (int)dmt_int(&c->random, 0, 3);
    shift s = {.dim = (int)dmt_int(&c->random, 0, ndim - 1),
               .mode = (int)dmt_int(&c->random, 0, 4),
               .by = dmt_int(&c->random, -50, 50),
               .before = before};
    dmt_shape_random(c, ndim, 400, shape);
    bool empty = dmt_count(ndim, shape) == 0;
    s.mode = empty ? DM_PAD_CONSTANT : s.mode;
    memcpy(wide, shape, sizeof wide);
    for (int d = 0; d < ndim; d++) {
        times[d] = dmt_int(&c->random, 0, 3);
        before[d] = dmt_chance(&c->random, 30) ? 0 : dmt_int(&c->random, 0, 4);
        after[d] = dmt_chance(&c->random, 30) ? 0 : dmt_int(&c->random, 0, 4);
        wide[d] = kind == 0 ? shape[d] * times[d] : kind == 1 ? before[d] + shape[d] + after[d] : shape[d];
    }
    dmt_say(c, "\n    kind %d, dim %d, by %lld, mode %d", kind, s.dim, (long long)s.by, s.mode);
    dmt_host *h = random_host(c, dmt_dtype_random(c), ndim, shape);
    dm_array one;
    DMT_OK(c, dm_array_create(c->session, h->dtype, 0, NULL, NULL, &one));
    DMT_OK(c, dm_fill(c->session, one, 1));
    mapping *map[] = {by_tile, by_pad, by_roll, by_flip};
    dmt_host *want = mapped(c, h, wide, map[kind], &s, 1);
    dmt_operand *x = dmt_operand_make(c, "x", h, 0), *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    int dim = either_dim(c, s.dim, ndim);
    if (!out->unset) {
        DMT_OK(c, dm_fill(c->session, out->array, 0));
    }
    switch (kind) {
    case 0:
        DMT_OK(c, dm_tile(c->session, x->array, times, out->array));
        break;
    case 1:
        DMT_OK(c, dmt_chance(&c->random, 50)
                      ? dm_pad(c->session, x->array, before, after, s.mode, 1, out->array)
                      : dm_pad_by(c->session, x->array, before, after, s.mode, dm_element(one), out->array));
        break;
    case 2:
        DMT_OK(c, dm_roll(c->session, x->array, s.by, dim, out->array));
        break;
    default:
        DMT_OK(c, dm_flip(c->session, x->array, dim, out->array));
    }
    DMT_OK(c, dm_array_destroy(c->session, one));
    dmt_operand_check_same(c, out, want);
    dmt_operand_unchanged(c, x);
}

#define TEST(which, number)                                                                                    \
    static void test_##which(void **state)                                                                     \
    {                                                                                                          \
        (void)state;                                                                                           \
        dmt_run(&(dmt_suite){.name = #which, .cases = number, .fn = which##_case});                            \
    }
TEST(concatenate, 400)
TEST(stack, 400)
TEST(split, 200)
TEST(moved, 800)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_concatenate), cmocka_unit_test(test_stack),
                                       cmocka_unit_test(test_split), cmocka_unit_test(test_moved)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
