/* What work of the host touches. */
#include "io/file.h"
#include "kernels/host/task.h"
#include "kernels/kernel.h"

void dmi_file_read_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_file_range *part = t->desc;
    dmi_touch_copy(&out[0], &part->geometry, true, dmi_dtype_bytes(part->geometry.src_dtype), DMI_WRITE);
}

void dmi_file_write_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_file_range *part = t->desc;
    dmi_touch_copy(&out[0], &part->geometry, false, dmi_dtype_bytes(part->geometry.src_dtype), DMI_READ);
}

void dmi_user_read_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_file_range *part = t->desc;
    const int64_t elem = dmi_dtype_bytes(part->geometry.src_dtype);
    dmi_touch_copy(&out[0], &part->geometry, true, elem, DMI_WRITE);
    dmi_touch_copy(&out[1], &part->geometry, false, elem, DMI_READ);
}

/* From the first byte of all blocks of an operand to the last: views leave gaps, which nobody else uses
 * meanwhile. */
void dmi_task_touches(const dmi_touching *t, dmi_touch out[DMI_MAX_REFS])
{
    const dmi_task_desc *task = t->desc;
    for (int i = 0; i < t->refs; i++) {
        int64_t from = INT64_MAX, to = INT64_MIN;
        for (int64_t k = 0; k < task->blocks[i]; k++) {
            const dm_block *block = &task->block[i][k];
            const int64_t elem = dmi_dtype_bytes(block->dtype), first = task->offset[i][k];
            from = DMI_MIN(from, first * elem);
            to = DMI_MAX(to, (first + dmi_block_reach(block)) * elem);
        }
        out[i] = (dmi_touch){.rw = to > from ? task->mode[i] : 0, .offset = from, .inner = to - from};
    }
}
