/* Exchange: in round t worker w sends its rows for worker w + t and receives those of worker w - t. */
#include "plan/exchange.h"

static int64_t rows_between(const dmi_exchange *x, int workers, int from, int to)
{
    return x->back ? x->rows[(int64_t)to * workers + from] : x->rows[(int64_t)from * workers + to];
}

int64_t dmi_exchange_given(const dmi_exchange *x, int workers, int me, int to)
{
    int64_t sum = 0;
    for (int w = 0; w < to; w++) {
        sum += rows_between(x, workers, me, w);
    }
    return sum;
}

int64_t dmi_exchange_taken(const dmi_exchange *x, int workers, int me, int from)
{
    int64_t sum = 0;
    for (int w = 0; w < from; w++) {
        sum += rows_between(x, workers, w, me);
    }
    return sum;
}

/* The bytes of the rows that one worker gives to another, where they lie at both. False: there are none. */
static bool rows_copy(dmi_builder *b, const dmi_exchange *x, int from, int to, dmi_copy *out)
{
    int workers = b->profile->workers;
    int64_t bytes = rows_between(x, workers, from, to) * x->row_bytes;
    dmi_run *run = bytes > 0 ? dmi_build_alloc(b, sizeof *run) : NULL;
    if (!run) {
        return false;
    }
    *run = (dmi_run){.len = bytes};
    *out = (dmi_copy){.ndim = 1, .src_dtype = DM_U8, .dst_dtype = DM_U8, .count = bytes};
    out->nrun[0] = 1;
    out->run[0] = run;
    out->src_stride[0] = out->dst_stride[0] = 1;
    out->src_offset = dmi_exchange_given(x, workers, from, to) * x->row_bytes;
    out->dst_offset = dmi_exchange_taken(x, workers, to, from) * x->row_bytes;
    return true;
}

void dmi_plan_exchange(dmi_builder *b, const dmi_exchange *x, const dmi_mark after, const dmi_mark source,
                       dmi_mark done)
{
    int workers = b->profile->workers, me = b->me;
    dmi_copy copy;
    if (me >= workers) { /* the master has no rows */
        return;
    }
    if (!x->others && rows_copy(b, x, me, me, &copy)) {
        dmi_ref refs[2] = {x->from, x->to};
        dmi_mark ready = {0};
        dmi_mark_merge(ready, after ? after : ready);
        dmi_mark_merge(ready, source ? source : ready);
        dmi_mark_step(done, dmi_build_kernel(b, DMI_KERNEL_copy, &copy, sizeof copy, refs, 2, ready));
    }
    for (int t = 1; t < workers && !b->failed; t++) {
        dmi_build_round(b);
        int to = (me + t) % workers, from = (me - t + workers) % workers;
        if (rows_copy(b, x, from, me, &copy)) {
            dmi_mark_step(done, dmi_build_expect_of(b, from, x->to, x->from, &copy, after));
        }
        if (rows_copy(b, x, me, to, &copy)) {
            dmi_build_push(b, to, x->from, &copy, source);
        }
    }
}
