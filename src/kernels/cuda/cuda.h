/* What a GPU does beside the kernels of the table. */
#ifndef DMI_CUDA_H
#define DMI_CUDA_H

#include "device/queue.h"
#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of bytes into memory of a peer, and behind all of them *counter = *value: one launch in place of two copies.
 * Whoever has seen the counter (a stream that waited for it, or a load that acquires) sees the bytes. */
typedef struct dmi_push {
    const void *src;
    void *dst;
    int64_t src_pitch, dst_pitch, width, height; /* bytes; rows do not overlap */
    uint32_t *counter;     /* the peer's */
    const uint32_t *value; /* in memory of this device; nobody writes it */
} dmi_push;
enum { DMI_PUSH_MOST = 1 << 30 }; /* bytes */
void dmi_cuda_push(dmi_queue *q, const dmi_push *p);

/* Takes the right to run fused products for this queue. False: GPU or build has none, or another queue of this
 * process has the right on this GPU (dmi_cuda_queue_claim). */
bool dmi_cuda_fused_take(dmi_queue *q);

#ifdef __cplusplus
}
#endif
#endif
