/* A payload is one message stream of the pair: chunks of at most CHUNK_BYTES in order, all with one tag for the
 * channel, so that MPI's own order (per sender, tag and communicator) matches the k-th PUSH with the k-th
 * EXPECT. A chunk without bytes says that the sender's command failed. The receive is posted when the
 * destination is free (the EXPECT's waits), so no message arrives in memory that is in use; strided sides use a
 * packed buffer. */
#include "exec/mpi_link.h"
#include "base/fault.h"
#include "kernels/direct.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (INT64_C(16) << 20)
enum {
    TAG_BLOCK = 20,
    MOST_POSTED = 16
}; /* the tag of channel 0, and of the next one 1 more; packed receives of each */

struct dmi_message {
    char *buffer;      /* packed; NULL: the payload itself is contiguous */
    int count, done;   /* chunks */
    dmi_copy geometry; /* pack or unpack */
    dmi_arena arena;
    bool poisoned;
    bool lost; /* an MPI call has failed */
    MPI_Request request[];
};

dm_status dmi_mpi_check(int code, const char *function)
{
    if (code == MPI_SUCCESS) {
        return DM_OK;
    }
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return dmi_fail(DM_ERR_TRANSPORT, "%s: %s", function, text);
}

bool dmi_mpi_contiguous(const dmi_copy *g, bool dst, int64_t *offset)
{
    int64_t at = dst ? g->dst_offset : g->src_offset, expect = 1;
    for (int d = g->ndim - 1; d >= 0; d--) {
        if (g->nrun[d] != 1) {
            return false;
        }
        int64_t stride = dst ? g->dst_stride[d] : g->src_stride[d];
        if (g->run[d][0].len > 1 && stride != expect) {
            return false;
        }
        at += (dst ? g->run[d][0].b : g->run[d][0].a) * stride;
        expect *= g->run[d][0].len;
    }
    *offset = at;
    return true;
}

static struct dmi_message *new_message(int64_t bytes)
{
    int count = (int)((bytes + CHUNK_BYTES - 1) / CHUNK_BYTES);
    struct dmi_message *m = calloc(1, sizeof *m + (size_t)count * sizeof(MPI_Request));
    if (m) {
        m->count = count;
    }
    return m;
}

static void free_message(dmi_queued_step *w)
{
    if (w->message) {
        dmi_arena_free(&w->message->arena);
        free(w->message->buffer);
        free(w->message);
        w->message = NULL;
    }
}

/* The payload's calls of MPI are counted: shall this one fail? */
static bool planted_fault(void)
{
    return dmi_fault(DMI_FAULT_MESSAGE);
}

static int chunk_bytes(const dmi_queued_step *w, int chunk)
{
    return (int)DMI_MIN(CHUNK_BYTES, w->step->bytes - chunk * CHUNK_BYTES);
}

/* A failed MPI call leaves the payload in an unknown state, and the peer may wait for it for ever. So the
 * session has failed: calls return the error, and only dm_finalize is left. */
static void lose_message(dmi_engine *e, dmi_queued_step *w)
{
    dmi_log(DMI_LOG_ERROR, "endpoint %d: %s; the session cannot go on", e->config.me, dmi_error_text());
    w->message->lost = true;
    dmi_engine_fail_step(e, w, DM_ERR_TRANSPORT);
    dmi_engine_break(e, DM_ERR_TRANSPORT);
}

/* Sends the bytes from `source` on. NULL: the command has failed; sends empty chunks. */
static void send_chunks(dmi_engine *e, dmi_queued_step *w, char *source)
{
    for (int i = 0; i < w->message->count && !w->message->lost; i++) {
        int code = planted_fault()
                       ? MPI_ERR_OTHER
                       : MPI_Isend(source ? source + i * CHUNK_BYTES : NULL, source ? chunk_bytes(w, i) : 0,
                                   MPI_BYTE, e->mpi->rank[w->step->peer], TAG_BLOCK + dmi_step_channel(w),
                                   e->mpi->data, &w->message->request[i]);
        if (dmi_mpi_check(code, "MPI_Isend") != DM_OK) {
            lose_message(e, w);
        }
    }
    if (source && !w->message->lost) {
        dmi_count_sent(e, w->inst, w->step->peer, w->step->bytes);
    }
}

static void receive_chunks(dmi_engine *e, dmi_queued_step *w, char *destination)
{
    for (int i = 0; i < w->message->count && !w->message->lost; i++) {
        int code = planted_fault() ? MPI_ERR_OTHER
                                   : MPI_Irecv(destination + i * CHUNK_BYTES, chunk_bytes(w, i), MPI_BYTE,
                                               e->mpi->rank[w->step->peer], TAG_BLOCK + dmi_step_channel(w),
                                               e->mpi->data, &w->message->request[i]);
        if (dmi_mpi_check(code, "MPI_Irecv") != DM_OK) {
            lose_message(e, w);
        }
    }
}

/* A message that is lost never arrives. */
static bool chunks_arrived(dmi_engine *e, dmi_queued_step *w)
{
    struct dmi_message *m = w->message;
    while (m->done < m->count && !m->lost) {
        MPI_Status status;
        int flag = 0, bytes = 0;
        int code = planted_fault() ? MPI_ERR_OTHER : MPI_Test(&m->request[m->done], &flag, &status);
        if (dmi_mpi_check(code, "MPI_Test") != DM_OK) {
            lose_message(e, w);
        }
        if (!flag) {
            return false;
        }
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        m->poisoned = m->poisoned || bytes == 0;
        if (bytes != 0 && bytes != chunk_bytes(w, m->done)) {
            (void)dmi_fail(DM_ERR_TRANSPORT, "a payload of %d bytes has come where %d were to come", bytes,
                           chunk_bytes(w, m->done));
            lose_message(e, w);
            return false;
        }
        m->done++;
    }
    return !m->lost;
}

static bool start_push(dmi_engine *e, dmi_queued_step *w)
{
    const dmi_copy *g = w->step->desc;
    char *source = atomic_load(&w->inst->failed) ? NULL : dmi_ref_pointer(w->inst, &w->step->ref[0]);
    int64_t offset = 0, elem = dmi_dtype_bytes(g->src_dtype);
    w->message = new_message(w->step->bytes);
    if (!w->message) {
        return false; /* tried again at the next look */
    }
    if (source && dmi_mpi_contiguous(g, false, &offset)) {
        source += offset * elem;
    } else if (source) {
        w->message->buffer = malloc((size_t)w->step->bytes);
        if (!w->message->buffer || !dmi_copy_pack(g, &w->message->geometry, &w->message->arena)) {
            free_message(w);
            return false;
        }
        dmi_run_copy(e->config.backend, NULL, &w->message->geometry, source, w->message->buffer);
        source = w->message->buffer;
    }
    send_chunks(e, w, source);
    return true;
}

static bool test_push(dmi_engine *e, dmi_queued_step *w)
{
    int flag = 0;
    if (w->message->lost) {
        return false;
    }
    int code = planted_fault()
                   ? MPI_ERR_OTHER
                   : MPI_Testall(w->message->count, w->message->request, &flag, MPI_STATUSES_IGNORE);
    if (dmi_mpi_check(code, "MPI_Testall") != DM_OK) {
        lose_message(e, w);
        return false;
    }
    if (flag) {
        free_message(w);
    }
    return flag;
}

static bool mpi_push(dmi_engine *e, dmi_queued_step *w)
{
    return (w->message || start_push(e, w)) && test_push(e, w);
}

static bool mpi_grant(dmi_engine *e, dmi_queued_step *w)
{
    const dmi_copy *g = w->step->desc;
    int64_t offset = 0, elem = dmi_dtype_bytes(g->dst_dtype);
    char *destination = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    bool straight = destination && dmi_mpi_contiguous(g, true, &offset);
    int *posted = &e->mpi->posted[dmi_step_channel(w)];
    if (!straight && *posted >= MOST_POSTED) {
        return false;
    }
    w->message = new_message(w->step->bytes);
    if (!w->message) {
        return false;
    }
    if (straight) {
        destination += offset * elem;
    } else {
        w->message->buffer = malloc((size_t)w->step->bytes);
        if (!w->message->buffer ||
            (destination && !dmi_copy_unpack(g, &w->message->geometry, &w->message->arena))) {
            free_message(w);
            return false;
        }
        destination = w->message->buffer;
        ++*posted;
    }
    receive_chunks(e, w, destination);
    return true;
}

static bool mpi_arrive(dmi_engine *e, dmi_queued_step *w)
{
    struct dmi_message *m = w->message;
    if (!chunks_arrived(e, w)) {
        return false;
    }
    char *destination = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    if (m->poisoned) {
        dmi_engine_fail(e, w->inst, DM_OK, "");
    } else if (destination) {
        if (m->buffer) {
            dmi_run_copy(e->config.backend, NULL, &m->geometry, m->buffer, destination);
        }
        DMI_ADD_COUNT(e, w->inst, bytes_received, w->step->bytes);
    }
    e->mpi->posted[dmi_step_channel(w)] -= m->buffer != NULL;
    free_message(w);
    return true;
}

/* --- payloads that are packed elsewhere --- */

bool dmi_mpi_push_packed(dmi_engine *e, dmi_queued_step *w, char *buffer)
{
    if (!w->message) {
        w->message = new_message(w->step->bytes);
        if (!w->message) {
            return false; /* tried again at the next look */
        }
        send_chunks(e, w, atomic_load(&w->inst->failed) ? NULL : buffer);
    }
    return test_push(e, w);
}

bool dmi_mpi_grant_packed(dmi_engine *e, dmi_queued_step *w, char *buffer)
{
    w->message = new_message(w->step->bytes);
    if (w->message) {
        receive_chunks(e, w, buffer);
    }
    return w->message != NULL;
}

int dmi_mpi_arrive_packed(dmi_engine *e, dmi_queued_step *w)
{
    if (!chunks_arrived(e, w)) {
        return 0;
    }
    int result = w->message->poisoned ? -1 : 1;
    free_message(w);
    return result;
}

static bool enter_push(dmi_engine *e, dmi_queued_step *w)
{
    dmi_mpi_enter(e->mpi);
    bool done = mpi_push(e, w);
    dmi_mpi_leave(e->mpi);
    return done;
}

static bool enter_grant(dmi_engine *e, dmi_queued_step *w)
{
    dmi_mpi_enter(e->mpi);
    bool done = mpi_grant(e, w);
    dmi_mpi_leave(e->mpi);
    return done;
}

static bool enter_arrive(dmi_engine *e, dmi_queued_step *w)
{
    dmi_mpi_enter(e->mpi);
    bool done = mpi_arrive(e, w);
    dmi_mpi_leave(e->mpi);
    return done;
}

const dmi_transport dmi_transport_mpi = {"mpi", enter_push, enter_grant, enter_arrive};
