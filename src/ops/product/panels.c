/* The panels algorithm. c is split along one dim. Every worker needs all of one operand, which is split along
 * k. Slices of k would cost more than the transfers here: a 16-bit c would need a wider temporary, and cuBLAS
 * is slow to add to c in TF32. So the operand arrives in panels of its outer dim, with all of k, and each
 * product makes whole columns (or rows) of c. The other operand stays, or arrives before the panels if it is
 * not in place (a contraction over the split dim). */
#include "ops/product/gemm.h"

#include <string.h>

enum { BUFFERS = 3, MOST_PANELS = 8, NARROW_PANELS = 32 /* at most, where room is short */ };
#define PUSH_BYTES (INT64_C(16) << 20) /* a chunk of a panel, about */

typedef struct mover {
    dmi_product *p;
    int which;
    int64_t outer, width; /* indices of the outer dim in all, and of a panel */
    int64_t at;           /* panel */
    int convert;          /* workspace for a panel in the kernels' type; -1: none yet */
} mover;

/* Must the other operand be gathered first? If one worker lacks it in place, all gather it. */
static bool other_comes(const dmi_product *p, int which)
{
    int other = 1 - which;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c, at;
        dmi_product_c(p, w, &c);
        if (c.count > 0 && !dmi_product_gathered_in_place(p, other, w, &c, &at)) {
            return true;
        }
    }
    return false;
}

/* Bytes of the gathered and the converted other operand, at the worker that needs most. */
static int64_t other_bytes(const dmi_product *p, int which)
{
    int other = 1 - which;
    int64_t most = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c;
        dmi_product_c(p, w, &c);
        most = c.count > 0 ? DMI_MAX(most, c.dim[other].count * p->k) : most;
    }
    return other_comes(p, which)
               ? most * dmi_dtype_bytes(p->op[other]->dtype) + dmi_product_copied(p, other, most)
               : 0;
}

int64_t dmi_panels_count(const dmi_product *p, int which)
{
    int64_t outer = which == 0 ? p->m : p->n;
    int64_t bytes = outer * p->k * dmi_dtype_bytes(p->op[which]->dtype) / p->op[which]->layout->group;
    int64_t n = DMI_MAX(2, DMI_MIN(MOST_PANELS, bytes / PUSH_BYTES));
    if (p->workspace > 0 && !p->replica) { /* narrower panels, if the workspace holds no more */
        int64_t column = p->k * dmi_dtype_bytes(p->op[which]->dtype);
        int64_t limit = DMI_MAX(p->workspace - other_bytes(p, which), 1);
        n = DMI_MAX(n, DMI_MIN((outer * column * BUFFERS + limit - 1) / limit, NARROW_PANELS));
    }
    return DMI_MAX(1, DMI_MIN(n, outer));
}

static int64_t panel_width(const dmi_product *p, int which)
{
    int64_t outer = which == 0 ? p->m : p->n, n = dmi_panels_count(p, which);
    return (outer + n - 1) / n;
}

static int64_t panel_bytes(const dmi_product *p, int which)
{
    return panel_width(p, which) * p->k * dmi_dtype_bytes(p->op[which]->dtype);
}

bool dmi_panels_fit(const dmi_product *p, int which)
{
    int64_t panels = p->replica ? 0 : BUFFERS * panel_bytes(p, which);
    return panels + other_bytes(p, which) <= p->workspace;
}

static int64_t want_count(const void *context, int worker)
{
    const mover *g = context;
    dmi_region c;
    dmi_product_c(g->p, worker, &c);
    return c.count > 0;
}

/* Panel `at` with all of k: dense, or with the memory of the worker's cached replica. */
static void want_region(const void *context, int worker, int64_t which, dmi_region *out)
{
    (void)which;
    const mover *g = context;
    int64_t lo = g->at * g->width;
    dmi_dimset outer = dmi_dimset_interval(lo, DMI_MIN(g->width, g->outer - lo));
    dmi_dimset inner = dmi_dimset_interval(0, g->p->k);
    dmi_product_want(g->p, g->which, &outer, &inner, out);
    if (g->p->replica && !dmi_fetch_in_place(g->p->replica, worker, out)) {
        g->p->b->failed = true;
    }
}

static void want_other(const void *context, int worker, int64_t which, dmi_region *out)
{
    (void)which;
    const mover *g = context;
    dmi_region c;
    dmi_product_c(g->p, worker, &c);
    dmi_product_gathered(g->p, 1 - g->which, &c, out);
}

/* Fetches what every worker with a region of c needs of operand `which`. after: the buffer is free. */
static void bring(mover *g, int which,
                  void (*want)(const void *context, int worker, int64_t which, dmi_region *out), dmi_ref to,
                  const dmi_mark after, dmi_mark here)
{
    dmi_fetch fetch = {.src = g->p->op[which],
                       .src_ref = dmi_ref_operand(which, DMI_READ),
                       .dst_dtype = g->p->op[which]->dtype,
                       .dst_ref = to,
                       .count = want_count,
                       .want = want,
                       .context = g};
    dmi_plan_fetch(g->p->b, &fetch, after, here);
}

/* Gathers the other operand for the worker's region of c, or finds it in place. */
static dmi_matrix_ref other_matrix(mover *g, const dmi_region *c, dmi_mark ready)
{
    dmi_product *p = g->p;
    int other = 1 - g->which, convert = -1; /* before the products, on their lane */
    dmi_ref ref = dmi_ref_operand(other, DMI_READ);
    dmi_region other_region;
    dmi_mark here = {0};
    bool comes = other_comes(p, g->which);
    if (comes) {
        int64_t bytes = c->count > 0 ? c->dim[other].count * p->k * dmi_dtype_bytes(p->op[other]->dtype) : 0;
        ref = dmi_ref_work(dmi_build_work(p->b, bytes), DMI_WRITE);
        bring(g, other, want_other, ref, NULL, here);
        ref.mode = DMI_READ;
    }
    if (c->count == 0) {
        return (dmi_matrix_ref){0};
    }
    dmi_product_gathered(p, other, c, &other_region);
    if (!comes) {
        (void)dmi_fetch_in_place(p->op[other], p->b->me, &other_region);
    }
    return dmi_product_matrix(p, other, &other_region, ref, &convert, here, ready);
}

static void multiply(mover *g, const dmi_matrix_ref *stay, dmi_ref ref, const dmi_mark arrived, dmi_mark used)
{
    dmi_product *p = g->p;
    dmi_region c, panel;
    dmi_mark ready = {0};
    dmi_product_c(p, p->b->me, &c);
    want_region(g, p->b->me, 0, &panel);
    ref.mode = DMI_READ;
    dmi_matrix_ref moved = dmi_product_matrix(p, g->which, &panel, ref, &g->convert, arrived, ready);
    int64_t lo = g->at * g->width, n = DMI_MIN(g->width, g->outer - lo);
    if (g->which == 0) {
        dmi_product_step(p, &moved, stay, lo, 0, n, c.dim[1].count, p->k, true, ready, used);
    } else {
        dmi_product_step(p, stay, &moved, 0, lo, c.dim[0].count, n, p->k, true, ready, used);
    }
}

/* Measured on H200: below that size slices of k are faster, because the wait for the first panel is longer. */
bool dmi_panels_pay(const dmi_product *p, int which)
{
    int64_t outer = which == 0 ? p->m : p->n;
    return outer * p->k * dmi_dtype_bytes(p->op[which]->dtype) / p->op[which]->layout->group >= INT64_C(64)
                                                                                                    << 20;
}

bool dmi_panels_serve(const dmi_product *p, int which)
{
    return p->op[which]->dtype == dmi_product_kernel_type(p, which) && p->c->dtype == p->kernel_type &&
           (p->kernel_type != p->type || p->tf32) && p->c == p->user_c &&
           p->c->layout->kind == DMI_LAYOUT_GRID && p->op[which]->layout->kind == DMI_LAYOUT_GRID &&
           dmi_product_takes_whole(p, which) && !dmi_cyclic_single(p, which);
}

void dmi_panels_plan(dmi_product *p, int which)
{
    dmi_builder *b = p->b;
    int64_t outer = which == 0 ? p->m : p->n;
    mover g = {.p = p, .which = which, .outer = outer, .width = panel_width(p, which), .convert = -1};
    dmi_mark free[BUFFERS] = {{0}}, ready = {0};
    dmi_region c;
    int buffer = -1;
    dmi_product_c(p, b->me, &c);
    for (int i = 0; i < BUFFERS && !p->replica && c.count > 0; i++) { /* each free for the next command early */
        int work = dmi_build_work(b, panel_bytes(p, which));
        buffer = i == 0 ? work : buffer;
    }
    dmi_matrix_ref stay = other_matrix(&g, &c, ready);
    for (g.at = 0; g.at * g.width < outer && !b->failed; g.at++) {
        uint32_t *gone = free[g.at % BUFFERS];
        dmi_mark arrived = {0};
        dmi_ref ref = p->replica || buffer < 0
                          ? dmi_ref_operand(p->replica ? DMI_GEMM_REPLICA : which, DMI_WRITE)
                          : dmi_ref_work(buffer + (int)(g.at % BUFFERS), DMI_WRITE);
        bring(&g, which, want_region, ref, gone, arrived);
        memset(gone, 0, sizeof free[0]);
        if (c.count > 0) {
            multiply(&g, &stay, ref, arrived, gone);
        }
    }
}
