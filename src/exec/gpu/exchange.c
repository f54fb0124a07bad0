/* Programs that run on their devices alone: the places of their payloads, the step EXCHANGE, and what workers
 * tell one another about a run.
 *
 * Every such program has memory for the payloads that come in a run. A run's number is a word of each device,
 * which the last exchange of a run raises; so a graph need not change from run to run. A sender puts a payload
 * into its place and then the number of the run into its flag; the receiver waits for that. Before the sender
 * first puts something to a receiver in a run, of which nothing has come to it in that run, it waits until the
 * receiver has ended the run before. Of all other places it knows that they are free when it gets there
 * (plan/on_device_places.c). Where they lie beside workspaces, those are the program's, too.
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

/* Memory with the run's number, a word for each receiver with the last run that it has taken, the flags of what
 * comes, and the places, perhaps with workspaces. */
typedef struct places {
    dmi_engine *engine;
    dmi_allocation memory;
    uint32_t *run;
    dmi_vote here, at[DMI_ON_DEVICE_WORKERS]; /* this worker's vote; those of the others, .. */
    char *base[DMI_ON_DEVICE_WORKERS];        /* .. and where their memory is for this worker */
    bool kept[DMI_ON_DEVICE_WORKERS];         /* it is another process's, and stays mapped */
} places;

_Static_assert((int)DMI_ON_DEVICE_WORKERS <= (int)DMI_MEETING_WORKERS, "a vote has room for all workers");

/* --- memory --- */

static int64_t aligned(int64_t bytes)
{
    return (bytes + DMI_PLACE_ALIGN - 1) / DMI_PLACE_ALIGN * DMI_PLACE_ALIGN;
}

static void free_places(dmi_on_device *d)
{
    places *p = d->state;
    dmi_gpu *g = p ? p->engine->gpu : NULL;
    for (int w = 0; p && g && g->peer && w < d->workers; w++) {
        if (p->kept[w] && g->peer[w].slab_kept) {
            g->peer[w].slab_kept[p->at[w].slab]--;
        }
    }
    if (p) {
        (void)!dmi_pool_free(p->engine->config.pool, &p->memory,
                             NULL); /* the last run is done, at all workers */
        free(p);
        d->state = NULL;
    }
}

static dm_status make_places(dmi_engine *e, dmi_on_device *d)
{
    places *p = calloc(1, sizeof *p);
    int64_t words = 1 + d->workers;
    for (int w = 0; w < d->workers; w++) {
        words += d->from[w];
    }
    int64_t begin = aligned(words * (int64_t)sizeof *p->run);
    if (!p) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the places of a program");
    }
    dm_status status = dmi_engine_alloc(e, begin + d->places, DMI_OWNER_STAGING, &p->memory);
    if (status != DM_OK) {
        free(p);
        return status;
    }
    if (!dmi_engine_reached(e, &p->memory.ready)) { /* peers that write there do not wait for what used it */
        dmi_engine_drain(e);
    }
    p->engine = e;
    if (d->together) {
        d->memory = p->memory;
        d->memory.base = (char *)p->memory.base + begin;
        d->memory.offset += begin;
        d->memory.bytes = d->places;
    }
    d->state = p;
    d->free = free_places;
    p->run = p->memory.base;
    p->here = (dmi_vote){.yes = true,
                         .base = p->memory.base,
                         .slab = p->memory.slab,
                         .offset = p->memory.offset,
                         .place = begin,
                         .places = d->places};
    int64_t flag = (1 + d->workers) * (int64_t)sizeof *p->run;
    for (int w = 0; w < d->workers; w++) {
        p->here.from[w].payloads = d->from[w];
        p->here.from[w].flag = flag;
        flag += d->from[w] * (int64_t)sizeof *p->run;
    }
    const uint32_t first = 1;
    status = dmi_cu_zero(p->memory.base, begin);
    return status == DM_OK ? dmi_cu_move(p->run, &first, sizeof first) : status;
}

/* The word of a worker's memory with the last run whose payloads to `receiver` that worker has taken. */
static uint32_t *ended(const char *base, int receiver)
{
    return (uint32_t *)(uintptr_t)base + 1 + receiver;
}

/* --- words and bells --- */

dm_status dmi_gpu_words_create(dmi_engine *e)
{
    dmi_gpu_words *w = calloc(1, sizeof *w);
    if (w) {
        atomic_init(&w->references, 1);
        w->word = dmi_cu_malloc_host(WORDS * (int64_t)sizeof *w->word);
    }
    e->gpu->words = w;
    if (!w || !w->word) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the executor of GPU %d", e->gpu->device);
    }
    memset(w->word, 0, WORDS * sizeof *w->word);
    return DM_OK;
}

void dmi_gpu_words_release(dmi_gpu_words *w)
{
    if (w && atomic_fetch_sub(&w->references, 1) == 1) {
        dmi_cu_release_host(w->word);
        free(w);
    }
}

static dmi_meeting *meeting_of(const dmi_engine *e, int worker)
{
    return &dmi_hub_port(e->config.hub, worker)->meeting;
}

static void ring_all(dmi_engine *e)
{
    for (int w = 0; w < e->config.endpoints - 1; w++) {
        if (w != e->config.me) {
            dmi_bell_ring(&dmi_hub_port(e->config.hub, w)->bell);
        }
    }
}

static void let_go(dmi_gpu_words *w)
{
    if (w && w->word) {
        __atomic_store_n(&w->word[WORD_GIVE_UP], 1, __ATOMIC_RELEASE);
    }
}

/* Workers of this process are told at once, for their hosts may wait for their devices; those of others heed
 * it. */
void dmi_gpu_give_up(dmi_engine *e)
{
    if (!e->gpu) {
        return;
    }
    let_go(e->gpu->words);
    for (int w = 0; w < e->config.endpoints - 1; w++) {
        let_go(e->gpu->peer ? e->gpu->peer[w].words : NULL);
        atomic_store(&meeting_of(e, w)->give_up, 1);
    }
    ring_all(e);
}

void dmi_gpu_heed(dmi_engine *e)
{
    if (atomic_load_explicit(&e->port->meeting.give_up, memory_order_relaxed)) {
        let_go(e->gpu->words);
    }
}

/* --- agreement --- */

/* Have all voted as often as this worker? A broken one does not vote any more. */
static bool all_voted(dmi_engine *e)
{
    uint64_t votes = atomic_load(&e->port->meeting.votes);
    bool all = true;
    for (int w = 0; w < e->config.endpoints - 1; w++) {
        if (atomic_load(&dmi_hub_port(e->config.hub, w)->broken)) {
            return true;
        }
        all = all && atomic_load(&meeting_of(e, w)->votes) >= votes;
    }
    return all;
}

/* Gives this worker's vote and waits for the others'. Do all say yes? number: of the vote. */
static bool all_say_yes(dmi_engine *e, const dmi_vote *mine, uint64_t *number)
{
    dmi_meeting *m = &e->port->meeting;
    *number = atomic_load(&m->votes);
    m->vote[*number % 2] = *mine;
    atomic_store(&m->votes, *number + 1);
    ring_all(e);
    bool yes = dmi_engine_await(e, all_voted);
    for (int w = 0; w < e->config.endpoints - 1 && yes; w++) {
        const dmi_meeting *other = meeting_of(e, w);
        yes = atomic_load(&other->votes) > *number && other->vote[*number % 2].yes;
    }
    return yes;
}

/* A receiver expects what this worker sends. */
static void check_fits(const dmi_engine *e, const dmi_on_device *d, int worker, const dmi_vote *vote)
{
    assert(worker == e->config.me || vote->from[e->config.me].payloads == d->to[worker]);
    (void)e, (void)d, (void)worker, (void)vote;
}

/* Where this worker reaches the memory of the others; false: not all of it. */
static bool reach(dmi_engine *e, dmi_on_device *d, uint64_t number)
{
    places *p = d->state;
    for (int w = 0; w < e->config.endpoints - 1; w++) {
        const dmi_vote *vote = &meeting_of(e, w)->vote[number % 2];
        dmi_gpu_peer *peer = &e->gpu->peer[w];
        p->at[w] = *vote;
        p->base[w] = vote->base;
        check_fits(e, d, w, vote);
        if (w != e->config.me && peer->slab) { /* of another process */
            char *slab = dmi_gpu_map(e, w, vote->slab);
            if (!slab) {
                return false;
            }
            p->base[w] = slab + vote->offset;
            p->kept[w] = true;
            peer->slab_kept[vote->slab]++;
        }
    }
    return true;
}

bool dmi_gpu_agree(dmi_engine *e, dmi_plan *plan)
{
    static const dmi_vote no = {0};
    dmi_on_device *d = plan ? plan->on_device : NULL;
    bool mine = d && make_places(e, d) == DM_OK;
    uint64_t number;
    if (!all_say_yes(e, mine ? &((const places *)d->state)->here : &no, &number)) {
        return false;
    }
    dmi_vote reached = {.yes = reach(e, d, number)};
    return all_say_yes(e, &reached, &number);
}

/* --- the step --- */

static dmi_exchange_rows rows_of(const dmi_engine *e, const dmi_queued_step *w, int i, bool failed)
{
    const dmi_exchange *x = w->step->desc;
    const dmi_exchange_part *part = &x->part[i];
    const places *p = w->inst->plan->on_device->state;
    int at = i < x->pushes ? part->peer : e->config.me, from = i < x->pushes ? e->config.me : part->peer;
    const dmi_vote *vote = &p->at[at];
    char *memory =
        failed || part->lands || part->width == 0 ? NULL : dmi_ref_pointer(w->inst, &w->step->ref[i]);
    return (dmi_exchange_rows){.here = memory ? memory + part->offset : NULL,
                               .place = p->base[at] + vote->place + part->place,
                               .width = part->width,
                               .height = part->height,
                               .pitch = part->pitch,
                               .flag = (uint32_t *)(void *)(p->base[at] + vote->from[from].flag) + part->number,
                               .gate = part->first ? ended(p->base[e->config.me], part->peer) : NULL,
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
                              .give_up = &e->gpu->words->word[WORD_GIVE_UP],
                              .awaits = &e->gpu->words->word[WORD_AWAITS]};
    bool failed = atomic_load(&w->inst->failed) != 0;
    for (int i = 0; i < x->pushes + x->arrivals; i++) {
        call.rows[i] = rows_of(e, w, i, failed);
    }
    for (int from = 0; from < d->workers && x->last; from++) {
        if (d->from[from] > 0) {
            call.ended[call.ends++] = ended(p->base[from], e->config.me);
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
        const dmi_meeting *m = meeting_of(e, w);
        all = all && (atomic_load(launched ? &m->launched : &m->ready) >= count ||
                      atomic_load(&dmi_hub_port(e->config.hub, w)->broken));
    }
    return all;
}

bool dmi_gpu_holds(const dmi_engine *e)
{
    const dmi_meeting *m = &e->port->meeting;
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
    dmi_meeting *m = &e->port->meeting;
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
    dmi_meeting *m = &e->port->meeting;
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
    if (__atomic_load_n(&e->gpu->words->word[WORD_GIVE_UP], __ATOMIC_ACQUIRE) &&
        !atomic_load(&w->inst->failed)) {
        dmi_engine_fail_step(
            e, w,
            dmi_fail(DM_ERR_INTERNAL, "it no longer waits for the other GPUs, for the session has failed"));
    }
    const bool well = !atomic_load(&w->inst->failed);
    int sent = 0, received = 0; /* but for notices */
    for (int i = 0; x->part && i < x->pushes + x->arrivals; i++) {
        const int64_t bytes = x->part[i].width * x->part[i].height;
        if (i < x->pushes) {
            dmi_count_sent(e, w->inst, x->part[i].peer, well ? bytes : 0);
            sent += bytes > 0;
        } else {
            DMI_ADD_COUNT(e, w->inst, bytes_received, well ? bytes : 0);
            received += bytes > 0;
        }
    }
    DMI_ADD_COUNT(e, w->inst, messages_sent, sent);
    DMI_ADD_COUNT(e, w->inst, messages_received, received);
}

int dmi_gpu_exchange_awaits(dmi_engine *e)
{
    const dmi_meeting *m = &e->port->meeting;
    uint64_t runs = atomic_load(&m->runs);
    int awaits = (int)__atomic_load_n(&e->gpu->words->word[WORD_AWAITS], __ATOMIC_RELAXED);
    for (int w = 0; w < e->config.endpoints - 1 && awaits == 0; w++) {
        awaits = atomic_load(&meeting_of(e, w)->runs) < runs ? w + 1 : 0;
    }
    return awaits;
}
