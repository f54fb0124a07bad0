/* dmath bench transport: measurements and tables. */
#ifndef DMATH_TOOL_BENCH_TRANSPORT_H
#define DMATH_TOOL_BENCH_TRANSPORT_H

#include "dmath_bench.h"

enum { TOOL_TRANSPORT_SIZES = 40, TOOL_TRANSPORTS = 5 };

/* What was measured in one session. */
typedef struct transport_run {
    const char *name; /* as the option is written; NULL: as the session chooses */
    bool done;
    tool_where where;
    tool_stats latency[TOOL_TRANSPORT_SIZES], rate[TOOL_TRANSPORT_SIZES]; /* seconds a block */
    tool_ring ring[TOOL_LIST];
} transport_run;

typedef struct transport_bench {
    tool_bench_head head;
    int64_t most;
    int64_t size[TOOL_TRANSPORT_SIZES], ring[TOOL_LIST];
    int nsize, nring, ntransport;
    bool every; /* all transports: those that this machine has not are left out */
    transport_run transport[TOOL_TRANSPORTS], *now;
} transport_bench;

void tool_transport_table(transport_bench *b, const transport_run *transport);
void tool_transport_compare(transport_bench *b); /* all transports side by side, medians */

#endif
