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
 * all at once. Before, all members of the program tell that they have done whatever may wait for a device; from
 * then on until all have put it on their streams, they do nothing of that kind. Nor do the other workers of the
 * session, but only while the members launch (dmi_gpu_enter). */
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
    dmi_vote here, at[DMI_ON_DEVICE_WORKERS]; /* this worker's vote; those of the others to it, .. */
    int64_t flag[DMI_ON_DEVICE_WORKERS];      /* bytes from the base to the first flag of what each sends */
    char *base[DMI_ON_DEVICE_WORKERS];        /* .. and where their memory is for this worker */
    bool kept[DMI_ON_DEVICE_WORKERS];         /* it is another process's, and stays mapped */
} places;

_Static_assert((int)DMI_ON_DEVICE_WORKERS <= (int)DMI_MEETING_WORKERS, "a meeting has room for all workers");

static const int64_t GIVE_WAY_NS = 100000, STANDS_LONG_NS = 200000;

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
                         .place = begin};
    int64_t flag = (1 + d->workers) * (int64_t)sizeof *p->run;
    for (int w = 0; w < d->workers; w++) {
        p->flag[w] = flag;
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

/* What this worker tells another one, and is told by it. */
static dmi_meeting_with *told_to(const dmi_engine *e, int worker)
{
    return &e->port->meeting.with[worker];
}

static dmi_meeting_with *told_by(const dmi_engine *e, int worker)
{
    return &meeting_of(e, worker)->with[e->config.me];
}

/* The next worker of these but this one, from w on; -1: there is none. */
static int next_of(const dmi_engine *e, uint64_t members, int w)
{
    const int workers = DMI_MIN(e->config.endpoints - 1, DMI_MEETING_WORKERS);
    while (w < workers && (w == e->config.me || !dmi_on_device_member(members, w))) {
        w++;
    }
    return w < workers ? w : -1;
}

#define FOR_OTHERS(w, e, members) for (int w = next_of(e, members, 0); w >= 0; w = next_of(e, members, w + 1))

static void ring(const dmi_engine *e, uint64_t members)
{
    FOR_OTHERS(w, e, members)
    {
        dmi_bell_ring(&dmi_hub_port(e->config.hub, w)->bell);
    }
}

static bool is_broken(const dmi_engine *e, int worker)
{
    return atomic_load(&dmi_hub_port(e->config.hub, worker)->broken);
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
        dmi_bell_ring(&dmi_hub_port(e->config.hub, w)->bell);
    }
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
    bool all = true;
    FOR_OTHERS(w, e, UINT64_MAX)
    {
        if (is_broken(e, w)) {
            return true;
        }
        all = all && atomic_load(&told_by(e, w)->votes) >= atomic_load(&told_to(e, w)->votes);
    }
    return all;
}

/* Gives this worker's vote and waits for the others'. Do all say yes? at: theirs. */
static bool all_say_yes(dmi_engine *e, uint64_t members, const dmi_vote *mine, const dmi_on_device *d,
                        dmi_vote *at)
{
    const places *p = d ? d->state : NULL;
    FOR_OTHERS(w, e, members)
    {
        dmi_meeting_with *m = told_to(e, w);
        const uint64_t number = atomic_load(&m->votes);
        m->vote[number % 2] = *mine;
        m->vote[number % 2].payloads = d ? d->from[w] : 0;
        m->vote[number % 2].flag = p ? p->flag[w] : 0;
        atomic_store(&m->votes, number + 1);
    }
    ring(e, members);
    bool yes = dmi_engine_await(e, all_voted) && mine->yes;
    FOR_OTHERS(w, e, members)
    {
        const uint64_t number = atomic_load(&told_to(e, w)->votes) - 1;
        at[w] = told_by(e, w)->vote[number % 2];
        yes = yes && atomic_load(&told_by(e, w)->votes) > number && at[w].yes;
    }
    return yes;
}

/* Where this worker reaches the memory of the others; false: not all of it. */
static bool reach(dmi_engine *e, dmi_on_device *d)
{
    places *p = d->state;
    p->base[e->config.me] = p->here.base;
    FOR_OTHERS(w, e, d->members)
    {
        const dmi_vote *vote = &p->at[w];
        dmi_gpu_peer *peer = &e->gpu->peer[w];
        p->base[w] = vote->base;
        assert(vote->payloads == d->to[w]); /* it expects what this worker sends */
        if (peer->slab) {                   /* of another process */
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

bool dmi_gpu_agree(dmi_engine *e, uint64_t members, dmi_plan *plan)
{
    static const dmi_vote no = {0};
    dmi_on_device *d = plan ? plan->on_device : NULL;
    dmi_vote at[DMI_ON_DEVICE_WORKERS];
    bool mine = d && make_places(e, d) == DM_OK;
    places *p = mine ? d->state : NULL;
    if (!all_say_yes(e, members, mine ? &p->here : &no, mine ? d : NULL, mine ? p->at : at)) {
        return false;
    }
    dmi_vote reached = {.yes = reach(e, d)};
    return all_say_yes(e, members, &reached, NULL, at);
}

/* --- the step --- */

static dmi_exchange_rows rows_of(const dmi_engine *e, const dmi_queued_step *w, int i, bool failed)
{
    const dmi_exchange *x = w->step->desc;
    const dmi_exchange_part *part = &x->part[i];
    const places *p = w->inst->plan->on_device->state;
    const bool push = i < x->pushes;
    char *base = p->base[push ? part->peer : e->config.me];
    const int64_t place = push ? p->at[part->peer].place : p->here.place,
                  flag = push ? p->at[part->peer].flag : p->flag[part->peer];
    char *memory =
        failed || part->lands || part->width == 0 ? NULL : dmi_ref_pointer(w->inst, &w->step->ref[i]);
    return (dmi_exchange_rows){.here = memory ? memory + part->offset : NULL,
                               .place = base + place + part->place,
                               .width = part->width,
                               .height = part->height,
                               .pitch = part->pitch,
                               .flag = (uint32_t *)(void *)(base + flag) + part->number,
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

/* Have all members come so far with the sections that they share with this worker? A broken one does not any
 * more, and nobody waits on a device then. */
static bool all_ready(const dmi_engine *e, uint64_t members, uint64_t more)
{
    bool all = true;
    FOR_OTHERS(w, e, members)
    {
        all = all && (atomic_load(&told_by(e, w)->ready) >= atomic_load(&told_to(e, w)->launched) + more ||
                      is_broken(e, w));
    }
    return all;
}

bool dmi_gpu_holds(const dmi_engine *e)
{
    bool holds = false;
    if (!e->gpu->holds) {
        return false;
    }
    FOR_OTHERS(w, e, UINT64_MAX)
    {
        const dmi_meeting_with *m = told_to(e, w);
        const uint64_t launched = atomic_load(&m->launched);
        holds = holds || atomic_load(&m->ready) > launched ||
                (atomic_load(&told_by(e, w)->launched) < launched && !is_broken(e, w));
    }
    e->gpu->holds = holds;
    return holds;
}

/* Another worker puts a section on its stream, or those do that it shares it with. */
static bool others_launch(const dmi_engine *e)
{
    bool launch = false;
    FOR_OTHERS(w, e, UINT64_MAX)
    {
        launch = launch || (atomic_load(&meeting_of(e, w)->launches) && !is_broken(e, w));
    }
    return launch;
}

/* This worker is kept by others. */
static void stand(dmi_engine *e)
{
    dmi_meeting *m = &e->port->meeting;
    const int64_t now = dmi_now_ns();
    e->gpu->stands_ns = e->gpu->stands_ns ? e->gpu->stands_ns : now;
    atomic_store(&m->stands, now - e->gpu->stands_ns < STANDS_LONG_NS ? DMI_STANDS : DMI_STANDS_LONG);
}

/* Either this worker sees that others launch, or they see that it calls. Of a session that has failed no kernel
 * waits. */
bool dmi_gpu_enter(dmi_engine *e)
{
    dmi_meeting *m = &e->port->meeting;
    const bool over = atomic_load_explicit(&e->config.hub->ring->closed, memory_order_relaxed);
    if (!e->sections || e->inside > 0) {
        e->inside++;
        return true;
    }
    if (dmi_gpu_holds(e) && !over) {
        return false;
    }
    atomic_store(&m->calls, 1);
    while (others_launch(e) && !over) {
        stand(e);
        atomic_store(&m->calls, 0);
        if (others_launch(e)) { /* else they may not have seen that this one stands, and do not wake it */
            return false;
        }
        atomic_store(&m->calls, 1);
    }
    e->gpu->stands_ns = 0;
    if (atomic_load_explicit(&m->stands, memory_order_relaxed)) {
        atomic_store(&m->stands, 0);
    }
    e->inside = 1;
    return true;
}

void dmi_gpu_leave(dmi_engine *e)
{
    dmi_meeting *m = &e->port->meeting;
    if (--e->inside == 0 && e->sections) {
        atomic_store(&m->calls, 0);
        if (atomic_exchange(&m->awaited, 0)) {
            ring(e, UINT64_MAX);
        }
    }
}

/* The members launch: does no other worker call anything that waits for a device, and will none? */
static bool others_stand(dmi_engine *e, uint64_t members)
{
    bool all = true;
    FOR_OTHERS(w, e, ~members)
    {
        dmi_meeting *m = meeting_of(e, w);
        atomic_store(&e->port->meeting.launches, 1);
        if (atomic_load(&m->calls) && !is_broken(e, w)) {
            atomic_store(&m->awaited, 1);
            all = all && !atomic_load(&m->calls);
        }
    }
    return all;
}

/* All have launched: others may go on. */
static void end_launch(dmi_engine *e)
{
    if (atomic_load_explicit(&e->port->meeting.launches, memory_order_relaxed)) {
        atomic_store(&e->port->meeting.launches, 0);
        FOR_OTHERS(w, e, UINT64_MAX)
        {
            if (atomic_load(&meeting_of(e, w)->stands)) {
                dmi_bell_ring(&dmi_hub_port(e->config.hub, w)->bell);
            }
        }
    }
}

bool dmi_gpu_stands(dmi_engine *e)
{
    const bool holds = dmi_gpu_holds(e);
    if (!holds) {
        end_launch(e);
    }
    return holds || e->inside == 0;
}

/* Sections one behind the other would leave other workers no time in between. So before one begins, those that
 * have stood for long have a moment. It is bounded: they may wait for other sections, whose members may wait
 * for this worker. */
static bool give_way(dmi_engine *e, uint64_t members)
{
    bool stand = false;
    FOR_OTHERS(w, e, ~members)
    {
        stand = stand || (atomic_load(&meeting_of(e, w)->stands) == DMI_STANDS_LONG && !is_broken(e, w));
    }
    if (stand && e->gpu->way_ns == 0) {
        e->gpu->way_ns = dmi_now_ns();
    }
    if (stand && dmi_now_ns() - e->gpu->way_ns < GIVE_WAY_NS) {
        e->wake_ns = e->gpu->way_ns + GIVE_WAY_NS;
        return true;
    }
    e->gpu->way_ns = 0;
    return false;
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

/* Of a section: this worker has told that. */
static bool is_ready(const dmi_engine *e, uint64_t members)
{
    const int w = next_of(e, members, 0);
    return atomic_load(&told_to(e, w)->ready) > atomic_load(&told_to(e, w)->launched);
}

int dmi_gpu_issue_section(dmi_engine *e, int lane, dmi_queued_step *w, uint64_t at, uint64_t end)
{
    const dmi_on_device *d = w->inst->plan->on_device;
    uint32_t length = d->last - d->first + 1;
    if (w->step->ordinal != d->first) { /* before it or behind it */
        return 0;
    }
    dmi_stamp wait = at + length <= end ? dmi_gpu_waits_of(e, lane, at, length) : (dmi_stamp){{0}};
    if (at + length > end || !dmi_gpu_issued(e, &wait)) {
        return -1;
    }
    if (!is_ready(e, d->members)) {
        if (dmi_gpu_stands(e) || give_way(e, d->members)) { /* for the section before, or others' */
            return -1;
        }
        prepare_section(e, lane, at, length);
        e->gpu->holds = true;
        FOR_OTHERS(other, e, d->members)
        {
            atomic_fetch_add(&told_to(e, other)->ready, 1);
        }
        ring(e, d->members);
    }
    if (!all_ready(e, d->members, 1) || !others_stand(e, d->members)) {
        return -1;
    }
    launch_section(e, lane, at, length, &wait);
    FOR_OTHERS(other, e, d->members)
    {
        atomic_fetch_add(&told_to(e, other)->launched, 1);
    }
    ring(e, d->members);
    return (int)length;
}

/* --- the end of a run --- */

bool dmi_gpu_run_ended(dmi_engine *e, dmi_queued_step *w)
{
    const uint64_t members = w->inst->plan->on_device->members;
    if (!((const dmi_exchange *)w->step->desc)->end) {
        return true;
    }
    if (!w->started) {
        w->started = true;
        FOR_OTHERS(other, e, members)
        {
            dmi_meeting_with *m = told_to(e, other);
            const uint64_t number = atomic_load(&m->runs);
            m->culprit[number % 2] = dmi_engine_culprit(w->inst);
            atomic_store(&m->runs, number + 1);
        }
        ring(e, members);
    }
    FOR_OTHERS(other, e, members)
    {
        if (atomic_load(&told_by(e, other)->runs) < atomic_load(&told_to(e, other)->runs)) {
            return false;
        }
    }
    return true;
}

void dmi_gpu_settle_exchange(dmi_engine *e, const dmi_queued_step *w)
{
    const dmi_exchange *x = w->step->desc;
    FOR_OTHERS(other, e, x->end ? w->inst->plan->on_device->members : 0)
    {
        uint64_t culprit = told_by(e, other)->culprit[(atomic_load(&told_to(e, other)->runs) - 1) % 2];
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
    int awaits = (int)__atomic_load_n(&e->gpu->words->word[WORD_AWAITS], __ATOMIC_RELAXED);
    FOR_OTHERS(w, e, UINT64_MAX)
    {
        const bool ended = atomic_load(&told_by(e, w)->runs) >= atomic_load(&told_to(e, w)->runs);
        awaits = awaits == 0 && !ended ? w + 1 : awaits;
    }
    return awaits;
}
