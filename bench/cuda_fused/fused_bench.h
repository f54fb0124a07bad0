/* What the parts of bench_cuda_fused share. */
#ifndef FUSED_BENCH_H
#define FUSED_BENCH_H

#include "device/runtime.h"
#include "kernels/gemm/fused_cuda.h"
#include <cuda_runtime_api.h>

typedef struct fused_bench {
    dmi_queue *q;
    cudaStream_t arrivals; /* where b's chunks are copied to the gathered operand: of the other GPU, where there
                              is one */
    bool other_gpu;
    uint32_t *counter, *source; /* of the chunks; where the copies that raise them read: the host's memory */
    uint32_t *gate;             /* the host's: streams that wait for it begin together */
    uint32_t value;             /* of the counters and the gate, this time */
    double rate;                /* bytes a second at which chunks seem to come where there is no other GPU */
} fused_bench;

/* How b is spread and sent. */
typedef struct fused_spread {
    int owners;  /* the first one is this GPU */
    bool by_col; /* owners have columns, else rows */
    int panels;  /* of columns (by_col: of those of an owner), sent one after the other */
    int slices;  /* of rows; of a panel all owners' first ones are sent, then all their second ones */
} fused_spread;

/* Ends the process where a call has failed. */
void fused_check(cudaError_t e, const char *what);
void fused_check_queue(const dmi_queue *q);

/* arrivals.c: the description's chunks (room for DMI_FUSED_CHUNKS) and its own part, with the bench's counters
 * and the values they get this time. */
void fused_spread_chunks(const fused_bench *t, const fused_spread *s, dmi_fused *d, dmi_fused_arrival *chunk);
/* Own part, in b. */
const void *fused_own(const dmi_fused *d, const void *b);
/* Copies all chunks from b (of the host or the other GPU) into the gathered operand and raises their counters.
 * b NULL: only raises them, at the bench's rate, which the calling thread sees to. gated: begins with the gate,
 * and opens it. */
void fused_arrive(fused_bench *t, const dmi_fused *d, const void *b, void *gathered, bool gated);
/* The queue's stream goes on when the gate is opened. */
void fused_wait_gate(fused_bench *t);
void fused_open_gate(fused_bench *t);

/* check.c: number of wrong cases. */
int fused_check_all(fused_bench *t);

#endif
