/* The tables of dmath bench transport. */
#include "dmath_bench_transport.h"

#include <stdio.h>

/* The longest time is the lowest rate. */
static tool_stats rate_of(double amount, tool_stats seconds)
{
    return (tool_stats){amount / seconds.max, amount / seconds.median, amount / seconds.min};
}

static void print_ring(transport_bench *b, const transport_run *transport)
{
    tool_table *t = &b->head.table;
    if (!t->json && b->nring > 0) {
        printf("\nEvery worker to the next, all at once; a worker's share\n");
    }
    for (int i = 0; i < b->nring; i++) {
        const tool_ring *r = &transport->ring[i];
        double gb = (double)b->ring[i] * 1e-9;
        tool_row_begin(t);
        tool_row_text(t, "what", 4, "ring");
        tool_row_int(t, "bytes", 11, b->ring[i]);
        tool_row_stats(t, "gbps", 11, 2, rate_of(gb, r->seconds), 1);
        if (r->has_bare) {
            tool_row_stats(t, "bare_gbps", 14, 2, rate_of(gb, r->bare), 1);
            tool_row_real(t, "ratio", 7, 3, r->bare.median / r->seconds.median);
        }
        tool_row_end(t);
    }
}

void tool_transport_table(transport_bench *b, const transport_run *transport)
{
    tool_table *t = &b->head.table;
    for (int part = 0; part < (t->json ? 1 : 2); part++) {
        if (!t->json) {
            printf("%s\n", part ? "\nBandwidth, worker 0 to worker 1" : "\nLatency, one way");
        }
        for (int i = 0; i < b->nsize; i++) {
            tool_row_begin(t);
            tool_row_int(t, "bytes", 11, b->size[i]);
            if (t->json || part == 0) {
                tool_row_stats(t, "us", 12, 2, transport->latency[i], 1e6);
            }
            if (t->json || part == 1) {
                tool_row_stats(t, "mbps", 12, 1, rate_of((double)b->size[i] * 1e-6, transport->rate[i]), 1);
            }
            tool_row_end(t);
        }
    }
    print_ring(b, transport);
}

void tool_transport_compare(transport_bench *b)
{
    static const char *const heads[] = {
        "Latency, one way, us (medians)", "Bandwidth, worker 0 to worker 1, MB/s (medians)",
        "Every worker to the next, all at once; a worker's share, GB/s (medians)"};
    tool_table *t = &b->head.table;
    for (int part = 0; part < 3; part++) {
        int rows = part < 2 ? b->nsize : b->nring;
        t->last_head[0] = 0;
        printf("%s%s\n", rows ? "\n" : "", rows ? heads[part] : "");
        for (int i = 0; i < rows; i++) {
            int64_t bytes = part < 2 ? b->size[i] : b->ring[i];
            tool_row_begin(t);
            tool_row_int(t, "bytes", 11, bytes);
            for (int k = 0; k < b->ntransport; k++) {
                const transport_run *transport = &b->transport[k];
                double value = part == 0   ? transport->latency[i].median * 1e6
                               : part == 1 ? (double)bytes * 1e-6 / transport->rate[i].median
                                           : (double)bytes * 1e-9 / transport->ring[i].seconds.median;
                if (transport->done) {
                    tool_row_real(t, transport->name, 12, part == 1 ? 1 : 2, value);
                }
            }
            tool_row_end(t);
        }
    }
}
