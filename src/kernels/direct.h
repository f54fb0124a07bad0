/* Kernels called by themselves, outside a plan: transports, measurements and tests. On a GPU, errors stay in
 * the queue. */
#ifndef DMI_DIRECT_H
#define DMI_DIRECT_H

#include "kernels/kernel.h"

static inline void *dmi_unconst(const void *p)
{
    return (void *)(uintptr_t)p;
}

static inline void dmi_run_copy(const dmi_backend *on, dmi_queue *q, const dmi_copy *d, const void *src,
                                void *dst)
{
    dmi_kernel_call call = {.queue = q, .desc = d, .at = {dmi_unconst(src), dst}};
    (void)!on->run(DMI_KERNEL_copy, &call);
}

/* workspace: as much as dmi_kernel_workspace says; NULL: nothing. */
static inline void dmi_run_gemm(const dmi_backend *on, dmi_queue *q, const dmi_gemm *d, double alpha,
                                const void *a, const void *b, double beta, void *c, void *workspace)
{
    dmi_kernel_call call = {.queue = q,
                            .desc = d,
                            .at = {dmi_unconst(a), dmi_unconst(b), c},
                            .scalar = {alpha, beta},
                            .workspace = workspace};
    (void)!on->run(DMI_KERNEL_gemm, &call);
}

/* at: the inputs, then the results. */
static inline void dmi_run_map(const dmi_backend *on, dmi_queue *q, const dmi_map *d, const dmi_number *number,
                               int numbers, void *const *at)
{
    dmi_kernel_call call = {.queue = q, .desc = d, .number = number, .numbers = numbers};
    for (int i = 0; i < dmi_map_sides(&d->program); i++) {
        call.at[i] = at[i];
    }
    (void)!on->run(DMI_KERNEL_map, &call);
}

static inline void dmi_run_fill(const dmi_backend *on, dmi_queue *q, const dmi_fill *d,
                                const dmi_fill_values *v, void *out)
{
    dmi_number number[] = {
        {.re = v->p0, .whole = v->i0}, {.re = v->p1, .whole = v->i1}, {.whole = (int64_t)v->seed}};
    dmi_kernel_call call = {.queue = q, .desc = d, .at = {out}, .scalar = {1}, .number = number, .numbers = 3};
    (void)!on->run(DMI_KERNEL_fill, &call);
}

static inline void dmi_run_reduce(const dmi_backend *on, dmi_queue *q, const dmi_reduce *d, const void *in,
                                  void *acc)
{
    dmi_kernel_call call = {.queue = q, .desc = d, .at = {dmi_unconst(in), acc}};
    (void)!on->run(DMI_KERNEL_reduce, &call);
}

static inline void dmi_run_acc_add(const dmi_backend *on, dmi_queue *q, const dmi_acc_add *d, const void *part,
                                   void *acc)
{
    dmi_kernel_call call = {.queue = q, .desc = d, .at = {dmi_unconst(part), acc}};
    (void)!on->run(DMI_KERNEL_acc_add, &call);
}

static inline void dmi_run_acc_store(const dmi_backend *on, dmi_queue *q, const dmi_acc_store *d, double scale,
                                     const void *acc, double beta, void *out)
{
    dmi_kernel_call call = {.queue = q, .desc = d, .at = {dmi_unconst(acc), out}, .scalar = {scale, beta}};
    (void)!on->run(DMI_KERNEL_acc_store, &call);
}

static inline void dmi_run_fold(const dmi_backend *on, dmi_queue *q, const dmi_fold *d, double scale,
                                const void *rows, const void *own, double beta, void *out)
{
    dmi_kernel_call call = {
        .queue = q, .desc = d, .at = {dmi_unconst(rows), out, dmi_unconst(own)}, .scalar = {scale, beta}};
    (void)!on->run(DMI_KERNEL_fold, &call);
}

/* own: the shards of a and of b; NULL: none. */
static inline void dmi_run_fused(const dmi_backend *on, dmi_queue *q, const dmi_fused_gemm *d,
                                 const dmi_arrival *arrival, double alpha, const void *a, const void *b,
                                 const void *const own[2], double beta, void *c)
{
    dmi_kernel_call call = {.queue = q,
                            .desc = d,
                            .at = {dmi_unconst(a), dmi_unconst(b), c, dmi_unconst(own[1]), dmi_unconst(own[0])},
                            .scalar = {alpha, beta},
                            .arrival = arrival};
    (void)!on->run(DMI_KERNEL_fused, &call);
}

#endif
