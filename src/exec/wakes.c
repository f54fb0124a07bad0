/* A kernel's end wakes the communication thread only if that thread waits for it. Most ends matter to nobody
 * but the next kernel, and to wake a thread costs two switches of a core that kernels need. */
#include "exec/engine.h"

/* Adds what the lanes that compute have not reached of a stamp. */
static void await(const dmi_engine *e, const dmi_stamp *stamp, dmi_stamp *awaited)
{
    for (int l = 0; l < e->lanes; l++) {
        if (dmi_lane_computes(l) &&
            atomic_load_explicit(&e->lane[l].done, memory_order_relaxed) < stamp->seq[l]) {
            awaited->seq[l] = DMI_MIN(awaited->seq[l], stamp->seq[l]);
        }
    }
}

/* A lane of transfers goes on when the first step that has not started may start. */
static void await_transfers(const dmi_engine *e, dmi_stamp *awaited)
{
    for (int l = 0; l < DMI_LANES; l++) {
        const dmi_lane *lane = &e->lane[l];
        uint64_t at = atomic_load_explicit(&lane->done, memory_order_relaxed),
                 end = atomic_load_explicit(&lane->enqueued, memory_order_relaxed);
        while (!dmi_lane_computes(l) && at < end && dmi_lane_slot(lane, at)->started) {
            at++;
        }
        if (!dmi_lane_computes(l) && at < end) {
            await(e, &dmi_lane_slot(lane, at)->wait, awaited);
        }
    }
}

void dmi_engine_note_wakes(dmi_engine *e)
{
    dmi_stamp awaited;
    if (!e->thread_runs) {
        return;
    }
    for (int l = 0; l < DMI_STAMP_LANES; l++) {
        awaited.seq[l] = e->pending ? 0 : UINT64_MAX; /* it waits for room in a lane */
    }
    await_transfers(e, &awaited);
    for (const dmi_instance *inst = e->first; inst;
         inst = inst->background ? inst->next : NULL) { /* that may retire */
        await(e, &inst->end, &awaited);
    }
    for (int l = 0; l < e->lanes; l++) {
        atomic_store_explicit(&e->wakes_at[l], awaited.seq[l], memory_order_relaxed);
    }
}

void dmi_engine_wake(dmi_engine *e, int lane, uint64_t done)
{
    if (dmi_bell_awaited(&e->port->bell) &&
        (done >= atomic_load_explicit(&e->wakes_at[lane], memory_order_relaxed) ||
         atomic_load(&e->unreported))) {
        dmi_bell_wake(&e->port->bell);
    }
}
