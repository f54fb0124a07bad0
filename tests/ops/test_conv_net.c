/* A small network forward and backward, on fixed numbers: the same bits on any number of workers, by ways of
 * laying arrays out that networks use. */
#include "support/layers.h"

#include <math.h>

enum { N = 10, MOST = 2000 };

/* What the first session made; others must make the same. */
static struct {
    int64_t count;
    float v[4 * MOST];
    int workers;
} first;

typedef struct net {
    dmt_case *c;
    int way; /* 0: by the batch, weights replicated; 1: all defaults; 2: weights split */
    int64_t made;
    dm_array all[32];
    int arrays;
} net;

static dm_array make(net *g, int ndim, const int64_t *shape, bool batch)
{
    dm_session *s = g->c->session;
    dm_layout layout = batch         ? dm_layout_batch(s, N, DM_SLICES)
                       : g->way == 2 ? dm_layout_rows(s)
                                     : dm_layout_replicated(s);
    dm_array *a = &g->all[g->arrays++];
    DMT_OK(g->c, dm_array_create(s, DM_F32, ndim, shape, g->way == 1 ? NULL : &layout, a));
    DMT_OK(g->c, dm_fill_normal(s, *a, 0, 1, (uint64_t)g->arrays));
    return *a;
}
#define MAKE(batch, ...)                                                                                       \
    make(&g, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}, batch)

static void compare(net *g, dm_array a, int64_t count, const char *name)
{
    float got[MOST];
    DMT_OK(g->c, dm_read(g->c->session, a, got));
    if (first.workers == 0) {
        memcpy(first.v + g->made, got, (size_t)count * sizeof *got);
    } else if (memcmp(first.v + g->made, got, (size_t)count * sizeof *got) != 0) {
        dmt_fail(g->c, "%s is not what %d workers made", name, first.workers);
    }
    g->made += count;
}

static void net_case(dmt_case *c)
{
    net g = {.c = c, .way = (int)(c->number % 3)};
    dm_session *s = c->session;
    dm_conv conv = DM_CONV_INIT;
    dm_pool pool = DM_POOL_INIT;
    dm_lrn lrn = DM_LRN_INIT;
    dm_loss options = DM_LOSS_INIT;
    dmt_say(c, "\n    way %d", g.way);
    conv.pad[0] = conv.pad[1] = 1;
    dm_array x = MAKE(true, N, 9, 8, 3), w = MAKE(false, 6, 3, 3, 3), b = MAKE(false, 6),
             y = MAKE(true, N, 9, 8, 6);
    dm_array l = MAKE(true, N, 9, 8, 6), p = MAKE(true, N, 5, 4, 6), v = MAKE(false, 10, 120),
             f = MAKE(true, N, 10);
    dm_array prob = MAKE(true, N, 10), loss = MAKE(false, 1), labels = MAKE(true, N), df = MAKE(true, N, 10);
    dm_array dv = MAKE(false, 10, 120), dp = MAKE(true, N, 5, 4, 6), dl = MAKE(true, N, 9, 8, 6),
             dy = MAKE(true, N, 9, 8, 6);
    dm_array dw = MAKE(false, 6, 3, 3, 3), db = MAKE(false, 6), dx = MAKE(true, N, 9, 8, 3);
    DMT_OK(c, dm_fill(s, labels, 3));
    DMT_OK(c, dm_conv_forward(s, &conv, x, w, b, y));
    DMT_OK(c, dm_lrn_forward(s, &lrn, y, l));
    DMT_OK(c, dm_pool_forward(s, &pool, l, p, DM_NO_ARRAY));
    DMT_OK(c, dm_inner_forward(s, DM_SLICES, p, v, DM_NO_ARRAY, f));
    DMT_OK(c, dm_softmax_loss(s, &options, f, labels, prob, loss));
    DMT_OK(c, dm_softmax_loss_backward(s, &options, prob, labels, 1, df));
    DMT_OK(c, dm_inner_backward_weights(s, DM_SLICES, p, df, 0.5, dv, DM_NO_ARRAY));
    DMT_OK(c, dm_inner_backward_data(s, DM_SLICES, df, v, dp));
    DMT_OK(c, dm_pool_backward(s, &pool, l, dp, dl));
    DMT_OK(c, dm_lrn_backward(s, &lrn, y, dl, dy));
    DMT_OK(c, dm_conv_backward_weights(s, &conv, x, dy, 1, dw, db));
    DMT_OK(c, dm_conv_backward_data(s, &conv, dy, w, dx));
    compare(&g, loss, 1, "loss");
    compare(&g, prob, N * 10, "prob");
    compare(&g, dv, 1200, "dv");
    compare(&g, dw, 162, "dw");
    compare(&g, db, 6, "db");
    compare(&g, dp, N * 5 * 4 * 6, "dp");
    first.workers = c->workers;
    for (int i = 0; i < g.arrays; i++) {
        DMT_OK(c, dm_array_destroy(s, g.all[i]));
    }
}

static void test_net(void **state)
{
    (void)state;
    dmt_run(&(dmt_suite){.name = "conv_net", .cases = 3, .fn = net_case, .each = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_net)};
    return cmocka_run_group_tests(tests, dmt_start, dmt_finish);
}
