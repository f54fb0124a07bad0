/* Running a journal again: in a session of any number of workers. */
#include "api/replay_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool remember(dmi_replay *r, uint64_t old, uint64_t now, char kind)
{
    for (int64_t i = r->count; i-- > 0 && kind == 'a';) { /* a name led to it once more */
        if (r->known[i].old == old && r->known[i].now == now && r->known[i].kind == kind) {
            return true;
        }
    }
    if (r->count == r->room) {
        int64_t more = r->room ? 2 * r->room : 64;
        dmi_replay_known *grown = realloc(r->known, (size_t)more * sizeof *grown);
        if (!grown) {
            return false;
        }
        r->known = grown;
        r->room = more;
    }
    r->known[r->count++] = (dmi_replay_known){old, now, kind, kind == 'g' ? r->group_old : 0};
    return true;
}

static dm_status damaged(const dmi_replay *r, const char *what)
{
    return dmi_fail(DM_ERR_IO, "%s: line %d is damaged: %s", r->path, r->line, what);
}

/* Takes "~hash" off the end of a line. */
static bool whole(char *line)
{
    char *mark = strrchr(line, '~');
    if (!mark || mark == line || mark[-1] != ' ' || strlen(mark) != 9) {
        return false;
    }
    char hash[16];
    mark[-1] = 0;
    snprintf(hash, sizeof hash, "%08" PRIx32, dmi_journal_hash(0, line, strlen(line)));
    return strcmp(mark + 1, hash) == 0;
}

/* What the call has made, in the order of its parameters; a handle of zero stands for one that was not asked
 * for. */
static dm_status take_outputs(dmi_replay *r, char *outputs)
{
    r->at = outputs;
    for (int k = 0; k < r->outputs; k++) {
        const dmi_replay_output *o = &r->output[k];
        for (int64_t i = 0; i < o->count; i++) {
            uint64_t id = 0;
            do {
                const char *word = dmi_replay_next(r);
                id = word[0] == o->kind ? dmi_replay_number(r, word + 1, 16) : 0;
            } while (id == 0 && o->made[i] != 0 && !r->bad);
            if (!r->bad && id != 0 && !remember(r, id, o->made[i], o->kind)) {
                return dmi_fail(DM_ERR_NOMEM, "no memory for a journal's handles");
            }
        }
    }
    return r->bad ? damaged(r, r->bad) : DM_OK;
}

/* Layouts count the workers of the group that has begun. */
static void follow_groups(dmi_replay *r, const char *name)
{
    if (strcmp(name, "group_begin") == 0 && r->opens < DMI_OPEN_GROUPS) {
        r->open[r->opens++] = r->group_old;
    } else if (strcmp(name, "group_end") == 0 && r->opens > 0) {
        r->opens--;
    }
}

/* Calls that did not wait to the end (dm_session_limit), and whose commands went on. */
static bool went_on(const char *name)
{
    static const char *const names[] = {"array_write",     "array_write_as", "write_checked",   "array_save",
                                        "checkpoint_save", "session_save",   "checkpoint_load", "session_load"};
    for (int i = 0; i < DMI_COUNT(names); i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static dm_status run_call(dmi_replay *r, const dmi_replay_call *call, char *outputs)
{
    r->read = NULL;
    r->outputs = 0;
    r->bad = NULL;
    dm_status status = call->run(r);
    if (r->bad) {
        return damaged(r, r->bad);
    }
    if (status != DM_OK) {
        return dmi_fail(status, "%s: line %d: %s", r->path, r->line, dmi_error_text());
    }
    follow_groups(r, call->name);
    if (r->read) {
        fprintf(r->to, "line %d %s %08" PRIx32 "\n", r->line, call->name,
                dmi_journal_hash(0, r->read, (size_t)r->read_bytes));
    }
    return take_outputs(r, outputs);
}

static dm_status one_line(dmi_replay *r, char *line)
{
    if (!whole(line)) {
        return damaged(r, "its hash is another");
    }
    char *outputs = strstr(line, " = ");
    if (!outputs) {
        return damaged(r, "it has no status");
    }
    *outputs = 0;
    r->at = outputs + 3;
    r->bad = NULL;
    int64_t kept = dmi_get_integer(r);
    outputs = r->at;
    r->at = line;
    const char *name = dmi_replay_next(r);
    if (r->bad) {
        return damaged(r, r->bad);
    }
    if (kept != DM_OK && !(kept == DM_ERR_PENDING && went_on(name))) {
        fprintf(r->to, "line %d %s failed when it was kept (%s): not run\n", r->line, name,
                dmi_status_name((dm_status)kept));
        return DM_OK;
    }
    for (int i = 0; i < dmi_replay_call_count; i++) {
        if (strcmp(dmi_replay_calls[i].name, name) == 0) {
            return run_call(r, &dmi_replay_calls[i], outputs);
        }
    }
    fprintf(r->to, "line %d %s: journals do not keep this call\n", r->line, name);
    return DM_OK;
}

static dm_status head(dmi_replay *r, char *line)
{
    if (strncmp(line, DMI_JOURNAL_HEAD, strlen(DMI_JOURNAL_HEAD)) != 0) {
        return dmi_fail(DM_ERR_IO, "%s is no journal of this version of dmath", r->path);
    }
    if (!whole(line)) {
        return damaged(r, "its hash is another");
    }
    r->workers = (int)strtol(line + strlen(DMI_JOURNAL_HEAD), NULL, 10);
    return DM_OK;
}

/* All has been waited for, and nothing has failed: no array is poisoned. */
static dm_status sum_up(dmi_replay *r)
{
    for (int64_t i = 0; i < r->count; i++) {
        const dm_array a = {r->known[i].now};
        dm_array_info info = {.size = sizeof info};
        dm_dtype type = DM_F64;
        if (r->known[i].kind != 'a' || dm_array_query(r->session, a, &info) != DM_OK) {
            continue;
        }
        int64_t bytes = dmi_replay_bytes_of(r, a, NULL, -1, &type);
        char *data = malloc((size_t)DMI_MAX(bytes, 1));
        dm_status status = data ? dm_array_read(r->session, a, NULL, NULL, data, 0)
                                : dmi_fail(DM_ERR_NOMEM, "no memory for an array");
        if (status == DM_OK) {
            fprintf(r->to, "array a%" PRIx64 " %s", r->known[i].old, dmi_dtype_name(type));
            for (int d = 0; d < info.ndim; d++) {
                fprintf(r->to, "%c%" PRId64, d ? 'x' : ' ', info.shape[d]);
            }
            fprintf(r->to, " %08" PRIx32 "\n", dmi_journal_hash(0, data, (size_t)bytes));
        }
        free(data);
        if (status != DM_OK) {
            return status;
        }
    }
    return DM_OK;
}

dm_status dmi_replay_from(dm_session *session, FILE *from, const char *path, FILE *to)
{
    dmi_replay r = {.session = session, .path = path, .to = to, .here = dm_workers(session)};
    char *line = NULL;
    size_t line_room = 0;
    dm_status status = DM_OK;
    for (ssize_t n; status == DM_OK && (n = getline(&line, &line_room, from)) >= 0;) {
        r.line++;
        if (strlen(line) != (size_t)n || line[n - 1] != '\n') {
            status = damaged(&r, r.line == 1 ? "it is no text" : "the journal ends inside it");
            break;
        }
        line[n - 1] = 0;
        r.longest = n;
        status = r.line == 1 ? head(&r, line) : one_line(&r, line);
        dmi_replay_end_line(&r);
    }
    if (status == DM_OK && r.line == 0) {
        status = dmi_fail(DM_ERR_IO, "%s is empty, and no journal", path);
    }
    status = status == DM_OK ? dm_sync(session) : status;
    status = status == DM_OK ? sum_up(&r) : status;
    dmi_replay_end_line(&r);
    dmi_replay_free_values(&r);
    free(r.known);
    free(line);
    return status;
}

dm_status dmi_replay_run(dm_session *session, const char *path, FILE *to)
{
    FILE *from = fopen(path, "r");
    if (!from) {
        return dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    dm_status status = dmi_replay_from(session, from, path, to);
    fclose(from);
    return status;
}
