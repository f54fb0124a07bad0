/* Payloads that MPI carries from device memory to device memory: between GPUs without direct access, if the
 * start-up test has shown that MPI takes device memory (launch/gpu_message.c). They come in chunks of the plan,
 * as payloads through host memory do.
 *
 * If the elements of a side are consecutive, MPI gets their address. Otherwise a kernel packs them into a
 * buffer of device memory, or unpacks them from one. Each side chooses for itself: the message has the same
 * bytes in either case. MPI knows no streams, so the host polls where a stream would wait:
 *   - MPI_Isend starts when the device has made what MPI reads: the step's waits are done, or the packing is;
 *   - MPI_Irecv starts when the device no longer uses the memory: the step's waits are done, so the destination is
 *     free, or the chunk before has been unpacked;
 *   - when MPI reports the arrival, this device's own `arrived` counter announces it to the streams. Only then may a
 *     step that waits for the counter be put on a stream;
 *   - a push that MPI sends straight from an array counts as issued only when the send is complete, so that no step
 *     overwrites the array before (dmi_gpu_held).
 * So no stream ever waits for MPI, and MPI may wait for the device in any of its calls. */
#include "exec/gpu/parts.h"
#include "exec/mpi_link.h"

#include <assert.h>

static char *straight(const dmi_queued_step *w, bool dst)
{
    const dmi_copy *c = w->step->desc;
    char *memory = dmi_ref_pointer(w->inst, &w->step->ref[0]);
    int64_t offset = 0;
    return memory && dmi_mpi_contiguous(c, dst, &offset) ? memory + offset * dmi_dtype_bytes(c->src_dtype)
                                                         : NULL;
}

static void with_mpi(const dmi_engine *e, dmi_staged *buffer)
{
    buffer->state = CHUNK_WITH_LINK;
    buffer->work->begun_ns = e->timed ? dmi_now_ns() : 0;
}

/* --- out --- */

bool dmi_gpu_held(const dmi_queued_step *w)
{
    return w->staged && w->staged->work == w && w->staged->straight;
}

bool dmi_gpu_send_message(dmi_engine *e, dmi_queued_step *w)
{
    dmi_gpu *g = e->gpu;
    dmi_staged *buffer = dmi_gpu_packed_next(&g->message_out);
    if (!buffer) {
        return false;
    }
    assert(w->step->bytes <= g->message_bytes);
    buffer->straight = straight(w, false);
    if (!buffer->straight) {
        dmi_gpu_packed_pack(e, buffer, w);
    }
    dmi_gpu_packed_take(&g->message_out, buffer, w, CHUNK_ON_DEVICE);
    if (!buffer->straight) {
        dmi_gpu_packed_record(e, w, DMI_LANE_SEND);
    }
    return true;
}

/* True: the next chunk may be looked at too. */
static bool send_chunk(dmi_engine *e, dmi_staged *buffer)
{
    dmi_queued_step *w = buffer->work;
    if (buffer->state == CHUNK_ON_DEVICE) {
        if (!dmi_engine_reached(e, &w->wait) || (!buffer->straight && !dmi_cu_event_reached(buffer->event))) {
            return false;
        }
        dmi_transfer_check_source(e, w);
        with_mpi(e, buffer);
    }
    if (buffer->state == CHUNK_WITH_LINK &&
        dmi_mpi_push_packed(e, w, buffer->straight ? buffer->straight : buffer->device)) {
        buffer->state = CHUNK_DONE;
    }
    return buffer->state == CHUNK_DONE || w->message;
}

/* --- in --- */

bool dmi_gpu_grant_message(dmi_engine *e, dmi_queued_step *w)
{
    dmi_gpu *g = e->gpu;
    dmi_staged *buffer = dmi_gpu_packed_next(&g->message_in);
    if (!buffer) {
        return false;
    }
    assert(w->step->bytes <= g->message_bytes);
    buffer->straight = straight(w, true);
    if ((buffer->straight && !dmi_engine_reached(e, &w->wait)) ||
        !dmi_mpi_grant_packed(e, w, buffer->straight ? buffer->straight : buffer->device)) {
        return false;
    }
    dmi_gpu_packed_take(&g->message_in, buffer, w, CHUNK_WITH_LINK);
    with_mpi(e, buffer);
    return true;
}

static bool receive_chunk(dmi_engine *e, dmi_staged *buffer)
{
    return dmi_gpu_packed_receive(e, buffer, dmi_mpi_arrive_packed);
}

bool dmi_gpu_message_progress(dmi_engine *e)
{
    bool moved = dmi_gpu_packed_progress(e, &e->gpu->message_out, send_chunk);
    return dmi_gpu_packed_progress(e, &e->gpu->message_in, receive_chunk) || moved;
}

/* --- beginning and end --- */

dm_status dmi_gpu_messages(dmi_engine *e, int64_t chunk_bytes)
{
    dmi_gpu *g = e->gpu;
    dm_status status = DM_OK;
    if (chunk_bytes > 0) {
        status = dmi_gpu_packed_make(g, &g->message_out, &g->message_in, NULL, chunk_bytes);
    }
    if (chunk_bytes == 0 || status != DM_OK) {
        dmi_gpu_packed_free(&g->message_out, &g->message_in);
    }
    g->message_bytes = status == DM_OK ? chunk_bytes : 0;
    return status;
}
