/* The table of kernels (kernels.def), and how a kernel is called.
 *
 * A kernel is a row of the table and a family of functions:
 *   dmi_<name>_touches  which bytes of each reference it reads and writes, from its descriptor alone
 *   dmi_<name>_cpu      does it, on memory of the host
 *   dmi_<name>_cuda     puts it into a queue of a GPU
 * and, of kernels that the lists below name,
 *   dmi_<name>_failed     a failure that the kernel finds when it runs, as a status with its text
 *   dmi_<name>_workspace  bytes that it needs beside its references
 * A reference is one piece of memory that the step names; kernels.def lists them in order for each kernel.
 * Kernels are pure arithmetic on memory of one device: they know no layouts and no other workers. In descriptors extents,
 * strides and offsets count elements. Strides may be 0 (broadcast) on inputs, never on outputs; negative strides do not
 * occur. A count of 0 is valid and does nothing. */
#ifndef DMI_KERNEL_H
#define DMI_KERNEL_H

#include "device/queue.h"
#include "kernels/dnn/dnn.h"
#include "kernels/ewise/ewise.h"
#include "kernels/ewise/momentum.h"
#include "kernels/ewise/within.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/trsm.h"
#include "kernels/index/index.h"
#include "kernels/order/order.h"
#include "kernels/random/fill.h"
#include "kernels/reduce/reduce.h"
#include "kernels/touch.h"

enum { DMI_MAX_REFS = DMI_MAP_INPUTS + 2 }; /* of the reduction of a program: inputs, accumulators, workspace */

enum dmi_kernel_number {
#define DMI_KERNEL(name, descriptor, traits) DMI_KERNEL_##name,
#define DMI_HOST_KERNEL(name, descriptor) DMI_KERNEL_##name,
#define DMI_CPU_KERNEL(name, descriptor) DMI_KERNEL_##name,
#include "kernels/kernels.def"
#undef DMI_KERNEL
#undef DMI_HOST_KERNEL
#undef DMI_CPU_KERNEL
    DMI_KERNELS
};

enum {
    DMI_TRAIT_RUNS = 1,  /* its descriptor begins with a dmi_copy, whose runs a GPU reads from its own memory */
    DMI_TRAIT_WAITS = 2, /* on a GPU the kernel itself waits for the EXPECTs of its plan */
    DMI_TRAIT_HOST = 4, /* work of the host; a GPU's executor does it in pieces (exec/gpu/file.c, task.c) */
};

/* Kernels that may fail when they run: they write a number that is not 0 to *status then. */
#define DMI_KERNELS_THAT_FAIL(X) X(within)
/* Kernels that may need workspace. Plans give it to them (dmi_build_kernel); what calls them otherwise does. */
#define DMI_KERNELS_WITH_WORKSPACE(X)                                                                          \
    X(gemm)                                                                                                    \
    X(fused) X(reduce) X(conv) X(conv_data) X(conv_weights) X(inner) X(inner_data) X(inner_weights)            \
        X(pooling_back) X(lrn_back) X(lrn_pool_back)

/* What kernels may know of the devices of the workers: agreed on at the start of the session, alike everywhere. */
typedef struct dmi_device_facts {
    bool gpu, emulated; /* emulated: gpu too */
} dmi_device_facts;

/* One call of a kernel. */
typedef struct dmi_kernel_call {
    dmi_queue *queue; /* NULL: the CPU, whose kernels are done when the call returns; a GPU's only enqueue */
    const void *desc;
    void *at[DMI_MAX_REFS];   /* address of each reference; NULL: the call has none there */
    double scalar[2];         /* alpha and beta, or scale and beta */
    const dmi_number *number; /* [numbers] of the call: see kernels.def */
    int numbers;
    const dmi_arrival *arrival; /* WAITS: [chunks] where arrivals are counted; NULL: all is here */
    const void *tail;           /* HOST: variable part of the command, */
    int64_t tail_bytes;
    int refs, worker; /* HOST: how many references; which worker */
    uint32_t *status; /* of kernels that may fail: 0 before; in memory that the device writes */
    void *workspace;  /* of kernels that need some */
} dmi_kernel_call;

/* What touches() may look at. */
typedef struct dmi_touching {
    const void *desc;
    int refs;
    bool zero[2]; /* this scalar is known to be 0: its factor is not read */
} dmi_touching;

typedef struct dmi_kernel {
    const char *name;
    size_t desc_bytes;
    unsigned traits;
    void (*touches)(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS]); /* out is zero before */
    dm_status (*cpu)(const dmi_kernel_call *call);
    dm_status (*cuda)(const dmi_kernel_call
                          *call); /* on the queue's device, which is current; NULL: HOST, of CPUs, or no CUDA */
} dmi_kernel;
extern const dmi_kernel dmi_kernels[DMI_KERNELS];
/* May this kernel fail when it runs? */
bool dmi_kernel_may_fail(int kernel);
/* What the number in *status means. */
DM_CHECKED dm_status dmi_kernel_failed(int kernel, const void *desc, uint32_t status);
/* Bytes of workspace that a call with this descriptor needs; 0: none. */
int64_t dmi_kernel_workspace(int kernel, const void *desc, const dmi_device_facts *facts);

#define DMI_KERNEL(name, descriptor, traits)                                                                   \
    void dmi_##name##_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS]);                             \
    dm_status dmi_##name##_cpu(const dmi_kernel_call *call);                                                   \
    dm_status dmi_##name##_cuda(const dmi_kernel_call *call);
#define DMI_HOST_KERNEL(name, descriptor)                                                                      \
    void dmi_##name##_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS]);                             \
    dm_status dmi_##name##_cpu(const dmi_kernel_call *call);
#define DMI_CPU_KERNEL(name, descriptor) DMI_HOST_KERNEL(name, descriptor)
#include "kernels/kernels.def"
#undef DMI_KERNEL
#undef DMI_HOST_KERNEL
#undef DMI_CPU_KERNEL
#define X(name) DM_CHECKED dm_status dmi_##name##_failed(const void *desc, uint32_t status);
DMI_KERNELS_THAT_FAIL(X)
#undef X
#define X(name) int64_t dmi_##name##_workspace(const void *desc, const dmi_device_facts *facts);
DMI_KERNELS_WITH_WORKSPACE(X)
#undef X

/* The numbers of a fill; 0 where the step's scalar is 0. */
static inline dmi_fill_values dmi_fill_values_of(const dmi_kernel_call *call)
{
    if (call->scalar[0] == 0) {
        return (dmi_fill_values){0};
    }
    const dmi_number *n = call->number;
    const dmi_fill *d = (const dmi_fill *)call->desc;
    if (d->seed > 0) {
        bool one = d->kind == DMI_FILL_IDENTITY;
        return (dmi_fill_values){.p0 = (double)one, .p1 = 1, .i0 = one, .i1 = 1, .seed = (uint64_t)n[d->seed - 1].whole};
    }
    return (dmi_fill_values){n[0].re,
                             n[1].re,
                             n[0].whole,
                             n[1].whole,
                             (uint64_t)n[2].whole,
                             d->element ? (const double *)call->at[1] : NULL};
}

/* A device that runs kernels. */
typedef struct dmi_backend {
    const char *name;
    /* Runs or enqueues a kernel. CPU: the kernel's status. GPU: DM_OK, errors stay in the queue. */
    DM_CHECKED dm_status (*run)(int kernel, const dmi_kernel_call *call);
} dmi_backend;
const dmi_backend *dmi_backend_cpu(void);
/* In a build without CUDA that of the emulated GPUs. */
const dmi_backend *dmi_backend_cuda(void);

#endif
