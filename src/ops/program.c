/* A program: the plans of its calls one after the other, each in a phase of its own. */
#include "plan/program.h"
#include "ops/common_layer.h"
#include "ops/joined.h"

#include <string.h>

dm_status dmi_program_check(dmi_call *call)
{
    return dmi_fail(DM_ERR_INTERNAL, "%s: programs are checked call by call", dmi_call_name(call));
}

/* What the arrays of the program are in its plan. */
typedef struct places {
    dmi_area *area; /* [arrays] where in it */
    int *same; /* [operands] the first operand that is the same memory */
    int *work; /* [arrays] of temporaries: their workspace */
} places;

static bool find_places(dmi_builder *b, const dmi_program *p, places *out)
{
    out->same = dmi_build_alloc(b, ((size_t)p->arrays + 1) * sizeof *out->same);
    out->area = dmi_build_alloc(b, ((size_t)p->arrays + 1) * sizeof *out->area);
    out->work = dmi_build_alloc(b, ((size_t)p->arrays + 1) * sizeof *out->work);
    for (int i = 0; i < p->arrays && !b->failed; i++) {
        const dmi_program_array *a = &p->array[i];
        int first = a->temporary ? p->operands : 0;
        while (p->array[first].memory != a->memory) {
            first++;
        }
        dmi_desc_area(&a->desc, &out->area[i]);
        if (!a->temporary) {
            out->same[i] = first;
        } else { /* the first may be a reshaped view of a part */
            int64_t elements = b->me < b->profile->workers ? dmi_layout_shard_count(a->desc.layout, b->me) : 0;
            int64_t bytes = elements * dmi_dtype_bytes(a->desc.dtype);
            out->work[i] = first < i ? out->work[first] : dmi_build_work(b, bytes);
            if (!b->failed) {
                int64_t *most = &b->plan->work_bytes[out->work[i]];
                *most = DMI_MAX(*most, bytes);
            }
        }
    }
    return !b->failed;
}

/* The planner of a call named its own operands and numbers: now they are the program's. */
static void rename_refs(dmi_builder *b, const dmi_program *p, int which, int from, int number, const places *at)
{
    const dmi_call *call = &p->call[which];
    for (int i = from; i < b->plan->nstep; i++) {
        dmi_step *step = &b->plan->step[i];
        step->number = (uint16_t)number;
        step->call = (uint16_t)(which + 1);
        step->advances = call->seeds != 0;
        for (int r = 0; r < step->nref; r++) {
            dmi_ref *ref = &step->ref[r];
            int array = ref->kind == DMI_REF_OPERAND ? (int)call->operand[ref->index].id : -1;
            if (array >= 0 && p->array[array].temporary) {
                ref->kind = DMI_REF_WORK;
                ref->index = (uint16_t)at->work[array];
                ref->number = DMI_REF_VIEW + (uint32_t)(array - p->operands);
            } else if (array >= 0) {
                ref->index = (uint16_t)array;
            }
        }
    }
}

/* Steps of sums that are made together have the program's operands and no numbers. Messages name the call
 * before them, one of those that made the addends or one behind it. */
static void name_joint(dmi_builder *b, int from, int which)
{
    for (int i = from; i < b->plan->nstep; i++) {
        b->plan->step[i].call = (uint16_t)(which + 1);
    }
}

/* The ops, the public calls for messages, and what steps read when they run. */
static void note_calls(dmi_builder *b, const dmi_program *p)
{
    uint16_t *op = dmi_build_alloc(b, ((size_t)p->calls + 1) * sizeof *op);
    uint16_t *called = dmi_build_alloc(b, ((size_t)p->calls + 1) * sizeof *called);
    uint16_t(*recorded)[2] = dmi_build_alloc(b, ((size_t)p->calls + 1) * sizeof *recorded);
    dmi_tail *tail = dmi_build_alloc(b, ((size_t)p->calls + 1) * sizeof *tail);
    for (int i = 0; op && called && recorded && tail && i < p->calls; i++) {
        const dmi_call *call = &p->call[i];
        bool reads = (dmi_ops[call->op].attributes & DMI_TAIL) && call->tail_bytes > 0;
        char *copy = reads ? dmi_build_alloc(b, (size_t)call->tail_bytes) : NULL;
        op[i] = (uint16_t)call->op;
        called[i] = call->called;
        recorded[i][0] = call->recorded;
        recorded[i][1] = (uint16_t)(call->recorded + dmi_joined_calls(call) - 1);
        if (copy) {
            memcpy(copy, call->tail, (size_t)call->tail_bytes);
            tail[i] = (dmi_tail){copy, call->tail_bytes};
        }
    }
    b->plan->op = op;
    b->plan->called = called;
    b->plan->recorded = recorded;
    b->plan->tail = tail;
    b->plan->calls = op && called && recorded && tail ? p->calls : 0;
}

dm_status dmi_program_plan(dmi_builder *b, const dmi_call *call)
{
    const dmi_program *p = call->tail;
    places at;
    dm_status status = DM_OK;
    bool in_turn = true;
    int *order = dmi_build_alloc(b, ((size_t)p->calls + 1) * sizeof *order);
    int *number = dmi_build_alloc(b, ((size_t)p->calls + 1) * sizeof *number); /* the first one of each call */
    if (!find_places(b, p, &at) || b->failed) {
        return DM_OK; /* b has failed */
    }
    dmi_program_order(p, order);
    for (int i = 0, next = 0; i < p->calls; i++) {
        number[i] = next;
        in_turn = in_turn && order[i] == i;
        next += p->call[i].numbers;
    }
    b->in_program = true;
    b->joint = dmi_joint_begin(b, p, at.area);
    for (int i = 0; i < p->calls && status == DM_OK && !b->failed; i++) {
        int from = b->plan->nstep, which = order[i];
        status = dmi_joint_make(b, &p->call[which]);
        name_joint(b, from, order[DMI_MAX(i - 1, 0)]);
        from = b->plan->nstep;
        if (i > 0) {
            dmi_build_phase(b);
        }
        status = status == DM_OK ? dmi_ops[p->call[which].op].plan(b, &p->call[which]) : status;
        rename_refs(b, p, which, from, number[which], &at);
    }
    int from = b->plan->nstep;
    status = status == DM_OK ? dmi_joint_make(b, NULL) : status;
    name_joint(b, from, order[DMI_MAX(p->calls - 1, 0)]);
    b->joint = NULL;
    note_calls(b, p);
    b->same = at.same;
    b->area = at.area;
    b->views = p->arrays - p->operands;
    b->plan->moving = -1;
    b->plan->compute = NULL;
    b->plan->repeats = true;
    strcpy(b->plan->algorithm, in_turn ? "recorded" : "recorded, reordered");
    return status;
}
