/* dw = beta dw + dy^T x, db = beta db + the sum of dy: against loops, and the same bits in all layouts; slices
 * rounded to bf16, too */
#include "support/factors.h"
#include "support/inner.h"
#include "support/refusal.h"

#include <math.h>

enum { X, DY, DW, DB };

static dm_status call(dmt_case *c, const dm_inner *inner, const dmt_layer *l, dm_factor beta)
{
    return inner->wire ? dm_inner_backward_weights_with(c->session, inner, l->array[X], l->array[DY], beta,
                                                        l->array[DW], l->array[DB])
                       : dm_inner_backward_weights_by(c->session, inner->slices, l->array[X], l->array[DY],
                                                      beta, l->array[DW], l->array[DB]);
}

/* What rounding to bf16 makes dw wrong by: half a distance of its numbers, 2^-8, of each slice's magnitude.
 * Where it is not known what the slices are: of each term's. */
static dmt_host *rounded_slices(dmt_case *c, const dmt_layer *l, const dmt_inner *v, const dmt_sums *terms)
{
    dmt_host *rounded = dmt_sums_rounded(c, terms, DM_BF16);
    const int64_t size = v->slices > 0 ? (v->x[0] + v->slices - 1) / v->slices : 0;
    for (int64_t at = 0; at < rounded->count && v->slices > 0; at++) {
        long double slice = 0, magnitudes = 0;
        for (int64_t n = 0; n < v->x[0]; n++) {
            slice += l->host[DY]->v[n * v->y[1] + at / v->in] * l->host[X]->v[n * v->in + at % v->in];
            if ((n + 1) % size == 0 || n + 1 == v->x[0]) {
                magnitudes += fabsl(slice);
                slice = 0;
            }
        }
        rounded->v[at] = ldexpl(magnitudes, -8) + 8 * dmt_tiny(DM_BF16);
    }
    return rounded;
}

static void weights_case(dmt_case *c)
{
    dmt_inner v;
    dmt_layer l = {.all = dmt_layer_all(c)}, alone;
    dmt_factor beta = dmt_factor_make(c, "beta", false, false);
    dmt_inner_random(c, &v);
    dmt_layer_add(c, &l, "x", 0, v.x_dims, v.x);
    dmt_layer_add(c, &l, "dy", 0, 2, v.y);
    dmt_layer_add(c, &l, "dw", 0, v.w_dims, v.w);
    dmt_layer_add(c, &l, "db", 0, 1, v.w);
    dm_inner inner = DM_INNER_INIT;
    inner.slices = v.slices;
    inner.wire = dmt_layer_wire(c, l.host[X], l.host[DY]);
    l.left_out[DB] = dmt_chance(&c->random, 30);
    dmt_layer_make(c, &l, beta.value == 0 ? 1u << DW | 1u << DB : 0);
    dmt_sums w = dmt_sums_make(c, l.host[DW]), b = dmt_sums_make(c, l.host[DB]);
    for (int64_t n = 0; n < v.x[0]; n++) {
        for (int64_t m = 0; m < v.y[1]; m++) {
            for (int64_t k = 0; k < v.in; k++) {
                dmt_sums_add(&w, m * v.in + k, l.host[DY]->v[n * v.y[1] + m], l.host[X]->v[n * v.in + k]);
            }
            dmt_sums_add(&b, m, l.host[DY]->v[n * v.y[1] + m], 1);
        }
    }
    dmt_host *rounded = inner.wire ? rounded_slices(c, &l, &v, &w) : NULL;
    dmt_sums_end(&w, l.host[DW], beta.value, dmt_layer_eps(&l));
    dmt_sums_end(&b, l.host[DB], beta.value, dmt_layer_eps(&l));
    dmt_sums_widen(&w, rounded);
    DMT_OK(c, call(c, &inner, &l, beta.given));
    dmt_operand_check(c, l.operand[DW], w.want, w.bound);
    if (!l.left_out[DB]) {
        dmt_operand_check(c, l.operand[DB], b.want, b.bound);
    }
    if (v.slices > 0) {
        dmt_layer_alone(c, &l, &alone);
        DMT_OK(c, call(c, &inner, &alone, beta.given));
        dmt_layer_same(c, &l, &alone, DW);
        dmt_layer_same(c, &l, &alone, DB);
    }
}

/* To eight bits, ties to even: frexp and rint know nothing of formats. */
static long double eight_bits(long double v)
{
    int exponent;
    long double part = frexpl(v, &exponent);
    return ldexpl(rintl(ldexpl(part, 8)), exponent - 8);
}

static void whole_numbers(dmt_case *c, dmt_host *h, int64_t most)
{
    for (int64_t i = 0; i < h->count; i++) {
        h->v[i] = (long double)dmt_int(&c->random, -most, most);
    }
}

/* Of whole numbers, sums within slices are exact, and so are sums of rounded ones: the result is known to the
 * bit. */
static void wire_case(dmt_case *c)
{
    static const dm_dtype types[] = {DM_F32, DM_F32, DM_F64, DM_BF16};
    dmt_inner v;
    dmt_layer l = {.all = 0};
    dm_inner inner = DM_INNER_INIT;
    const double beta = (double)dmt_int(&c->random, -2, 2);
    dmt_inner_random(c, &v);
    dmt_host *x = dmt_layer_add(c, &l, "x", types[dmt_int(&c->random, 0, 3)], v.x_dims, v.x);
    dmt_host *dy = dmt_layer_add(c, &l, "dy", types[dmt_int(&c->random, 0, 3)], 2, v.y);
    dmt_host *dw = dmt_layer_add(c, &l, "dw", types[dmt_int(&c->random, 0, 2)], v.w_dims, v.w);
    dmt_host *db = dmt_layer_add(c, &l, "db", types[dmt_int(&c->random, 0, 2)], 1, v.w);
    whole_numbers(c, x, 255);
    whole_numbers(c, dy, 255);
    whole_numbers(c, dw, 1000);
    whole_numbers(c, db, 1000);
    inner.slices = v.slices;
    inner.wire = DM_BF16;
    dmt_layer_make(c, &l, 0);
    if (v.slices == 0) { /* a slice a worker */
        dm_layout batch = dm_layout_batch(c->session, v.x[0], 0);
        for (int i = X; i <= DY; i++) {
            l.operand[i] = dmt_operand_plain(c, l.name[i], l.host[i], &batch, "by batch");
            l.array[i] = l.operand[i]->array;
        }
    }
    const int64_t cuts = v.slices > 0 ? v.slices : c->workers, size = (v.x[0] + cuts - 1) / cuts;
    for (int64_t m = 0; m < v.y[1]; m++) {
        long double all = 0; /* a sum of nothing is 0, and 0 - 0 is 0 */
        for (int64_t n = 0; n < v.x[0]; n++) {
            all += dy->v[n * v.y[1] + m];
        }
        db->v[m] = all + beta * db->v[m];
        for (int64_t k = 0; k < v.in; k++) {
            long double sum = 0, slice = 0;
            for (int64_t n = 0; n < v.x[0]; n++) {
                slice += dy->v[n * v.y[1] + m] * x->v[n * v.in + k];
                if ((n + 1) % size == 0 || n + 1 == v.x[0]) {
                    sum += eight_bits(slice);
                    slice = 0;
                }
            }
            dw->v[m * v.in + k] = sum + beta * dw->v[m * v.in + k];
        }
    }
    DMT_OK(c, call(c, &inner, &l, dm_value(beta)));
    dmt_operand_check_same(c, l.operand[DW], dw);
    dmt_operand_check_same(c, l.operand[DB], db);
}

static void refusals(dmt_case *c)
{
    const int64_t x_shape[] = {5, 3}, y_shape[] = {5, 2}, w_shape[] = {2, 3};
    dm_array x = dmt_thing_make(c, DM_F32, 2, x_shape), y = dmt_thing_make(c, DM_F32, 2, y_shape),
             half = dmt_thing_make(c, DM_F16, 2, y_shape), w = dmt_thing_make(c, DM_F32, 2, w_shape);
    dm_session *s = c->session;
    const dm_factor beta = dm_value(1);
    dm_inner good = DM_INNER_INIT, bad = good, old = good;
    good.wire = DM_BF16;
    bad.wire = DM_F16;
    old.size = sizeof(size_t);
    REFUSED(DMT_ONE(ARG), "inner is NULL: start from DM_INNER_INIT",
            dm_inner_backward_weights_with(s, NULL, x, y, beta, w, DM_NO_ARRAY));
    REFUSED(DMT_ONE(ARG), "start from DM_INNER_INIT",
            dm_inner_backward_weights_with(s, &old, x, y, beta, w, DM_NO_ARRAY));
    REFUSED(DMT_ONE(ARG), "inner_backward_weights_with: wire is f16",
            dm_inner_backward_weights_with(s, &bad, x, y, beta, w, DM_NO_ARRAY));
    REFUSED(DMT_ONE(DTYPE), "dy is f16",
            dm_inner_backward_weights_with(s, &good, x, half, beta, w, DM_NO_ARRAY));
    bad = good;
    bad.slices = -1;
    REFUSED(DMT_ONE(ARG), "slices is -1", dm_inner_backward_weights_with(s, &bad, x, y, beta, w, DM_NO_ARRAY));
    dmt_thing_end(c, x, DM_F32, 2, x_shape);
    dmt_thing_end(c, y, DM_F32, 2, y_shape);
    dmt_thing_end(c, half, DM_F16, 2, y_shape);
    dmt_thing_end(c, w, DM_F32, 2, w_shape);
}
DMT_ONE_CASE(refusals)

static void test_inner_weights(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "inner_weights", .cases = 400, .fn = weights_case});
    dmt_run(&(dmt_suite){.name = "inner_weights_wire", .cases = 200, .fn = wire_case});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inner_weights), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
