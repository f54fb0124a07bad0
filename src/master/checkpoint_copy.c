/* Arrays of whole parts, and layouts that outlive their session. */
#include "master/checkpoint.h"

#include <stdlib.h>
#include <string.h>

static dm_status make(dmi_session *s, const dmi_parts *p, const dm_layout *layout, dm_array *out)
{
    dmi_layout_spec spec;
    const dmi_layout *made = NULL;
    uint32_t id = 0;
    int open = dmi_groups_leave(s);
    dm_status status = dmi_layout_spec_from(s, layout, p->dtype, p->ndim, p->shape, &spec);
    dmi_groups_back(s, open);
    if (status == DM_OK) {
        status = dmi_layout_intern(s, &spec, &made, &id);
    }
    if (status == DM_OK && (status = dmi_array_make(s, p->dtype, made, id, true, out)) == DM_ERR_LIMIT) {
        dmi_replicas_clear(s); /* cached replicas give way */
        status = dmi_array_make(s, p->dtype, made, id, true, out);
    }
    return status;
}

dm_status dmi_parts_array(dmi_session *s, const dmi_parts *p, int number, dm_array *out)
{
    if (p->count <= 1) {
        dm_layout single = dm_layout_single(number % s->workers);
        return make(s, p, &single, out);
    }
    int *map = malloc((size_t)p->count * sizeof *map);
    if (!map) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a layout");
    }
    for (int64_t i = 0; i < p->count; i++) { /* consecutive parts to one worker */
        map[i] = (int)((double)i * s->workers / (double)p->count);
    }
    dm_layout layout = dm_layout_explicit(p->ndim, p->block, map, p->count);
    dm_status status = make(s, p, &layout, out);
    free(map);
    return status;
}

dm_status dmi_layout_saved(dmi_session *s, const dmi_desc *desc, dmi_saved_layout *out)
{
    const dmi_layout *y = NULL;
    uint32_t id;
    dm_status status = dmi_layout_like(s, desc, &y, &id);
    if (status != DM_OK) {
        return status;
    }
    *out = (dmi_saved_layout){.is_explicit = y->kind == DMI_LAYOUT_EXPLICIT, .replicas = y->replicas};
    memcpy(out->grid, y->grid, sizeof out->grid);
    memcpy(out->order, y->order, sizeof out->order);
    memcpy(out->block, y->block, sizeof out->block);
    out->nworkers = out->is_explicit ? 0 : y->nworkers;
    out->map_count = out->is_explicit ? y->blocks : 0;
    out->workers = calloc((size_t)out->nworkers + 1, sizeof *out->workers);
    out->map = calloc((size_t)out->map_count + 1, sizeof *out->map);
    if (!out->workers || !out->map) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a layout");
    }
    memcpy(out->workers, y->workers, (size_t)out->nworkers * sizeof *out->workers);
    if (out->is_explicit) {
        memcpy(out->map, y->map, (size_t)out->map_count * sizeof *out->map);
    }
    return DM_OK;
}

bool dmi_layout_restored(const dmi_session *s, const dmi_manifest *m, const dmi_saved *saved, dm_layout *out)
{
    const dmi_saved_layout *y = &saved->layout;
    int ndim = saved->parts.ndim;
    if (m->workers != s->workers) {
        return false;
    }
    if (y->is_explicit) {
        *out = dm_layout_explicit(ndim, y->block, y->map, y->map_count);
        return true;
    }
    *out = dm_layout_default();
    out->kind = 0;
    for (int d = 0; d < ndim; d++) {
        out->grid[d] = y->grid[d];
        out->order[d] = y->order[d];
        out->block[d] = y->block[d];
    }
    out->replicas = y->replicas;
    out->workers = y->workers;
    out->nworkers = y->nworkers;
    return true;
}
