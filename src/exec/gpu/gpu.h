/* The executor's lanes on a GPU. The communication thread puts steps on streams and does not wait for the
 * device.
 *
 * No deadlock between devices: nothing is put on a stream before everything that it waits for has been put on
 * one, here or at the peer that sends it. So the devices can work in the order in which the hosts issue, even
 * if a device ran all its streams as one, and no stream waits for something that a host has still to do. In
 * detail:
 *   - within an executor, a step is issued when the lanes have *issued* what its stamp names (a CPU lane asks
 * for *done*); its stream then waits for events at or behind those positions;
 *   - a grant: the receiver offers a destination when it has issued the current users of that memory. Unless it
 * is free already, a stream raises the sender's `freed` counter behind them, and the sender's copy waits for
 * it;
 *   - a payload: the sender copies, raises the receiver's `arrived` counter on the same stream, and then
 * announces the payload in the mailbox. When the receiver has read that, the readers of the payload wait for
 * the counter. Counters are words of device memory that one peer writes; they hold ordinals times 2^12,
 * compared cyclically.
 *
 *   - a program that runs on its devices alone (plan/on_device.h, exec/gpu/exchange.c) is put on the stream of
 * lane COMPUTE as a whole, and waits there for what peers may have yet to put on theirs. It follows all that
 * was enqueued before it, and all that comes later follows it, so that every host puts such programs on its
 * streams in one order: adr/0050.
 *
 * A lane's `done` counts what the device has finished, as on the CPU. Failures spread in the order in which
 * steps are found done: only then are results of a failed command poisoned. */
#ifndef DMI_GPU_H
#define DMI_GPU_H

#include "device/runtime.h"
#include "exec/engine.h"
#include "kernels/cuda/cuda.h"

typedef struct dmi_gpu dmi_gpu;

dm_status dmi_gpu_start(dmi_engine *e, int device);
void dmi_gpu_stop(dmi_engine *e);
dm_status dmi_gpu_connect(dmi_engine *e, int number, dmi_engine *peer);
void dmi_gpu_disconnect(dmi_engine *e);
dm_status dmi_gpu_messages(dmi_engine *e, int64_t chunk_bytes);
dm_status dmi_gpu_carry(dmi_engine *e, void *to, const void *from, int64_t bytes, int times, double *seconds);
dm_status dmi_gpu_rates(dmi_engine *e, dmi_rates *out);
void *dmi_gpu_map(dmi_engine *e, int peer, int slab);
void dmi_gpu_unmap(dmi_engine *e);
bool dmi_gpu_agree(dmi_engine *e, uint64_t members, dmi_plan *plan);
bool dmi_gpu_enter(dmi_engine *e);
void dmi_gpu_leave(dmi_engine *e);
void dmi_gpu_give_up(dmi_engine *e);
bool dmi_gpu_progress(dmi_engine *e);
void dmi_gpu_range_command(dmi_engine *e, int op, uint64_t command);
void dmi_gpu_range_end(dmi_engine *e);
dmi_slab_ops dmi_gpu_slabs(dmi_port *port);
/* --- bare.c: GPU g of the first `gpus` copies to g + 1, all at once and `count` times; seconds a copy of the
 * slowest */
dm_status dmi_gpu_bare_ring(int gpus, int64_t bytes, int count, double *seconds);

#endif
