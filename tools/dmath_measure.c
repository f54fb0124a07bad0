/* Repetition and its statistics. */
#include "dmath.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

tool_stats tool_stats_of(double *seconds, int64_t count)
{
    qsort(seconds, (size_t)count, sizeof *seconds, compare);
    double median = count % 2 ? seconds[count / 2] : (seconds[count / 2 - 1] + seconds[count / 2]) / 2;
    return (tool_stats){seconds[0], median, seconds[count - 1]};
}

static const struct argp_option options[] = {
    {"repeats", 'r', "N", 0, "measurements, of which minimum, median and maximum are shown (default 10; dispatch and file 5)", 9},
    {"warmup", 'W', "N", 0, "runs before them that do not count (default 2; dispatch and file 1)", 9},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    tool_measure *m = state->input;
    switch (key) {
    case 'r':
    case 'W':
        if (!tool_int_parse(arg, key == 'r', 1000000, key == 'r' ? &m->repeats : &m->warmup)) {
            argp_error(state, "--%s: `%s' is not a number from %d to 1000000",
                       key == 'r' ? "repeats" : "warmup", arg, key == 'r');
            return EINVAL;
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp tool_measure_argp = {options, parse, NULL, NULL, NULL, NULL, NULL};
