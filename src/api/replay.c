/* Running a journal again: in a session of any number of workers. */
#include "api/replay.h"
#include "master/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct known {
    uint64_t old, now; /* handles: in the journal and here */
    bool program;
} known;

typedef struct output { /* handles that a call makes */
    uint64_t *made;
    int64_t count;
    bool programs;
} output;
enum { MOST_OUTPUTS = 4 };

struct dmi_replay {
    dm_session *session;
    const char *path;
    FILE *to;
    int line, workers; /* workers: when it was kept */
    char *at;          /* the next argument */
    const char *bad;   /* what is wrong with the line */
    dmi_arena arena;   /* of this line */
    known *known;
    int64_t count, room;
    void *read; /* memory that the call fills */
    int64_t read_bytes;
    output output[MOST_OUTPUTS];
    int outputs;
};

dm_session *dmi_replay_session(const dmi_replay *r)
{
    return r->session;
}

bool dmi_replay_ready(const dmi_replay *r)
{
    return !r->bad;
}

/* --- words --- */

static const char *next(dmi_replay *r)
{
    char *word = r->at + strspn(r->at, " ");
    size_t length = strcspn(word, " ");
    if (length == 0) {
        r->bad = r->bad ? r->bad : "it ends early";
        return "";
    }
    r->at = word + length + (word[length] == ' ');
    word[length] = 0;
    return word;
}

static void *room(dmi_replay *r, int64_t count, size_t each)
{
    void *p =
        count >= 0 && count <= INT32_MAX ? dmi_arena_alloc(&r->arena, (size_t)DMI_MAX(count, 1) * each) : NULL;
    if (!p) {
        r->bad = r->bad ? r->bad : "it asks for more than there is memory";
    }
    return p;
}

static uint64_t number(dmi_replay *r, const char *text, int base)
{
    char *end;
    errno = 0;
    uint64_t value = base == 16 ? strtoull(text, &end, 16) : (uint64_t)strtoll(text, &end, base);
    if (end == text || *end || errno) {
        r->bad = r->bad ? r->bad : "a number is no number";
        return 0;
    }
    return value;
}

int64_t dmi_get_integer(dmi_replay *r)
{
    return (int64_t)number(r, next(r), 10);
}

double dmi_get_real(dmi_replay *r)
{
    const char *text = next(r);
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end) {
        r->bad = r->bad ? r->bad : "a number is no number";
    }
    return value;
}

static uint64_t handle(dmi_replay *r, char kind)
{
    const char *text = next(r);
    uint64_t id = text[0] == kind ? number(r, text + 1, 16) : 0;
    if (text[0] != kind) {
        r->bad = r->bad ? r->bad : "it has no handle where one must be";
    }
    for (int64_t i = r->count; i-- > 0 && id;) {
        if (r->known[i].old == id && r->known[i].program == (kind == 'p')) {
            return r->known[i].now;
        }
    }
    return id ? UINT64_MAX : 0; /* one that was not made here: the call says so */
}

dm_array dmi_get_array(dmi_replay *r)
{
    return (dm_array){handle(r, 'a')};
}

dm_program dmi_get_program(dmi_replay *r)
{
    return (dm_program){handle(r, 'p')};
}

dm_factor dmi_get_factor(dmi_replay *r)
{
    dm_factor f = {.value = dmi_get_real(r)};
    f.array = dmi_get_array(r);
    f.element = (int)dmi_get_integer(r);
    return f;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* NULL where it was NULL; with a zero behind it. */
static const char *bytes_of(dmi_replay *r, const char *word, int64_t *count)
{
    *count = 0;
    if (strcmp(word, "-") == 0) {
        return NULL;
    }
    int64_t n = (int64_t)strlen(word) / 2;
    char *bytes = room(r, n + 1, 1);
    for (int64_t i = 0; bytes && i < n; i++) {
        int high = digit(word[1 + 2 * i]), low = digit(word[2 + 2 * i]);
        if (word[0] != 'x' || high < 0 || low < 0) {
            r->bad = r->bad ? r->bad : "bytes are not written as bytes";
            return NULL;
        }
        bytes[i] = (char)(high << 4 | low);
    }
    *count = n;
    return bytes;
}

const char *dmi_get_text(dmi_replay *r)
{
    int64_t count;
    return bytes_of(r, next(r), &count);
}

const void *dmi_get_bytes(dmi_replay *r)
{
    int64_t count;
    return bytes_of(r, next(r), &count);
}

/* The count of a list; -1: it was NULL. */
static int64_t list(dmi_replay *r)
{
    const char *word = next(r);
    int64_t n = strcmp(word, "-") == 0 ? -1 : (int64_t)number(r, word, 10);
    if (n > INT32_MAX || n < -1) {
        r->bad = "a list has no length";
    }
    return r->bad ? -1 : n;
}

static const int64_t *integers_of(dmi_replay *r, int64_t *count)
{
    int64_t n = list(r), *value = n < 0 ? NULL : room(r, n, sizeof *value);
    for (int64_t i = 0; value && i < n && !r->bad; i++) {
        value[i] = dmi_get_integer(r);
    }
    *count = DMI_MAX(n, 0);
    return value;
}

const int64_t *dmi_get_integers(dmi_replay *r)
{
    int64_t unused;
    return integers_of(r, &unused);
}

static const int *ints_of(dmi_replay *r, int64_t *count)
{
    int64_t n = list(r);
    int *value = n < 0 ? NULL : room(r, n, sizeof *value);
    for (int64_t i = 0; value && i < n && !r->bad; i++) {
        value[i] = (int)dmi_get_integer(r);
    }
    *count = DMI_MAX(n, 0);
    return value;
}

const int *dmi_get_ints(dmi_replay *r)
{
    int64_t unused;
    return ints_of(r, &unused);
}

const double *dmi_get_reals(dmi_replay *r)
{
    int64_t n = list(r);
    double *value = n < 0 ? NULL : room(r, n, sizeof *value);
    for (int64_t i = 0; value && i < n && !r->bad; i++) {
        value[i] = dmi_get_real(r);
    }
    return value;
}

dm_array *dmi_get_arrays(dmi_replay *r)
{
    int64_t n = list(r);
    dm_array *value = n < 0 ? NULL : room(r, n, sizeof *value);
    for (int64_t i = 0; value && i < n && !r->bad; i++) {
        value[i] = dmi_get_array(r);
    }
    return value;
}

const dm_map_arg *dmi_get_map_args(dmi_replay *r)
{
    int64_t n = list(r);
    dm_map_arg *arg = n < 0 ? NULL : room(r, n, sizeof *arg);
    for (int64_t i = 0; arg && i < n && !r->bad; i++) {
        arg[i].name = dmi_get_text(r);
        arg[i].array = dmi_get_array(r);
        arg[i].kind = (int)dmi_get_integer(r);
        arg[i].number = dmi_get_real(r);
        arg[i].integer = dmi_get_integer(r);
    }
    return arg;
}

/* The layout for another number of workers: what went over all of them does so here; one that names workers, or
 * has another grid, becomes the default. */
static const dm_layout *spread(const dmi_replay *r, dm_layout *layout)
{
    int workers = dm_workers(r->session), all = 0;
    if (workers == r->workers) {
        return layout;
    }
    if (layout->kind == 2) {
        layout->single %= workers;
        return layout;
    }
    for (int d = 0; d < DM_MAX_DIMS; d++) {
        all += layout->grid[d] == r->workers;
        if (layout->grid[d] > 1 && layout->grid[d] != r->workers) {
            return NULL;
        }
        layout->grid[d] = layout->grid[d] > 1 ? workers : layout->grid[d];
    }
    bool copies = layout->replicas == r->workers && r->workers > 1;
    layout->replicas = copies ? workers : layout->replicas;
    return layout->kind < 0 || (layout->kind == 0 && !layout->workers && (layout->replicas <= 1 || copies) &&
                                all <= 1 && !(all && copies))
               ? layout
               : NULL;
}

const dm_layout *dmi_get_layout(dmi_replay *r)
{
    if (strcmp(next(r), "-") == 0) {
        return NULL;
    }
    dm_layout *layout = room(r, 1, sizeof *layout);
    if (!layout) {
        return NULL;
    }
    *layout = (dm_layout){.size = sizeof *layout};
    layout->kind = (int)dmi_get_integer(r);
    layout->single = (int)dmi_get_integer(r);
    layout->replicas = (int)dmi_get_integer(r);
    int64_t blocks;
    const int64_t *block = integers_of(r, &blocks);
    int64_t grids, orders, workers;
    const int *grid = ints_of(r, &grids), *order = ints_of(r, &orders);
    layout->workers = ints_of(r, &workers);
    layout->nworkers = (int)workers;
    layout->map = ints_of(r, &layout->map_count);
    if (r->bad || !block || blocks != DM_MAX_DIMS || grids != DM_MAX_DIMS || orders != DM_MAX_DIMS) {
        r->bad = r->bad ? r->bad : "a layout is none";
        return NULL;
    }
    memcpy(layout->block, block, sizeof layout->block);
    memcpy(layout->grid, grid, sizeof layout->grid);
    memcpy(layout->order, order, sizeof layout->order);
    return spread(r, layout);
}

/* --- memory of the caller --- */

static int64_t size_of(const dmi_replay *r, dm_array a, const int64_t *extent, int dtype, dm_dtype *type)
{
    dm_array_info info = {.size = sizeof info};
    if (dm_array_query(r->session, a, &info) != DM_OK) {
        return 0; /* the call says why */
    }
    *type = dtype < 0 ? info.dtype : (dm_dtype)dtype;
    int64_t bytes = dmi_dtype_bytes(*type);
    for (int d = 0; d < info.ndim; d++) {
        if (__builtin_mul_overflow(bytes, extent ? extent[d] : info.shape[d], &bytes) || bytes < 0) {
            return 0;
        }
    }
    return bytes;
}

/* Numbers in place of those that were not kept: small whole ones, which every type has. */
static void *made_up(dmi_replay *r, int64_t bytes, dm_dtype type, uint32_t seed)
{
    int64_t each = dmi_dtype_bytes(type), count = each > 0 ? bytes / each : 0;
    char *data = room(r, bytes, 1);
    for (int64_t i = 0; data && i < count; i++) {
        uint32_t drawn = dmi_journal_hash(seed, &i, sizeof i) >> 16;
        if (type == DM_F64 || type == DM_C128) {
            double value = drawn % 16;
            memcpy(data + i * each, &value, sizeof value);
        } else if (type == DM_F32 || type == DM_C64) {
            float value = (float)(drawn % 16);
            memcpy(data + i * each, &value, sizeof value);
        } else { /* integers, bool; of the shorter floats tiny numbers */
            data[i * each] = (char)(drawn % (type == DM_BOOL ? 2 : 16));
        }
    }
    return data;
}

const void *dmi_get_data(dmi_replay *r, dm_array a, const int64_t *extent, int dtype)
{
    const char *word = next(r);
    dm_dtype type = DM_F64;
    int64_t bytes = size_of(r, a, extent, dtype, &type), count = 0;
    if (word[0] == 'h') {
        return made_up(r, bytes, type, (uint32_t)number(r, word + 1, 16));
    }
    const char *data = bytes_of(r, word, &count);
    if (data && count < bytes) {
        r->bad = r->bad ? r->bad : "its data are fewer than the array takes";
    }
    return data;
}

void *dmi_get_room(dmi_replay *r, dm_array a, const int64_t *extent, int dtype)
{
    dm_dtype type = DM_F64;
    r->read_bytes = size_of(r, a, extent, dtype, &type);
    r->read = room(r, r->read_bytes, 1);
    return r->read;
}

void *dmi_get_outputs(dmi_replay *r, int64_t count, bool programs)
{
    uint64_t *made = dmi_get_integer(r) ? room(r, count, sizeof *made)
                                        : NULL; /* dm_array and dm_program are a number each */
    if (r->outputs < MOST_OUTPUTS && made) {
        r->output[r->outputs++] = (output){made, count, programs};
    }
    return made;
}

/* --- lines --- */

static bool remember(dmi_replay *r, uint64_t old, uint64_t now, bool program)
{
    if (r->count == r->room) {
        int64_t more = r->room ? 2 * r->room : 64;
        known *grown = realloc(r->known, (size_t)more * sizeof *grown);
        if (!grown) {
            return false;
        }
        r->known = grown;
        r->room = more;
    }
    r->known[r->count++] = (known){old, now, program};
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
        const output *o = &r->output[k];
        for (int64_t i = 0; i < o->count; i++) {
            uint64_t id = 0;
            do {
                const char *word = next(r);
                id = word[0] == (o->programs ? 'p' : 'a') ? number(r, word + 1, 16) : 0;
            } while (id == 0 && !r->bad);
            if (!r->bad && !remember(r, id, o->made[i], o->programs)) {
                return dmi_fail(DM_ERR_NOMEM, "no memory for a journal's handles");
            }
        }
    }
    return r->bad ? damaged(r, r->bad) : DM_OK;
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
    const char *name = next(r);
    if (r->bad) {
        return damaged(r, r->bad);
    }
    if (kept != DM_OK) {
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
        if (r->known[i].program || dm_array_query(r->session, a, &info) != DM_OK) {
            continue;
        }
        int64_t bytes = size_of(r, a, NULL, -1, &type);
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
    dmi_replay r = {.session = session, .path = path, .to = to};
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
        status = r.line == 1 ? head(&r, line) : one_line(&r, line);
        dmi_arena_free(&r.arena);
    }
    if (status == DM_OK && r.line == 0) {
        status = dmi_fail(DM_ERR_IO, "%s is empty, and no journal", path);
    }
    status = status == DM_OK ? dm_sync(session) : status;
    status = status == DM_OK ? sum_up(&r) : status;
    dmi_arena_free(&r.arena);
    free(r.known);
    free(line);
    return status;
}

dm_status dmi_replay_run(dm_session *session, const char *path, FILE *to)
{
    FILE *from = fopen(path, "re");
    if (!from) {
        return dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    dm_status status = dmi_replay_from(session, from, path, to);
    fclose(from);
    return status;
}
