/* Host memory of commands in flight. The next commands use it again. */
#include "exec/engine.h"

#include <stdlib.h>
#include <string.h>

enum { ROOM_STEP = 1024, SPARE_ROOM = 4096, MOST_SPARE_BYTES = 128 * 2048 };

dmi_instance *dmi_instance_create(dmi_engine *e, int operands, int numbers, const dmi_number *number)
{
    /* In the order of their alignment. */
    size_t n = (size_t)operands, each = 2 * sizeof(dmi_hazard) + sizeof(dmi_desc) + sizeof(dmi_memory *) + 2;
    size_t bytes = sizeof(dmi_instance) + n * each + (size_t)numbers * sizeof *number;
    size_t room = (bytes + n * DMI_OPERAND_NAME + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP;
    dmi_instance *inst = e->spare;
    if (inst && inst->room >= room) {
        e->spare = inst->next;
        room = inst->room;
        e->spare_bytes -= room;
    } else if (!(inst = malloc(room))) {
        return NULL;
    }
    memset(inst, 0, bytes);
    inst->room = room;
    inst->use = (dmi_hazard *)(void *)(inst + 1);
    inst->earlier = inst->use + n;
    inst->number = (dmi_number *)(void *)(inst->earlier + n);
    inst->desc = (dmi_desc *)(void *)(inst->number + numbers);
    inst->memory = (dmi_memory **)(void *)(inst->desc + n);
    inst->mode = (uint8_t *)(void *)(inst->memory + n);
    inst->whole = (bool *)(void *)(inst->mode + n);
    inst->name = (char(*)[DMI_OPERAND_NAME])(void *)(inst->whole + n);
    for (int i = 0; i < operands; i++) {
        inst->name[i][0] = '\0';
    }
    inst->numbers = numbers;
    if (numbers > 0) {
        memcpy(inst->number, number, (size_t)numbers * sizeof *number);
    }
    return inst;
}

bool dmi_instance_plan(dmi_instance *inst, dmi_plan *plan)
{
    inst->plan = plan;
    if (plan->nwork > 0) {
        inst->work = calloc((size_t)plan->nwork, sizeof *inst->work + sizeof *inst->work_use);
        inst->work_use = (dmi_stamp *)(void *)(inst->work + plan->nwork);
    }
    return plan->nwork == 0 || inst->work;
}

void dmi_instance_free(dmi_engine *e, dmi_instance *inst)
{
    if (!inst) {
        return;
    }
    dmi_plan_release(inst->plan);
    free(inst->work);
    free(inst->tail);
    free(inst->before);
    if (inst->room > SPARE_ROOM || e->spare_bytes + inst->room > MOST_SPARE_BYTES) {
        free(inst);
        return;
    }
    inst->next = e->spare;
    e->spare = inst;
    e->spare_bytes += inst->room;
}

void dmi_instances_free(dmi_engine *e)
{
    while (e->spare) {
        dmi_instance *inst = e->spare;
        e->spare = inst->next;
        free(inst);
    }
    e->spare_bytes = 0;
}
