/* What a worker's device reaches in a large copy and in products, for the profile: each worker measures its own
 * before its first command, at the same time as the others of its machine, whose memory and cores they share.
 */
#include "exec/engine.h"
#include "kernels/direct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PROBES = 3, SIDE = 384 };
#define COPY_BYTES (INT64_C(16) << 20) /* more than most caches */

/* The shortest of some, after one that touches the memory first. */
static double copy_seconds(const dmi_backend *on, const double *from, double *to)
{
    const int64_t count = COPY_BYTES / (int64_t)sizeof *from;
    const dmi_run run = {.len = count};
    const dmi_copy copy = {.ndim = 1,
                           .src_dtype = DM_F64,
                           .dst_dtype = DM_F64,
                           .nrun = {1},
                           .run = {&run},
                           .src_stride = {1},
                           .dst_stride = {1},
                           .count = count};
    double least = INFINITY;
    for (int i = 0; i <= PROBES; i++) {
        int64_t begin = dmi_now_ns();
        dmi_run_copy(on, NULL, &copy, from, to);
        least = i > 0 ? fmin(least, (double)(dmi_now_ns() - begin) * 1e-9) : least;
    }
    return least;
}

static double product_seconds(const dmi_backend *on, dm_dtype dtype, double *memory)
{
    const int64_t n = SIDE;
    const dmi_gemm g = {.dtype = dtype, .c_dtype = dtype, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
    double least = INFINITY;
    for (int i = 0; i <= PROBES; i++) {
        int64_t begin = dmi_now_ns();
        dmi_run_gemm(on, NULL, &g, 1, memory, memory + n * n, 0, memory + 2 * n * n, NULL);
        least = i > 0 ? fmin(least, (double)(dmi_now_ns() - begin) * 1e-9) : least;
    }
    return least;
}

/* 16-bit products are those of f32 on CPUs, and so are those that may round to TF32. */
static dm_status cpu_rates(const dmi_backend *on, dmi_rates *out)
{
    double *memory = malloc(2 * (size_t)COPY_BYTES), flops = dmi_multiply_add_flops(DM_F64) * pow(SIDE, 3);
    if (!memory) { /* the profile does without */
        return DM_OK;
    }
    _Static_assert(3 * SIDE * SIDE * sizeof(double) <= COPY_BYTES, "the matrices lie in what is copied from");
    memset(memory, 0, (size_t)COPY_BYTES);
    out->memory =
        2 * (double)COPY_BYTES / copy_seconds(on, memory, memory + COPY_BYTES / (int64_t)sizeof *memory);
    out->f64 = flops / product_seconds(on, DM_F64, memory);
    out->f32 = out->tf32 = out->half = flops / product_seconds(on, DM_F32, memory);
    free(memory);
    return DM_OK;
}

dm_status dmi_engine_rates(dmi_engine *e, const dmi_rates *known)
{
    dmi_rates r = *known;
    dmi_compute_enter(e);
    dm_status status = r.memory > 0       ? DM_OK
                       : e->config.device ? e->config.device->rates(e, &r)
                                          : cpu_rates(e->config.backend, &r);
    dmi_compute_leave(e);
    if (status != DM_OK) {
        return status;
    }
    dmi_usage_rates *to = &e->port->rates;
    const double flops[DMI_USAGE_FLOPS] = {
        [DMI_FLOPS_F64] = r.f64, [DMI_FLOPS_F32] = r.f32, [DMI_FLOPS_TF32] = r.tf32, [DMI_FLOPS_HALF] = r.half};
    atomic_store_explicit(&to->memory, (int64_t)r.memory, memory_order_relaxed);
    for (int i = 0; i < DMI_USAGE_FLOPS; i++) {
        atomic_store_explicit(&to->flops[i], (int64_t)flops[i], memory_order_relaxed);
    }
    return DM_OK;
}
