/* Joining the elementwise calls of a program. A *join* is the calls that become one, as a program in which
 * every step has a value of its own; what nobody needs any more and where values lie is found when it ends. */
#include "ops/common.h"
#include "ops/joined.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Of a join before its end, when some are not needed. */
enum { INPUTS = 32, CONSTANTS = 32, NUMBERS = 32, NO_NUMBER = 255 };
enum { VALUE = 256 }; /* in `from`: VALUE + a step; else DMI_AT_INPUT or DMI_AT_CONSTANT with an index */

typedef struct step {
    dmi_map_step as; /* row, types, numbers */
    int from[3];
} step;

typedef struct result {
    const dmi_operand *array;
    int value;
    uint8_t carrier;
    bool exact; /* it is a value of the array's type already */
} result;

typedef struct join {
    int first, calls; /* of the program */
    const dmi_desc *shape; /* of all results */
    bool waits;            /* something that its first call reads has to come from other workers */
    int steps, inputs, constants, numbers, results;
    step step[DMI_MAP_STEPS];
    const dmi_operand *input[INPUTS];
    uint8_t input_type[INPUTS], constant_type[CONSTANTS], constant_number[CONSTANTS];
    dmi_number number[NUMBERS];
    result result[DMI_MAP_STEPS]; /* also those that are not needed behind the join */
} join;

/* A call that uses a temporary. */
typedef struct use {
    uint32_t memory;
    int call;
    const dmi_operand *operand;
} use;

typedef struct joiner {
    const dmi_program *p;
    use *use; /* [uses] in the order of memories, then calls */
    int uses;
    /* what comes out */
    dmi_call *call;
    dmi_number *number;
    int calls, numbers;
} joiner;

/* Of one memory: are these the same elements? */
static bool same_elements(const dmi_operand *a, const dmi_operand *b)
{
    return a->desc.dtype == b->desc.dtype && dmi_same_place(&a->desc, &b->desc);
}

/* --- growing a join --- */

static int take_number(join *x, const dmi_number *number)
{
    int i = 0;
    while (i < x->numbers && memcmp(&x->number[i], number, sizeof *number) != 0) {
        i++;
    }
    if (i == NUMBERS) {
        return -1;
    }
    x->number[i] = *number;
    x->numbers = DMI_MAX(x->numbers, i + 1);
    return i;
}

static int take_constant(join *x, uint8_t type, const dmi_number *number)
{
    int n = take_number(x, number), i = 0;
    while (i < x->constants && (x->constant_type[i] != type || x->constant_number[i] != n)) {
        i++;
    }
    if (n < 0 || i == CONSTANTS) {
        return -1;
    }
    x->constant_type[i] = type;
    x->constant_number[i] = (uint8_t)n;
    x->constants = DMI_MAX(x->constants, i + 1);
    return DMI_AT_CONSTANT | i;
}

static int add_step(join *x, const step *s)
{
    if (x->steps == DMI_MAP_STEPS) {
        return -1;
    }
    x->step[x->steps] = *s;
    return VALUE + x->steps++;
}

static int find_result(const join *x, uint32_t memory)
{
    int i = x->results - 1;
    while (i >= 0 && x->result[i].array->memory != memory) {
        i--;
    }
    return i;
}

/* What a call reads that the join has computed: as it would be after it was stored and read again. What is
 * stored in the end may be that, too. */
static int take_result(join *x, result *r, uint8_t type)
{
    const uint8_t stored = (uint8_t)r->array->desc.dtype;
    if (r->carrier == type && (stored == type || r->exact)) {
        return VALUE + r->value;
    }
    const dmi_map_step cast = {
        .row = DMI_EW_CAST, .type = type, .of = r->carrier, .via = stored, .number = {NO_NUMBER, NO_NUMBER}};
    int value = add_step(x, &(step){.as = cast, .from = {VALUE + r->value}});
    if (value >= 0 && type == (uint8_t)dmi_dtype_carrier((dm_dtype)stored)) {
        *r = (result){r->array, value - VALUE, type, true};
    }
    return value;
}

static int take_input(join *x, const dmi_operand *array, uint8_t type)
{
    int i = 0;
    while (i < x->inputs && (x->input_type[i] != type || x->input[i]->memory != array->memory ||
                             !same_elements(x->input[i], array))) {
        i++;
    }
    if (i == INPUTS) {
        return -1;
    }
    x->input[i] = array;
    x->input_type[i] = type;
    x->inputs = DMI_MAX(x->inputs, i + 1);
    return DMI_AT_INPUT | i;
}

/* Is it where out is, or comes in no time? */
static bool is_near(const dmi_desc *in, const dmi_desc *out)
{
    enum { SMALL = 16 << 10 }; /* bytes */
    bool everywhere = in->layout->kind == DMI_LAYOUT_GRID && in->layout->group == 1 &&
                      (out->layout->members & ~in->layout->members) == 0;
    return dmi_same_place(in, out) || everywhere || dmi_desc_count(in) * dmi_dtype_bytes(in->dtype) <= SMALL;
}

/* Are all of the call's operands the join's elements, where they are in memory that the join writes, and does
 * what comes from other places not hold the join up? */
static bool fits(const join *x, const dmi_call *call, const dmi_elementwise *e)
{
    const dmi_operand *out = &call->operand[e->out];
    bool fits = !x->shape || dmi_same_place(&out->desc, x->shape);
    for (int i = 0; i < x->inputs && fits; i++) {
        fits = x->input[i]->memory != out->memory || same_elements(x->input[i], out);
    }
    for (int i = 0; i < x->results && fits; i++) {
        fits = x->result[i].array->memory != out->memory || same_elements(x->result[i].array, out);
    }
    for (int i = 0; i < e->program.inputs && fits; i++) {
        const dmi_operand *in = &call->operand[e->input[i]];
        int r = find_result(x, in->memory);
        fits =
            (in->memory != out->memory || same_elements(in, out)) &&
            (r >= 0 ? same_elements(x->result[r].array, in) : x->calls == 0 || is_near(&in->desc, &out->desc));
    }
    return fits;
}

static const dmi_number *number_at(const dmi_call *call, const dmi_elementwise *e, int i)
{
    return i == 0 ? &e->number : &call->number[i];
}

/* at: where its inputs are. */
static bool add_steps(join *x, const dmi_call *call, const dmi_elementwise *e, const int *at)
{
    const dmi_map_program *p = &e->program;
    int constant[DMI_MAP_NUMBERS], value[DMI_MAP_TEMPORARIES] = {0}, last = 0;
    for (int i = 0; i < p->constants; i++) {
        constant[i] = take_constant(x, p->constant_type[i], number_at(call, e, p->constant_number[i]));
        if (constant[i] < 0) {
            return false;
        }
    }
    for (int i = 0; i < p->steps && last >= 0; i++) {
        const dmi_map_step *s = &p->step[i];
        step made = {.as = *s};
        for (int k = 0; k < dmi_map_operands(s); k++) {
            int index = s->from[k] & DMI_AT_INDEX, kind = s->from[k] & DMI_AT_KIND;
            made.from[k] = kind == DMI_AT_INPUT ? at[index] : kind == DMI_AT_CONSTANT ? constant[index] : value[index];
        }
        for (int k = 0; k < 2; k++) {
            bool has = s->row != DMI_EW_CAST && s->number[k] < call->numbers;
            int number = has ? take_number(x, number_at(call, e, s->number[k])) : NO_NUMBER;
            if (number < 0) {
                return false;
            }
            made.as.number[k] = (uint8_t)number;
        }
        last = value[s->to] = add_step(x, &made);
    }
    return last >= 0;
}

static bool reads(const dmi_call *call, uint32_t memory)
{
    bool reads = false;
    for (int i = 0; i < call->noperand; i++) {
        reads = reads || (call->operand[i].mode & DMI_READ && call->operand[i].memory == memory);
    }
    return reads;
}

static bool reads_result(const join *x, const dmi_call *call)
{
    bool reads_one = false;
    for (int i = 0; i < x->results; i++) {
        reads_one = reads_one || reads(call, x->result[i].array->memory);
    }
    return reads_one;
}

/* Has the call enough to do with the join, so that neither waits for what only the other needs? It reads a
 * result, or as a whole what the join reads too. A call that reads nothing is for the next one. next: that one,
 * or NULL. */
static bool belongs(const join *x, const dmi_call *call, const dmi_elementwise *e, const dmi_call *next)
{
    const dmi_operand *out = &call->operand[e->out];
    bool belongs = x->calls == 0 || reads_result(x, call);
    if (e->program.inputs == 0) {
        belongs = belongs || (next && reads(next, out->memory) && (x->inputs == 0 || reads_result(x, next)));
    }
    for (int i = 0; i < e->program.inputs && !x->waits; i++) {
        const dmi_operand *in = &call->operand[e->input[i]];
        for (int k = 0; k < x->inputs && !belongs; k++) {
            belongs = x->input[k]->memory == in->memory && same_elements(x->input[k], in) &&
                      dmi_desc_count(&in->desc) == dmi_desc_count(&out->desc);
        }
    }
    return belongs;
}

/* False: the call is no part of the join, which may have been changed. next: the call behind it, or NULL. */
static bool add_call(join *x, const dmi_call *call, const dmi_call *next)
{
    dmi_elementwise e;
    int at[DMI_MAP_INPUTS];
    if (call->seeds != 0 || !dmi_elementwise_of(call, &e) || e.program.steps == 0 || !fits(x, call, &e) ||
        !belongs(x, call, &e, next)) {
        return false;
    }
    const dmi_operand *out = &call->operand[e.out];
    for (int i = 0; i < e.program.inputs; i++) {
        const dmi_operand *in = &call->operand[e.input[i]];
        int r = find_result(x, in->memory);
        at[i] = r >= 0 ? take_result(x, &x->result[r], e.program.input_type[i])
                       : take_input(x, in, e.program.input_type[i]);
        x->waits = x->waits || !is_near(&in->desc, &out->desc);
        if (at[i] < 0) {
            return false;
        }
    }
    if (!add_steps(x, call, &e, at)) {
        return false;
    }
    int r = find_result(x, out->memory);
    r = r >= 0 ? r : x->results++;
    x->result[r] = (result){out, x->steps - 1, e.program.result, e.exact};
    x->shape = &out->desc;
    x->calls++;
    return true;
}

/* --- its end --- */

static int by_memory(const void *a, const void *b)
{
    const use *x = a, *y = b;
    return x->memory != y->memory ? (x->memory > y->memory) - (x->memory < y->memory) : (x->call > y->call) - (x->call < y->call);
}

/* Does anything read it behind call number `last`? Of temporaries the next call that uses the memory knows. */
static bool needed(const joiner *j, const dmi_operand *array, int last)
{
    int low = 0, high = j->uses;
    if (!j->p->array[array->id].temporary) {
        return true;
    }
    while (low < high) {
        int middle = low + (high - low) / 2;
        const use *u = &j->use[middle];
        bool before = u->memory < array->memory || (u->memory == array->memory && u->call <= last);
        low = before ? middle + 1 : low;
        high = before ? high : middle;
    }
    bool reads = false, replaced = low == j->uses || j->use[low].memory != array->memory;
    for (int i = low; i < j->uses && j->use[i].memory == array->memory && j->use[i].call == j->use[low].call; i++) {
        reads = reads || j->use[i].operand->mode & DMI_READ;
        replaced = replaced || same_elements(j->use[i].operand, array);
    }
    return reads || !replaced;
}

/* A join as the call that it becomes. */
typedef struct made {
    dmi_map_program program;
    dmi_call call;
    int input[INPUTS], constant[CONSTANTS], number[NUMBERS]; /* new indices; -1: not needed */
    bool step[DMI_MAP_STEPS];                                /* is it needed? */
    int until[DMI_MAP_STEPS]; /* the last step that reads it; INT_MAX: it is a result */
} made;

static void find_needs(const join *x, made *m)
{
    memset(m->input, -1, sizeof m->input);
    memset(m->constant, -1, sizeof m->constant);
    memset(m->number, -1, sizeof m->number);
    for (int i = x->steps - 1; i >= 0; i--) {
        const step *s = &x->step[i];
        for (int k = 0; k < dmi_map_operands(&s->as) && m->step[i]; k++) {
            int from = s->from[k];
            if (from >= VALUE) {
                m->step[from - VALUE] = true;
                m->until[from - VALUE] = DMI_MAX(m->until[from - VALUE], i);
            } else if (from & DMI_AT_CONSTANT) {
                m->constant[from & DMI_AT_INDEX] = 0;
            } else {
                m->input[from & DMI_AT_INDEX] = 0;
            }
        }
    }
}

/* The number of the call that is number n of the join; -1: there is no room. */
static int number_of(const join *x, made *m, int n)
{
    if (m->number[n] < 0 && m->call.numbers < DMI_MAP_NUMBERS) {
        m->call.number[m->call.numbers] = x->number[n];
        m->number[n] = m->call.numbers++;
    }
    return m->number[n];
}

static bool place_operands(const join *x, made *m)
{
    dmi_map_program *p = &m->program;
    for (int i = 0; i < x->inputs; i++) {
        if (m->input[i] < 0) {
            continue;
        }
        if (p->inputs == DMI_MAP_INPUTS) {
            return false;
        }
        m->input[i] = p->inputs;
        p->input_type[p->inputs] = x->input_type[i];
        m->call.operand[p->inputs] = *x->input[i];
        m->call.operand[p->inputs++].mode = DMI_READ;
    }
    for (int i = 0; i < x->constants; i++) {
        int number = m->constant[i] < 0 ? 0 : number_of(x, m, x->constant_number[i]);
        if (number < 0 || p->constants == DMI_MAP_NUMBERS) {
            return false;
        }
        if (m->constant[i] == 0) {
            m->constant[i] = p->constants;
            p->constant_type[p->constants] = x->constant_type[i];
            p->constant_number[p->constants++] = (uint8_t)number;
        }
    }
    return true;
}

/* Gives the values that are needed temporaries. *holds: which one each has. */
static bool place_steps(const join *x, made *m, uint8_t *holds)
{
    dmi_map_program *p = &m->program;
    int free_after[DMI_MAP_TEMPORARIES]; /* the step that last reads what a temporary holds */
    memset(free_after, -1, sizeof free_after);
    for (int i = 0; i < x->steps; i++) {
        const step *s = &x->step[i];
        dmi_map_step as = s->as;
        int to = 0;
        if (!m->step[i]) {
            continue;
        }
        while (to < DMI_MAP_TEMPORARIES && free_after[to] >= i) { /* not one that it reads */
            to++;
        }
        if (to == DMI_MAP_TEMPORARIES) {
            return false;
        }
        memset(as.from, 0, sizeof as.from);
        for (int k = 0; k < dmi_map_operands(&as); k++) {
            int from = s->from[k], index = from & DMI_AT_INDEX;
            as.from[k] = (uint8_t)(from >= VALUE            ? DMI_AT_TEMPORARY | holds[from - VALUE]
                                   : from & DMI_AT_CONSTANT ? DMI_AT_CONSTANT | m->constant[index]
                                                            : DMI_AT_INPUT | m->input[index]);
        }
        for (int k = 0; k < 2; k++) {
            int number = as.number[k] == NO_NUMBER ? 0 : number_of(x, m, as.number[k]);
            if (number < 0) {
                return false;
            }
            as.number[k] = (uint8_t)number;
        }
        as.to = holds[i] = (uint8_t)to;
        free_after[to] = m->until[i];
        p->temporaries = (uint8_t)DMI_MAX(p->temporaries, to + 1);
        p->step[p->steps++] = as;
    }
    return true;
}

/* False: nothing of it is needed, or it does not fit one call. */
static bool finish(const joiner *j, const join *x, made *m)
{
    dmi_map_program *p = &m->program;
    uint8_t holds[DMI_MAP_STEPS];
    int last = -1, kept = 0;
    *m = (made){.call = {.op = DMI_OP_joined}};
    for (int i = 0; i < x->results; i++) {
        const result *r = &x->result[i];
        if (needed(j, r->array, x->first + x->calls - 1)) {
            m->step[r->value] = true;
            m->until[r->value] = INT_MAX;
            last = last < 0 || r->value > x->result[last].value ? i : last;
            kept++;
        }
    }
    if (last < 0 || kept - 1 > DMI_MAP_KEPT) {
        return false;
    }
    find_needs(x, m);
    if (!place_operands(x, m) || p->inputs + kept > DMI_MAX_OPERANDS || !place_steps(x, m, holds)) {
        return false;
    }
    dmi_operand *out = &m->call.operand[p->inputs];
    out[0] = *x->result[last].array;
    p->result = x->result[last].carrier;
    for (int i = 0; i < x->results; i++) {
        const result *r = &x->result[i];
        if (i != last && m->until[r->value] == INT_MAX) {
            p->keeps[p->kept] = holds[r->value];
            p->kept_type[p->kept] = r->carrier;
            out[1 + p->kept++] = *r->array;
        }
    }
    for (int i = 0; i <= p->kept; i++) {
        out[i].mode = DMI_WRITE;
    }
    m->call.noperand = p->inputs + kept;
    m->call.args.i[DMI_JOINED_CALLS] = x->calls;
    m->call.called = j->p->call[x->first].called;
    m->call.recorded = j->p->call[x->first].recorded;
    m->call.tail_bytes = m->call.tail_key = (int64_t)dmi_map_program_bytes(p);
    return true;
}

/* --- the program --- */

static void put_call(joiner *j, const dmi_call *call)
{
    memcpy(j->number + j->numbers, call->number, (size_t)call->numbers * sizeof *call->number);
    j->numbers += call->numbers;
    j->call[j->calls++] = *call;
}

/* False: no memory. */
static bool end_join(joiner *j, join *x, made *m)
{
    if (x->calls == 1) {
        put_call(j, &j->p->call[x->first]);
    } else if (x->calls > 1) {
        bool fits = finish(j, x, m); /* as it did when its last call came */
        void *tail = malloc((size_t)m->call.tail_bytes + 1);
        assert(fits);
        (void)fits;
        if (!tail) {
            return false;
        }
        memcpy(tail, &m->program, (size_t)m->call.tail_bytes);
        m->call.tail = tail;
        put_call(j, &m->call);
    }
    *x = (join){.first = x->first + x->calls};
    return true;
}

static bool join_calls(joiner *j, const bool *first, int *moved)
{
    const dmi_program *p = j->p;
    struct {
        join now, next;
        made made;
    } *x = calloc(1, sizeof *x);
    bool ok = x != NULL;
    for (int c = 0; c < p->calls && ok; c++) {
        bool joins = x->now.calls > 0 && !(first && first[c]);
        const dmi_call *next = c + 1 < p->calls && !(first && first[c + 1]) ? &p->call[c + 1] : NULL;
        if (joins) {
            x->next = x->now;
            joins = add_call(&x->next, &p->call[c], next) && finish(j, &x->next, &x->made);
        }
        if (!joins) {
            ok = end_join(j, &x->now, &x->made);
            x->next = x->now;
            if (!ok || !add_call(&x->next, &p->call[c], next)) {
                moved[c] = j->calls;
                put_call(j, &p->call[c]);
                x->now = (join){.first = c + 1};
                continue;
            }
        }
        x->now = x->next;
        moved[c] = j->calls;
    }
    ok = ok && end_join(j, &x->now, &x->made);
    free(x);
    return ok;
}

static bool find_uses(joiner *j)
{
    const dmi_program *p = j->p;
    size_t most = 0;
    for (int c = 0; c < p->calls; c++) {
        most += (size_t)p->call[c].noperand;
    }
    j->use = malloc((most + 1) * sizeof *j->use);
    for (int c = 0; c < p->calls && j->use; c++) {
        for (int i = 0; i < p->call[c].noperand; i++) {
            const dmi_operand *o = &p->call[c].operand[i];
            if (o->mode && p->array[o->id].temporary) {
                j->use[j->uses++] = (use){o->memory, c, o};
            }
        }
    }
    if (j->use) {
        qsort(j->use, (size_t)j->uses, sizeof *j->use, by_memory);
    }
    return j->use != NULL;
}

/* Temporaries that no call uses are gone. number: [arrays] */
static void drop_arrays(dmi_program *p, int *number)
{
    int kept = 0;
    for (int i = 0; i < p->arrays; i++) {
        number[i] = i < p->operands ? 0 : -1;
    }
    for (int c = 0; c < p->calls; c++) {
        for (int i = 0; i < p->call[c].noperand; i++) {
            const dmi_operand *o = &p->call[c].operand[i];
            number[o->id] = o->mode ? 0 : number[o->id];
        }
    }
    for (int i = 0; i < p->arrays; i++) {
        if (number[i] == 0) {
            p->array[kept] = p->array[i];
            number[i] = kept++;
        }
    }
    p->arrays = kept;
    for (int c = 0; c < p->calls; c++) {
        for (int i = 0; i < p->call[c].noperand; i++) {
            dmi_operand *o = &p->call[c].operand[i];
            o->id = o->mode ? (uint64_t)number[o->id] : 0;
        }
    }
}

bool dmi_program_join(dmi_program *p, const bool *first, int *moved)
{
    joiner j = {.p = p};
    int *number = malloc(((size_t)p->arrays + 1) * sizeof *number);
    j.call = malloc(((size_t)p->calls + 1) * sizeof *j.call);
    j.number = malloc(((size_t)p->numbers + 1) * sizeof *j.number);
    bool ok = number && j.call && j.number && find_uses(&j) && join_calls(&j, first, moved);
    for (int i = 0; i < j.calls && !ok; i++) {
        if (j.call[i].op == DMI_OP_joined) {
            free((void *)(uintptr_t)j.call[i].tail);
        }
    }
    if (ok) {
        moved[p->calls] = j.calls;
        for (int c = 0; c < p->calls; c++) {
            if (j.call[moved[c]].op == DMI_OP_joined) {
                free((void *)(uintptr_t)p->call[c].tail);
            }
        }
        free(p->call);
        free(p->number);
        p->call = j.call;
        p->number = j.number;
        p->calls = j.calls;
        p->numbers = j.numbers;
        drop_arrays(p, number);
    } else {
        free(j.call);
        free(j.number);
    }
    free(j.use);
    free(number);
    return ok;
}
