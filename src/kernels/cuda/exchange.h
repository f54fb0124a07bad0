/* Exchanges of payloads between GPUs, by a kernel. */
#ifndef DMI_EXCHANGE_KERNEL_H
#define DMI_EXCHANGE_KERNEL_H

#include "device/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Several payloads at once, for programs that run on their devices alone (plan/on_device.h,
 * exec/gpu/exchange.c). First the pushes: rows go to their places, and then the number of the run into their
 * flags. Then it waits for the flags of the arrivals, and copies these from their places. */
typedef struct dmi_exchange_rows {
    char *here;                         /* NULL: no bytes move, the flag alone is set or waited for */
    char *place;                  /* rows one behind the other */
    int64_t width, height, pitch; /* bytes; pitch: from row to row here */
    uint32_t *flag;                     /* in memory of the receiver */
    const uint32_t
        *gate; /* of a push, in memory of this device: it waits for the run before there; NULL: it does not */
    int peer;  /* who is waited for */
} dmi_exchange_rows;
enum { DMI_EXCHANGE_ROWS = 32, DMI_EXCHANGE_ENDS = 16 };
typedef struct dmi_exchange_call {
    int pushes, arrivals, ends;
    bool last; /* afterwards the run's number goes into the words `ended`, and the next run has the next number
                */
    dmi_exchange_rows rows[DMI_EXCHANGE_ROWS]; /* the pushes first */
    uint32_t *ended[DMI_EXCHANGE_ENDS];
    uint32_t *run;           /* its number; in memory of this device */
    const uint32_t *give_up; /* in pinned memory: not 0: it waits for nothing any more */
    uint32_t *awaits;        /* in pinned memory: who is waited for + 1, after a while; 0: nobody */
} dmi_exchange_call;
void dmi_cuda_exchange(dmi_queue *q, const dmi_exchange_call *call);
void dmi_cuda_launch_exchange(dmi_queue *q,
                              const dmi_exchange_call *call); /* on the queue's device, which is current */

#ifdef __cplusplus
}
#endif
#endif
