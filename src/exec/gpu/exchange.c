/* Programs that run on their devices alone: the places of their payloads, the step EXCHANGE, and what workers
 * tell one another about a run.
 *
 * Every such program has memory for the payloads that come in a run, twice: for even and for odd runs. A run's
 * number is a word of each device, which the last exchange of a run raises; so a graph need not change from run
 * to run. A sender puts a payload into its place and then the number of the run into its flag; the receiver
 * waits for that. Before the sender first puts something to a receiver in run n, it waits until that has ended
 * run n - 2: that is the grant for all places of the run.
 *
 * A kernel that waits for a peer holds up every call that waits for the device, and such a call may hold up
 * calls for other devices. So a section (the steps from the first exchange to the last) is put on its stream
 * all at once. Before, all workers tell that they have done whatever may wait for a device; from then on until
 * all have put it on their streams, they do nothing of that kind. */
#include "kernels/cuda/exchange.h"
#include "base/config.h"
#include "exec/gpu/parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct places {
    dmi_pool *pool;
    dmi_allocation memory;
    uint32_t *run;
    dmi_gpu_vote here, at[DMI_ON_DEVICE_WORKERS]; /* this worker's vote; those of the others, as far as they are
                                                     for this one */
} places;

/* --- memory --- */

static int64_t aligned(int64_t bytes)
{
    return (bytes + DMI_PLACE_ALIGN - 1) / DMI_PLACE_ALIGN * DMI_PLACE_ALIGN;
}

static void free_places(dmi_on_device *d)
{
    places *p = d->state;
    if (p) {
        (void)!dmi_pool_free(p->pool, &p->memory, NULL); /* the last run is done, at all workers */
        free(p);
        d->state = NULL;
    }
}

/* Words first: the run's number, ends and flags. */
static dm_status make_places(dmi_engine *e, dmi_on_device *d)
{
    places *p = calloc(1, sizeof *p);
    int64_t words = 1 + d->workers, half = 0;
    for (int w = 0; w < d->workers; w++) {
        words += d->from[w].payloads;
        half += d->from[w].bytes;
    }
    int64_t begin = aligned(words * (int64_t)sizeof *p->run);
    if (!p) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the places of a program");
    }
    dm_status status = dmi_engine_alloc(e, begin + 2 * half, DMI_OWNER_STAGING, &p->memory);
    if (status != DM_OK) {
        free(p);
        return status;
    }
    p->pool = e->config.pool;
    d->state = p;
    d->free = free_places;
    char *place = (char *)p->memory.base + begin;
    p->run = p->memory.base;
    p->here = (dmi_gpu_vote){.yes = true, .ended = p->run + 1, .half = half};
    uint32_t *flag = p->run + 1 + d->workers;
    for (int w = 0; w < d->workers; w++) {
        p->here.from[w].payloads = d->from[w].payloads;
        p->here.from[w].flag = flag;
        p->here.from[w].place = place;
        flag += d->from[w].payloads;
        place += d->from[w].bytes;
    }
    const uint32_t first = 1;
    status = dmi_cu_zero(p->memory.base, begin);
    return status == DM_OK ? dmi_cu_move(p->run, &first, sizeof first) : status;
}

/* --- agreement --- */

dm_status dmi_gpu_meeting_create(dmi_engine *e)
{
    dmi_gpu_meeting *m = calloc(1, sizeof *m);
    if (m) {
        atomic_init(&m->references, 1);
        m->words = dmi_cu_malloc_host(MEETING_WORDS * (int64_t)sizeof *m->words);
    }
    e->gpu->meeting = m;
    if (!m || !m->words) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the executor of GPU %d", e->gpu->device);
    }
    memset(m->words, 0, MEETING_WORDS * sizeof *m->words);
    return DM_OK;
}

void dmi_gpu_meeting_release(dmi_gpu_meeting *m)
{
    if (m && atomic_fetch_sub(&m->references, 1) == 1) {
        dmi_cu_release_host(m->words);
        free(m);
    }
}

/* A worker's; NULL: it is of another process, or not connected. */
static dmi_gpu_meeting *meeting_of(const dmi_engine *e, int worker)
{
    return worker == e->config.me ? e->gpu->meeting : e->gpu->peer[worker].meeting;
}

void dmi_gpu_give_up(dmi_engine *e)
{
    for (int w = 0; e->gpu && w < e->config.endpoints - 1; w++) {
        dmi_gpu_meeting *m = meeting_of(e, w);
        if (m) {
            __atomic_store_n(&m->words[WORD_GIVE_UP], 1, __ATOMIC_RELEASE);
        }
    }
}

static void ring_all(dmi_engine *e)
{
    for (int w = 0; w < e->config.endpoints - 1; w++) {
        if (w != e->config.me) {
            dmi_bell_ring(&dmi_hub_port(e->config.hub, w)->bell);
        }
    }
}

/* Have all voted as often as this worker? A broken one does not vote any more. */
static bool all_voted(dmi_engine *e)
{
    uint64_t votes = atomic_load(&e->gpu->meeting->votes);
    bool all = true;
    for (int w = 0; w < e->config.endpoints - 1; w++) {
        if (atomic_load(&dmi_hub_port(e->config.hub, w)->broken)) {
            return true;
        }
        all = all && atomic_load(&meeting_of(e, w)->votes) >= votes;
    }
    return all;
}

/* A receiver expects what this worker sends. */
static bool fits(const dmi_engine *e, const dmi_on_device *d, int worker, const dmi_gpu_vote *vote)
{
    return worker == e->config.me || vote->from[e->config.me].payloads == d->to[worker].payloads;
}

bool dmi_gpu_agree(dmi_engine *e, dmi_plan *plan)
{
    dmi_gpu_meeting *m = e->gpu->meeting;
    dmi_on_device *d = plan ? plan->on_device : NULL;
    bool mine = d && make_places(e, d) == DM_OK, yes = true, fit = true;
    uint64_t number = atomic_load(&m->votes);
    m->vote[number % 2] = mine ? ((places *)d->state)->here : (dmi_gpu_vote){0};
    atomic_store(&m->votes, number + 1);
    ring_all(e);
    bool over = !dmi_engine_await(e, all_voted);
    for (int w = 0; w < e->config.endpoints - 1 && !over; w++) {
        const dmi_gpu_meeting *other = meeting_of(e, w);
        bool voted = atomic_load(&other->votes) > number;
        yes = yes && voted && other->vote[number % 2].yes;
        if (yes && mine) {
            ((places *)d->state)->at[w] = other->vote[number % 2];
            fit = fit && fits(e, d, w, &other->vote[number % 2]);
        }
    }
    assert(fit || !yes);
    return yes && mine && fit && !over;
}

/* --- the step --- */

static dmi_exchange_rows rows_of(const dmi_engine *e, const dmi_queued_step *w, int i, bool failed)
{
    const dmi_exchange *x = w->step->desc;
    const dmi_exchange_part *part = &x->part[i];
    const places *p = w->inst->plan->on_device->state;
    const dmi_gpu_vote *at = i < x->pushes ? &p->at[part->peer] : &p->here;
    int from = i < x->pushes ? e->config.me : part->peer;
    char *memory = failed ? NULL : dmi_ref_pointer(w->inst, &w->step->ref[i]);
    return (dmi_exchange_rows){.here = memory ? memory + part->offset : NULL,
                               .place = at->from[from].place + part->place,
                               .half = at->half,
                               .width = part->width,
                               .height = part->height,
                               .pitch = part->pitch,
                               .flag = at->from[from].flag + part->number,
                               .gate = part->first ? p->here.ended + part->peer : NULL,
                               .peer = part->peer};
}

dm_status dmi_gpu_put_exchange(dmi_engine *e, int lane, const dmi_queued_step *w)
{
    const dmi_exchange *x = w->step->desc;
    dmi_queue *queue = e->gpu->queue[lane];
    const dmi_on_device *d = w->inst->plan->on_device;
    const places *p = d->state;
    if (!x->part) { /* nothing to do for the device */
        return DM_OK;
    }
    dmi_exchange_call call = {.pushes = x->pushes,
                              .arrivals = x->arrivals,
                              .last = x->last,
                              .run = p->run,
                              .give_up = &e->gpu->meeting->words[WORD_GIVE_UP],
                              .awaits = &e->gpu->meeting->words[WORD_AWAITS]};
    bool failed = atomic_load(&w->inst->failed) != 0;
    for (int i = 0; i < x->pushes + x->arrivals; i++) {
        call.rows[i] = rows_of(e, w, i, failed);
    }
    for (int from = 0; from < d->workers && x->last; from++) {
        if (d->from[from].payloads > 0) {
            call.ended[call.ends++] = p->at[from].ended + e->config.me;
        }
    }
    dmi_cuda_exchange(queue, &call);
    return dmi_gpu_queued(queue, DM_OK);
}

/* --- the section --- */

/* Have all workers come so far with sections? A broken one does not any more, and nobody waits on a device
 * then. */
static bool all_have(const dmi_engine *e, bool launched, uint64_t count)
{
    bool all = true;
    for (int w = 0; w < e->config.endpoints - 1; w++) {
        const dmi_gpu_meeting *m = meeting_of(e, w);
        all = all && (!m || atomic_load(launched ? &m->launched : &m->ready) >= count ||
                      atomic_load(&dmi_hub_port(e->config.hub, w)->broken));
    }
    return all;
}

bool dmi_gpu_holds(const dmi_engine *e)
{
    const dmi_gpu_meeting *m = e->gpu->meeting;
    uint64_t ready = atomic_load(&m->ready), launched = atomic_load(&m->launched);
    return ready > launched || (launched > 0 && !all_have(e, true, launched));
}

/* Everything that may wait for a device: graphs, run tables, code. */
static void prepare_section(dmi_engine *e, int lane, uint64_t at, uint32_t length)
{
    for (uint64_t i = at; i < at + length;) {
        dmi_queued_step *w = dmi_lane_slot(&e->lane[lane], i);
        uint32_t run = DMI_MIN(dmi_gpu_run_length(w), (uint32_t)(at + length - i));
        dmi_gpu_prepare_run(e, lane, w, i);
        i += run;
    }
}

static void launch_section(dmi_engine *e, int lane, uint64_t at, uint32_t length, const dmi_stamp *wait)
{
    e->gpu->launching = true;
    e->gpu->queue[lane]->compile = DMI_COMPILE_LOADED;
    dmi_gpu_failed(e, dmi_lane_slot(&e->lane[lane], at), dmi_gpu_after(e, lane, wait));
    for (uint64_t i = at; i < at + length;) {
        dmi_queued_step *w = dmi_lane_slot(&e->lane[lane], i);
        int run = dmi_gpu_launch_run(e, lane, w, i);
        if (run == 0) {
            e->gpu->issued[lane] = i; /* the place of the step's status word */
            (void)dmi_gpu_issue_compute(e, lane, w);
        }
        i += run ? (uint64_t)run : 1;
    }
    e->gpu->issued[lane] = at; /* the caller counts them */
    e->gpu->queue[lane]->compile = e->config.map_compile;
    e->gpu->launching = false;
}

int dmi_gpu_issue_section(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t at, uint64_t end)
{
    const dmi_on_device *d = w->inst->plan->on_device;
    dmi_gpu_meeting *m = e->gpu->meeting;
    uint32_t length = d->last - d->first + 1;
    if (w->step->ordinal != d->first) { /* before it or behind it */
        return 0;
    }
    dmi_stamp wait = at + length <= end ? dmi_gpu_waits_of(e, lane, at, length) : (dmi_stamp){{0}};
    uint64_t number = atomic_load(&m->launched) + 1;
    if (at + length > end || !dmi_gpu_issued(e, &wait)) {
        return -1;
    }
    if (atomic_load(&m->ready) < number) {
        if (!all_have(e, true, number - 1)) { /* the one before */
            return -1;
        }
        prepare_section(e, lane, at, length);
        atomic_store(&m->ready, number);
        ring_all(e);
    }
    if (!all_have(e, false, number)) {
        return -1;
    }
    launch_section(e, lane, at, length, &wait);
    atomic_store(&m->launched, number);
    ring_all(e);
    return (int)length;
}

/* --- the end of a run --- */

bool dmi_gpu_run_ended(dmi_engine *e, dmi_queued_step *w)
{
    dmi_gpu_meeting *m = e->gpu->meeting;
    if (!((const dmi_exchange *)w->step->desc)->end) {
        return true;
    }
    if (!w->started) {
        uint64_t number = atomic_load(&m->runs);
        w->started = true;
        w->ordinal = number;
        m->culprit[number % 2] = dmi_engine_culprit(w->inst);
        atomic_store(&m->runs, number + 1);
        ring_all(e);
    }
    for (int other = 0; other < e->config.endpoints - 1; other++) {
        if (atomic_load(&meeting_of(e, other)->runs) <= w->ordinal) {
            return false;
        }
    }
    return true;
}

void dmi_gpu_settle_exchange(dmi_engine *e, const dmi_queued_step *w)
{
    const dmi_exchange *x = w->step->desc;
    for (int other = 0; x->end && other < e->config.endpoints - 1; other++) {
        uint64_t culprit = meeting_of(e, other)->culprit[w->ordinal % 2];
        if (culprit != 0 && !atomic_load(&w->inst->failed)) {
            dmi_engine_inherit(e, w->inst, culprit);
        }
    }
    if (x->part && !atomic_load(&w->inst->failed)) {
        for (int i = 0; i < x->pushes + x->arrivals; i++) {
            atomic_int_fast64_t *bytes =
                i < x->pushes ? &e->port->tally.bytes_sent : &e->port->tally.bytes_received;
            atomic_fetch_add_explicit(bytes, x->part[i].width * x->part[i].height, memory_order_relaxed);
        }
    }
    atomic_fetch_add_explicit(&e->port->tally.messages_sent, x->pushes, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->port->tally.messages_received, x->arrivals, memory_order_relaxed);
}

int dmi_gpu_exchange_awaits(dmi_engine *e)
{
    const dmi_gpu_meeting *m = e->gpu->meeting;
    uint64_t runs = atomic_load(&m->runs);
    int awaits = (int)__atomic_load_n(&m->words[WORD_AWAITS], __ATOMIC_RELAXED);
    for (int w = 0; w < e->config.endpoints - 1 && awaits == 0; w++) {
        const dmi_gpu_meeting *other = meeting_of(e, w);
        awaits = other && atomic_load(&other->runs) < runs ? w + 1 : 0;
    }
    return awaits;
}
