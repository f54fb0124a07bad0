/* Lifts vectors to matrices: adds a dim of extent 1 to operands of one dim and to their layouts, so that the
 * planners of products see matrices only. The memory stays the same. */
#include "ops/product/gemm.h"

#include <string.h>

void dmi_desc_add_dim(dmi_desc *desc, int at, dmi_layout *layout)
{
    if (desc->layout != layout) {
        *layout = *desc->layout;
        desc->layout = layout;
    }
    for (int d = desc->ndim; d > at; d--) {
        desc->lo[d] = desc->lo[d - 1];
        desc->extent[d] = desc->extent[d - 1];
        layout->shape[d] = layout->shape[d - 1];
        layout->block[d] = layout->block[d - 1];
        layout->nblock[d] = layout->nblock[d - 1];
        layout->grid[d] = layout->grid[d - 1];
        layout->order[d] = layout->order[d - 1];
    }
    desc->lo[at] = 0;
    desc->extent[at] = layout->shape[at] = layout->block[at] = layout->nblock[at] = layout->grid[at] = 1;
    layout->order[at] = DMI_ORDER_CONTIGUOUS;
    desc->ndim++;
    layout->ndim++;
}

void dmi_lift(const dmi_call *call, dmi_lifted *out)
{
    out->call = *call;
    bool row = call->operand[0].desc.ndim == 1, column = call->operand[1].desc.ndim == 1;
    dmi_desc *c = &out->call.operand[2].desc;
    if (column) {
        dmi_desc_add_dim(&out->call.operand[1].desc, 1, &out->layout[1]);
        dmi_desc_add_dim(c, c->ndim, &out->layout[2]);
    }
    if (row) {
        dmi_desc_add_dim(&out->call.operand[0].desc, 0, &out->layout[0]);
        dmi_desc_add_dim(c, c->ndim - 1, &out->layout[2]);
    }
}
