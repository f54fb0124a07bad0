/* Sums over slices that are made together (adr/0055). A program has the gradients of many layers, most of them
 * small, and each sum by itself costs transfers between all workers. So a sum whose result is a part of a
 * larger array waits: its addends lie beside those of others in one workspace, a *bucket*. A full bucket is
 * added up as one array, and one kernel copies the sums to where they belong. A call that touches a result that
 * waits has it made before. Each element's addends are those it would have by itself, in the same order. One
 * worker alone sends nothing, but saves a kernel for each sum; what a single slice made is copied at once. */
#include "ops/common_layer.h"

#include <string.h>

/* CHOSEN: bytes of addends of a slice in a full bucket, on GPUs. EVEN: elements; such addends stay aligned, so
 * they are not mixed with others. */
enum { CHOSEN = 4 << 20, BUCKETS = 8, EVEN = 16 };

/* A sum that waits. */
typedef struct waiting {
    int array;             /* of the program: its result */
    int64_t at, to, count; /* elements: where in the bucket, where in the large array, how many */
    int step, ref; /* the kernels that make the addends, of this worker's slices, begin with this one; their
                      reference */
    struct waiting *next;
} waiting;

typedef struct bucket {
    int array; /* of the program: the large one */
    dm_dtype dtype, wire;
    bool even;
    int count, own; /* slices; this worker's */
    const int *map; /* [count] worker of each */
    int work;
    int64_t elements;
    waiting *first, *last;
} bucket;

struct dmi_joint {
    const dmi_program *p;
    const dmi_area *area; /* [operands] where in their memory they are */
    int64_t most;         /* bytes */
    bucket bucket[BUCKETS];
};

struct dmi_joint *dmi_joint_begin(dmi_builder *b, const dmi_program *p, const dmi_area *area)
{
    const dmi_profile *profile = b->profile;
    int64_t most = profile->sum_bucket ? profile->sum_bucket : profile->gpu ? CHOSEN : 0;
    struct dmi_joint *joint = most > 1 && b->me < profile->workers ? dmi_build_alloc(b, sizeof *joint) : NULL;
    if (joint) {
        memset(joint, 0, sizeof *joint);
        joint->p = p;
        joint->area = area;
        joint->most = most;
    }
    return joint;
}

/* The largest array of the program of which this one is a run of elements; -1: none. *at: its first there. */
static int large_of(const dmi_program *p, int array, int64_t *at)
{
    const dmi_program_array *x = &p->array[array];
    int64_t from, to, first, end, bytes = dmi_dtype_bytes(x->desc.dtype), most = 0;
    int found = -1;
    bool run;
    if (x->temporary || !dmi_desc_span(&x->desc, &from, &to, &run) || !run) {
        return -1;
    }
    for (int i = 0; i < p->operands; i++) {
        const dmi_program_array *y = &p->array[i];
        if (y->memory == x->memory && y->desc.ndim == 1 && y->desc.dtype == x->desc.dtype &&
            dmi_desc_span(&y->desc, &first, &end, &run) && run && first <= from && to <= end &&
            end - first > most) {
            found = i;
            most = end - first;
            *at = (from - first) / bytes;
        }
    }
    return to - from < most ? found : -1;
}

static bucket *find(struct dmi_joint *joint, const bucket *like)
{
    bucket *empty = NULL;
    for (int i = BUCKETS; i-- > 0;) {
        bucket *k = &joint->bucket[i];
        if (!k->first) {
            empty = k;
        } else if (k->array == like->array && k->dtype == like->dtype && k->wire == like->wire &&
                   k->even == like->even && k->count == like->count &&
                   memcmp(k->map, like->map, (size_t)k->count * sizeof *k->map) == 0) {
            return k;
        }
    }
    return empty;
}

bool dmi_joint_add(dmi_builder *b, const dmi_call *call, int operand, const dmi_layer_sum *sum, int *work)
{
    struct dmi_joint *joint = b->joint;
    int64_t count = dmi_layer_elements(sum->out), to = 0;
    bool alone = b->profile->workers == 1; /* nothing travels, but kernels are fewer */
    if (!joint || sum->keeps || !sum->unscaled ||
        (!alone && (sum->count < 2 || sum->out->layout->replicas < 2)) || count == 0 ||
        count * dmi_dtype_bytes(sum->dtype) >= joint->most) {
        return false;
    }
    int array = (int)call->operand[operand].id, large = large_of(joint->p, array, &to);
    bucket like = {.array = large,
                   .dtype = sum->dtype,
                   .wire = sum->wire,
                   .even = count % EVEN == 0,
                   .count = sum->count,
                   .map = sum->map};
    bucket *k = large >= 0 ? find(joint, &like) : NULL;
    waiting *w = k ? dmi_build_alloc(b, sizeof *w) : NULL;
    if (!w) {
        return false;
    }
    if (!k->first) {
        *k = like;
        for (int i = 0; i < k->count; i++) {
            k->own += k->map[i] == b->me;
        }
        k->work = dmi_build_work(b, 0);
        k->first = w;
    } else {
        k->last->next = w;
    }
    *w = (waiting){.array = array, .at = k->elements, .to = to, .count = count, .step = -1};
    k->last = w;
    k->elements += count;
    *work = k->work;
    return true;
}

void dmi_joint_made(dmi_builder *b, int work, int step, int ref)
{
    for (int i = 0; i < BUCKETS; i++) {
        bucket *k = &b->joint->bucket[i];
        waiting *w = k->work == work ? k->first : NULL;
        while (w && w->step >= 0) {
            w = w->next;
        }
        if (w) {
            w->step = step;
            w->ref = ref;
        }
    }
}

/* Now the bucket's size is known, and so is where in it the addends of each slice lie. */
static void place(dmi_builder *b, const bucket *k)
{
    int64_t elem = dmi_dtype_bytes(k->dtype);
    b->plan->work_bytes[k->work] = k->own * k->elements * elem;
    for (const waiting *w = k->first; w; w = w->next) {
        for (int own = 0; own < k->own; own++) { /* kernels take a slice to be at own * count */
            b->plan->step[w->step + own].ref[w->ref].offset += (own * (k->elements - w->count) + w->at) * elem;
        }
    }
}

/* Are they what the only slice made, and nothing else? Then nothing is added up. */
static bool is_made(const bucket *k)
{
    return k->count == 1 && k->wire == k->dtype;
}

/* Copies what was added up, which is of this type, to where it belongs. */
static void hand_out(dmi_builder *b, const bucket *k, const dmi_desc *large, dm_dtype dtype, int sums)
{
    int runs = 0;
    for (const waiting *w = k->first; w; w = w->next) {
        runs++;
    }
    dmi_run *run = dmi_build_alloc(b, (size_t)runs * sizeof *run);
    runs = 0;
    for (const waiting *w = k->first; w && run; w = w->next) {
        run[runs++] = (dmi_run){.a = w->at, .b = w->to, .len = w->count};
    }
    dmi_copy copy = {.ndim = 1,
                     .src_dtype = dtype,
                     .dst_dtype = large->dtype,
                     .nrun = {runs},
                     .run = {run},
                     .src_stride = {1},
                     .dst_stride = {1},
                     .dst_offset = large->lo[0],
                     .count = k->elements};
    dmi_ref refs[2] = {dmi_ref_work(sums, DMI_READ), dmi_ref_operand(k->array, DMI_WRITE)};
    (void)dmi_build_kernel(b, DMI_KERNEL_copy, &copy, sizeof copy, refs, 2, NULL);
}

/* What is to be added up: one result where it lies, or several as an array of their own, *together, on the
 * workers of the large one. */
static dm_status sum_of(dmi_builder *b, const bucket *k, dmi_desc *together, dmi_layer_sum *sum)
{
    const dmi_program_array *array = b->joint->p->array;
    const dmi_layout *on = array[k->array].desc.layout, *layout = NULL;
    *sum = (dmi_layer_sum){.b = b,
                           .out = &array[k->first->array].desc,
                           .ref = dmi_ref_operand(k->first->array, DMI_READ),
                           .count = k->count,
                           .map = k->map,
                           .dtype = k->dtype,
                           .wire = k->wire,
                           .work = k->work,
                           .unscaled = true};
    if (!k->first->next) {
        return DM_OK;
    }
    dmi_layout_spec spec = {.kind = DMI_LAYOUT_GRID,
                            .ndim = 1,
                            .shape = {k->elements},
                            .grid = {1},
                            .replicas = on->replicas,
                            .session_workers = on->session_workers,
                            .nworkers = on->nworkers,
                            .workers = on->workers};
    dm_status status = dmi_build_layout(b, &spec, &layout);
    if (status == DM_OK) {
        *together = dmi_desc_whole(array[k->array].desc.dtype, layout, 0);
        int64_t bytes = k->elements * dmi_dtype_bytes(together->dtype);
        sum->out = together;
        sum->ref = dmi_ref_work(dmi_build_work(b, on->position[b->me] >= 0 ? bytes : 0), DMI_READ);
    }
    return status;
}

/* Buckets at once: small ones at the end do not wait for one another. */
static dm_status make(dmi_builder *b, bucket *const *k, int count)
{
    dmi_layer_sum sum[BUCKETS];
    dmi_desc together[BUCKETS];
    dm_status status = DM_OK;
    int sums = 0, of[BUCKETS];
    for (int i = 0; i < count && status == DM_OK && !b->failed; i++) {
        place(b, k[i]);
        of[i] = sums;
        if (!is_made(k[i])) {
            status = sum_of(b, k[i], &together[sums], &sum[sums]);
            sums++;
        }
    }
    if (sums > 0 && status == DM_OK && !b->failed) {
        dmi_build_phase(b);
        status = dmi_plan_layer_sums(sum, sums);
    }
    dmi_build_phase(b);
    for (int i = 0; i < count && status == DM_OK && !b->failed; i++) {
        const dmi_desc *large = &b->joint->p->array[k[i]->array].desc;
        if (is_made(k[i])) {
            hand_out(b, k[i], large, k[i]->dtype, k[i]->work);
        } else if (k[i]->first->next && large->layout->position[b->me] >= 0) {
            dmi_build_channel(b, dmi_layer_sum_channel(&sum[of[i]]));
            hand_out(b, k[i], large, large->dtype, sum[of[i]].ref.index);
        }
        *k[i] = (bucket){0};
    }
    dmi_build_channel(b, 0);
    return status;
}

/* Does the call touch a result that waits? */
static bool touches(const struct dmi_joint *joint, const bucket *k, const dmi_call *call)
{
    for (const waiting *w = k->first; w; w = w->next) {
        for (int i = 0; i < call->noperand; i++) {
            const dmi_program_array *x = call->operand[i].mode ? &joint->p->array[call->operand[i].id] : NULL;
            if (x && x->memory == joint->p->array[w->array].memory && !x->temporary &&
                !dmi_area_disjoint(&joint->area[call->operand[i].id], &joint->area[w->array])) {
                return true;
            }
        }
    }
    return false;
}

dm_status dmi_joint_make(dmi_builder *b, const dmi_call *next)
{
    bucket *due[BUCKETS];
    int count = 0;
    bool all = !next;
    for (int i = 0; b->joint && i < BUCKETS && !all; i++) { /* mostly the backward pass has ended */
        all = touches(b->joint, &b->joint->bucket[i], next);
    }
    for (int i = 0; b->joint && i < BUCKETS; i++) {
        bucket *k = &b->joint->bucket[i];
        if (k->first && (all || k->elements * dmi_dtype_bytes(k->dtype) >= b->joint->most)) {
            due[count++] = k;
        }
    }
    return count > 0 && !b->failed ? make(b, due, count) : DM_OK;
}
