/* Calls on ops with bad arguments: the status that their text promises, a message that names the
 * argument, and nothing changed. */
#include "support/refusal.h"

#include <math.h>
#include <stdlib.h>

static void move_errors(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    const int twice[] = {0, 0}, outside[] = {0, 2}, below[] = {0, -1}, swap[] = {1, 0};
    REFUSED(DMT_ONE(SHAPE), NULL, dm_copy(s, t.f, t.wide));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_copy(s, t.row, t.wide));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_copy(s, t.cube, t.f));
    REFUSED(DMT_ONE(ARG), "perm", dm_permute(s, t.f, NULL, t.g));
    REFUSED(DMT_ONE(ARG), "perm", dm_permute(s, t.f, twice, t.g));
    REFUSED(DMT_ONE(ARG), "perm", dm_permute(s, t.f, outside, t.g));
    REFUSED(DMT_ONE(ARG), "perm", dm_permute(s, t.f, below, t.g));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_permute(s, t.f, swap, t.g));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_transpose(s, t.f, t.g));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_transpose(s, t.cube, t.cube));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_transpose(s, t.row, t.row));
    dmt_things_end(c, &t);
}

static void ewise_errors(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    REFUSED(DMT_ONE(SHAPE), "x", dm_axpby(s, 1, t.wide, 1, t.f));
    REFUSED(DMT_ONE(SHAPE), "x", dm_axpby(s, 1, t.f, 1, t.row));
    REFUSED(DMT_ONE(SHAPE), "a", dm_add(s, 1, t.wide, 1, t.f, t.g));
    REFUSED(DMT_ONE(SHAPE), "b", dm_add(s, 1, t.f, 1, t.wide, t.g));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_add(s, 1, t.row, 1, t.f, t.row));
    REFUSED(DMT_ONE(SHAPE), "b", dm_multiply(s, 1, t.f, t.cube, t.g));
    REFUSED(DMT_ONE(SHAPE), "a", dm_scale(s, 1, t.wide, t.f));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_exp(s, t.f, t.row));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_tanh(s, t.wide, t.f));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_relu(s, t.cube, t.f));
    REFUSED(DMT_ONE(DTYPE), "a of f32, b of i32", dm_bitwise_and(s, t.f, t.whole, t.whole));
    REFUSED(DMT_ONE(ARG), "alpha", dm_axpby(s, 0.5, t.whole, 1, t.byte));
    REFUSED(DMT_ONE(ARG), "beta", dm_axpby(s, 1, t.whole, 0.5, t.byte));
    REFUSED(DMT_ONE(ARG), "alpha", dm_add(s, 1.5, t.whole, 1, t.byte, t.whole));
    REFUSED(DMT_ONE(ARG), "beta", dm_add(s, 1, t.whole, NAN, t.byte, t.whole));
    REFUSED(DMT_ONE(ARG), "alpha", dm_multiply(s, 0.1, t.whole, t.byte, t.whole));
    REFUSED(DMT_ONE(ARG), "alpha", dm_scale(s, 1e30, t.whole, t.byte));
    dmt_things_end(c, &t);
}

/* An input that shares some elements with the output, but not all. */
static void overlap_errors(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    const int64_t first[] = {0, 0}, second[] = {1, 0}, five[] = {5, 5};
    const int last[] = {1};
    dm_array high, low, apart;
    DMT_OK(c, dm_array_view(s, t.f, first, five, &high));
    DMT_OK(c, dm_array_view(s, t.f, second, five, &low));
    DMT_OK(c, dm_array_view(s, t.g, first, five, &apart));
    const dm_map_arg args[] = {DM_ARG("x", high)};
    REFUSED(DMT_ONE(OVERLAP), "src and dst", dm_copy(s, high, low));
    REFUSED(DMT_ONE(OVERLAP), "x and y", dm_axpby(s, 1, high, 1, low));
    REFUSED(DMT_ONE(OVERLAP), "a and out", dm_add(s, 1, high, 1, apart, low));
    REFUSED(DMT_ONE(OVERLAP), "b and out", dm_add(s, 1, apart, 1, high, low));
    REFUSED(DMT_ONE(OVERLAP), "a and out", dm_multiply(s, 1, high, apart, low));
    REFUSED(DMT_ONE(OVERLAP), "b and out", dm_multiply(s, 1, apart, high, low));
    REFUSED(DMT_ONE(OVERLAP), "a and out", dm_scale(s, 2, high, low));
    REFUSED(DMT_ONE(OVERLAP), "a and out", dm_exp(s, high, low));
    REFUSED(DMT_ONE(OVERLAP), "b and out", dm_maximum(s, apart, high, low));
    REFUSED(DMT_ONE(OVERLAP), "x and out", dm_map(s, "x + 1", 1, args, low));
    REFUSED(DMT_ONE(OVERLAP), "x and out", dm_softmax(s, high, last, 1, low));
    REFUSED(DMT_ONE(OVERLAP), "x and out", dm_cumulative_sum(s, high, 0, low));
    REFUSED(DMT_ONE(DTYPE), "out", dm_softmax(s, t.f, last, 1, t.whole));
    const dm_array made[] = {high, low, apart};
    for (int i = 0; i < 3; i++) {
        DMT_OK(c, dm_array_destroy(s, made[i]));
    }
    dmt_things_end(c, &t);
}

static void sum_errors(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    const int first[] = {0}, last[] = {1}, twice[] = {0, 0}, outside[] = {2}, below[] = {-1},
              three[] = {0, 1, 0};
    REFUSED(DMT_ONE(SHAPE), "out", dm_sum(s, t.f, last, 1, 1, 0, t.row));
    REFUSED(DMT_ONE(SHAPE), "out", dm_sum(s, t.f, NULL, 0, 1, 0, t.row));
    REFUSED(DMT_ONE(ARG), "dims", dm_sum(s, t.f, NULL, 1, 1, 0, t.row));
    REFUSED(DMT_ONE(ARG), "dims", dm_sum(s, t.f, twice, 2, 1, 0, t.row));
    REFUSED(DMT_ONE(ARG), "dims", dm_sum(s, t.f, outside, 1, 1, 0, t.row));
    REFUSED(DMT_ONE(ARG), "dims", dm_sum(s, t.f, below, 1, 1, 0, t.row));
    REFUSED(DMT_ONE(ARG), "ndims", dm_sum(s, t.f, first, -1, 1, 0, t.row));
    REFUSED(DMT_ONE(ARG), NULL, dm_sum(s, t.f, three, 3, 1, 0, t.row));
    dm_array out = dmt_thing_make(c, DM_I32, 1, (int64_t[]){5});
    REFUSED(DMT_ONE(ARG), "scale", dm_sum(s, t.whole, first, 1, 0.5, 0, out));
    REFUSED(DMT_ONE(ARG), "beta", dm_sum(s, t.whole, first, 1, 1, 0.5, out));
    dmt_thing_end(c, out, DM_I32, 1, (int64_t[]){5});
    dmt_things_end(c, &t);
}

static void gemm_errors(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    const int64_t square[] = {6, 6};
    dm_array six = dmt_thing_make(c, DM_F32, 2, square);
    REFUSED(DMT_ONE(ARG), "trans_a", dm_gemm(s, 3, DM_N, 1, t.f, t.g, 0, six));
    REFUSED(DMT_ONE(ARG), "trans_b", dm_gemm(s, DM_N, -1, 1, t.f, t.g, 0, six));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_gemm(s, DM_N, DM_N, 1, t.f, t.g, 0, six));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_gemm(s, DM_N, DM_T, 1, t.f, t.wide, 0, six));
    REFUSED(DMT_ONE(SHAPE), "c", dm_gemm(s, DM_N, DM_T, 1, t.f, t.g, 0, t.wide));
    REFUSED(DMT_ONE(SHAPE), "a", dm_gemm(s, DM_N, DM_T, 1, t.row, t.g, 0, six));
    REFUSED(DMT_ONE(SHAPE), "b", dm_gemm(s, DM_N, DM_T, 1, t.f, t.cube, 0, six));
    REFUSED(DMT_ONE(SHAPE), "c", dm_gemm(s, DM_N, DM_T, 1, t.f, t.g, 0, t.row));
    REFUSED(DMT_ONE(DTYPE), "a", dm_gemm(s, DM_N, DM_T, 1, t.whole, t.g, 0, six));
    REFUSED(DMT_ONE(DTYPE), "b", dm_gemm(s, DM_N, DM_T, 1, t.f, t.byte, 0, six));
    REFUSED(DMT_ONE(DTYPE), "c", dm_gemm(s, DM_T, DM_N, 1, t.f, t.g, 0, t.whole));
    REFUSED(DMT_ONE(OVERLAP), "c", dm_gemm(s, DM_N, DM_N, 1, six, six, 0, six));
    dm_array thin, flat; /* nothing, in the midst of c: no overlap, and c stays as it is */
    DMT_OK(c, dm_array_view(s, six, (const int64_t[]){0, 3}, (const int64_t[]){6, 0}, &thin));
    DMT_OK(c, dm_array_view(s, six, (const int64_t[]){3, 0}, (const int64_t[]){0, 6}, &flat));
    DMT_OK(c, dm_gemm(s, DM_N, DM_N, 1, thin, flat, 1, six));
    DMT_OK(c, dm_array_destroy(s, thin));
    DMT_OK(c, dm_array_destroy(s, flat));
    const int64_t tall[] = {3, 5}, broad[] = {5, 4}; /* whose product has a dim less than the cube */
    dm_array left = dmt_thing_make(c, DM_F64, 2, tall), right = dmt_thing_make(c, DM_F64, 2, broad);
    REFUSED(DMT_ONE(SHAPE), "has 2 dims", dm_gemm(s, DM_N, DM_N, 1, left, right, 0, t.cube));
    dmt_thing_end(c, left, DM_F64, 2, tall);
    dmt_thing_end(c, right, DM_F64, 2, broad);
    dmt_thing_end(c, six, DM_F32, 2, square);
    dmt_things_end(c, &t);
}

static void inside_errors(dmt_case *c)
{
    dm_session *s = c->session;
    dmt_things t = dmt_things_make(c);
    dm_counters counters = {.size = sizeof counters}, no_counters = {.size = 0};
    dm_memory memory = {.size = sizeof memory}, no_memory = {.size = 0};
    char *text = NULL;
    float value[30];
    REFUSED(DMT_ONE(ARG), "worker", dm_counters_get(s, -1, &counters));
    REFUSED(DMT_ONE(ARG), "worker", dm_links_get(s, c->workers, &(int64_t){0}));
    REFUSED(DMT_ONE(ARG), "sent", dm_links_get(s, 0, NULL));
    REFUSED(DMT_ONE(ARG), "worker", dm_counters_get(s, c->workers, &counters));
    REFUSED(DMT_ONE(ARG), "out", dm_counters_get(s, 0, NULL));
    REFUSED(DMT_ONE(ARG), NULL, dm_counters_get(s, 0, &no_counters));
    REFUSED(DMT_ONE(ARG), "worker", dm_memory_report(s, -1, &memory));
    REFUSED(DMT_ONE(ARG), "worker", dm_memory_report(s, c->workers, &memory));
    REFUSED(DMT_ONE(ARG), "out", dm_memory_report(s, 0, NULL));
    REFUSED(DMT_ONE(ARG), NULL, dm_memory_report(s, 0, &no_memory));
    REFUSED(DMT_ONE(STATE), NULL, dm_explain_end(s, &text));
    DMT_OK(c, dm_explain_begin(s));
    REFUSED(DMT_ONE(STATE), "it has begun already", dm_explain_begin(s));
    REFUSED(DMT_ONE(STATE), NULL, dm_array_read(s, t.f, NULL, NULL, value, 0));
    REFUSED(DMT_ONE(STATE), NULL, dm_array_save(s, t.f, "x.npy"));
    REFUSED(DMT_ONE(SHAPE), NULL, dm_copy(s, t.f, t.wide));
    REFUSED(DMT_ONE(ARG), "text", dm_explain_end(s, NULL));
    DMT_OK(c, dm_explain_end(s, &text));
    free(text);
    dmt_things_end(c, &t);
}

DMT_ONE_CASE(move_errors)
DMT_ONE_CASE(ewise_errors)
DMT_ONE_CASE(overlap_errors)
DMT_ONE_CASE(sum_errors)
DMT_ONE_CASE(gemm_errors)
DMT_ONE_CASE(inside_errors)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_move_errors),    cmocka_unit_test(test_ewise_errors),
        cmocka_unit_test(test_overlap_errors), cmocka_unit_test(test_sum_errors),
        cmocka_unit_test(test_gemm_errors),    cmocka_unit_test(test_inside_errors),
    };
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
