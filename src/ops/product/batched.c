/* Products of stacks of matrices: c[..., i, j] = alpha * (sum over p of op(a)[..., i, p] * op(b)[..., p, j]) +
 * beta * c. a and b may lack leading dims or have 1 there. c stays. Each worker fetches what its region of c
 * needs of a and b, if it does not hold that. The regions are computed in stages, one range of one leading dim
 * (`split`) after another, so that the next stage's operands move beside this stage's products. An operand that
 * does not vary along the split dim is fetched once, before the first stage. */
#include "ops/product/gemm.h"

#include <string.h>

enum { BUFFERS = 2, LEAST_STAGES = 4, STAGE_BYTES = 1 << 20 };

typedef struct batched {
    dmi_product *p;
    const dmi_desc *c;
    bool maps; /* c has an explicit layout: a stage computes one block */
    int split;
    int64_t step;   /* indices of the split dim in a stage */
    int64_t stages; /* of the worker with most */
    int64_t stage;
    bool held[2]; /* fetched once, before the stages */
    int which;    /* the operand being fetched */
} batched;

typedef struct side {       /* one operand at this worker */
    int work;               /* the first receive buffer; -1: none yet */
    dmi_mark free[BUFFERS]; /* when they may be written again */
    dmi_ref ref;            /* where this stage's matrices are */
    dmi_region region;
} side;

/* The region of c that a worker computes in this stage; whole: in all stages. False: none. */
static bool stage_region(const batched *s, int worker, bool whole, dmi_region *out)
{
    int64_t which = s->maps ? s->stage : 0;
    if (which >= dmi_desc_region_count(s->c, worker)) {
        return false;
    }
    dmi_desc_region(s->c, worker, which, out);
    dmi_dimset *set = &out->dim[s->split];
    int64_t count = set->count, first = s->stage * s->step, n = DMI_MIN(s->step, count - first);
    if (s->maps || whole || out->count == 0) {
        return out->count > 0;
    }
    if (n <= 0) {
        return false;
    }
    int64_t lo = dmi_dimset_index(set, first), hi = dmi_dimset_index(set, first + n - 1) + 1,
            origin = set->origin;
    dmi_dimset_clip(set, lo, hi - lo, set);
    set->origin = origin; /* indices count as before */
    out->count = out->count / count * n;
    return true;
}

/* Does operand `which` have the same matrices for all indices of c's dim d? */
static bool repeats(const batched *s, int which, int d)
{
    const dmi_desc *x = s->p->op[which];
    int own = d - (s->c->ndim - x->ndim);
    return own < 0 || (x->extent[own] == 1 && s->c->extent[d] != 1);
}

/* What a region of c needs of operand `which`; dense. */
static void wanted(const batched *s, int which, const dmi_region *c, dmi_region *out)
{
    const dmi_product *p = s->p;
    int ndim = p->op[which]->ndim, matrix = ndim - 2, more = c->ndim - ndim;
    memset(out, 0, sizeof *out);
    out->ndim = ndim;
    for (int d = 0; d < matrix; d++) {
        out->dim[d] = repeats(s, which, d + more) ? dmi_dimset_interval(0, 1) : c->dim[d + more];
    }
    out->dim[matrix + p->outer_dim[which]] = c->dim[c->ndim - 2 + which];
    out->dim[matrix + p->inner_dim[which]] = dmi_dimset_interval(0, p->k);
    out->count = 1;
    for (int d = 0; d < ndim; d++) {
        out->count *= out->dim[d].count;
    }
    dmi_region_dense(out, 0);
}

/* The same. True: the worker holds it as kernels take it, and *out says where. */
static bool in_place(const batched *s, int which, int worker, const dmi_region *c, dmi_region *out)
{
    const dmi_desc *x = s->p->op[which];
    wanted(s, which, c, out);
    if (x->dtype != dmi_product_kernel_type(s->p, which) || !dmi_fetch_in_place(x, worker, out)) {
        return false;
    }
    bool spread = dmi_product_spread(s->p, which, out);
    if (spread) {
        dmi_region_dense(out, 0);
    }
    return !spread;
}

static int64_t want_count(const void *context, int worker)
{
    const batched *s = context;
    dmi_region c;
    return stage_region(s, worker, s->held[s->which], &c);
}

static void want_region(const void *context, int worker, int64_t which, dmi_region *out)
{
    (void)which;
    const batched *s = context;
    dmi_region c;
    (void)stage_region(s, worker, s->held[s->which], &c);
    wanted(s, s->which, &c, out);
}

/* --- stages ------------------------------------------------------------------------------- */
/* The first leading dim of which a worker holds several indices in c. */
static int choose_split(const batched *s)
{
    int last = s->c->ndim - 3;
    for (int d = 0; d < last; d++) {
        for (int w = 0; w < s->p->b->profile->workers; w++) {
            dmi_region c;
            if (dmi_desc_region_count(s->c, w) > 0) {
                dmi_desc_region(s->c, w, 0, &c);
                if (c.count > 0 && c.dim[d].count > 1) {
                    return d;
                }
            }
        }
    }
    return last;
}

/* Bytes fetched for one index of the split dim, by the worker with most; *count: indices of the worker with
 * most. */
static int64_t bytes_per_index(const batched *s, int64_t *count)
{
    int64_t most = 0;
    *count = 0;
    for (int w = 0; w < s->p->b->profile->workers; w++) {
        dmi_region c, at;
        int64_t bytes = 0;
        if (!stage_region(s, w, true, &c)) {
            continue;
        }
        int64_t n = c.dim[s->split].count;
        for (int o = 0; o < 2; o++) {
            bytes += s->held[o] || in_place(s, o, w, &c, &at) ? 0 : at.count / n;
        }
        most = DMI_MAX(most, bytes * dmi_dtype_bytes(s->p->kernel_type));
        *count = DMI_MAX(*count, n);
    }
    return most;
}

static void choose_stages(dmi_product *p, batched *s)
{
    int64_t count, bytes;
    *s = (batched){.p = p, .c = p->user_c, .maps = p->user_c->layout->kind == DMI_LAYOUT_EXPLICIT};
    if (s->maps) {
        for (int w = 0; w < p->b->profile->workers; w++) {
            s->stages = DMI_MAX(s->stages, dmi_desc_region_count(s->c, w));
        }
        return;
    }
    s->split = choose_split(s);
    for (int o = 0; o < 2; o++) {
        s->held[o] = repeats(s, o, s->split);
    }
    bytes = bytes_per_index(s, &count);
    s->step = DMI_MAX(count, 1);
    if (bytes > 0) {
        int64_t few = DMI_MAX((count + LEAST_STAGES - 1) / LEAST_STAGES, STAGE_BYTES / bytes);
        s->step = DMI_MAX(DMI_MIN(few, dmi_product_in_flight(p) / (BUFFERS * bytes)), 1);
    }
    s->stages = DMI_MAX((count + s->step - 1) / s->step, 1);
}

bool dmi_batched_local(dmi_product *p)
{
    batched s;
    choose_stages(p, &s);
    for (s.stage = 0; s.stage < s.stages; s.stage++) {
        for (int w = 0; w < p->b->profile->workers; w++) {
            dmi_region c, at;
            if (stage_region(&s, w, false, &c) &&
                !(in_place(&s, 0, w, &c, &at) && in_place(&s, 1, w, &c, &at))) {
                return false;
            }
        }
    }
    return true;
}

/* --- one stage ------------------------------------------------------------------------------ */
/* Fetches what this stage needs of operand `which`, at all workers. */
static void fetch_side(batched *s, side *x, int which, dmi_mark ready)
{
    static const bool skip[1] = {true};
    dmi_product *p = s->p;
    dmi_region c;
    bool needs = stage_region(s, p->b->me, s->held[which], &c);
    bool here = needs && in_place(s, which, p->b->me, &c, &x->region);
    int64_t buffer = s->held[which] ? 0 : s->stage % BUFFERS;
    dmi_ref to = dmi_ref_operand(which, DMI_WRITE);
    s->which = which;
    if (needs && !here) {
        if (x->work < 0) {
            for (int i = 0; i < (s->held[which] || s->stages == 1 ? 1 : BUFFERS); i++) {
                int work = dmi_build_work(p->b, 0);
                x->work = i == 0 ? work : x->work;
            }
        }
        to = dmi_ref_work(x->work + (int)buffer, DMI_WRITE);
        if (!p->b->failed) {
            int64_t *bytes = &p->b->plan->work_bytes[to.index];
            *bytes = DMI_MAX(*bytes, x->region.count * dmi_dtype_bytes(p->kernel_type));
        }
    }
    dmi_fetch fetch = {.src = p->op[which],
                       .src_ref = dmi_ref_operand(which, DMI_READ),
                       .dst_dtype = dmi_product_kernel_type(p, which),
                       .dst_ref = to,
                       .count = want_count,
                       .want = want_region,
                       .context = s,
                       .dense = true,
                       .skip = here ? skip : NULL};
    dmi_plan_fetch(p->b, &fetch, x->free[buffer], ready);
    x->ref = here ? dmi_ref_operand(which, DMI_READ) : to;
    x->ref.mode = DMI_READ;
}

/* The first matrix of a, b and c, and the strides to the next ones. */
typedef struct stack {
    int dims;
    int64_t count[DM_MAX_DIMS], stride[DM_MAX_DIMS][3];
    dmi_gemm gemm; /* of the first */
    dmi_ref ref[3];
} stack;

static void make_stack(const batched *s, const side x[2], const dmi_region *c, dmi_ref c_ref, stack *out)
{
    const dmi_product *p = s->p;
    const dmi_region *region[3] = {&x[0].region, &x[1].region, c};
    int64_t ld[3], offset[3];
    out->dims = c->ndim - 2;
    for (int o = 0; o < 3; o++) {
        int more = c->ndim - region[o]->ndim;
        for (int d = 0; d < out->dims; d++) {
            out->count[d] = c->dim[d].count;
            out->stride[d][o] = o < 2 && repeats(s, o, d) ? 0 : region[o]->stride[d - more];
        }
        ld[o] = DMI_MAX(region[o]->stride[region[o]->ndim - 2], 1);
        offset[o] = dmi_region_start(region[o]);
        out->ref[o] = o < 2 ? x[o].ref : c_ref;
    }
    out->gemm = (dmi_gemm){.dtype = p->kernel_type,
                           .b_dtype = p->kernel_b,
                           .c_dtype = p->direct ? p->user_c->dtype : p->type,
                           .tf32 = p->tf32,
                           .trans_a = p->trans[0],
                           .trans_b = p->trans[1],
                           .conj_a = p->conj[0],
                           .conj_b = p->conj[1],
                           .m = c->dim[c->ndim - 2].count,
                           .n = c->dim[c->ndim - 1].count,
                           .k = p->k,
                           .lda = ld[0],
                           .ldb = ld[1],
                           .ldc = ld[2],
                           .a_offset = offset[0],
                           .b_offset = offset[1],
                           .c_offset = offset[2]};
}

/* If consecutive matrices of a multiply the same b, they are one matrix with more rows. Not for a replicated c:
 * replicas must agree to the last bit, but operands may lie otherwise at each holder. */
static void merge_rows(const batched *s, stack *k)
{
    dmi_gemm *g = &k->gemm;
    while (k->dims > 0 && s->c->layout->replicas == 1 && !g->trans_a) {
        int d = k->dims - 1;
        const int64_t *stride = k->stride[d];
        bool single = g->m == 1 && stride[0] >= g->k && stride[2] >= g->n;
        bool behind = stride[0] == g->m * g->lda && stride[2] == g->m * g->ldc;
        if (k->count[d] > 1 && (stride[1] != 0 || !(single || behind))) {
            return;
        }
        if (k->count[d] > 1 && single) {
            g->lda = stride[0];
            g->ldc = stride[2];
        }
        g->m *= k->count[d];
        k->dims--;
    }
}

/* The innermost dim becomes the count of one product, together with the dims around it that go on with the same steps. On
 * GPUs a stack may be computed otherwise than its matrices: not for a replicated c, as above. */
static void merge_counts(const batched *s, stack *k)
{
    dmi_gemm *g = &k->gemm;
    g->count = 1;
    if (s->p->b->profile->gpu && s->c->layout->replicas > 1) {
        return;
    }
    while (k->dims > 0) {
        const int64_t *stride = k->stride[k->dims - 1];
        bool goes_on = g->count == 1 || (stride[0] == g->count * g->a_step && stride[1] == g->count * g->b_step &&
                                         stride[2] == g->count * g->c_step);
        if (k->count[k->dims - 1] > 1 && !goes_on) {
            return;
        }
        if (k->count[k->dims - 1] > 1 && g->count == 1) {
            g->a_step = stride[0];
            g->b_step = stride[1];
            g->c_step = stride[2];
        }
        g->count *= k->count[--k->dims];
    }
}

static void multiply(dmi_product *p, const stack *k, const dmi_mark ready, dmi_mark done)
{
    int64_t at[DM_MAX_DIMS] = {0};
    for (int next = 0; next >= 0 && !p->b->failed;) {
        dmi_gemm g = k->gemm;
        for (int d = 0; d < k->dims; d++) {
            g.a_offset += at[d] * k->stride[d][0];
            g.b_offset += at[d] * k->stride[d][1];
            g.c_offset += at[d] * k->stride[d][2];
        }
        dmi_step *step = dmi_build_kernel(p->b, DMI_KERNEL_gemm, &g, sizeof g, k->ref, 3, ready);
        step->scalar[0] = p->direct ? p->scalar[0] : DMI_SCALAR_ONE;
        step->scalar[1] = p->direct && !p->beta_zero ? p->scalar[1] : DMI_SCALAR_ZERO;
        step->flops = dmi_gemm_flops(&g);
        dmi_mark_step(done, step);
        for (next = k->dims - 1; next >= 0 && ++at[next] == k->count[next]; next--) {
            at[next] = 0;
        }
    }
}

/* This worker's products of this stage; ready: the operands are there. */
static void compute_stage(batched *s, side x[2], const dmi_region *c, const dmi_mark ready)
{
    dmi_product *p = s->p;
    dmi_region acc = *c;
    dmi_ref c_ref = p->out;
    c_ref.mode = DMI_READWRITE;
    dmi_mark used = {0};
    stack k;
    if (!p->direct) {
        p->acc_work = p->acc_work < 0 ? dmi_build_work(p->b, 0) : p->acc_work;
        if (!p->b->failed) {
            int64_t *bytes = &p->b->plan->work_bytes[p->acc_work];
            *bytes = DMI_MAX(*bytes, c->count * p->elem);
        }
        c_ref = dmi_ref_work(p->acc_work, DMI_READWRITE);
        dmi_region_dense(&acc, 0);
    }
    make_stack(s, x, &acc, c_ref, &k);
    merge_rows(s, &k);
    merge_counts(s, &k);
    multiply(p, &k, ready, used);
    if (!p->direct) {
        dmi_product_store(p, c, dmi_ref_work(p->acc_work, DMI_READ), 0, used, NULL);
    }
    for (int o = 0; o < 2; o++) {
        memcpy(x[o].free[s->stage % BUFFERS], used, sizeof used);
    }
}

void dmi_batched_plan(dmi_product *p)
{
    batched s;
    side x[2] = {{.work = -1}, {.work = -1}};
    dmi_mark held = {0};
    choose_stages(p, &s);
    p->direct = p->direct || dmi_product_makes(p, p->user_c->dtype); /* every element is made by one product */
    for (int o = 0; o < 2; o++) {
        if (s.held[o]) {
            fetch_side(&s, &x[o], o, held);
        }
    }
    for (s.stage = 0; s.stage < s.stages && !p->b->failed; s.stage++) {
        dmi_mark ready = {0};
        dmi_region c;
        dmi_mark_merge(ready, held);
        for (int o = 0; o < 2; o++) {
            if (!s.held[o]) {
                fetch_side(&s, &x[o], o, ready);
            }
        }
        if (stage_region(&s, p->b->me, false, &c)) {
            compute_stage(&s, x, &c, ready);
        }
    }
}
