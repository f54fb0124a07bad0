/* What a step of training sends from worker to worker. */
#include "solver/solver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds up the lines "sent by worker 0: 64 to worker 1, 8 to the master" of a text of dm_explain_end. */
static void add_up(const char *text, int workers, int64_t *sent)
{
    memset(sent, 0, (size_t)workers * (size_t)workers * sizeof *sent);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        int from = -1, read = 0;
        line += *line == '\n';
        if (sscanf(line, " sent by worker %d:%n", &from, &read) != 1 || read == 0) {
            continue;
        }
        for (const char *at = line + read; at; at = *at == ',' ? at + 1 : NULL) {
            long long bytes = 0;
            int to = -1;
            read = 0;
            if (sscanf(at, " %lld to worker %d%n", &bytes, &to, &read) != 2 || from >= workers ||
                to >= workers) {
                break; /* the master comes last */
            }
            sent[(int64_t)from * workers + to] += bytes;
            at += read;
        }
    }
}

dm_status dm_solver_links(dm_solver *s, int64_t *sent)
{
    if (!s || !sent) {
        return dm_error_set(DM_ERR_ARG, "dm_solver_links: an argument is NULL");
    }
    const int workers = dm_workers(s->session);
    dm_program made = {0};
    char *text = NULL;
    dm_status status = nn_net_enter(s->net);
    if (status != DM_OK) {
        return status;
    }
    status = s->program.id ? DM_OK : nn_step_of(s, &made);
    const dm_program program = s->program.id ? s->program : made;
    if (status == DM_OK && !program.id) {
        status = dm_error_set(
            DM_ERR_STATE, "dm_solver_links: the step of this solver is no program: its calls go one by one");
    }
    status = status == DM_OK ? nn_explain_program(s->net, program, &text) : status;
    if (status == DM_OK) {
        add_up(text, workers, sent);
    }
    free(text);
    const dm_status end = made.id ? dm_program_destroy(s->session, made) : DM_OK;
    return nn_net_leave(s->net, status == DM_OK ? end : status);
}
