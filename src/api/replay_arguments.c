/* Reading the arguments of a journal's calls. */
#include "api/replay_parts.h"
#include "base/plain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

dm_session *dmi_replay_session(const dmi_replay *r)
{
    return r->session;
}

bool dmi_replay_ready(const dmi_replay *r)
{
    return !r->bad;
}

/* --- words --- */

const char *dmi_replay_next(dmi_replay *r)
{
    char *word = r->at + strspn(r->at, " ");
    size_t length = strcspn(word, " ");
    if (length == 0) {
        dmi_replay_bad(r, "it ends early");
        return "";
    }
    r->at = word + length + (word[length] == ' ');
    word[length] = 0;
    return word;
}

void *dmi_replay_room(dmi_replay *r, int64_t count, size_t each)
{
    bool sane = count >= 0 && count <= INT32_MAX;
    dmi_replay_block *b = sane ? calloc(1, sizeof *b + (size_t)count * each) : NULL;
    if (!b) {
        dmi_replay_bad(r, "it asks for more than there is memory");
        return NULL;
    }
    b->next = r->blocks;
    r->blocks = b;
    return b->memory;
}

void dmi_replay_end_line(dmi_replay *r)
{
    while (r->blocks) {
        dmi_replay_block *b = r->blocks;
        r->blocks = b->next;
        free(b);
    }
}

int64_t dmi_replay_length(const dmi_replay *r)
{
    return r->length;
}

void dmi_replay_fits(dmi_replay *r, int64_t length, int64_t taken)
{
    if (length >= 0 && taken > length) {
        dmi_replay_bad(r, "a list is shorter than the call takes it for");
    }
}

uint64_t dmi_replay_number(dmi_replay *r, const char *text, int base)
{
    char *end;
    errno = 0;
    uint64_t value = base == 16 ? strtoull(text, &end, 16) : (uint64_t)strtoll(text, &end, base);
    if (end == text || *end || errno) {
        dmi_replay_bad(r, "a number is no number");
        return 0;
    }
    return value;
}

int64_t dmi_get_integer(dmi_replay *r)
{
    return (int64_t)dmi_replay_number(r, dmi_replay_next(r), 10);
}

double dmi_get_real(dmi_replay *r)
{
    const char *text = dmi_replay_next(r);
    char *end;
    double value = dmi_plain_real(text, &end);
    if (end == text || *end) {
        dmi_replay_bad(r, "a number is no number");
    }
    return value;
}

static uint64_t handle(dmi_replay *r, char kind)
{
    const char *text = dmi_replay_next(r);
    uint64_t id = text[0] == kind ? dmi_replay_number(r, text + 1, 16) : 0;
    if (text[0] != kind) {
        dmi_replay_bad(r, "it has no handle where one must be");
    }
    for (int64_t i = r->count; i-- > 0 && id;) {
        if (r->known[i].old == id && r->known[i].kind == kind) {
            r->group_old = r->known[i].workers;
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

dm_group dmi_get_group(dmi_replay *r)
{
    return (dm_group){handle(r, 'g')};
}

double dmi_get_seconds(dmi_replay *r)
{
    (void)dmi_get_real(r);
    return -1;
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

const char *dmi_replay_bytes(dmi_replay *r, const char *word, int64_t *count)
{
    *count = 0;
    r->length = -1;
    if (strcmp(word, "-") == 0) {
        return NULL;
    }
    int64_t n = (int64_t)strlen(word) / 2;
    char *bytes = dmi_replay_room(r, n + 1, 1);
    for (int64_t i = 0; bytes && i < n; i++) {
        int high = digit(word[1 + 2 * i]), low = digit(word[2 + 2 * i]);
        if (word[0] != 'x' || high < 0 || low < 0) {
            dmi_replay_bad(r, "bytes are not written as bytes");
            return NULL;
        }
        bytes[i] = (char)(high << 4 | low);
    }
    *count = r->length = n;
    return bytes;
}

const char *dmi_get_text(dmi_replay *r)
{
    int64_t count;
    return dmi_replay_bytes(r, dmi_replay_next(r), &count);
}

const void *dmi_get_bytes(dmi_replay *r)
{
    int64_t count;
    return dmi_replay_bytes(r, dmi_replay_next(r), &count);
}

const void *dmi_get_sized(dmi_replay *r)
{
    int64_t count;
    size_t size;
    const void *options = dmi_replay_bytes(r, dmi_replay_next(r), &count);
    if (options && count >= (int64_t)sizeof size) {
        memcpy(&size, options, sizeof size);
    }
    if (options && (count < (int64_t)sizeof size || size > (size_t)count)) {
        dmi_replay_bad(r, "options are shorter than they say");
    }
    return options;
}

int64_t dmi_replay_list(dmi_replay *r)
{
    const char *word = dmi_replay_next(r);
    int64_t n = strcmp(word, "-") == 0 ? -1 : (int64_t)dmi_replay_number(r, word, 10);
    if (n > r->longest || n < -1) {
        dmi_replay_bad(r, "a list has no length, or a greater one than its line");
    }
    r->length = r->bad ? -1 : n;
    return r->length;
}

static const int64_t *integers_of(dmi_replay *r, int64_t *count)
{
    int64_t n = dmi_replay_list(r), *value = n < 0 ? NULL : dmi_replay_room(r, n, sizeof *value);
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
    int64_t n = dmi_replay_list(r);
    int *value = n < 0 ? NULL : dmi_replay_room(r, n, sizeof *value);
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
    int64_t n = dmi_replay_list(r);
    double *value = n < 0 ? NULL : dmi_replay_room(r, n, sizeof *value);
    for (int64_t i = 0; value && i < n && !r->bad; i++) {
        value[i] = dmi_get_real(r);
    }
    return value;
}

dm_array *dmi_get_arrays(dmi_replay *r)
{
    int64_t n = dmi_replay_list(r);
    dm_array *value = n < 0 ? NULL : dmi_replay_room(r, n, sizeof *value);
    for (int64_t i = 0; value && i < n && !r->bad; i++) {
        value[i] = dmi_get_array(r);
    }
    return value;
}

const dm_map_arg *dmi_get_map_args(dmi_replay *r)
{
    int64_t n = dmi_replay_list(r);
    dm_map_arg *arg = n < 0 ? NULL : dmi_replay_room(r, n, sizeof *arg);
    for (int64_t i = 0; arg && i < n && !r->bad; i++) {
        arg[i].name = dmi_get_text(r);
        arg[i].array = dmi_get_array(r);
        arg[i].kind = (int)dmi_get_integer(r);
        arg[i].number = dmi_get_real(r);
        arg[i].integer = dmi_get_integer(r);
    }
    r->length = n;
    return arg;
}

/* A group keeps its part of the workers: worker w of P becomes the workers here that are the same part of P',
 * or the one that it is a part of. */
const int *dmi_get_group_workers(dmi_replay *r)
{
    int64_t count;
    const int *old = ints_of(r, &count);
    int *now = old ? dmi_replay_room(r, r->here, sizeof *now) : NULL;
    bool *taken = now ? dmi_replay_room(r, r->here, sizeof *taken) : NULL;
    r->group_old = (int)count;
    r->group_now = 0;
    for (int64_t i = 0; taken && i < count && r->workers > 0; i++) {
        if (old[i] < 0 || old[i] >= r->workers) {
            dmi_replay_bad(r, "a group has a worker that was not there");
            return NULL;
        }
        int64_t first = ((int64_t)old[i] * r->here + r->workers - 1) / r->workers,
                end = ((int64_t)(old[i] + 1) * r->here + r->workers - 1) / r->workers;
        if (first >= end) {
            first = (int64_t)old[i] * r->here / r->workers;
            end = first + 1;
        }
        for (int64_t w = first; w < end; w++) {
            if (!taken[w]) {
                taken[w] = true;
                now[r->group_now++] = (int)w;
            }
        }
    }
    return now;
}

int dmi_get_group_count(dmi_replay *r)
{
    (void)dmi_get_integer(r);
    return r->group_now;
}

/* How many workers layouts counted when it was kept. */
static int workers_then(const dmi_replay *r)
{
    return r->opens > 0 ? r->open[r->opens - 1] : r->workers;
}

/* The layout for another number of workers: what went over all of them, or all of the group, does so here; one
 * that names workers, or has another grid, becomes the default. */
static const dm_layout *spread(const dmi_replay *r, dm_layout *layout)
{
    int workers = dm_workers(r->session), then = workers_then(r), all = 0;
    if (r->here == r->workers) {
        return layout;
    }
    if (layout->kind == 2) {
        layout->single %= workers;
        return layout;
    }
    for (int d = 0; d < DM_MAX_DIMS; d++) {
        all += layout->grid[d] == then;
        if (layout->grid[d] > 1 && layout->grid[d] != then) {
            return NULL;
        }
        layout->grid[d] = layout->grid[d] > 1 ? workers : layout->grid[d];
    }
    bool copies = layout->replicas == then && then > 1;
    layout->replicas = copies ? workers : layout->replicas;
    return layout->kind < 0 || (layout->kind == 0 && !layout->workers && (layout->replicas <= 1 || copies) &&
                                all <= 1 && !(all && copies))
               ? layout
               : NULL;
}

const dm_layout *dmi_get_layout(dmi_replay *r)
{
    if (strcmp(dmi_replay_next(r), "-") == 0) {
        return NULL;
    }
    dm_layout *layout = dmi_replay_room(r, 1, sizeof *layout);
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
        dmi_replay_bad(r, "a layout is none");
        return NULL;
    }
    memcpy(layout->block, block, sizeof layout->block);
    memcpy(layout->grid, grid, sizeof layout->grid);
    memcpy(layout->order, order, sizeof layout->order);
    return spread(r, layout);
}

/* --- memory of the caller --- */

int64_t dmi_replay_bytes_of(const dmi_replay *r, dm_array a, const int64_t *extent, int dtype, dm_dtype *type)
{
    dm_array_info info = {.size = sizeof info};
    if (r->bad || dm_array_query(r->session, a, &info) != DM_OK) {
        return 0; /* the call says why */
    }
    *type = dtype < 0 ? info.dtype : (dm_dtype)dtype;
    int64_t bytes = dmi_dtype_bytes(*type);
    for (int d = 0; d < info.ndim; d++) {
        if ((extent && (extent[d] < 0 || extent[d] > info.shape[d])) ||
            __builtin_mul_overflow(bytes, extent ? extent[d] : info.shape[d], &bytes)) {
            return 0; /* the same */
        }
    }
    return bytes;
}

void *dmi_replay_made_up(dmi_replay *r, int64_t bytes, dm_dtype type, uint32_t seed)
{
    int64_t each = dmi_dtype_bytes(type), count = each > 0 ? bytes / each : 0;
    char *data = dmi_replay_room(r, bytes, 1);
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
    const char *word = dmi_replay_next(r);
    dm_dtype type = DM_F64;
    int64_t bytes = dmi_replay_bytes_of(r, a, extent, dtype, &type), count = 0;
    if (word[0] == 'h') {
        return dmi_replay_made_up(r, bytes, type, (uint32_t)dmi_replay_number(r, word + 1, 16));
    }
    const char *data = dmi_replay_bytes(r, word, &count);
    if (data && count < bytes) {
        dmi_replay_bad(r, "its data are fewer than the array takes");
    }
    return data;
}

void *dmi_get_room(dmi_replay *r, dm_array a, const int64_t *extent, int dtype)
{
    dm_dtype type = DM_F64;
    r->read_bytes = dmi_replay_bytes_of(r, a, extent, dtype, &type);
    r->read = dmi_replay_room(r, r->read_bytes, 1);
    return r->read;
}

void *dmi_get_outputs(dmi_replay *r, int64_t count, char kind)
{
    if (count > r->longest) {
        dmi_replay_bad(r, "a call makes more than its line can name");
    }
    uint64_t *made = dmi_get_integer(r) && !r->bad
                         ? dmi_replay_room(r, count, sizeof *made)
                         : NULL; /* dm_array, dm_program and dm_group are a number each */
    if (r->outputs < DMI_REPLAY_OUTPUTS && made) {
        r->output[r->outputs++] = (dmi_replay_output){made, count, kind};
    }
    return made;
}
