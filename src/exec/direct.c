/* Direct transport: the owner copies a payload straight into memory of the receiver, which both have mapped.
 *
 * Why it is safe: the receiver grants a destination only when its own lanes no longer use it (the EXPECT step's
 * waits), and publishes the grant with release order; the sender writes only after it has read that grant
 * (acquire), and publishes `arrived` with release order after its last byte; the receiver's steps that read the
 * destination wait for the EXPECT step, which finishes after `arrived` was read (acquire). A slot is reused
 * only by the grant DMI_SLOTS later, and that grant is given only after this one's payload has arrived. */
#include "kernels/direct.h"
#include "exec/engine.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK_BYTES (1 << 20) /* bytes copied before the thread looks at its other work */

static void unmap(dmi_peer *p, int index)
{
    if (p->slab[index]) {
        munmap(p->slab[index], (size_t)p->slab_bytes[index]);
        p->slab[index] = NULL;
    }
}

static bool make_tables(dmi_peer *p)
{
    if (!p->slab) {
        p->slab = calloc(DMI_MAX_SLABS, sizeof *p->slab);
        p->slab_bytes = calloc(DMI_MAX_SLABS, sizeof *p->slab_bytes);
        p->slab_serial = calloc(DMI_MAX_SLABS, sizeof *p->slab_serial);
    }
    return p->slab && p->slab_bytes && p->slab_serial;
}

void *dmi_direct_map(dmi_engine *e, int peer, int index)
{
    dmi_peer *p = &e->peer[peer];
    dmi_port *port = dmi_hub_port(e->config.hub, peer);
    if (!make_tables(p)) {
        return NULL;
    }
    unsigned serial = atomic_load(&port->slab_serial[index]);
    if (p->slab_serial[index] != serial) { /* given back and made anew since */
        unmap(p, index);
    }
    if (!p->slab[index]) {
        char path[64];
        int64_t bytes = atomic_load(&port->slab_bytes[index]);
        snprintf(path, sizeof path, "/proc/%d/fd/%d", port->pid, atomic_load(&port->slab_fd[index]) - 1);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        void *at = fd < 0 ? MAP_FAILED : mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        if (at == MAP_FAILED) {
            dmi_log(DMI_LOG_INFO, "cannot map slab %d of endpoint %d (%s): %s", index, peer, path,
                    strerror(error));
            return NULL;
        }
        p->slab[index] = at;
        p->slab_bytes[index] = bytes;
        p->slab_serial[index] = serial;
    }
    return p->slab[index];
}

void dmi_direct_unmap(dmi_engine *e)
{
    for (int i = 0; e->peer && i < e->config.endpoints; i++) {
        for (int j = 0; e->peer[i].slab && j < DMI_MAX_SLABS; j++) {
            unmap(&e->peer[i], j);
        }
        free(e->peer[i].slab);
        free(e->peer[i].slab_bytes);
        free(e->peer[i].slab_serial);
    }
}

/* Copies the next chunk of at most CHUNK_BYTES or one row; true when all has been copied. The walk is along the
 * first dim that has more than one index; *run and *at say how far it is. */
static bool copy_chunk(const dmi_backend *backend, const dmi_copy *d, int64_t *run, int64_t *at,
                       const void *src, void *dst)
{
    int64_t bytes = d->count * dmi_dtype_bytes(d->src_dtype);
    int dim = 0;
    while (dim < d->ndim - 1 && d->nrun[dim] == 1 && d->run[dim][0].len == 1) {
        dim++;
    }
    if (bytes <= CHUNK_BYTES || d->ndim == 0) {
        dmi_run_copy(backend, NULL, d, src, dst);
        return true;
    }
    int64_t indices = 0;
    for (int64_t r = 0; r < d->nrun[dim]; r++) {
        indices += d->run[dim][r].len;
    }
    int64_t row_bytes = bytes / indices, rows = DMI_MAX(CHUNK_BYTES / row_bytes, 1);
    dmi_copy chunk = *d;
    dmi_run some = d->run[dim][*run];
    if (some.len - *at >= rows || *at > 0) { /* within one long run */
        some.len = DMI_MIN(some.len - *at, rows);
        some.a += *at;
        some.b += *at;
        chunk.run[dim] = &some;
        chunk.nrun[dim] = 1;
        chunk.count = d->count / indices * some.len;
        *at += some.len;
        if (*at == d->run[dim][*run].len) {
            *at = 0;
            (*run)++;
        }
    } else { /* several short runs at once */
        int64_t n = 0, len = 0;
        while (*run + n < d->nrun[dim] && len + d->run[dim][*run + n].len <= rows) {
            len += d->run[dim][*run + n].len;
            n++;
        }
        chunk.run[dim] = &d->run[dim][*run];
        chunk.nrun[dim] = n;
        chunk.count = d->count / indices * len;
        *run += n;
    }
    dmi_run_copy(backend, NULL, &chunk, src, dst);
    return *run == d->nrun[dim];
}

/* Simulates a slow link: the arrival is signalled when the last byte would have arrived. */
static bool still_in_flight(dmi_engine *e, dmi_queued_step *w)
{
    int64_t now = dmi_now_ns();
    if (w->due_ns == 0) {
        int64_t begin = DMI_MAX(now, e->link_free_ns);
        double bytes_ns = e->config.link_gbps > 0 ? (double)w->step->bytes / e->config.link_gbps : 0.0;
        e->link_free_ns = begin + (int64_t)bytes_ns;
        w->due_ns = e->link_free_ns + (int64_t)(e->config.link_latency_us * 1e3);
    }
    if (now >= w->due_ns) {
        return false;
    }
    e->wake_ns = w->due_ns;
    return true;
}

static bool direct_push(dmi_engine *e, dmi_queued_step *w)
{
    int peer = w->step->peer;
    dmi_port *port = dmi_hub_port(e->config.hub, peer);
    dmi_mailbox *box = dmi_box_to(e, w);
    if (atomic_load_explicit(&box->granted, memory_order_acquire) <= w->ordinal) {
        return false;
    }
    dmi_slot *slot = &box->slot[w->ordinal % DMI_SLOTS];
    bool pretended =
        (e->config.link_gbps > 0 || e->config.link_latency_us > 0) && peer != e->config.endpoints - 1;
    if (pretended && w->due_ns == 0) {
        still_in_flight(e, w);
    }
    if (!slot->refused && !atomic_load(&w->inst->failed) && w->run >= 0) {
        char *base = slot->slab < 0 ? NULL : dmi_direct_map(e, peer, slot->slab);
        if (slot->slab >= 0 && !base) {
            dmi_engine_fail(e, w->inst, DM_ERR_TRANSPORT, "cannot map memory of the receiver");
        } else {
            void *dst = slot->slab < 0 ? (void *)(uintptr_t)slot->address : (void *)(base + slot->address);
            const void *src = dmi_ref_pointer(w->inst, &w->step->ref[0]);
            if (!copy_chunk(e->config.backend, w->step->desc, &w->run, &w->at, src, dst)) {
                return false;
            }
            w->run = -1;
            w->at = 0;
            dmi_count_sent(e, w->inst, w->step->peer, w->step->bytes);
        }
    }
    if (pretended && still_in_flight(e, w)) {
        return false;
    }
    slot->poisoned = dmi_engine_culprit(w->inst);
    atomic_store_explicit(&box->arrived, w->ordinal + 1, memory_order_release);
    dmi_bell_ring(&port->bell);
    return true;
}

static bool direct_grant(dmi_engine *e, dmi_queued_step *w)
{
    if (w->ordinal - *dmi_retired(e, w) >= DMI_SLOTS) {
        return false;
    }
    const dmi_ref *ref = &w->step->ref[0];
    dmi_mailbox *box = dmi_box_from(e, w);
    dmi_slot *slot = &box->slot[w->ordinal % DMI_SLOTS];
    char *at = dmi_ref_pointer(w->inst, ref);
    *slot = (dmi_slot){.slab = -1, .refused = at == NULL};
    if (at && e->config.one_space) {
        slot->address = (uint64_t)(uintptr_t)at;
    } else if (at) {
        const dmi_allocation *allocation = ref->kind == DMI_REF_OPERAND
                                               ? &w->inst->memory[ref->index]->allocation
                                               : &w->inst->work[ref->index];
        assert(ref->kind != DMI_REF_USER);
        slot->slab = allocation->slab;
        slot->address = (uint64_t)(allocation->offset + ref->offset);
    }
    atomic_store_explicit(&box->granted, w->ordinal + 1, memory_order_release);
    dmi_bell_ring(&dmi_hub_port(e->config.hub, w->step->peer)->bell);
    return true;
}

static bool direct_arrive(dmi_engine *e, dmi_queued_step *w)
{
    dmi_mailbox *box = dmi_box_from(e, w);
    if (atomic_load_explicit(&box->arrived, memory_order_acquire) <= w->ordinal) {
        return false;
    }
    const dmi_slot *slot = &box->slot[w->ordinal % DMI_SLOTS];
    if (slot->poisoned) {
        dmi_engine_inherit(e, w->inst, slot->poisoned);
    } else if (!slot->refused) {
        DMI_ADD_COUNT(e, w->inst, bytes_received, w->step->bytes);
    }
    ++*dmi_retired(e, w);
    return true;
}

const dmi_transport dmi_transport_direct = {"direct", direct_push, direct_grant, direct_arrive};
