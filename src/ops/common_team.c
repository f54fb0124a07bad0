#include "ops/common_team.h"

bool dmi_build_team(dmi_builder *b, const dmi_call *call, dmi_team *out)
{
    const int workers = b->profile->workers;
    int *worker = dmi_build_alloc(b, (size_t)workers * sizeof *worker), count = 0;
    bool *takes_part = dmi_build_alloc(b, (size_t)workers * sizeof *takes_part);
    if (!worker || !takes_part) {
        return false;
    }
    for (int w = 0; w < workers; w++) {
        takes_part[w] = false;
    }
    for (int i = 0; i < call->noperand; i++) {
        const dmi_layout *layout = call->operand[i].mode ? call->operand[i].desc.layout : NULL;
        for (int k = 0; layout && k < layout->nworkers; k++) {
            takes_part[layout->workers[k]] = true;
        }
    }
    for (int w = 0; w < workers; w++) {
        worker[count] = w;
        count += takes_part[w];
    }
    *out = (dmi_team){count, worker, workers};
    return true;
}

bool dmi_team_has(const dmi_team *team, int worker)
{
    bool has = false;
    for (int i = 0; i < team->count && !has; i++) {
        has = team->worker[i] == worker;
    }
    return has;
}

void dmi_team_layout(const dmi_team *team, const dmi_desc *x, int split, dmi_layout_spec *out)
{
    *out = (dmi_layout_spec){.kind = DMI_LAYOUT_GRID,
                             .ndim = x->ndim,
                             .session_workers = team->session,
                             .workers = team->worker,
                             .nworkers = team->count,
                             .replicas = split < 0 ? team->count : 1};
    for (int d = 0; d < x->ndim; d++) {
        out->shape[d] = x->extent[d];
        out->grid[d] = 1;
    }
    if (split >= 0) {
        out->grid[split] = (int)DMI_MAX(DMI_MIN((int64_t)team->count, x->extent[split]), 1);
        out->nworkers = out->grid[split];
    }
}
