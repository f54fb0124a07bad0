/* dmath replay: runs a journal again (option journal, DMATH_JOURNAL=FILE). */
#include "dmath.h"

#include "api/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct replay_options {
    tool_common common;
    const char *path;
} replay_options;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    replay_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        return 0;
    case ARGP_KEY_ARG:
        if (o->path) {
            argp_error(state, "one journal, not two");
            return EINVAL;
        }
        o->path = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->path || o->common.nworkers > 1) {
            argp_error(state, o->path ? "--workers: one number, not a list" : "which journal?");
            return EINVAL;
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&tool_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    NULL,
    parse,
    "FILE",
    "Runs the calls of a journal again, on any number of workers, and prints a checksum of what was read and "
    "of "
    "each array at the end.\vDMATH_JOURNAL=FILE keeps the calls of a session. Data of more than 64 KiB in one "
    "call are not kept: others take their place. In process or under mpirun.",
    children,
    NULL,
    NULL};

int tool_replay(int argc, char **argv)
{
    replay_options o = {0};
    dm_session *s = NULL;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    (void)unsetenv("DMATH_JOURNAL"); /* not of this session */
    dm_status status = tool_open(&o.common, 0, &s);
    if (status != DM_OK) {
        tool_complain(status);
        return TOOL_FAILED;
    }
    tool_watch watch; /* lines on a terminal show by themselves how far it is */
    tool_watch_begin(&watch, o.path, isatty(STDOUT_FILENO) ? 0 : tool_bytes_below(o.path));
    status = dmi_replay_run(s, o.path, stdout);
    tool_watch_end(&watch);
    return tool_close(s, status);
}
