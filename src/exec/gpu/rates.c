/* Rates of a GPU, measured before the first command of a session, and test copies between GPUs. */
#include "exec/gpu/parts.h"
#include "kernels/direct.h"

#include <math.h>

enum { PROBES = 3 };
#define MATRIX_BYTES (INT64_C(32) << 20) /* each of three */
#define COPY_BYTES (INT64_C(32) << 20)

dm_status dmi_gpu_carry(dmi_engine *e, void *to, const void *from, int64_t bytes, int times, double *seconds)
{
    dmi_stream stream = e->gpu->stream[DMI_LANE_SEND];
    dm_status status = dmi_cu_use(e->gpu->device);
    status = status == DM_OK ? dmi_cu_stream_wait(stream) : status;
    int64_t begin = dmi_now_ns();
    for (int i = 0; i < times && status == DM_OK; i++) {
        status = dmi_cu_copy(stream, to, from, bytes);
    }
    status = status == DM_OK ? dmi_cu_stream_wait(stream) : status;
    *seconds = (double)(dmi_now_ns() - begin) * 1e-9;
    return status;
}

/* The shortest time of some products n x n x n, after one that loads their kernel. */
static dm_status product(dmi_engine *e, dm_dtype dtype, bool tf32, int64_t n, char *memory, double *rate)
{
    dmi_queue *queue = e->gpu->queue[DMI_LANE_COMPUTE];
    dmi_gemm g = {
        .dtype = dtype, .c_dtype = dtype, .tf32 = tf32, .m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
    double least = INFINITY;
    dm_status status = DM_OK;
    for (int i = 0; i <= PROBES && status == DM_OK; i++) {
        int64_t begin = dmi_now_ns();
        dmi_run_gemm(e->config.backend, queue, &g, 1, memory, memory + MATRIX_BYTES, 0,
                     memory + 2 * MATRIX_BYTES, NULL);
        status = queue->error ? dmi_fail(DM_ERR_INTERNAL, "%s", queue->error_text)
                              : dmi_cu_stream_wait(queue->stream);
        least = i > 0 ? fmin(least, (double)(dmi_now_ns() - begin) * 1e-9) : least;
    }
    *rate = 2.0 * (double)n * (double)n * (double)n / least;
    return status;
}

dm_status dmi_gpu_rates(dmi_engine *e, dmi_rates *out)
{
    *out = (dmi_rates){0};
    if (!dmi_cu_timed()) {
        return DM_OK;
    }
    dm_status status = dmi_cu_use(e->gpu->device);
    char *memory = status == DM_OK ? dmi_cu_malloc(3 * MATRIX_BYTES) : NULL;
    double seconds = 0;
    if (!memory) { /* plans choose by bytes then */
        return status;
    }
    status = dmi_cu_zero(memory, 3 * MATRIX_BYTES);
    status = status == DM_OK ? product(e, DM_BF16, false, 4096, memory, &out->half) : status;
    status = status == DM_OK ? product(e, DM_F32, false, 2048, memory, &out->f32) : status;
    status = status == DM_OK ? product(e, DM_F32, true, 2048, memory, &out->tf32) : status;
    status = status == DM_OK ? product(e, DM_F64, false, 2048, memory, &out->f64) : status;
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = dmi_gpu_carry(e, memory + COPY_BYTES, memory, COPY_BYTES, 4, &seconds);
    }
    out->memory = 2 * 4 * (double)COPY_BYTES / seconds;
    dmi_cu_release(memory);
    return status;
}
