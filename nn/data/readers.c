/* Workers that read their own records, on the program's side: it tells them which, and hears what they say. */
#include "data/readers.h"

#include "data/reading.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nn_readers {
    dm_session *session;
    nn_read_order order;
    dm_array told[2]; /* of takes in turn, so that one is read while the next runs */
    dm_array turn;    /* of their shape, which no top has: arrays of one shape must lie alike */
    int64_t taken;    /* takes so far */
    int workers;
    nn_read_told *all; /* [workers] */
    double waited;
    bool mapped;       /* some worker's GPU may read the memory of its source */
    int64_t record[3]; /* of whole records */
    char why[128];     /* they do not fetch those; "": it makes no sense */
};

static dm_status make_told(nn_readers *r)
{
    const int64_t shape[] = {r->workers, 1, 1, 1, (int64_t)sizeof(nn_read_told)};
    const dm_layout rows = dm_layout_cyclic(r->session, 0, 1);
    r->all = calloc((size_t)r->workers, sizeof *r->all);
    dm_status status =
        r->all ? DM_OK : dm_error_no_memory("what workers have read", (size_t)r->workers * sizeof *r->all);
    for (int i = 0; status == DM_OK && i < 2; i++) {
        status = dm_array_create(r->session, DM_U8, 5, shape, &rows, &r->told[i]);
        /* what lacks the function leaves it so */
        status = status == DM_OK ? dm_fill(r->session, r->told[i], 0) : status;
    }
    return status == DM_OK ? dm_array_create(r->session, DM_U8, 5, shape, &rows, &r->turn) : status;
}

static dm_status run(const nn_readers *r, enum nn_read_kind kind, int mode, int count, const dm_array *arrays)
{
    nn_read_order o = r->order;
    dm_array all[DM_APPLY_OPERANDS] = {r->told[r->taken % 2], r->turn};
    int modes[DM_APPLY_OPERANDS] = {kind == NN_READ_ASK ? DM_READWRITE : DM_WRITE, DM_WRITE};
    o.kind = kind;
    for (int i = 0; i < count; i++) {
        all[NN_READ_OPERANDS + i] = arrays[i];
        modes[NN_READ_OPERANDS + i] = mode;
    }
    dm_apply_options options = DM_APPLY_OPTIONS_INIT;
    options.early = 1;
    return dm_apply_with(r->session, nn_read_function, NN_READ_OPERANDS + count, all, modes, &o,
                         (int64_t)sizeof o, &options);
}

/* which: of the two. */
static dm_status hear(nn_readers *r, int64_t which)
{
    dm_status status = dm_array_read(r->session, r->told[which], NULL, NULL, r->all, 0);
    for (int w = 0; status == DM_OK && w < r->workers; w++) {
        r->all[w].text[sizeof r->all[w].text - 1] = 0;
    }
    return status;
}

/* Who they are; why: they cannot read. one: one reader serves them all, for they are CPUs and threads of this
 * process. */
static dm_status ask(nn_readers *r, bool *one, char *why, size_t room)
{
    dm_status status = run(r, NN_READ_ASK, 0, 0, NULL);
    status = status == DM_OK ? hear(r, 0) : status;
    *one = true;
    for (int w = 0; status == DM_OK && w < r->workers; w++) {
        *one = *one && r->all[w].thread && !r->all[w].gpu;
        if (!r->all[w].knows) {
            snprintf(
                why, room,
                "a worker's program is without libdmath_nn; start dmath-worker with --load libdmath_nn.so");
        }
    }
    return status;
}

/* Workers of each worker's host. */
static void pack_hosts(const nn_readers *r, nn_pack *out)
{
    nn_pack_int(out, r->workers);
    for (int w = 0; w < r->workers; w++) {
        int64_t beside = 0;
        for (int v = 0; v < r->workers; v++) {
            beside += r->all[v].host == r->all[w].host;
        }
        nn_pack_int(out, beside);
    }
}

static dm_status pack_settings(const nn_readers *r, const nn_feed_type *type, const void *state,
                               const nn_rows *rows, nn_pack *out)
{
    nn_pack_text(out, type->name);
    pack_hosts(r, out);
    nn_pack_int(out, rows->tops);
    for (int i = 0; i < rows->tops; i++) {
        nn_pack_int(out, rows->each[i]);
    }
    dm_status status = type->pack(state, out);
    return status == DM_OK && out->missed ? dm_error_no_memory("the settings of a data layer", out->missed)
                                          : status;
}

/* Each worker opens the source. failed: what went wrong there, with its text in `why`; else DM_OK. */
static dm_status open_all(nn_readers *r, const nn_pack *settings, dm_status *failed, char *why, size_t room)
{
    const dm_layout everywhere = dm_layout_replicated(r->session);
    const int64_t bytes = (int64_t)settings->length;
    dm_array a = DM_NO_ARRAY;
    dm_status status = dm_array_create(r->session, DM_U8, 1, &bytes, &everywhere, &a);
    status = status == DM_OK ? dm_write(r->session, a, settings->bytes) : status;
    status = status == DM_OK ? run(r, NN_READ_OPEN, DM_READ, 1, &a) : status;
    status = status == DM_OK ? hear(r, 0) : status;
    dm_status end = dm_array_destroy(r->session, a);
    *failed = DM_OK;
    for (int w = 0; status == DM_OK && *failed == DM_OK && w < r->workers; w++) {
        *failed = (dm_status)r->all[w].status;
        snprintf(why, room, "%s", *failed == DM_OK ? "" : r->all[w].text);
    }
    return status == DM_OK ? end : status;
}

static dm_status unmap_all(nn_readers *r)
{
    r->mapped = false;
    return run(r, NN_READ_UNMAP, 0, 0, NULL);
}

/* Do the GPUs of all workers fetch whole records? Asked twice: a GPU reads the memory when the first call has
 * ended. */
static dm_status map_all(nn_readers *r, const nn_feed_type *type, const void *state, int64_t rows)
{
    enum {
        MOST = 128 << 20
    }; /* bytes of a worker's part of a batch: two are on their way, and functions have 512 MiB */
    int64_t bytes;
    bool all = r->order.images && type->memory;
    dm_status status = DM_OK;
    if (all) {
        (void)type->memory(state, &bytes, r->record);
        if (r->record[0] * r->record[1] * r->record[2] > MOST / ((rows + r->workers - 1) / r->workers)) {
            snprintf(r->why, sizeof r->why, "batches are too large");
            return DM_OK;
        }
    }
    for (int w = 0; w < r->workers; w++) {
        all = all && r->all[w].gpu;
    }
    for (int times = 0; all && status == DM_OK && times < 2; times++) {
        r->mapped = true;
        status = run(r, NN_READ_MAP, 0, 0, NULL);
        status = status == DM_OK ? hear(r, 0) : status;
        for (int w = 0; status == DM_OK && w < r->workers; w++) {
            const nn_read_told *t = &r->all[w];
            if (t->maps <= times) {
                all = false;
                snprintf(r->why, sizeof r->why, "%.100s", t->text);
            }
        }
    }
    if (status == DM_OK && all) {
        r->order.images = NN_READ_WHOLE;
    }
    return status == DM_OK && r->mapped && !all ? unmap_all(r) : status;
}

/* why: the workers cannot read, for a reason that is no error where nobody forces them. */
static dm_status begin(nn_readers *r, const nn_feed_type *type, const void *state, const nn_rows *rows,
                       bool force, bool *one, char *why, size_t room)
{
    nn_pack settings = {0};
    dm_status failed = DM_OK, status = make_told(r);
    status = status == DM_OK ? ask(r, one, why, room) : status;
    if (status != DM_OK || why[0] || (*one && !force)) {
        return status;
    }
    status = pack_settings(r, type, state, rows, &settings);
    status = status == DM_OK ? open_all(r, &settings, &failed, why, room) : status;
    free(settings.bytes);
    /* Files that a host lacks are for the program's process, which has them; other files of these names are
     * not. */
    const bool lacks = failed == DM_ERR_IO || failed == DM_ERR_UNSUPPORTED;
    if (failed != DM_OK) {
        return force || !lacks ? dm_error_set(failed, "%s", why) : status;
    }
    return status == DM_OK ? map_all(r, type, state, rows->count) : status;
}

dm_status nn_readers_open(dm_session *session, const nn_feed_type *type, const void *state, const nn_rows *rows,
                          bool force, nn_readers **out, char *why, size_t room)
{
    static atomic_int_fast64_t feeds;
    const char *alone = type->alone ? type->alone(state) : NULL;
    bool one = false;
    dm_status status = DM_OK;
    *out = NULL;
    why[0] = 0;
    nn_readers *r = calloc(1, sizeof *r);
    if (!r) {
        return dm_error_no_memory("readers", sizeof *r);
    }
    r->session = session;
    r->workers = dm_workers(session);
    r->order = (nn_read_order){.images = rows->images ? NN_READ_WINDOWS : NN_READ_FLOATS,
                               .process = nn_read_process(),
                               .session = (uint64_t)(uintptr_t)session,
                               .feed = atomic_fetch_add(&feeds, 1)};
    if (alone) {
        snprintf(why, room, "%s", alone);
    } else if (rows->tops + (rows->images ? 1 : 0) > NN_READERS_ARRAYS) {
        snprintf(why, room, "the layer has more than %d tops", NN_READERS_ARRAYS);
    } else if (!nn_read_registered()) {
        snprintf(why, room, "libdmath_nn was loaded when a session was open");
    } else {
        status = begin(r, type, state, rows, force, &one, why, room);
    }
    if (status == DM_OK && why[0] && force) {
        status = dm_error_set(DM_ERR_UNSUPPORTED, "%s", why);
    }
    if (status == DM_OK && !why[0] && (!one || force)) {
        *out = r;
        return DM_OK;
    }
    char text[1024];
    snprintf(text, sizeof text, "%s", dm_error_message());
    nn_readers_close(r);
    return status == DM_OK ? DM_OK : dm_error_set(status, "%s", text);
}

void nn_readers_close(nn_readers *r)
{
    if (!r) {
        return;
    }
    /* Where the session has ended its arrays have too, and workers that were processes. */
    dm_status end = r->mapped ? unmap_all(r) : DM_OK;
    end = end == DM_OK && r->turn.id ? run(r, NN_READ_CLOSE, 0, 0, NULL) : end;
    const dm_array all[] = {r->told[0], r->told[1], r->turn};
    for (int i = 0; i < NN_COUNT(all) && end == DM_OK; i++) {
        end = all[i].id ? dm_array_destroy(r->session, all[i]) : DM_OK;
    }
    free(r->all);
    free(r);
}

bool nn_readers_whole(const nn_readers *r, int64_t record[3], const char **why)
{
    memcpy(record, r->record, sizeof r->record);
    *why = r->why;
    return r->order.images == NN_READ_WHOLE;
}

dm_status nn_readers_take(nn_readers *r, int64_t batch, int count, const dm_array *arrays)
{
    r->order.batch = batch;
    dm_status status = run(r, NN_READ_TAKE, DM_WRITE, count, arrays);
    r->taken += status == DM_OK;
    return status;
}

dm_status nn_readers_report(nn_readers *r, bool last, nn_tell_damage tell, void *context)
{
    dm_status status = hear(r, (last ? r->taken + 1 : r->taken) % 2);
    for (int w = 0; status == DM_OK && w < r->workers; w++) {
        const nn_read_told *t = &r->all[w];
        tell(context, t->damaged, t->text);
        r->waited = t->waited > r->waited ? t->waited : r->waited;
    }
    return status;
}

double nn_readers_waited(const nn_readers *r)
{
    return r->waited;
}
