/* From the plan of a program to one that runs on its device alone.
 *
 * The order of a plan's steps is one in which a single queue could take them (plan.h; the rule "one queue" of
 * the simulator). The new plan is that queue. A push waits for nothing there, as its place is free. An arrival
 * is put off to the first step that waits for it, and no step between touches its destination, for it might
 * have come there any time.
 *
 * An exchange costs as much as some small kernels, so each takes along what could be done by then: pushes that
 * stand later, and arrivals that come before the next push. Pushes of later calls take memory of the receivers
 * until those come to that call, so a worker is only so many bytes ahead. */
#include "plan/on_device.h"
#include "plan/places.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { END_REFS = 200 };
/* An arrival is taken this much early at most, in work between it and its first use. */
static const int64_t MOST_FLOPS = 1000000000;
/* Bytes of pushes of later calls that may be on their way. */
static const int64_t MOST_AHEAD = 32 << 20;

/* What this worker does in a call. */
typedef struct share {
    bool computes;                 /* it does not only move elements */
    uint32_t pushed[DMI_CHANNELS]; /* its last push */
} share;

typedef struct maker {
    const dmi_plan *from;
    dmi_plan *to;
    int step_room, work_room;
    dmi_exchange_part *part; /* [from->nstep] peers and numbers of the transfers */
    const dmi_step **expect[DMI_CHANNELS], **send[DMI_CHANNELS]; /* by ordinal */
    const dmi_step **push;                                       /* that wait to be put into an exchange */
    int pushes;
    bool *ahead; /* [from->nstep] pushes that were taken in an earlier call */
    share *call; /* [from->calls + 1] */
    int64_t bytes_ahead;
    uint32_t taken[DMI_CHANNELS];                       /* pushes in `push` or in exchanges so far */
    uint32_t sent[DMI_CHANNELS], arrived[DMI_CHANNELS]; /* in exchanges so far */
    uint32_t computed[DMI_CHANNELS];                    /* kernels so far */
    int unit_room;
    bool failed;                                        /* no memory */
} maker;

/* --- may it? --- */

static bool refuse(char why[DMI_ON_DEVICE_WHY], const dmi_plan *plan, const dmi_step *step, const char *text)
{
    if (step->call > 0 && step->call <= plan->calls) {
        snprintf(why, DMI_ON_DEVICE_WHY, "call %d %s", plan->recorded[step->call - 1][0], text);
    } else {
        snprintf(why, DMI_ON_DEVICE_WHY, "a call %s", text);
    }
    return false;
}

static bool step_may(const dmi_plan *plan, const dmi_step *step, int workers, char why[DMI_ON_DEVICE_WHY])
{
    const dmi_kernel *kernel = dmi_step_kernel(step);
    if (kernel && kernel->traits & DMI_TRAIT_WAITS) {
        return refuse(why, plan, step, "is a fused product, which waits for payloads itself");
    }
    if (!kernel && (step->peer < 0 || step->peer >= workers)) {
        return refuse(why, plan, step, "sends to the program or receives from it");
    }
    if (!kernel && step->bytes > DMI_ON_DEVICE_PAYLOAD) {
        char text[64];
        snprintf(text, sizeof text, "has a payload of %" PRId64 " bytes, more than %d", step->bytes,
                 DMI_ON_DEVICE_PAYLOAD);
        return refuse(why, plan, step, text);
    }
    for (int i = 0; i < step->nref; i++) {
        if (step->ref[i].kind == DMI_REF_USER) {
            return refuse(why, plan, step, "uses memory of the program");
        }
    }
    return true;
}

static bool may(const dmi_plan *plan, int workers, char why[DMI_ON_DEVICE_WHY])
{
    if (workers > DMI_ON_DEVICE_WORKERS || plan->background) {
        snprintf(why, DMI_ON_DEVICE_WHY,
                 workers > DMI_ON_DEVICE_WORKERS ? "there are more than %d workers" : "it is in the background",
                 DMI_ON_DEVICE_WORKERS);
        return false;
    }
    for (int i = 0; i < plan->nstep; i++) {
        const dmi_step *step = &plan->step[i];
        if (!step_may(plan, step, workers, why)) {
            return false;
        }
    }
    return true;
}

/* --- making steps --- */

static void *take(maker *m, size_t bytes)
{
    void *p = m->failed ? NULL : dmi_arena_alloc(&m->to->arena, bytes);
    m->failed = m->failed || !p;
    return p;
}

/* A copy of `like` (NULL: of nothing) as the next step of the compute lane; NULL: no memory. */
static dmi_step *add_step(maker *m, const dmi_step *like, int kind, int nref)
{
    dmi_plan *plan = m->to;
    dmi_ref *ref = take(m, ((size_t)nref + 1) * sizeof *ref);
    if (!m->failed && plan->nstep == m->step_room) {
        int room = m->step_room ? 2 * m->step_room : 64;
        dmi_step *grown = realloc(plan->step, (size_t)room * sizeof *grown);
        m->failed = !grown;
        plan->step = grown ? grown : plan->step;
        m->step_room = grown ? room : m->step_room;
    }
    if (m->failed) {
        return NULL;
    }
    dmi_step *step = &plan->step[plan->nstep++];
    *step = like ? *like : (dmi_step){.scalar = DMI_UNSCALED};
    step->kind = (uint8_t)kind;
    step->lane = DMI_LANE_COMPUTE;
    step->ordinal = ++plan->lane_steps[DMI_LANE_COMPUTE];
    step->peer = -1;
    step->of = 0;
    step->before = 0;
    step->nref = (uint8_t)nref;
    step->ref = ref;
    memset(step->wait, 0, sizeof step->wait);
    return step;
}

static void note_unit(maker *m, uint32_t number, int64_t from, int64_t bytes)
{
    dmi_on_device *d = m->to->on_device;
    if (number >= (uint32_t)m->unit_room) {
        int room = 2 * (int)number + 8;
        dmi_work_unit *grown = realloc(d->unit, (size_t)room * sizeof *grown);
        if (!grown) {
            m->failed = true;
            return;
        }
        d->unit = grown;
        m->unit_room = room;
    }
    for (; d->units <= number; d->units++) {
        d->unit[d->units] = (dmi_work_unit){0, 0};
    }
    d->unit[number] = (dmi_work_unit){.from = from, .bytes = bytes};
}

static int add_work(maker *m, int64_t bytes)
{
    dmi_plan *plan = m->to;
    if (plan->nwork == m->work_room) {
        int room = 2 * m->work_room + 8;
        int64_t *grown = realloc(plan->work_bytes, (size_t)room * sizeof *grown);
        if (!grown) {
            m->failed = true;
            return 0;
        }
        plan->work_bytes = grown;
        m->work_room = room;
    }
    plan->work_bytes[plan->nwork] = bytes;
    plan->workspace += bytes;
    return plan->nwork++;
}

/* Elements that are no rows: a kernel packs them beside the place, or unpacks them. */
static void add_copy(maker *m, const dmi_step *transfer, const dmi_copy *packed, dmi_ref dense)
{
    bool push = transfer->kind == DMI_STEP_PUSH;
    dmi_step *step = add_step(m, transfer, DMI_STEP(copy), 2);
    if (step) {
        dmi_ref given = transfer->ref[0];
        step->bytes = 0;
        step->scalar[0] = DMI_SCALAR_ONE;
        step->scalar[1] = DMI_SCALAR_ZERO;
        dense.mode = push ? DMI_WRITE : DMI_READ;
        given.mode = push ? DMI_READ : DMI_WRITE;
        step->ref[0] = push ? given : dense;
        step->ref[1] = push ? dense : given;
        for (int i = 0; i < 2; i++) {
            step->ref[i].from = 0;
            step->ref[i].to = INT64_MAX;
        }
        step->desc = packed;
    }
}

/* A transfer on its way into an exchange. */
typedef struct payload {
    const dmi_step *step;
    dmi_exchange_part part;
    dmi_ref ref;
    dmi_copy *unpack; /* of an arrival: a copy that follows; NULL: none */
} payload;

static payload payload_of(maker *m, const dmi_step *step)
{
    payload p = {.step = step, .part = m->part[step - m->from->step], .ref = step->ref[0]};
    const dmi_copy *c = step->desc;
    bool push = step->kind == DMI_STEP_PUSH;
    int64_t elem = dmi_dtype_bytes(c->src_dtype), src, dst, v[4];
    dmi_copy *packed = take(m, sizeof *packed);
    if (!packed ||
        !(push ? dmi_copy_pack(c, packed, &m->to->arena) : dmi_copy_unpack(c, packed, &m->to->arena))) {
        m->failed = true;
        return p;
    }
    if (dmi_copy_as_rows(packed, elem, &src, &dst, v) && v[push ? 3 : 2] == v[0] && (push ? dst : src) == 0) {
        p.part.offset = (push ? src : dst) * elem;
        p.part.width = v[0];
        p.part.height = v[1];
        p.part.pitch = v[push ? 2 : 3];
        return p;
    }
    p.part.offset = 0;
    p.part.width = p.part.pitch = step->bytes;
    p.part.height = 1;
    p.ref = dmi_ref_work(add_work(m, step->bytes), DMI_READ);
    p.ref.number = m->to->on_device->units;
    note_unit(m, p.ref.number, 0, step->bytes);
    if (push) {
        add_copy(m, step, packed, p.ref);
    } else {
        p.unpack = packed;
    }
    return p;
}

/* How far a push goes round the ring of workers. */
static int distance(const maker *m, const dmi_step *push)
{
    const int workers = m->to->on_device->workers;
    return (push->peer - m->from->me + workers) % workers;
}

/* One step, with its packing before it and its unpacking behind it. A worker sends to the next one first, then
 * to the one behind that, so that all do not send to one at a time. */
static void add_exchange(maker *m, const dmi_step *const *push, int pushes, const dmi_step *const *arrival,
                         int arrivals)
{
    payload p[DMI_EXCHANGE_MOST];
    const int n = pushes + arrivals;
    int known = 0;
    assert(n > 0 && n <= DMI_EXCHANGE_MOST);
    for (int far = 0; far < m->to->on_device->workers; far++) {
        for (int i = 0; i < pushes; i++) {
            if (distance(m, push[i]) == far) {
                p[known++] = payload_of(m, push[i]);
            }
        }
    }
    for (int i = 0; i < arrivals; i++) {
        p[known++] = payload_of(m, arrival[i]);
    }
    dmi_exchange *x = take(m, sizeof *x);
    dmi_exchange_part *part = take(m, (size_t)n * sizeof *part);
    dmi_step *step = add_step(m, NULL, DMI_STEP_EXCHANGE, n);
    if (!step) {
        return;
    }
    step->call = p[0].step->call;
    step->number = p[0].step->number;
    *x = (dmi_exchange){.pushes = pushes, .arrivals = arrivals, .part = part};
    for (int i = 0; i < n; i++) {
        part[i] = p[i].part;
        step->ref[i] = p[i].ref;
        step->ref[i].mode = i < pushes ? DMI_READ : DMI_WRITE;
        step->ref[i].from = 0;
        step->ref[i].to = INT64_MAX;
        step->bytes += p[i].step->bytes;
    }
    step->desc = x;
    for (int i = pushes; i < n && !m->failed; i++) {
        if (p[i].unpack) {
            add_copy(m, p[i].step, p[i].unpack, p[i].ref);
        }
    }
}

/* --- in order --- */

static bool moves(const dmi_step *step)
{
    return step->kind == DMI_STEP_EXPECT || step->kind == DMI_STEP_PUSH || step->kind == DMI_STEP(copy);
}

static void put_pushes(maker *m, int count)
{
    for (int i = 0; i < count && !m->failed; i += DMI_EXCHANGE_MOST) {
        add_exchange(m, m->push + i, DMI_MIN(count - i, DMI_EXCHANGE_MOST), NULL, 0);
    }
    for (int i = 0; i < count; i++) {
        m->sent[dmi_lane_channel(m->push[i]->lane)]++;
    }
    m->pushes -= count;
    memmove(m->push, m->push + count, (size_t)m->pushes * sizeof *m->push);
}

static void raise_until(uint32_t until[DMI_CHANNELS], const dmi_step *step)
{
    for (int c = 0; c < DMI_CHANNELS; c++) {
        until[c] = DMI_MAX(until[c], dmi_step_needs(step, c * DMI_CHANNEL_LANES + DMI_LANE_RECV));
    }
}

/* Does the destination of an arrival become free by a push that is not in an exchange yet, .. */
static bool follows_push(const maker *m, const dmi_step *expect)
{
    bool follows = false;
    for (int c = 0; c < DMI_CHANNELS; c++) {
        follows = follows || expect->wait[c * DMI_CHANNEL_LANES + DMI_LANE_SEND] > m->sent[c];
    }
    return follows;
}

/* .. by an arrival that is not yet before it? `before`: those in exchanges that are complete. */
static bool follows_arrival(const uint32_t before[DMI_CHANNELS], const dmi_step *expect)
{
    bool follows = false;
    for (int c = 0; c < DMI_CHANNELS; c++) {
        follows = follows || expect->wait[c * DMI_CHANNEL_LANES + DMI_LANE_RECV] > before[c];
    }
    return follows;
}

/* The channel of an arrival that follows none but those so far, of those that are needed; -1: there are no
 * more. What one of these follows is needed, too. */
static int next_channel(const maker *m, uint32_t until[DMI_CHANNELS])
{
    for (int round = 0; round <= DMI_CHANNELS; round++) {
        bool more = false;
        for (int c = 0; c < DMI_CHANNELS; c++) {
            if (m->arrived[c] < until[c]) {
                const dmi_step *expect = m->expect[c][m->arrived[c]];
                if (!follows_arrival(m->arrived, expect)) {
                    return c;
                }
                raise_until(until, expect);
                more = true;
            }
        }
        if (!more) {
            return -1;
        }
    }
    assert(!"arrivals follow one another in a circle");
    return -1;
}

/* The pushes that wait and these arrivals, in one exchange. */
static void put_together(maker *m, const dmi_step *const *arrival, int n)
{
    if (!m->failed) {
        add_exchange(m, m->push, m->pushes, arrival, n);
        for (int i = 0; i < m->pushes; i++) {
            m->sent[dmi_lane_channel(m->push[i]->lane)]++;
        }
        m->pushes = 0;
    }
}

/* The pushes that wait, and all arrivals up to these. Those of one exchange come in any order, and are unpacked
 * behind it: so one that follows another, whose destination it writes, is in a later exchange. */
static void put(maker *m, const uint32_t until[DMI_CHANNELS])
{
    const dmi_step *arrival[DMI_EXCHANGE_MOST];
    uint32_t before[DMI_CHANNELS], all[DMI_CHANNELS];
    int n = 0;
    memcpy(before, m->arrived, sizeof before);
    memcpy(all, until, sizeof all);
    for (int c; !m->failed && (c = next_channel(m, all)) >= 0; m->arrived[c]++) {
        const dmi_step *expect = m->expect[c][m->arrived[c]];
        if (m->pushes > 0 && (follows_push(m, expect) || m->pushes >= DMI_EXCHANGE_MOST)) {
            put_pushes(m, m->pushes);
        }
        if (n > 0 && (m->pushes + n == DMI_EXCHANGE_MOST || follows_arrival(before, expect))) {
            put_together(m, arrival, n);
            memcpy(before, m->arrived, sizeof before);
            n = 0;
        }
        arrival[n++] = expect;
    }
    if (n == 0) {
        put_pushes(m, m->pushes);
    } else {
        put_together(m, arrival, n);
    }
}

/* Is all that a transfer waits for in front of the next exchange? Pushes that are taken: `sent` is m->taken. */
static bool is_due(const maker *m, const dmi_step *transfer, const uint32_t *sent)
{
    bool due = true;
    for (int c = 0; c < DMI_CHANNELS; c++) {
        const uint32_t *wait = transfer->wait + c * DMI_CHANNEL_LANES;
        due = due && wait[DMI_LANE_COMPUTE] <= m->computed[c] && wait[DMI_LANE_SEND] <= sent[c] &&
              dmi_step_needs(transfer, c * DMI_CHANNEL_LANES + DMI_LANE_RECV) <= m->arrived[c];
    }
    return due;
}

/* Pushes that stand later, but could be done by now: the exchange that is about to be put takes them along. */
static void take_pushes(maker *m, int call)
{
    for (int c = 0; c < DMI_CHANNELS; c++) {
        const uint32_t all = m->from->lane_steps[c * DMI_CHANNEL_LANES + DMI_LANE_SEND];
        while (m->taken[c] < all && is_due(m, m->send[c][m->taken[c]], m->taken)) {
            const dmi_step *push = m->send[c][m->taken[c]];
            const bool ahead = push->call != call;
            if (ahead && m->bytes_ahead + push->bytes > MOST_AHEAD) {
                break;
            }
            m->ahead[push - m->from->step] = ahead;
            m->bytes_ahead += ahead ? push->bytes : 0;
            m->push[m->pushes++] = push;
            m->taken[c]++;
        }
    }
}

/* Could the exchange take the arrivals up to these, too? */
static bool all_due(const maker *m, const uint32_t until[DMI_CHANNELS])
{
    bool due = true;
    for (int c = 0; c < DMI_CHANNELS; c++) {
        for (uint32_t i = m->arrived[c]; i < until[c]; i++) {
            due = due && is_due(m, m->expect[c][i], m->sent);
        }
    }
    return due;
}

/* Are all pushes of this worker in that call taken? */
static bool all_pushed(const maker *m, int call)
{
    bool all = true;
    for (int c = 0; c < DMI_CHANNELS; c++) {
        all = all && m->taken[c] >= m->call[call].pushed[c];
    }
    return all;
}

/* Arrivals that steps behind step `at` wait for, up to the next push of this worker. To wait for them now keeps
 * nobody from going on: peers get no more from this worker before that push, whenever it waits. Only those of
 * the same call: peers send these now too. Those of a later call may come after their work for this one, but
 * for calls that only move elements, as copies from one array to several: these count as one.
 *
 * Those behind copies alone are taken too, though nothing needs them yet, if this worker has pushed all that it
 * pushes in their call and before. Their sender then waits for nothing of this worker: what it waits for was
 * pushed in their call or an earlier one. */
static void take_arrivals(const maker *m, int at, uint32_t until[DMI_CHANNELS])
{
    const int call = m->from->step[at].call;
    int64_t flops = 0;
    bool copies = true;
    for (int i = at; i < m->from->nstep && flops <= MOST_FLOPS; i++) {
        const dmi_step *step = &m->from->step[i];
        const bool expect = step->kind == DMI_STEP_EXPECT;
        const int channel = dmi_lane_channel(step->lane);
        if (step->call != call && (m->call[call].computes || m->call[step->call].computes)) {
            return;
        }
        uint32_t further[DMI_CHANNELS];
        memcpy(further, until, sizeof further);
        copies = copies && (expect || moves(step));
        if (!expect) {
            raise_until(further, step);
        } else if (copies && all_pushed(m, step->call)) {
            further[channel] = DMI_MAX(further[channel], step->ordinal);
        }
        const bool due = all_due(m, further);
        if ((step->kind == DMI_STEP_PUSH && step->ordinal > m->taken[channel]) || (!expect && !due)) {
            return;
        }
        if (due) {
            memcpy(until, further, sizeof further);
        }
        flops += step->flops;
    }
}

/* Pushes wait for those that stand behind copies of the same call, as where each is converted by itself. */
static bool passes(const maker *m, int at)
{
    const dmi_step *step = &m->from->step[at];
    bool free = moves(step) && !all_pushed(m, step->call);
    for (int c = 0; c < DMI_CHANNELS; c++) { /* the copy may write what they send */
        free = free && step->wait[c * DMI_CHANNEL_LANES + DMI_LANE_SEND] <= m->sent[c];
    }
    return free;
}

static void take_step(maker *m, int at)
{
    const dmi_step *step = &m->from->step[at];
    const int channel = dmi_lane_channel(step->lane);
    uint32_t until[DMI_CHANNELS];
    bool waits = false;
    m->bytes_ahead -= m->ahead[at] ? step->bytes : 0;
    if (step->kind == DMI_STEP_EXPECT || (step->kind == DMI_STEP_PUSH && step->ordinal <= m->taken[channel])) {
        return; /* an arrival comes when it is needed; this push was taken along */
    }
    memcpy(until, m->arrived, sizeof until);
    raise_until(until, step);
    for (int c = 0; c < DMI_CHANNELS; c++) {
        waits = waits || until[c] > m->arrived[c];
    }
    if (waits || (m->pushes > 0 && step->kind != DMI_STEP_PUSH && !passes(m, at))) {
        take_pushes(m, step->call);
        take_arrivals(m, at, until);
        put(m, until);
    }
    if (step->kind == DMI_STEP_PUSH) {
        m->push[m->pushes++] = step;
        m->taken[channel]++;
        return;
    }
    dmi_step *copy = add_step(m, step, step->kind, step->nref);
    if (copy) {
        memcpy(copy->ref, step->ref, step->nref * sizeof *step->ref);
    }
    m->computed[channel]++;
}

/* Marks the last exchange, and adds the steps that end the run: they write all that the run writes, so that who
 * uses it waits until all workers have told how the run went. */
static void add_end(maker *m)
{
    dmi_plan *plan = m->to;
    bool *written = take(m, ((size_t)plan->noperand + 1) * sizeof *written);
    int count = 0;
    for (int i = plan->nstep; i-- > 0 && !m->failed;) {
        if (plan->step[i].kind == DMI_STEP_EXCHANGE) {
            ((dmi_exchange *)(uintptr_t)plan->step[i].desc)->last = true;
            break;
        }
    }
    for (int i = 0; i < plan->nstep && !m->failed; i++) {
        for (int r = 0; r < plan->step[i].nref; r++) {
            const dmi_ref *ref = &plan->step[i].ref[r];
            if (ref->kind == DMI_REF_OPERAND && ref->mode & DMI_WRITE) {
                count += !written[ref->index];
                written[ref->index] = true;
            }
        }
    }
    for (int at = 0, first = 1; !m->failed && (first || count > 0); first = 0) {
        int n = DMI_MIN(count, END_REFS);
        dmi_exchange *x = take(m, sizeof *x);
        dmi_step *step = add_step(m, NULL, DMI_STEP_EXCHANGE, n);
        if (step) {
            *x = (dmi_exchange){.end = first};
            step->desc = x;
        }
        for (int i = 0; i < n && step; at++) {
            if (written[at]) {
                step->ref[i] = dmi_ref_operand(at, DMI_WRITE);
                step->ref[i++].to = INT64_MAX;
            }
        }
        count -= n;
    }
}

/* What the copies beside payloads pack into and unpack from: those that are not used at once share memory.
 * The other workspaces were given theirs when the plan was made. */
static void share_copies(maker *m)
{
    dmi_plan *plan = m->to;
    const int first = m->from->nwork, count = plan->nwork - first;
    int places = 0;
    bool packed;
    dmi_workspace *work = calloc((size_t)count + 1, sizeof *work);
    int64_t *bytes = calloc((size_t)count + 1, sizeof *bytes);
    m->failed = m->failed || !work || !bytes;
    for (int i = 0; i < count && !m->failed; i++) {
        work[i] = (dmi_workspace){.number = i, .first = plan->nstep, .bytes = plan->work_bytes[first + i]};
    }
    for (int i = 0; i < plan->nstep && !m->failed; i++) {
        for (int r = 0; r < plan->step[i].nref; r++) {
            const dmi_ref *ref = &plan->step[i].ref[r];
            if (ref->kind == DMI_REF_WORK && ref->index >= first) {
                dmi_workspace *w = &work[ref->index - first];
                w->first = DMI_MIN(w->first, i);
                w->last = i;
            }
        }
    }
    m->failed = m->failed || !dmi_places_choose(work, count, plan->nstep, bytes, &places, &packed);
    for (int i = 0; i < plan->nstep && !m->failed; i++) {
        for (int r = 0; r < plan->step[i].nref; r++) {
            dmi_ref *ref = &plan->step[i].ref[r];
            if (ref->kind == DMI_REF_WORK && ref->index >= first) {
                const dmi_workspace *w = &work[ref->index - first];
                ref->index = (uint16_t)(first + w->place);
                ref->offset += w->offset;
                ref->from = w->offset;
                ref->to = w->offset + w->bytes;
                plan->on_device->unit[ref->number].from = w->offset;
            }
        }
    }
    for (int i = 0; i < count && !m->failed; i++) {
        plan->workspace += (i < places ? bytes[i] : 0) - plan->work_bytes[first + i];
        plan->work_bytes[first + i] = i < places ? bytes[i] : 0;
    }
    plan->nwork = m->failed ? plan->nwork : first + places;
    free(work);
    free(bytes);
}

/* The workspaces of the old plan, one by one. */
static void note_units(maker *m)
{
    const dmi_plan *from = m->from;
    for (int i = 0; i < from->nstep && !m->failed; i++) {
        for (int r = 0; r < from->step[i].nref; r++) {
            const dmi_ref *ref = &from->step[i].ref[r];
            if (ref->kind == DMI_REF_WORK) {
                int64_t all = from->work_bytes[ref->index];
                note_unit(m, ref->number, ref->from,
                          (ref->to > ref->from ? DMI_MIN(ref->to, all) : all) - ref->from);
            }
        }
    }
}

static void note_shares(maker *m)
{
    for (int i = 0; i < m->from->nstep; i++) {
        const dmi_step *step = &m->from->step[i];
        share *of = &m->call[step->call];
        of->computes = of->computes || !moves(step);
        if (step->kind == DMI_STEP_PUSH) {
            of->pushed[dmi_lane_channel(step->lane)] = step->ordinal;
        }
    }
}

/* As both ends of a pair count them. */
static void number_payloads(maker *m, dmi_on_device *d)
{
    for (int lane = 0; lane < DMI_LANES; lane++) {
        for (int i = 0; i < m->from->nstep && !dmi_lane_computes(lane); i++) {
            const dmi_step *step = &m->from->step[i];
            if (step->lane == lane) {
                uint32_t *payloads = dmi_lane_sends(lane) ? &d->to[step->peer] : &d->from[step->peer];
                m->part[i] = (dmi_exchange_part){.peer = step->peer, .number = (*payloads)++};
            }
        }
    }
}

static bool begin(maker *m, dmi_plan *plan, int workers, uint64_t members)
{
    dmi_plan *to = calloc(1, sizeof *to);
    size_t steps = (size_t)plan->nstep + 1;
    *m = (maker){.from = plan, .to = to};
    m->part = calloc(steps, sizeof *m->part);
    m->push = calloc(steps, sizeof(dmi_step *));
    m->ahead = calloc(steps, sizeof *m->ahead);
    m->call = calloc((size_t)plan->calls + 1, sizeof *m->call);
    for (int c = 0; c < DMI_CHANNELS; c++) {
        m->expect[c] = calloc(steps, sizeof(dmi_step *));
        m->send[c] = calloc(steps, sizeof(dmi_step *));
        m->failed = m->failed || !m->expect[c] || !m->send[c];
    }
    if (!to) {
        return false;
    }
    atomic_init(&to->refs, 1);
    atomic_fetch_add(&plan->refs, 1);
    to->origin = plan;
    to->me = plan->me;
    memcpy(to->algorithm, plan->algorithm, sizeof to->algorithm);
    to->compute = plan->compute;
    to->moving = -1;
    to->calls = plan->calls;
    to->op = plan->op;
    to->called = plan->called;
    to->recorded = plan->recorded;
    to->tail = plan->tail;
    to->noperand = plan->noperand;
    to->whole = plan->whole;
    to->flops = plan->flops;
    to->repeats = plan->repeats;
    to->on_device = take(m, sizeof *to->on_device);
    m->failed = m->failed || !m->part || !m->push || !m->ahead || !m->call;
    if (m->failed) {
        return false;
    }
    to->on_device->workers = workers;
    to->on_device->members = members;
    for (int i = 0; i < plan->nwork; i++) {
        (void)add_work(m, plan->work_bytes[i]);
    }
    for (int i = 0; i < plan->nstep; i++) {
        const dmi_step *step = &plan->step[i];
        if (step->kind == DMI_STEP_EXPECT || step->kind == DMI_STEP_PUSH) {
            const int c = dmi_lane_channel(step->lane);
            (step->kind == DMI_STEP_PUSH ? m->send : m->expect)[c][step->ordinal - 1] = step;
        }
    }
    number_payloads(m, to->on_device);
    note_shares(m);
    note_units(m);
    return !m->failed;
}

/* Finds the section; false: it cannot be put on a stream at once. */
static bool find_section(dmi_plan *plan, char why[DMI_ON_DEVICE_WHY])
{
    dmi_on_device *d = plan->on_device;
    for (int i = 0; i < plan->nstep; i++) {
        const dmi_exchange *x = plan->step[i].desc;
        if (plan->step[i].kind == DMI_STEP_EXCHANGE && (x->part || (x->end && d->first == 0))) {
            d->first = d->first ? d->first : plan->step[i].ordinal;
            d->last = plan->step[i].ordinal;
        }
    }
    for (int i = 0; i < plan->nstep; i++) {
        const dmi_step *step = &plan->step[i];
        const dmi_kernel *kernel = dmi_step_kernel(step);
        bool inside = step->ordinal > d->first && step->ordinal < d->last;
        if (inside && kernel && kernel->traits & DMI_TRAIT_HOST) {
            return refuse(why, plan, step, "is work of the host between transfers");
        }
    }
    if (d->last - d->first >= DMI_ON_DEVICE_STEPS) {
        snprintf(why, DMI_ON_DEVICE_WHY, "there are %d steps between its first transfer and its last",
                 (int)(d->last - d->first));
        return false;
    }
    return true;
}

dm_status dmi_plan_on_device(dmi_plan *plan, int workers, uint64_t members, dmi_plan **out,
                             char why[DMI_ON_DEVICE_WHY])
{
    maker m;
    *out = NULL;
    if (!may(plan, workers, why)) {
        return DM_OK;
    }
    if (begin(&m, plan, workers, members)) {
        const uint32_t all[DMI_CHANNELS] = {plan->lane_steps[DMI_LANE_RECV], plan->lane_steps[DMI_LANE_RECV_1]};
        for (int i = 0; i < plan->nstep && !m.failed; i++) {
            take_step(&m, i);
        }
        put(&m, all);
        add_end(&m);
        share_copies(&m);
    } else {
        m.failed = true;
    }
    free(m.part);
    free((void *)m.push);
    free(m.ahead);
    free(m.call);
    for (int c = 0; c < DMI_CHANNELS; c++) {
        free((void *)m.expect[c]);
        free((void *)m.send[c]);
    }
    if (m.failed) {
        dmi_plan_release(m.to);
        return dmi_fail(DM_ERR_NOMEM, "no memory for the plan of a program");
    }
    if (find_section(m.to, why)) {
        *out = m.to;
    } else {
        dmi_plan_release(m.to);
    }
    return DM_OK;
}
