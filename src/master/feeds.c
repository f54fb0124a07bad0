/* Feeds: rings of buffers that a thread of the program fills, and the calls that take them. An array of the
 * feed, which every command with it reads and writes, keeps these commands in order, and is poisoned when one
 * fails. */
#include "master/session.h"
#include "ops/common_feed.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dm_feed {
    dm_session *session;
    struct dm_feed *next; /* of the session */
    dmi_feed_ring *ring;
    int64_t serial;
    int fd;       /* of the ring, where workers are processes; else -1 */
    bool filling; /* a thread has taken a buffer */
    dm_array order;
    dm_dtype dtype;
    int ndim;
    int64_t shape[DM_MAX_DIMS];
};

/* --- the session's thread --- */

static dm_status check_shape(dm_dtype dtype, int ndim, const int64_t *shape, int64_t *bytes)
{
    *bytes = dmi_dtype_bytes(dtype);
    if (*bytes == 0) {
        return dmi_fail(DM_ERR_DTYPE, "feed_create: dtype %d is unknown", (int)dtype);
    }
    if (ndim < 0 || ndim > DM_MAX_DIMS || (ndim > 0 && !shape)) {
        return ndim > 0 && ndim <= DM_MAX_DIMS
                   ? dmi_fail(DM_ERR_ARG, "feed_create: shape is NULL")
                   : dmi_fail(DM_ERR_ARG, "feed_create: ndim is %d, not 0 to %d", ndim, DM_MAX_DIMS);
    }
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0 || !dmi_mul_fits(*bytes, shape[d], bytes)) {
            return dmi_fail(DM_ERR_ARG, "feed_create: shape[%d] is %lld", d, (long long)shape[d]);
        }
    }
    return DM_OK;
}

/* Refuses what waits or changes a feed while a program is recorded. */
static dm_status enter(dm_session *session, const char *call, dmi_session **out)
{
    dm_status status = dmi_enter(session, out);
    return status == DM_OK && (*out)->recording ? dmi_fail(DM_ERR_STATE, "%s cannot be part of a program", call)
                                                : status;
}

/* At the workers of the group that has begun, or all. */
static dm_status make_order(dmi_session *s, dm_feed *feed)
{
    const dm_layout everywhere = dm_layout_replicated(s->public_handle);
    dm_array order;
    dm_status status = dm_array_create(s->public_handle, DM_U8, 1, (int64_t[]){1}, &everywhere, &order);
    if (status != DM_OK) {
        return status;
    }
    dmi_scope_leave(s, dmi_id_slot(order.id)); /* it goes with the feed */
    const dmi_layout *layout = s->handle[dmi_id_slot(order.id)].desc.layout;
    for (int w = 0; w < s->workers; w++) {
        atomic_store(&feed->ring->worker[w].taken, dmi_layout_shard_count(layout, w) > 0 ? 0 : INT64_MAX);
    }
    status = dm_fill(s->public_handle, order, 0);
    if (status != DM_OK) {
        return dmi_array_release(s->public_handle, order, status);
    }
    feed->order = order;
    s->alive--; /* it is not the caller's */
    return DM_OK;
}

dm_status dm_feed_create(dm_session *session, dm_dtype dtype, int ndim, const int64_t *shape, int buffers,
                         dm_feed **out)
{
    dmi_session *s;
    int64_t bytes;
    dm_status status = enter(session, "feed_create", &s);
    if (status == DM_OK && (!out || buffers < 1)) {
        status = out ? dmi_fail(DM_ERR_ARG, "feed_create: buffers is %d", buffers)
                     : dmi_fail(DM_ERR_ARG, "feed_create: out is NULL");
    }
    if (status == DM_OK && s->remote) {
        status = dmi_fail(DM_ERR_UNSUPPORTED, "feed_create: workers are on other hosts than the program");
    }
    if (status == DM_OK && s->explaining) {
        status = dmi_fail(DM_ERR_STATE, "feed_create: calls are being explained (dm_explain_begin)");
    }
    if (status != DM_OK || (status = check_shape(dtype, ndim, shape, &bytes)) != DM_OK) {
        return status;
    }
    dm_feed *feed = calloc(1, sizeof *feed);
    if (!feed) {
        return dmi_fail(DM_ERR_NOMEM, "feed_create: no memory for a feed");
    }
    *feed = (dm_feed){.session = session, .dtype = dtype, .ndim = ndim, .fd = -1, .serial = dmi_now_ns()};
    if (ndim > 0) {
        memcpy(feed->shape, shape, (size_t)ndim * sizeof *shape);
    }
    status = dmi_feed_ring_make(bytes, buffers, s->workers, !s->profile.one_space, &feed->ring, &feed->fd);
    if (status == DM_OK && (status = make_order(s, feed)) != DM_OK) {
        dmi_feed_ring_free(feed->ring, feed->fd);
    }
    if (status != DM_OK) {
        free(feed);
        return status;
    }
    feed->next = s->feeds;
    s->feeds = feed;
    *out = feed;
    return DM_OK;
}

static dm_status check_array(dmi_session *s, const dm_feed *feed, dm_array a)
{
    dmi_handle *h;
    dm_status status = dmi_handle_find(s, a, "a", &h);
    if (status != DM_OK) {
        return status;
    }
    const dmi_desc *desc = &h->desc;
    char text[192];
    dmi_desc_describe(desc, text, sizeof text);
    if (desc->dtype != feed->dtype) {
        return dmi_fail(DM_ERR_DTYPE, "array_feed: a is %s, and the feed is of %s", text,
                        dmi_dtype_name(feed->dtype));
    }
    if (desc->ndim != feed->ndim ||
        memcmp(desc->extent, feed->shape, (size_t)feed->ndim * sizeof *feed->shape) != 0) {
        return dmi_fail(DM_ERR_SHAPE, "array_feed: a is %s, and the feed has another shape", text);
    }
    const dmi_layout *workers = s->handle[dmi_id_slot(feed->order.id)].desc.layout;
    for (int w = 0; w < s->workers; w++) {
        if (dmi_layout_shard_count(desc->layout, w) > 0 && dmi_layout_shard_count(workers, w) == 0) {
            return dmi_fail(DM_ERR_LAYOUT,
                            "array_feed: worker %d holds a part of a (%s), and is none of the feed's", w, text);
        }
    }
    return DM_OK;
}

dm_status dm_array_feed(dm_session *session, dm_array a, dm_feed *feed, double seconds)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && (!feed || seconds != seconds)) {
        status = feed ? dmi_fail(DM_ERR_ARG, "array_feed: seconds is NaN")
                      : dmi_fail(DM_ERR_ARG, "array_feed: feed is NULL");
    }
    if (status == DM_OK && feed->session != session) {
        status = dmi_fail(DM_ERR_HANDLE, "array_feed: the feed belongs to another session");
    }
    if (status != DM_OK || (status = check_array(s, feed, a)) != DM_OK) {
        return status;
    }
    dmi_feed_args args;
    memset(&args, 0, sizeof args); /* with what is between its members: it is part of a plan */
    args.ring = s->profile.one_space ? feed->ring : NULL;
    args.pid = (int)getpid();
    args.fd = feed->fd;
    args.serial = feed->serial;
    args.bytes = feed->ring->bytes;
    args.seconds = seconds;
    args.ndim = feed->ndim;
    memcpy(args.shape, feed->shape, sizeof args.shape);
    dmi_call call = {.op = DMI_OP_apply, .noperand = 2, .tail = &args, .tail_bytes = sizeof args};
    call.args.i[0] = DMI_TASK_FEED;
    call.args.i[1] = DM_READWRITE;
    call.args.i[2] = DM_WRITE;
    return dmi_call_submit(session, &call, (dm_array[]){feed->order, a});
}

dm_status dm_feed_restart(dm_session *session, dm_feed *feed)
{
    dmi_session *s;
    dm_status status = enter(session, "feed_restart", &s);
    if (status == DM_OK && !feed) {
        status = dmi_fail(DM_ERR_ARG, "feed_restart: feed is NULL");
    }
    if (status == DM_OK && feed->session != session) {
        status = dmi_fail(DM_ERR_HANDLE, "feed_restart: the feed belongs to another session");
    }
    if (status != DM_OK || (status = dmi_wait_done(s, s->command, 0)) != DM_OK) {
        return status;
    }
    int64_t turn = atomic_load(&feed->ring->put);
    for (int w = 0; w < s->workers; w++) {
        if (atomic_load(&feed->ring->worker[w].taken) != INT64_MAX) {
            atomic_store(&feed->ring->worker[w].taken, turn);
        }
    }
    atomic_store(&feed->ring->stopped, 0);
    return dm_fill(session, feed->order, 0);
}

/* The array, and the place in the list. */
static dm_status leave(dmi_session *s, dm_feed *feed)
{
    dm_status status = dmi_wait_done(s, s->command, 0);
    if (status != DM_OK) {
        return status;
    }
    dm_feed **at = &s->feeds;
    while (*at != feed) {
        at = &(*at)->next;
    }
    *at = feed->next;
    s->alive++;
    dmi_array_drop(s, feed->order);
    return DM_OK;
}

dm_status dm_feed_destroy(dm_feed *feed)
{
    dmi_session *s;
    if (!feed) {
        return DM_OK;
    }
    atomic_store(&feed->ring->stopped, 1);
    if (atomic_load(&feed->session->live)) {
        dm_status status = enter(feed->session, "feed_destroy", &s);
        if (status != DM_OK || (status = leave(s, feed)) != DM_OK) {
            return status;
        }
    }
    if (!feed->session->given_up) { /* its workers may still read the buffers */
        atomic_store(&feed->ring->ended, 1);
        dmi_feed_ring_free(feed->ring, feed->fd);
    }
    free(feed);
    return DM_OK;
}

void dmi_feeds_stop(dmi_session *s)
{
    for (dm_feed *feed = s->feeds; feed; feed = feed->next) {
        atomic_store(&feed->ring->stopped, 1);
    }
}

bool dmi_feeds_own(const dmi_session *s, dm_array a)
{
    for (const dm_feed *feed = s->feeds; feed; feed = feed->next) {
        if (feed->order.id == a.id) {
            return true;
        }
    }
    return false;
}

/* --- any thread --- */

dm_status dm_feed_take(dm_feed *feed, double seconds, void **buffer)
{
    if (!feed || !buffer || seconds != seconds) {
        return dmi_fail(DM_ERR_ARG, "feed_take: %s",
                        !feed     ? "feed is NULL"
                        : !buffer ? "buffer is NULL"
                                  : "seconds is NaN");
    }
    const int64_t begin = dmi_now_ns(), turn = atomic_load(&feed->ring->put);
    for (int look = 0;; look++) {
        if (atomic_load(&feed->ring->stopped)) {
            return dmi_fail(DM_ERR_STATE, "feed_take: the feed was stopped");
        }
        if (dmi_feed_free(feed->ring, turn)) {
            break;
        }
        if (seconds >= 0 && (double)(dmi_now_ns() - begin) >= seconds * 1e9) {
            return dmi_fail(DM_ERR_PENDING, "feed_take: no buffer is free yet");
        }
        dmi_feed_pause(look);
    }
    feed->filling = true;
    *buffer = dmi_feed_buffer(feed->ring, turn);
    return DM_OK;
}

dm_status dm_feed_put(dm_feed *feed)
{
    if (!feed || !feed->filling) {
        return feed ? dmi_fail(DM_ERR_STATE, "feed_put: no buffer was taken")
                    : dmi_fail(DM_ERR_ARG, "feed_put: feed is NULL");
    }
    feed->filling = false;
    atomic_fetch_add_explicit(&feed->ring->put, 1, memory_order_release);
    return DM_OK;
}

dm_status dm_feed_stop(dm_feed *feed)
{
    if (!feed) {
        return dmi_fail(DM_ERR_ARG, "feed_stop: feed is NULL");
    }
    atomic_store(&feed->ring->stopped, 1);
    return DM_OK;
}
