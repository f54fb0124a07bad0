/* map: random numbers in expressions are those of dm_fill_uniform and dm_fill_normal, of an array of the elements' shape in
 * any layout; alone, beside arrays, in reductions. */
#include "support/answers.h"
#include "support/oracle.h"
#include "support/reduced.h"
#include "support/refusal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Random numbers of a call: text, and what they are for an array of a shape. */
typedef struct numbers {
    bool normal, given; /* given: the seed is the number `seed` */
    uint64_t seed;
    char text[60];
} numbers;

static numbers numbers_random(dmt_case *c)
{
    numbers r = {.normal = dmt_chance(&c->random, 50), .given = dmt_chance(&c->random, 30)};
    r.seed = (uint64_t)dmt_int(&c->random, 0, dmt_chance(&c->random, 50) ? 9 : INT64_MAX);
    r.seed *= !r.given && dmt_chance(&c->random, 30) ? 2 : 1;
    if (r.given) {
        snprintf(r.text, sizeof r.text, "%s(seed)", r.normal ? "normal" : "uniform");
    } else {
        snprintf(r.text, sizeof r.text, "%s(%llu)", r.normal ? "normal" : "uniform", (unsigned long long)r.seed);
    }
    return r;
}

static dmt_host *filled(dmt_case *c, const numbers *r, dm_dtype dtype, int ndim, const int64_t *shape)
{
    dm_array a;
    DMT_OK(c, dm_array_create(c->session, dtype, ndim, shape, NULL, &a));
    DMT_OK(c, r->normal ? dm_fill_normal(c->session, a, 0, 1, r->seed) : dm_fill_uniform(c->session, a, 0, 1, r->seed));
    dmt_host *h = dmt_read(c, a, dtype, ndim, shape);
    DMT_OK(c, dm_array_destroy(c->session, a));
    return h;
}

/* The type of random numbers that go to an array of this type. */
static dm_dtype type_for(dm_dtype to)
{
    return dmt_is_float(to) && to != DM_F64 ? DM_F32 : DM_F64;
}

/* a + v or a * v, rounded once. */
static long double joined(dm_dtype dtype, bool product, long double a, long double v)
{
    if (dtype == DM_F64) {
        volatile double x = (double)a, y = (double)v, r = product ? x * y : x + y;
        return r;
    }
    volatile float x = (float)a, y = (float)v, r = product ? x * y : x + y;
    return r;
}

/* out = random numbers; or x + them, or x * them, with x of their type, which may be out. */
static void map_case(dmt_case *c)
{
    static const char *const forms[] = {"%s", "x + %s", "x * %s"};
    int64_t shape[DM_MAX_DIMS], own[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape), form = (int)dmt_int(&c->random, 0, 2);
    dm_dtype to = dmt_dtype_random(c), type = type_for(to);
    numbers r = numbers_random(c);
    bool full = dmt_chance(&c->random, 60);
    int n = full ? ndim : dmt_shape_narrowed(c, ndim, shape, own);
    dmt_host *x = dmt_host_for_ewise(c, type, n, full ? shape : own), *like = dmt_host_for_ewise(c, to, ndim, shape);
    dmt_operand *in = form > 0 ? dmt_operand_make(c, "x", x, 0) : NULL;
    bool in_place = in && full && to == type && dmt_chance(&c->random, 40);
    dmt_operand *out = in_place ? in : dmt_operand_make(c, "out", like, DMT_UNSET);
    dm_map_arg args[2];
    int count = 0;
    char text[100];
    if (in) {
        args[count++] = (dm_map_arg)DM_ARG("x", in->array);
    }
    if (r.given) {
        args[count++] = (dm_map_arg)DM_INTEGER("seed", (int64_t)r.seed);
    }
    snprintf(text, sizeof text, forms[form], r.text);
    dmt_say(c, "\n    %s, seed %llu", text, (unsigned long long)r.seed);
    DMT_OK(c, dm_map(c->session, text, count, args, out->array));
    dmt_host *made = filled(c, &r, type, ndim, shape), *want = dmt_host_make(&c->scratch, to, ndim, shape);
    for (int64_t i = 0; i < want->count; i++) {
        long double v = made->v[i], a = form > 0 ? x->v[dmt_broadcast(x, want, i)] : 0;
        want->v[i] = dmt_convert(type, to, form == 0 ? v : joined(type, form == 2, a, v));
    }
    dmt_operand_check(c, out, want, NULL);
}

/* max(x + numbers) and mean(x * numbers) over some dims. x may be of any layout and shape. */
static void reduce_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], narrow[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, 3);
    dm_dtype type = dmt_chance(&c->random, 50) ? DM_F32 : DM_F64;
    const dmt_reduction *row = dmt_reduction_named(dmt_chance(&c->random, 50) ? "max" : "mean");
    bool max = strcmp(row->name, "max") == 0, apart = ndim == 2 && dmt_chance(&c->random, 40);
    numbers r = numbers_random(c);
    dmt_dims dims;
    dmt_shape_random(c, ndim, 2000, shape);
    /* Two arrays may make the shape together, of which none has it. */
    memcpy(narrow, shape, sizeof shape);
    narrow[0] = apart ? 1 : narrow[0];
    dmt_host *x = dmt_host_make(&c->scratch, type, ndim, narrow), *y = NULL;
    dmt_host_random(x, &c->random, DMT_SMOOTH);
    dmt_operand *a = dmt_operand_make(c, "x", x, 0), *b = NULL;
    if (apart) {
        y = dmt_host_make(&c->scratch, type, 2, (int64_t[]){shape[0], 1});
        dmt_host_set(y, 0);
        b = dmt_operand_make(c, "y", y, 0);
    }
    dmt_host *made = filled(c, &r, type, ndim, shape), *elements = dmt_host_copy(&c->scratch, made);
    for (int64_t i = 0; i < elements->count; i++) {
        long double v = x->v[dmt_broadcast(x, elements, i)];
        elements->v[i] = joined(type, !max, v, made->v[i]);
    }
    dmt_dims_random(c, elements, &dims);
    dmt_host *want = dmt_reduced_make(c, elements, &dims, type), *bound = dmt_host_copy(&c->scratch, want);
    for (int64_t i = 0; i < want->count; i++) {
        int64_t n;
        const long double *v = dmt_reduced_take(c, elements, &dims, i, &n);
        if (n == 0) {
            return;
        }
        dmt_answer answer = row->value(type, v, n);
        want->v[i] = answer.value;
        bound->v[i] = answer.bound;
    }
    char text[200];
    int length = snprintf(text, sizeof text, "%s(x %c %s%s", row->name, max ? '+' : '*', r.text, apart ? " + y" : "");
    for (int i = 0; i < dims.ndims; i++) {
        length += snprintf(text + length, sizeof text - (size_t)length, ", %d", dims.dims[i]);
    }
    strcat(text, ")");
    dmt_say(c, "\n    %s, seed %llu", text, (unsigned long long)r.seed);
    dmt_operand *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    dm_map_arg args[3] = {DM_ARG("x", a->array)};
    int count = 1;
    if (apart) {
        args[count++] = (dm_map_arg)DM_ARG("y", b->array);
    }
    if (r.given) {
        args[count++] = (dm_map_arg)DM_INTEGER("seed", (int64_t)r.seed);
    }
    DMT_OK(c, dm_map(c->session, text, count, args, out->array));
    dmt_operand_check(c, out, want, bound);
    dmt_operand_unchanged(c, a);
}

static void test_map(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "map_random", .cases = 800, .fn = map_case});
}

static void test_reduce(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "map_random_reduce", .cases = 500, .fn = reduce_case});
}

/* --- indices: 100 * index(a) + index(b) of dims counted from both ends; their sums too */
static void index_case(dmt_case *c)
{
    int64_t shape[DM_MAX_DIMS], own[DM_MAX_DIMS];
    int ndim = dmt_ewise_shape(c, shape);
    if (ndim == 0) {
        return;
    }
    int a = (int)dmt_int(&c->random, 0, ndim - 1), b = (int)dmt_int(&c->random, 0, ndim - 1);
    dmt_host *want = dmt_host_make(&c->scratch, DM_I64, ndim, shape);
    long double total = 0;
    for (int64_t i = 0; i < want->count; i++) {
        int64_t rest = i;
        for (int d = ndim - 1; d >= 0; d--) {
            want->v[i] += (d == a ? 100 * (rest % shape[d]) : 0) + (d == b ? rest % shape[d] : 0);
            rest /= shape[d];
        }
        total += want->v[i];
    }
    char text[100];
    snprintf(text, sizeof text, "100 * index(%d) + index(%d)", a, b - ndim);
    dmt_say(c, "\n    %s", text);
    dmt_operand *out = dmt_operand_make(c, "out", dmt_host_make(&c->scratch, DM_I64, ndim, shape), DMT_UNSET);
    DMT_OK(c, dm_map(c->session, text, 0, NULL, out->array));
    dmt_operand_check(c, out, want, NULL);
    int n = dmt_chance(&c->random, 60) ? ndim : dmt_shape_narrowed(c, ndim, shape, own);
    if (n == ndim) { /* an array of the full shape, in any layout, beside it */
        dmt_host *zero = dmt_host_make(&c->scratch, DM_I32, ndim, shape), *sum = dmt_host_make(&c->scratch, DM_I64, 0, NULL);
        dmt_operand *x = dmt_operand_make(c, "x", zero, 0), *s = dmt_operand_make(c, "out", sum, DMT_UNSET);
        snprintf(text, sizeof text, "sum(x + 100 * index(%d) + index(%d))", a - ndim, b);
        DMT_OK(c, dm_map(c->session, text, 1, (dm_map_arg[]){DM_ARG("x", x->array)}, s->array));
        sum->v[0] = total;
        dmt_operand_check(c, s, sum, NULL);
    }
}

static void test_index(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "map_index", .cases = 400, .fn = index_case});
}

/* --- several of them in one call; plans are kept for other seeds; new arrays are f64 */
static int64_t plans_of(dmt_case *c)
{
    dm_counters n = {.size = sizeof n};
    DMT_OK(c, dm_counters_get(c->session, 0, &n));
    return n.plans_made;
}

static void several(dmt_case *c)
{
    const int64_t shape[] = {30, 7};
    dm_array x, made;
    int64_t before = 0;
    double got = 0;
    dm_array_info info = {.size = sizeof info};
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, NULL, &x));
    for (int seed = 0; seed < 4; seed++) {
        dm_map_arg args[] = {DM_INTEGER("s", seed)};
        DMT_OK(c, dm_map(c->session, "uniform(s) - uniform(s + 1) + 2 * normal(s)", 1, args, x));
        before = seed == 0 ? plans_of(c) : before;
        dmt_host *all = dmt_read(c, x, DM_F32, 2, shape);
        dmt_host *a = filled(c, &(numbers){.seed = (uint64_t)seed}, DM_F32, 2, shape);
        dmt_host *b = filled(c, &(numbers){.seed = (uint64_t)seed + 1}, DM_F32, 2, shape);
        dmt_host *n = filled(c, &(numbers){.seed = (uint64_t)seed, .normal = true}, DM_F32, 2, shape);
        for (int64_t i = 0; i < all->count; i++) {
            float difference = (float)a->v[i] - (float)b->v[i];
            if (all->v[i] != (long double)(difference + 2 * (float)n->v[i])) {
                dmt_fail(c, "seed %d: element %d is %Lg", seed, (int)i, all->v[i]);
            }
        }
    }
    int64_t plain = plans_of(c);
    DMT_OK(c, dm_map(c->session, "uniform(8) - uniform(8)", 0, NULL, x));
    DMT_OK(c, dm_map(c->session, "uniform(9) - uniform(4)", 0, NULL, x));
    if (plans_of(c) != plain + 1) {
        dmt_fail(c, "another seed made %d plans", (int)(plans_of(c) - plain - 1));
    }
    DMT_OK(c, dm_map_new(c->session, "mean(x * 0 + normal(3))", 1, (dm_map_arg[]){DM_ARG("x", x)}, NULL, &made));
    DMT_OK(c, dm_array_query(c->session, made, &info));
    DMT_OK(c, dm_array_read(c->session, made, NULL, NULL, &got, 0));
    if (info.dtype != DM_F64 || info.ndim != 0 || fabs(got) > 0.5 || got == 0) {
        dmt_fail(c, "the mean of 210 normal numbers is %g, of %s", got, dm_dtype_name(info.dtype));
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, made));
}
DMT_ONE_CASE(several)

static void refusals(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    dm_map_arg x[] = {DM_ARG("x", t.f)}, half[] = {DM_NUMBER("a", 0.5)};
    char text[300] = "uniform(0)";
    for (int i = 1; i < 12; i++) {
        sprintf(text + strlen(text), " + uniform(%d)", i);
    }
    REFUSED(DMT_ONE(ARG), "more than 11 arrays and random numbers (column 145)", dm_map(s, text, 0, NULL, t.g));
    REFUSED(DMT_ONE(ARG), "a seed is a whole number", dm_map(s, "uniform(x)", 1, x, t.g));
    REFUSED(DMT_ONE(ARG), "a seed is a whole number", dm_map(s, "uniform(a)", 1, half, t.g));
    REFUSED(DMT_ONE(ARG), "a seed is a whole number", dm_map(s, "normal(-3)", 0, NULL, t.g));
    REFUSED(DMT_ONE(ARG), "the dim whose index", dm_map(s, "index(x)", 1, x, t.g));
    REFUSED(DMT_ONE(ARG), "no such dim", dm_map(s, "1 + index(2)", 0, NULL, t.g));
    REFUSED(DMT_ONE(ARG), "no such dim: the elements have 2 dims (column 5)",
            dm_map(s, "x + index(-3)", 1, x, t.g));
    REFUSED(DMT_ONE(ARG), "one operand", dm_map(s, "uniform(0, 1)", 0, NULL, t.g));
    REFUSED(DMT_ONE(HANDLE), "out", dm_map(s, "uniform(1)", 0, NULL, DM_NO_ARRAY));
    dmt_things_end(c, &t);
}
DMT_ONE_CASE(refusals)

/* A number that is only used converted is the same number: not 0 is true, and an f32 is the f64 rounded. */
static void converted_case(dmt_case *c)
{
    enum { N = 37 };
    dm_array u, x;
    double want[N], got[N];
    DMT_OK(c, dm_vector(c->session, DM_F64, N, &u));
    DMT_OK(c, dm_vector(c->session, DM_F64, N, &x));
    DMT_OK(c, dm_fill_uniform(c->session, u, 0, 1, 3));
    DMT_OK(c, dm_read(c->session, u, want));
    DMT_OK(c, dm_map(c->session, "where(uniform(3), 1, 2)", 0, NULL, x));
    DMT_OK(c, dm_read(c->session, x, got));
    for (int i = 0; i < N; i++) {
        if (got[i] != (want[i] != 0 ? 1 : 2)) {
            dmt_fail(c, "where() of %g gives %g", want[i], got[i]);
        }
    }
    DMT_OK(c, dm_map(c->session, "f64(f32(uniform(3)))", 0, NULL, x));
    DMT_OK(c, dm_read(c->session, x, got));
    for (int i = 0; i < N; i++) {
        if (got[i] != (double)(float)want[i]) {
            dmt_fail(c, "%g as f32 is %g", want[i], got[i]);
        }
    }
    DMT_OK(c, dm_array_destroy(c->session, u));
    DMT_OK(c, dm_array_destroy(c->session, x));
}

static void test_converted(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "map_random_converted", .cases = 1, .fn = converted_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_converted), cmocka_unit_test(test_map),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_index),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
