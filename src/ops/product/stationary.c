/* The stationary algorithm. c stays; both operands are fetched to it, one slice of k after another. Serves
 * every layout. Workers begin at different slices, so that they need different owners at once. */
#include "ops/product/gemm.h"

#include <string.h>

enum { MOST_BUFFERS = 4, LEAST_BUFFERS = 2 };
enum { WHOLE = 1 << 20 }; /* bytes */

typedef struct stage {
    dmi_product *p;
    int which;
    int buffers;           /* receive buffers for slices; workspaces of their own, each free early */
    int64_t slices, slice; /* how many, and how many indices of k each (the last may have fewer) */
    int64_t at;            /* stage number */
} stage;

static dmi_dimset slice_of(const stage *s, int worker)
{
    /* by the region of c, not by the worker: replicas of c must be equal to the last bit */
    const dmi_layout *c = s->p->c->layout;
    int64_t group = c->group, region_number = c->position[worker] % group;
    int64_t first = s->slices >= group ? region_number * (s->slices / group) : region_number;
    int64_t i = (first + s->at) % s->slices;
    int64_t lo = i * s->slice, hi = DMI_MIN(s->p->k, lo + s->slice);
    return dmi_dimset_interval(lo, hi - lo);
}

static int64_t want_count(const void *context, int worker)
{
    const stage *s = context;
    dmi_region c;
    dmi_product_c(s->p, worker, &c);
    return c.count > 0;
}

static void want_region(const void *context, int worker, int64_t which, dmi_region *out)
{
    (void)which;
    const stage *s = context;
    dmi_region c;
    dmi_product_c(s->p, worker, &c);
    dmi_dimset inner = slice_of(s, worker);
    dmi_product_want(s->p, s->which, &c.dim[s->which], &inner, out);
}

/* Bytes that one index of k takes in the receive buffers of the worker that needs most. */
static int64_t bytes_per_index(const dmi_product *p)
{
    int64_t most = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c, at;
        int64_t bytes = 0;
        dmi_product_c(p, w, &c);
        for (int o = 0; o < 2 && c.count > 0; o++) {
            if (!dmi_product_gathered_in_place(p, o, w, &c, &at)) {
                bytes += c.dim[o].count * dmi_dtype_bytes(p->op[o]->dtype);
            }
        }
        most = DMI_MAX(most, bytes);
    }
    return most;
}

/* A product by a vector on GPUs reads the matrix once. In pieces it takes longer than the vector needs to come,
 * if that is short: so all of it comes first. */
bool dmi_stationary_whole(const dmi_product *p)
{
    int64_t bytes = bytes_per_index(p) * p->k;
    return p->b->profile->gpu && (p->m == 1 || p->n == 1) && bytes <= WHOLE &&
           bytes <= dmi_product_in_flight(p);
}

static void choose_slices(dmi_product *p, stage *s)
{
    *s = (stage){.p = p, .buffers = p->b->profile->gpu ? MOST_BUFFERS : LEAST_BUFFERS};
    int64_t workers = p->b->profile->workers, row = bytes_per_index(p);
    int64_t limit = dmi_product_in_flight(p);
    if (row > 0 && dmi_stationary_whole(p)) {
        s->buffers = 1;
        s->slice = p->k;
        s->slices = 1;
        return;
    }
    s->slice = row == 0 ? p->k : (p->k + workers - 1) / workers;
    if (p->workspace == 0 &&
        s->slice * row * s->buffers > limit) { /* fewer buffers rather than thinner slices */
        s->buffers = LEAST_BUFFERS;
    }
    if (row > 0) {
        s->slice = DMI_MIN(s->slice, limit / (s->buffers * row));
    }
    s->slice = DMI_MAX(s->slice, 1);
    s->slices = (p->k + s->slice - 1) / s->slice;
}

int64_t dmi_stationary_slices(dmi_product *p)
{
    stage s;
    choose_slices(p, &s);
    return s.slices;
}

bool dmi_stationary_single(const dmi_product *p)
{
    return bytes_per_index(p) == 0 || dmi_stationary_whole(p);
}

typedef struct source { /* one operand at this worker */
    bool in_place;
    dmi_region region;         /* in place: for all of k */
    int work;                  /* the first of the receive buffers; -1 */
    bool received;             /* this stage's slice came to one */
    dmi_mark free[MOST_BUFFERS]; /* when they may be written again */
    int convert;               /* workspace for another type; -1 */
    dmi_matrix_ref matrix;     /* in place: in the computing type */
} source;

static void begin_side(dmi_product *p, const stage *s, source *side, const dmi_region *c, int which,
                       dmi_mark ready)
{
    *side = (source){.work = -1, .convert = -1};
    if (c->count == 0) {
        return;
    }
    side->in_place = dmi_product_gathered_in_place(p, which, p->b->me, c, &side->region);
    if (side->in_place) {
        side->matrix = dmi_product_matrix(p, which, &side->region, dmi_ref_operand(which, DMI_READ),
                                          &side->convert, NULL, ready);
        return;
    }
    for (int i = 0; i < s->buffers; i++) {
        int work = dmi_build_work(p->b, c->dim[which].count * DMI_MIN(s->slice, p->k) *
                                            dmi_dtype_bytes(p->op[which]->dtype));
        side->work = i == 0 ? work : side->work;
    }
}

/* This stage's slice of one operand, as a matrix reference. */
static dmi_matrix_ref stage_side(stage *s, source *side, int which, const dmi_region *c, dmi_mark ready)
{
    dmi_product *p = s->p;
    static const bool skip[1] = {true};
    dmi_ref buffer = side->work >= 0 ? dmi_ref_work(side->work + (int)(s->at % s->buffers), DMI_WRITE)
                                     : dmi_ref_operand(which, DMI_WRITE);
    dmi_dimset inner = slice_of(s, p->b->me);
    dmi_region received;
    bool own = c->count > 0 && !side->in_place &&
               dmi_product_in_place(p, which, p->b->me, &c->dim[which], &inner, &received);
    side->received = c->count > 0 && !side->in_place && !own;
    s->which = which;
    dmi_fetch fetch = {.src = p->op[which],
                       .src_ref = dmi_ref_operand(which, DMI_READ),
                       .dst_dtype = p->op[which]->dtype,
                       .dst_ref = buffer,
                       .count = want_count,
                       .want = want_region,
                       .context = s,
                       .skip = side->in_place || own ? skip : NULL};
    dmi_mark here = {0};
    dmi_plan_fetch(p->b, &fetch, side->free[s->at % s->buffers], here);
    if (c->count == 0) {
        return (dmi_matrix_ref){0};
    }
    if (own) {
        return dmi_product_matrix(p, which, &received, dmi_ref_operand(which, DMI_READ), &side->convert, NULL,
                                  ready);
    }
    if (side->in_place) {
        dmi_matrix_ref matrix = side->matrix;
        matrix.offset += inner.lo * dmi_matrix_step_k(p, which, &matrix);
        return matrix;
    }
    dmi_product_want(p, which, &c->dim[which], &inner, &received);
    buffer.mode = DMI_READ;
    return dmi_product_matrix(p, which, &received, buffer, &side->convert, here, ready);
}

void dmi_stationary_plan(dmi_product *p)
{
    stage s;
    source sides[2];
    dmi_region c;
    dmi_mark begun = {0};
    choose_slices(p, &s);
    dmi_product_c(p, p->b->me, &c);
    for (int o = 0; o < 2; o++) {
        begin_side(p, &s, &sides[o], &c, o, begun);
    }
    for (s.at = 0; s.at < s.slices && !p->b->failed; s.at++) {
        dmi_mark ready = {0}, used = {0};
        dmi_mark_merge(ready, begun);
        dmi_matrix_ref matrix[2];
        for (int o = 0; o < 2; o++) {
            matrix[o] = stage_side(&s, &sides[o], o, &c, ready);
        }
        if (c.count > 0) {
            dmi_dimset inner = slice_of(&s, p->b->me);
            dmi_product_step(p, &matrix[0], &matrix[1], 0, 0, c.dim[0].count, c.dim[1].count, inner.count,
                             s.at == 0, ready, used);
        }
        for (int o = 0; o < 2; o++) {
            if (sides[o].received) {
                memcpy(sides[o].free[s.at % s.buffers], used, sizeof used);
            }
        }
    }
}
