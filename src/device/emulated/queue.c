/* Queues of the emulated backend: a stream without cuBLAS or workspace. */
#include "device/queue.h"
#include "device/emulated/emulated.h"

#include <stdlib.h>

dm_status dmi_cuda_queue_create(int device, dmi_queue **out)
{
    dmi_queue *q = calloc(1, sizeof *q);
    dm_status status = q ? dmi_cu_use(device) : dmi_fail(DM_ERR_NOMEM, "no memory for a queue");
    status = status == DM_OK ? dmi_cu_stream_create(&q->stream) : status;
    if (status != DM_OK) {
        free(q);
        return status;
    }
    q->device = device;
    q->multiprocessors = 1;
    *out = q;
    return DM_OK;
}

void dmi_cuda_queue_destroy(dmi_queue *q)
{
    if (q) {
        dmi_cu_stream_destroy(q->stream); /* which waits */
        free(q);
    }
}

dm_status dmi_cuda_queue_first(dmi_queue *q)
{
    return q->error == 0 ? DM_OK : dmi_fail(DM_ERR_INTERNAL, "%s", q->error_text);
}

const char *dmi_cuda_compiler(void)
{
    return "no: GPUs are emulated";
}

bool dmi_cuda_compiles(void)
{
    return true;
}

bool dmi_cuda_queue_libraries(dmi_queue *q)
{
    return q->error == 0;
}
