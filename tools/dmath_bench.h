/* What the measurements share. */
#ifndef DMATH_TOOL_BENCH_H
#define DMATH_TOOL_BENCH_H

#include "dmath.h"

/* One measurement with every number of workers that is asked for: opens a session, calls run, closes it.
 * Returns the exit status. */
int tool_bench_turns(const tool_common *common,
                     dm_status (*run)(dm_session *s, const tool_where *where, void *context), void *context);
/* Do two arrays of equal shape (2-D) and type hold the same bytes? Reads both, a few rows at a time. */
dm_status tool_same_contents(dm_session *s, dm_array a, dm_array b, bool *same);
static inline double tool_seconds_since(int64_t begin_ns)
{
    return (double)(dmi_now_ns() - begin_ns) * 1e-9;
}

#endif
