/* Where a product is computed. Usually where c lies. If c's blocks are dealt out freely, or if c lies on fewer
 * workers than an operand, as a short vector does, in a temporary that the caller's c is made from. */
#include "ops/product/gemm.h"

/* Bytes; to save less than this is not worth one more transfer, one after the other. */
enum { WORTH = 64 << 10 };

static dm_status use_temporary(dmi_product *p, const dmi_layout_spec *spec)
{
    const dmi_layout *layout = NULL;
    dm_status status = dmi_build_layout(p->b, spec, &layout);
    if (status == DM_OK) {
        p->temporary = dmi_desc_whole(p->type, layout, 0);
        p->c = &p->temporary;
        p->direct = false;
    }
    return status;
}

/* Split by rows over c's workers, or by columns where there are few rows. */
static dmi_layout_spec over_workers_of_c(const dmi_product *p)
{
    int workers = p->c->layout->nworkers;
    bool by_rows = p->m >= workers || p->m >= p->n;
    return (dmi_layout_spec){.kind = DMI_LAYOUT_GRID,
                             .ndim = 2,
                             .shape = {p->m, p->n},
                             .grid = {by_rows ? workers : 1, by_rows ? 1 : workers},
                             .workers = p->c->layout->workers,
                             .nworkers = workers,
                             .session_workers = p->b->profile->workers};
}

/* Workers that make elements of p->c; *most: of one, at most. */
static int makers_of_c(const dmi_product *p, int64_t *most)
{
    int makers = 0;
    *most = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c;
        dmi_product_c(p, w, &c);
        makers += c.count > 0;
        *most = DMI_MAX(*most, c.count);
    }
    return makers;
}

/* Split as operand `which` is split along m or n, so that it need not move. False: it is split otherwise. */
static bool as_operand(const dmi_product *p, int which, dmi_layout_spec *out)
{
    const dmi_layout *x = p->op[which]->layout;
    int outer = p->outer_dim[which];
    if (x->kind != DMI_LAYOUT_GRID || x->group == 1 || x->grid[outer] != x->group) {
        return false;
    }
    *out = (dmi_layout_spec){.kind = DMI_LAYOUT_GRID,
                             .ndim = 2,
                             .shape = {p->m, p->n},
                             .grid = {1, 1},
                             .workers = x->workers,
                             .nworkers = x->group,
                             .session_workers = p->b->profile->workers};
    out->grid[which] = x->group;
    out->block[which] = x->block[outer];
    out->order[which] = x->order[outer];
    return true;
}

static int64_t bytes_to_c(const dmi_product *p)
{
    return dmi_product_traffic(p, 0) * dmi_dtype_bytes(p->op[0]->dtype) +
           dmi_product_traffic(p, 1) * dmi_dtype_bytes(p->op[1]->dtype);
}

dm_status dmi_product_place(dmi_product *p)
{
    dmi_layout_spec spec;
    if (p->c->layout->kind == DMI_LAYOUT_EXPLICIT) {
        spec = over_workers_of_c(p);
        return use_temporary(p, &spec);
    }
    int64_t most, part;
    int holders = makers_of_c(p, &most);
    int64_t least = bytes_to_c(p);
    dm_status status = DM_OK;
    if (p->b->profile->gemm_algorithm != DMI_GEMM_AUTO || holders == 0 || least <= WORTH) {
        return DM_OK;
    }
    bool direct = p->direct;
    if (dmi_contract_serves(p)) {
        least = DMI_MIN(least, p->brought + dmi_contract_traffic(p) * p->elem);
    }
    for (int o = 0; o < 2 && p->c == p->user_c && status == DM_OK; o++) {
        if (p->op[o]->layout->group <= holders || !as_operand(p, o, &spec)) {
            continue;
        }
        status = use_temporary(p, &spec);
        int64_t bytes = bytes_to_c(p) + p->m * p->n * p->elem * p->user_c->layout->replicas;
        bool pays = bytes <= least / DMI_GEMM_MUCH_LESS && least - bytes >= WORTH;
        (void)makers_of_c(p, &part);
        int64_t room = (most + part) * p->elem; /* for the temporary, and for what comes to c */
        bool fits = p->workspace == 0 || room <= p->workspace / 2;
        if (status == DM_OK && !(pays && fits)) {
            p->c = p->user_c;
            p->direct = direct;
        } else if (p->workspace > 0) {
            p->workspace -= room;
        }
    }
    return status;
}
