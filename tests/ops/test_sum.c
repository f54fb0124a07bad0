/* out = scale * (sum of x over dims) + beta * out */
#include "support/reduced.h"

#include <math.h>
#include <string.h>

/* A sum without an error that matters: what a long double addition rounds away is kept beside it (Knuth). */
typedef struct exact_sum {
    long double high, low, magnitude;
    uint64_t whole;
    int64_t count;
} exact_sum;

static void add_to(exact_sum *s, long double v, bool whole)
{
    long double sum = s->high + v, part = sum - s->high;
    long double error = (s->high - (sum - part)) + (v - part);
    s->high = sum;
    s->low += isfinite(sum) ? error : 0;
    s->magnitude += fabsl(v);
    s->whole += whole ? dmt_wrapped(v) : 0;
    s->count++;
}

typedef struct request {
    dmt_host *x, *out;
    dmt_dims d;
    double scale, beta;
} request;

/* The sums of x, one an element of out. */
static exact_sum *sums_of(dmt_case *c, const request *q)
{
    exact_sum *sums = dmt_alloc(&c->scratch, q->out->count * (int64_t)sizeof *sums);
    int64_t index[DM_MAX_DIMS] = {0};
    for (int64_t i = 0; i < q->x->count; i++) {
        int64_t at = 0;
        for (int d = 0; d < q->x->ndim; d++) {
            at = q->d.reduced[d] ? at : at * q->x->shape[d] + index[d];
        }
        add_to(&sums[at], q->x->v[i], !dmt_is_float(q->x->dtype));
        dmt_next(q->x->ndim, q->x->shape, index);
    }
    return sums;
}

/* f64 is summed in double-double, so only the last rounding counts; the other floats in f64. */
static void expect(dmt_case *c, const request *q, dmt_host *want, dmt_host *bound)
{
    exact_sum *sums = sums_of(c, q);
    bool whole_x = !dmt_is_float(q->x->dtype), whole_out = !dmt_is_float(q->out->dtype);
    long double eps = dmt_eps(DM_F64);
    for (int64_t i = 0; i < want->count; i++) {
        exact_sum s = sums[i];
        if (whole_x && whole_out) {
            uint64_t old = q->beta == 0 ? 0 : dmt_wrapped(q->out->v[i]);
            want->v[i] = dmt_from_whole(want->dtype, (int64_t)((uint64_t)(int64_t)q->scale * s.whole +
                                                               (uint64_t)(int64_t)q->beta * old));
            continue;
        }
        long double sum = !whole_x                ? s.high + s.low
                          : q->x->dtype == DM_U64 ? (long double)s.whole
                                                  : (long double)(int64_t)s.whole;
        long double old = q->beta == 0 ? 0 : (long double)q->beta * q->out->v[i];
        long double adding =
            whole_x ? 0 : (long double)s.count * (q->x->dtype == DM_F64 ? 0x1p-98L : eps) * s.magnitude;
        bool plain = q->scale == 1 && q->beta == 0 && q->x->dtype == DM_F64;
        want->v[i] = (long double)q->scale * sum + old;
        bound->v[i] =
            fabsl(q->scale) * adding +
            (plain ? 0 : 3 * (eps * (fabsl((long double)q->scale * sum) + fabsl(old)) + dmt_tiny(DM_F64)));
    }
}

static void make_out(dmt_case *c, request *q, dm_dtype dtype)
{
    q->out = dmt_reduced_make(c, q->x, &q->d, dtype);
    dmt_host_random(q->out, &c->random, DMT_SMOOTH);
    for (int64_t i = 0; i < q->out->count && q->beta == 0 && dmt_is_float(dtype); i++) {
        q->out->v[i] = NAN; /* must not be read */
    }
}

static void run_request(dmt_case *c, request *q)
{
    dmt_operand *x = dmt_operand_make(c, "x", q->x, 0);
    dmt_operand *out = dmt_operand_make(c, "out", q->out, q->beta == 0 ? DMT_UNSET : 0);
    dmt_say_dims(c, &q->d);
    dmt_say(c, ", scale %.17g beta %.17g", q->scale, q->beta);
    dmt_host *want = dmt_host_make(&c->scratch, q->out->dtype, q->out->ndim, q->out->shape);
    dmt_host *bound = dmt_host_copy(&c->scratch, want);
    expect(c, q, want, bound);
    DMT_OK(c, dm_sum(c->session, x->array, dmt_dims_given(&q->d), q->d.ndims, q->scale, q->beta, out->array));
    dmt_operand_check(c, out, want, bound);
    dmt_operand_unchanged(c, x);
}

static void sum_case(dmt_case *c)
{
    request q = {0};
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 0, dmt_chance(&c->random, 12) ? DM_MAX_DIMS : 3);
    dm_dtype from = dmt_dtype_random(c), to = dmt_chance(&c->random, 60) ? from : dmt_dtype_random(c);
    dmt_shape_random(c, ndim, dmt_chance(&c->random, 5) ? 60000 : 4000, shape);
    q.x = dmt_host_make(&c->scratch, from, ndim, shape);
    dmt_host_random(q.x, &c->random,
                    dmt_chance(&c->random, 15)                          ? DMT_ODD
                    : !dmt_is_float(from) && dmt_chance(&c->random, 30) ? DMT_WILD
                                                                        : DMT_SMOOTH);
    dmt_dims_random(c, q.x, &q.d);
    bool whole = !dmt_is_float(to);
    q.scale = dmt_chance(&c->random, 60) ? 1 : dmt_factor_random(c, whole);
    q.beta = dmt_chance(&c->random, 60) ? 0 : dmt_factor_random(c, whole);
    make_out(c, &q, to);
    run_request(c, &q);
}

/* Numbers of very different size whose sum is small: only a double-double accumulator gets it right. */
static void cancelling_case(dmt_case *c)
{
    request q = {.scale = 1};
    int64_t count = dmt_int(&c->random, 1, 200) * 2, shape[1] = {count};
    q.x = dmt_host_make(&c->scratch, DM_F64, 1, shape);
    for (int64_t i = 0; i < count; i += 2) {
        double big = ldexp(dmt_unit(&c->random) - 0.5, (int)dmt_int(&c->random, 0, 40));
        q.x->v[i] = big;
        q.x->v[i + 1] = -big + dmt_unit(&c->random);
        q.x->v[i + 1] = dmt_from_real(DM_F64, q.x->v[i + 1]);
    }
    q.d.reduced[0] = true;
    make_out(c, &q, DM_F64);
    run_request(c, &q);
}

/* A full stop of f32 additions would stay at 2^24. */
static void many_ones_case(dmt_case *c)
{
    const int64_t shape[] = {4100, 4100};
    const double want = 4100.0 * 4100.0;
    double got = 0;
    float short_got = 0;
    dm_array x, out, short_out;
    DMT_OK(c, dm_array_create(c->session, DM_F32, 2, shape, NULL, &x));
    DMT_OK(c, dm_array_create(c->session, DM_F64, 0, NULL, NULL, &out));
    DMT_OK(c, dm_array_create(c->session, DM_F32, 0, NULL, NULL, &short_out));
    DMT_OK(c, dm_fill(c->session, x, 1));
    DMT_OK(c, dm_sum(c->session, x, NULL, 0, 1, 0, out));
    DMT_OK(c, dm_sum(c->session, x, NULL, 0, 1, 0, short_out));
    DMT_OK(c, dm_array_read(c->session, out, NULL, NULL, &got, 0));
    DMT_OK(c, dm_array_read(c->session, short_out, NULL, NULL, &short_got, 0));
    if (got != want || short_got != (float)want) {
        dmt_fail(c, "the sum of %.17g ones is %.17g and, in f32, %.9g", want, got, (double)short_got);
    }
    DMT_OK(c, dm_array_destroy(c->session, x));
    DMT_OK(c, dm_array_destroy(c->session, out));
    DMT_OK(c, dm_array_destroy(c->session, short_out));
}

/* The output lies inside what is summed. */
static void overlap_case(dmt_case *c)
{
    request q = {.scale = 1, .d = {.ndims = 1, .dims = {0}, .reduced = {true, false}}};
    const int64_t shape[] = {6, 7}, extent[] = {1, 7};
    int64_t lo[2] = {dmt_int(&c->random, 0, 5), 0};
    dm_array row;
    q.x = dmt_host_make(&c->scratch, DM_F64, 2, shape);
    q.out = dmt_host_make(&c->scratch, DM_F64, 2, extent);
    dmt_host_random(q.x, &c->random, DMT_SMALL);
    dmt_operand *x = dmt_operand_make(c, "x", q.x, 0);
    DMT_OK(c, dm_array_view(c->session, x->array, lo, extent, &row));
    dm_status status = dm_sum(c->session, x->array, q.d.dims, 1, 1, 0, row);
    DMT_OK(c, dm_array_destroy(c->session, row));
    if (status != DM_ERR_OVERLAP) {
        dmt_status_is(c, status, DM_OK, "dm_sum into a row of x");
        dmt_host *bound = dmt_host_copy(&c->scratch, q.out);
        expect(c, &q, q.out, bound);
        dmt_host_put(x->value, lo, q.out);
    }
    dmt_operand_unchanged(c, x);
}

/* Copies of out that are made from different replicas of x: numbers whose sum depends on the order of additions. */
static void copies_case(dmt_case *c)
{
    static const double numbers[] = {0x1p60, -0x1p60, 1}; /* a worker's two rows have one, and a 0 */
    int order[3];
    const int64_t shape[] = {6, 2}, width[] = {2};
    dmt_host *x = dmt_host_make(&c->scratch, DM_F32, 2, shape), *out = dmt_host_make(&c->scratch, DM_F64, 1, width);
    dmt_host *bound = dmt_host_copy(&c->scratch, out);
    if (c->workers < 6) { /* as the environment may want it */
        return;
    }
    for (int64_t column = 0; column < 2; column++) {
        dmt_shuffle(&c->random, 3, order);
        for (int i = 0; i < 3; i++) {
            x->v[4 * i + column] = numbers[order[i]];
        }
    }
    for (int64_t i = 0; i < out->count; i++) {
        bound->v[i] = INFINITY;
    }
    dm_layout rows = {.size = sizeof rows, .grid = {3, 1}, .replicas = 2};
    dm_layout copies = {.size = sizeof copies, .grid = {2}, .replicas = 3};
    dmt_operand *from = dmt_operand_plain(c, "x", x, &rows, "rows of 3 workers, twice");
    dmt_operand *to = dmt_operand_plain(c, "out", out, &copies, "2 workers, three times");
    to->layout.layout = copies; /* its copies are compared */
    to->layout.use = &to->layout.layout;
    DMT_OK(c, dm_sum(c->session, from->array, (int[]){0}, 1, 1, 0, to->array));
    dmt_operand_check(c, to, out, bound);
}

/* Elements near the largest double, whole multiples of 2^1000, so that all sums are exact as whole numbers; now
 * and then some that are not finite. Whatever is added first, the result is the sum of all, where that is
 * within the range. */
enum { EXTREME_UNIT = 1000 };
typedef struct extreme {
    int64_t units;
    long double rest; /* the sum of what is not finite; 0: nothing */
} extreme;

static long double take_extreme(extreme *e, long double v)
{
    if (isfinite(v)) {
        e->units += (int64_t)ldexpl(v, -EXTREME_UNIT);
    } else {
        e->rest += v;
    }
    return e->rest != 0 ? e->rest : ldexpl((long double)e->units, EXTREME_UNIT);
}

static long double extreme_element(dmt_case *c, bool finite)
{
    static const double rest[] = {INFINITY, -(double)INFINITY, NAN};
    if (!finite && dmt_chance(&c->random, 2)) {
        return rest[dmt_int(&c->random, 0, 2)];
    }
    int64_t most = dmt_chance(&c->random, 70) ? (1 << 24) - 1 : 9;
    return ldexpl((long double)dmt_int(&c->random, -most, most), EXTREME_UNIT);
}

static void extreme_case(dmt_case *c)
{
    enum { SUM_OF, MEAN, DOT, SCAN, EXPRESSION_OF, WAYS };
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(&c->random, 1, 3), way = (int)dmt_int(&c->random, 0, WAYS - 1);
    dmt_shape_random(c, way == DOT ? ndim = 1 : ndim, dmt_chance(&c->random, 10) ? 40000 : 1200, shape);
    request q = {.scale = 1};
    q.x = dmt_host_make(&c->scratch, DM_F64, ndim, shape);
    bool finite = dmt_chance(&c->random, 60);
    for (int64_t i = 0; i < q.x->count; i++) {
        q.x->v[i] = extreme_element(c, finite);
    }
    dmt_dims_random(c, q.x, &q.d);
    if (way == DOT || way == EXPRESSION_OF) { /* without the dims, all of them */
        q.d = (dmt_dims){.reduced = {true, true, true}};
    }
    int scanned = (int)dmt_int(&c->random, 0, ndim - 1);
    static const dm_dtype types[] = {DM_F64, DM_F64, DM_F32};
    dm_dtype to = types[dmt_int(&c->random, 0, way == MEAN || way == SCAN ? 1 : 2)];
    dmt_host *want = way == SCAN                          ? dmt_host_copy(&c->scratch, q.x)
                     : way == DOT || way == EXPRESSION_OF ? dmt_host_make(&c->scratch, to, 0, NULL)
                                                          : dmt_reduced_make(c, q.x, &q.d, to);
    extreme *sums = dmt_alloc(&c->scratch, (q.x->count + want->count + 1) * (int64_t)sizeof *sums);
    memset(sums, 0, (size_t)(q.x->count + want->count + 1) * sizeof *sums);
    int64_t index[DM_MAX_DIMS] = {0};
    for (int64_t i = 0; i < want->count && way != SCAN; i++) {
        want->v[i] = 0;
    }
    for (int64_t i = 0; i < q.x->count; i++) {
        int64_t at = 0;
        for (int d = 0; d < ndim; d++) {
            at = (way == SCAN ? d == scanned : q.d.reduced[d]) ? at : at * shape[d] + index[d];
        }
        want->v[way == SCAN ? i : at] = take_extreme(&sums[at], q.x->v[i]);
        dmt_next(ndim, shape, index);
    }
    dmt_host *bound = dmt_host_copy(&c->scratch, want);
    int64_t each = want->count > 0 ? q.x->count / want->count : 0;
    if (way == SUM_OF && dmt_chance(&c->random, 40)) {
        q.scale = dmt_chance(&c->random, 50) ? 0x1p-30 : -0.5;
    }
    for (int64_t i = 0; i < want->count; i++) {
        want->v[i] = way == MEAN ? want->v[i] / (long double)each : want->v[i] * (long double)q.scale;
        bound->v[i] = way == MEAN && isfinite(want->v[i]) ? fabsl(want->v[i]) * 3 * dmt_eps(DM_F64) : 0;
    }
    dmt_operand *x = dmt_operand_make(c, "x", q.x, 0), *out = dmt_operand_make(c, "out", want, DMT_UNSET);
    dmt_say(c, ", way %d, scale %g, dim %d", way, q.scale, scanned);
    dmt_say_dims(c, &q.d);
    dm_session *s = c->session;
    if (way == SUM_OF) {
        DMT_OK(c, dm_sum(s, x->array, dmt_dims_given(&q.d), q.d.ndims, q.scale, 0, out->array));
    } else if (way == MEAN) {
        DMT_OK(c, dm_mean(s, x->array, dmt_dims_given(&q.d), q.d.ndims, out->array));
    } else if (way == SCAN) {
        DMT_OK(c, dm_cumulative_sum(s, x->array, scanned, out->array));
    } else if (way == DOT) {
        dmt_host *ones = dmt_host_copy(&c->scratch, q.x);
        for (int64_t i = 0; i < ones->count; i++) {
            ones->v[i] = 1;
        }
        dmt_operand *y = dmt_operand_make(c, "y", ones, 0);
        DMT_OK(c, dm_dot(s, x->array, y->array, out->array));
    } else {
        DMT_OK(c, dm_map(s, "sum(x)", 1, (dm_map_arg[]){DM_ARG("x", x->array)}, out->array));
    }
    dmt_operand_check(c, out, want, bound);
    dmt_operand_unchanged(c, x);
}

typedef struct narrow {
    int how;
    dm_dtype dtype;
    double value;
    int64_t elements, bytes; /* of a worker for each sum; of a sum on its way */
} narrow;
enum { SUM, COUNT, EXPRESSION, NARROW_COLS = 3 };

/* Sums at the last worker, of `workers` workers' elements: exact, and sent in so many bytes by the others. */
static void check_narrow(dmt_case *c, const narrow *n, const dm_layout *layout, int64_t workers)
{
    const int64_t shape[2] = {n->elements * workers, NARROW_COLS}, cols = NARROW_COLS;
    const int64_t sum = (n->how == SUM ? (int64_t)n->value : 1) * shape[0];
    int64_t got[NARROW_COLS];
    dm_session *s = c->session;
    dm_layout last = dm_layout_single(c->workers - 1);
    dm_array x, out;
    DMT_OK(c, dm_array_create(s, n->dtype, 2, shape, layout, &x));
    DMT_OK(c, dm_array_create(s, DM_I64, 1, &cols, &last, &out));
    DMT_OK(c, dm_fill(s, x, n->value));
    DMT_OK(c, dm_sync(s));
    int64_t before = dmt_bytes_sent(c);
    DMT_OK(c, n->how == SUM     ? dm_sum_dim(s, x, 0, out)
              : n->how == COUNT ? dm_count_nonzero(s, x, (int[]){0}, 1, out)
                                : dm_map(s, "sum(x > 1, 0)", 1, (dm_map_arg[]){DM_ARG("x", x)}, out));
    DMT_OK(c, dm_sync(s));
    int64_t sent = dmt_bytes_sent(c) - before,
            wanted = (workers > 1 ? workers - 1 : 1) * NARROW_COLS * n->bytes;
    DMT_OK(c, dm_array_read(s, out, NULL, NULL, got, 0));
    for (int i = 0; i < NARROW_COLS; i++) {
        if (got[i] != sum) {
            dmt_fail(c, "sum %d is %lld, not %lld", i, (long long)got[i], (long long)sum);
        }
    }
    if (sent != wanted) {
        dmt_fail(c, "%lld bytes were sent, not %lld", (long long)sent, (long long)wanted);
    }
    DMT_OK(c, dm_array_destroy(s, x));
    DMT_OK(c, dm_array_destroy(s, out));
}

/* The sums of extreme elements, at the last number of elements that a type of sums holds and one further; of
 * all workers, and of one that is not the last. */
static void narrow_case(dmt_case *c)
{
    static const narrow rows[] = {
        {SUM, DM_BOOL, 1, 255, 1},         {SUM, DM_BOOL, 1, 256, 2},       {SUM, DM_BOOL, 1, 65535, 2},
        {SUM, DM_BOOL, 1, 65536, 4},       {SUM, DM_U8, 255, 2, 2},         {SUM, DM_U8, 255, 257, 2},
        {SUM, DM_U8, 255, 258, 4},         {SUM, DM_I8, -128, 2, 2},        {SUM, DM_I8, -128, 256, 2},
        {SUM, DM_I8, 127, 256, 2},         {SUM, DM_I8, -128, 257, 4},      {SUM, DM_I8, 127, 1000, 4},
        {SUM, DM_U16, 65535, 65537, 4},    {SUM, DM_U16, 65535, 65538, 8},  {SUM, DM_I16, -32768, 65536, 4},
        {SUM, DM_I16, 32767, 65536, 4},    {SUM, DM_I16, -32768, 65537, 8}, {SUM, DM_I32, -2147483648.0, 2, 8},
        {SUM, DM_U32, 4294967295.0, 2, 8}, {SUM, DM_I64, 5, 2, 8},          {SUM, DM_U32, 4294967295.0, 1, 4},
        {COUNT, DM_F64, 0.5, 1, 1},        {COUNT, DM_F64, 0.5, 255, 1},    {COUNT, DM_I8, -3, 256, 2},
        {EXPRESSION, DM_F32, 2, 255, 1},   {EXPRESSION, DM_F32, 2, 256, 2}};
    const narrow *row = &rows[c->number % (int64_t)(sizeof rows / sizeof *rows)];
    dm_layout split = dm_layout_rows(c->session), single = dm_layout_single(0);
    if (c->workers < 2) { /* as the environment may want it */
        return;
    }
    dmt_say(c, "\n    %d of %d elements of %s, %g", row->how, (int)row->elements, dmt_name(row->dtype),
            row->value);
    check_narrow(c, row, &split, c->workers);
    check_narrow(c, row, &single, 1);
}

static void test_copies(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sum_copies", .cases = 60, .fn = copies_case, .workers = 6, .each = true});
}

static void test_sum(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sum", .cases = 2400, .fn = sum_case});
}

static void test_cancelling(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sum_cancelling", .cases = 300, .fn = cancelling_case});
}

static void test_many_ones(void **state)
{
    (void)state;
    dmt_run(
        &(dmt_suite){.name = "sum_many_ones", .cases = 1, .fn = many_ones_case, .workers = 3, .each = true});
}

static void test_narrow(void **state)
{
    (void)state;
    for (int workers = 2; workers <= 5; workers++) {
        dmt_run(&(dmt_suite){
            .name = "sum_narrow", .cases = 26, .fn = narrow_case, .workers = workers, .each = true});
    }
}

/* Numbers so small that 2^-64 of them has fewer bits, in columns and behind or before numbers that are not
 * finite: they keep all their bits. */
static void small_case(dmt_case *c)
{
    enum { M = 7, N = 150 }; /* more than 4 KiB, which would lie on one worker */
    double x[M * N], sums[N], running[M * N];
    for (int i = 0; i < M * N; i++) {
        int row = i / N, column = i % N;
        bool odd = column % 3 == 2;
        x[i] = odd && row == column % M ? INFINITY : 0x1p-1074 * (double)dmt_int(&c->random, 0, 1000);
    }
    dm_array a, out, along;
    DMT_OK(c, dm_matrix(c->session, DM_F64, M, N, &a));
    DMT_OK(c, dm_vector(c->session, DM_F64, N, &out));
    DMT_OK(c, dm_matrix(c->session, DM_F64, M, N, &along));
    DMT_OK(c, dm_array_write(c->session, a, NULL, NULL, x, 0));
    DMT_OK(c, dm_sum(c->session, a, (int[]){0}, 1, 1, 0, out));
    DMT_OK(c, dm_cumulative_sum(c->session, a, 1, along));
    DMT_OK(c, dm_array_read(c->session, out, NULL, NULL, sums, 0));
    DMT_OK(c, dm_array_read(c->session, along, NULL, NULL, running, 0));
    for (int j = 0; j < N; j++) {
        double want = 0;
        for (int i = 0; i < M; i++) {
            want += x[i * N + j]; /* exact */
        }
        if (sums[j] != want) {
            dmt_fail(c, "column %d: %g, not %g", j, sums[j], want);
        }
    }
    for (int i = 0; i < M; i++) {
        double want = 0;
        for (int j = 0; j < N; j++) {
            want += x[i * N + j];
            if (running[i * N + j] != want) {
                dmt_fail(c, "row %d, up to %d: %g, not %g", i, j, running[i * N + j], want);
            }
        }
    }
    DMT_OK(c, dm_array_destroy(c->session, a));
    DMT_OK(c, dm_array_destroy(c->session, out));
    DMT_OK(c, dm_array_destroy(c->session, along));
}

static void test_small(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sum_small", .cases = 25, .fn = small_case});
}

static void test_extreme(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sum_extreme", .cases = 1500, .fn = extreme_case});
}

static void test_overlap(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "sum_overlap", .cases = 100, .fn = overlap_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),    cmocka_unit_test(test_sum),    cmocka_unit_test(test_cancelling),
        cmocka_unit_test(test_many_ones), cmocka_unit_test(test_narrow), cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_extreme),   cmocka_unit_test(test_small),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
