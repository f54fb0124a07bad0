/* What the measurements share. */
#ifndef DMATH_TOOL_BENCH_H
#define DMATH_TOOL_BENCH_H

#include "dmath.h"

/* What every measurement begins with: its own struct has this as its first member. */
typedef struct tool_bench_head {
    tool_common common;
    tool_measure measure;
    tool_table table;
} tool_bench_head;
extern const struct argp_child tool_bench_children[]; /* the options of a tool_bench_head */
/* Reads the command line into the head and what follows it; `command` is what JSON lines say. */
bool tool_bench_options(const struct argp *argp, int argc, char **argv, const char *command,
                        tool_bench_head *head);
/* For the keys that no measurement has of its own. */
error_t tool_bench_key(int key, char *arg, struct argp_state *state);
/* An option whose argument does not fit. */
error_t tool_bench_misfit(struct argp_state *state, const char *option, const char *arg, const char *wanted);

/* One measurement with every number of workers that is asked for: opens a session, calls run, closes it.
 * Returns the exit status. */
int tool_bench_runs(tool_bench_head *head,
                    dm_status (*run)(dm_session *s, const tool_where *where, tool_bench_head *head));
/* --- dmath_bench_ring.c: every worker pushes a block to the next one, all at once */
typedef struct tool_ring {
    tool_stats seconds, bare; /* a block, until the last has come; the same by bare copies between the GPUs */
    bool has_bare;
} tool_ring;
/* Measures both alternately, after a check of the result. */
dm_status tool_ring_measure(dm_session *s, const tool_measure *measure, int64_t bytes, tool_ring *out);

/* Destroys arrays (DM_NO_ARRAY too); `status` or, where that is DM_OK, the first failure. */
dm_status tool_free_arrays(dm_session *s, const dm_array *arrays, int count, dm_status status);
/* Do two arrays of equal shape (2-D) and type hold the same bytes? Reads both, a few rows at a time. */
dm_status tool_same_contents(dm_session *s, dm_array a, dm_array b, bool *same);
static inline double tool_seconds_since(int64_t begin_ns)
{
    return (double)(dmi_now_ns() - begin_ns) * 1e-9;
}

#endif
