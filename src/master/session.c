/* Sessions: making, ending, and the handles that outlive them. */
#include "master/session.h"
#include "exec/trace.h"
#include "io/unfinished.h"
#include "master/checkpoint.h"
#include "master/journal.h"
#include "ops/common_task.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* All public handles ever made, to distinguish a finalized one from a wild pointer. Never freed (32 bytes
 * each). */
static _Atomic(struct dm_session *) all_sessions;
static atomic_uint session_numbers;

/* Every call checks this, so it avoids a system call if it can. */
static void know_the_process(dmi_session *s)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    s->pid = (int)getpid();
    s->here = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->here == MAP_FAILED) {
        s->here = NULL;
    } else if (madvise(s->here, page, MADV_WIPEONFORK) != 0) {
        munmap(s->here, page);
        s->here = NULL;
    } else {
        *s->here = 1;
    }
}

bool dmi_session_forked(const dmi_session *s)
{
    return s->here ? !*s->here : s->pid != (int)getpid();
}

dm_status dmi_session_outside(void)
{
    return dmi_task_inside() ? dmi_fail(DM_ERR_STATE, "a function given to dm_register may not call dmath")
                             : DM_OK;
}

/* May this thread ask for it at all? */
static dm_status look(const dm_session *session)
{
    dm_status status = dmi_session_outside();
    return status == DM_OK && !session ? dmi_fail(DM_ERR_HANDLE, "session is NULL") : status;
}

static dm_status refuse_ended(const dm_session *session)
{
    return dmi_fail(DM_ERR_STATE, "%s",
                    session->quiesced ? "the program is ending. Call dm_finalize before exit(), or in an "
                                        "atexit() handler (with GPUs: one set after dm_init)"
                                      : "the session has been finalized");
}

static dm_status refuse_forked(const dm_session *session)
{
    return dmi_fail(DM_ERR_STATE, "the session belongs to process %d, and this process was forked from it",
                    session->pid);
}

/* The call announces itself before it looks whether the session is there, and dm_finalize takes the session
 * away before it looks for calls: one of them sees the other. */
bool dmi_hold_now(dm_session *session, dmi_session **out)
{
    atomic_fetch_add(&session->holds, 1);
    uintptr_t live = atomic_load(&session->live);
    if (!live || session->pid != (int)getpid()) {
        dmi_release(session);
        return false;
    }
    *out = (dmi_session *)live;
    return true;
}

dm_status dmi_hold(dm_session *session, dmi_session **out)
{
    dm_status status = look(session);
    if (status != DM_OK || dmi_hold_now(session, out)) {
        return status;
    }
    return session->pid != (int)getpid() && atomic_load(&session->live) ? refuse_forked(session)
                                                                        : refuse_ended(session);
}

void dmi_release(dm_session *session)
{
    atomic_fetch_sub(&session->holds, 1);
}

/* No call begins to use the session any more, and none uses it. */
static void take_away(dm_session *session)
{
    atomic_store(&session->live, 0);
    while (atomic_load(&session->holds) > 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    }
}

/* Without a lock: while the owner is inside a call the session stays. */
dm_status dmi_enter_stuck(const dm_session *session, dmi_session **out)
{
    dm_status status = look(session);
    if (status != DM_OK) {
        return status;
    }
    bool mine = dmi_owner_is(session);
    uintptr_t live =
        atomic_load_explicit(&((struct dm_session *)(uintptr_t)session)->live, memory_order_acquire);
    if (!live) {
        return refuse_ended(session);
    }
    if (mine ? dmi_session_forked((dmi_session *)live) : session->pid != (int)getpid()) {
        return refuse_forked(session);
    }
    if (!mine) {
        return dmi_owner_refuse();
    }
    *out = (dmi_session *)live;
    return DM_OK;
}

dmi_facts dmi_session_facts(const dmi_session *s)
{
    return (dmi_facts){.workers = s->workers,
                       .config = &s->config,
                       .profile = &s->profile,
                       .explaining = s->explaining,
                       .recording = s->recording != NULL,
                       .grouped = s->open_groups > 0,
                       .command = s->command,
                       .limited = s->limited,
                       .tail_room = (int64_t)(s->hub.ring->size / 8)};
}

dm_status dmi_enter(const dm_session *session, dmi_session **out)
{
    dmi_session *s = NULL;
    dm_status status = dmi_enter_stuck(session, &s);
    if (status == DM_OK && (s->stuck == DMI_STUCK_BROKEN || atomic_load_explicit(&s->died, memory_order_relaxed))) {
        return dmi_broken(s);
    }
    if (status == DM_OK && s->stuck) {
        return dmi_fail(DM_ERR_TIMEOUT, "a worker made no progress in an earlier call: %s",
                        s->stuck == DMI_STUCK_LOST ? "only dm_finalize is left"
                                                   : "call dm_sync to wait again, or dm_finalize to give up");
    }
    *out = s;
    return status;
}

dm_session *dmi_session_first(void)
{
    return atomic_load(&all_sessions);
}

bool dmi_session_any(void)
{
    for (const struct dm_session *h = atomic_load(&all_sessions); h; h = h->next) {
        /* not the session behind it: another thread may be ending that session */
        if (atomic_load(&((struct dm_session *)(uintptr_t)h)->live) && h->pid == (int)getpid()) {
            return true;
        }
    }
    return false;
}

dm_status dmi_session_open(const dmi_config *config, const dmi_profile *profile, const dmi_hub *hub,
                           const dmi_slab_ops *slabs, const int *consumers, int nconsumers, dmi_session **out)
{
    dmi_session *s = dmi_alloc_lines(1, sizeof *s);
    if (!s) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a session");
    }
    s->config = *config;
    s->profile = *profile;
    s->workers = profile->workers;
    s->hub = *hub;
    s->hub.fits = hub->fits && !profile->gpu;
    s->ring = (dmi_ring_writer){.hub = &s->hub, .consumer = consumers, .nconsumer = nconsumers};
    s->number = atomic_fetch_add(&session_numbers, 1) % 0xffffff + 1;
    know_the_process(s);
    s->live_bytes = calloc((size_t)s->workers, sizeof *s->live_bytes);
    s->scrap = malloc(hub->ring->size / 4); /* never touched in most sessions */
    s->recent = calloc(DMI_RECENT, sizeof *s->recent);
    s->watched = calloc((size_t)s->workers, sizeof *s->watched);
    s->taken = calloc((size_t)s->workers + 1, sizeof *s->taken);
    s->pool_config = (dmi_pool_config){
        .ops = *slabs, .slab_bytes = 1 << 20, .align = 256, .redzone = config->pool_debug ? 256 : 0};
    dm_status status = s->live_bytes && s->scrap && s->recent && s->watched && s->taken ? dmi_pool_create(&s->pool_config, &s->staging)
                                                 : dmi_fail(DM_ERR_NOMEM, "no memory for a session");
    s->pool_config.limit_bytes = config->memory_limit;
    if (status == DM_OK) {
        dmi_engine_config engine = {.me = s->workers,
                                    .endpoints = s->workers + 1,
                                    .hub = &s->hub,
                                    .backend = dmi_backend_cpu(),
                                    .pool = s->staging,
                                    .one_space = profile->one_space,
                                    .pool_debug = config->pool_debug,
                                    .retired = dmi_transfer_retired,
                                    .context = s};
        status = dmi_engine_start(&s->engine, &engine);
    }
    if (status == DM_OK) {
        status = dmi_failures_start(s);
    }
    if (status == DM_OK) {
        status = dmi_replicas_start(s);
    }
    if (status == DM_OK) {
        dmi_engine_count(&s->engine, config->trace[0] ? dmi_trace_create(DMI_TRACE_MOST) : NULL,
                         dmi_config_profile(config));
        status = dmi_config_profile(config) ? dmi_profiling_start(s) : DM_OK;
    }
    if (status != DM_OK) {
        dmi_session_close(s);
        return status;
    }
    *out = s;
    return DM_OK;
}

/* A program may exit with sessions alive. Their threads still run while exit() unloads the libraries that
 * kernels call. So stop them first. */
static void quiesce(struct dm_session *at)
{
    dmi_session *live = (dmi_session *)atomic_load(&at->live), *s = live ? live : at->given_up;
    if (at->quiesced || !s || dmi_session_forked(s)) { /* a child of fork has none of the threads */
        return;
    }
    if (live) {
        dmi_log(DMI_LOG_WARN,
                "the program ends, but dm_finalize was not called: %" PRId64
                " arrays and views are alive, commands may not be done, and failures were not reported",
                live->alive);
    }
    if (s->launch->quiesce) {
        s->launch->quiesce(s);
    }
    at->quiesced = true;
    at->given_up = s;
    atomic_store_explicit(&at->live, 0, memory_order_release);
}

/* The GPU driver ends in an exit handler that it sets when it starts. Handlers are called in reverse order, so
 * this one, set later, is called first. */
static atomic_bool gpus_end;
static void quiesce_gpus(void)
{
    atomic_store(&gpus_end, true);
    for (struct dm_session *at = atomic_load(&all_sessions); at; at = at->next) {
        dmi_session *live = (dmi_session *)atomic_load(&at->live), *s = live ? live : at->given_up;
        if (s && s->profile.gpu && s->launch->quiesce) {
            quiesce(at);
        }
    }
}

/* Other sessions need to stop only before the libraries that dmath uses are unloaded. So exit handlers of the
 * program may still finalize them. */
__attribute__((destructor)) static void quiesce_all(void)
{
    bool died = false;
    for (struct dm_session *at = atomic_load(&all_sessions); at; at = at->next) {
        quiesce(at);
        died = died || (at->given_up && !dmi_session_forked(at->given_up) && atomic_load(&at->given_up->died));
    }
    if (died) { /* whatever the program thinks of it, this job has not ended well */
        dmi_unfinished_remove_all();
        fflush(NULL);
        _exit(EXIT_FAILURE);
    }
}

dm_status dmi_session_may_begin(void)
{
    return atomic_load(&gpus_end) ? dmi_fail(DM_ERR_STATE, "the program is ending and has released its GPUs")
                                  : DM_OK;
}

/* Its workers, which have nothing left to do, and all that it has. */
static void end(dmi_session *s)
{
    (void)dmi_frame_begin(s, sizeof(dmi_frame), DMI_FRAME_STOP, 0);
    dmi_frame_send(s);
    s->launch->stop(s);
    dmi_trace_join(&s->engine, s->config.trace);
    dmi_session_close(s);
}

dm_status dmi_session_publish(dmi_session *s, const dmi_error_handler *on_error, dm_session **out)
{
    static atomic_flag set = ATOMIC_FLAG_INIT;
    struct dm_session *handle = calloc(1, sizeof *handle);
    if (!handle) {
        end(s);
        return dmi_fail(DM_ERR_NOMEM, "no memory for a session");
    }
    if (s->profile.gpu && s->launch->quiesce && !atomic_flag_test_and_set(&set) && atexit(quiesce_gpus) != 0) {
        dmi_log(DMI_LOG_WARN, "no memory for an atexit() handler: dm_finalize must be called before exit()");
    }
    handle->pid = s->pid;
    dmi_owner_take(handle);
    handle->on_error = *on_error;
    handle->next = atomic_load(&all_sessions);
    while (!atomic_compare_exchange_weak(&all_sessions, &handle->next, handle)) {
    }
    dm_status status = dmi_signals_begin(&s->config, handle);
    if (status != DM_OK) { /* the rest goes on without them */
        dmi_log(DMI_LOG_WARN, "%s", dmi_error_text());
        s->config.interrupt = s->config.catch_signals = false;
    }
    if (s->config.journal[0]) {
        status = dmi_journal_open(s->config.journal, s->workers, &s->journal);
        if (status != DM_OK) {
            dmi_log(DMI_LOG_WARN, "%s", dmi_error_text());
        }
    }
    s->public_handle = handle;
    atomic_store_explicit(&handle->live, (uintptr_t)s, memory_order_release);
    *out = handle;
    return DM_OK;
}

static void free_layouts(dmi_session *s)
{
    for (int i = 0; i < DMI_LAYOUT_BUCKETS; i++) {
        while (s->layout[i]) {
            dmi_interned *entry = s->layout[i];
            s->layout[i] = entry->chain;
            dmi_layout_destroy(entry->layout);
            free(entry);
        }
    }
}

void dmi_session_close(dmi_session *s)
{
    if (!s) {
        return;
    }
    if (s->engine.peer) {
        dmi_engine_stop(&s->engine);
    }
    while (s->engine.first) { /* of a session that was broken */
        dmi_instance *inst = s->engine.first;
        s->engine.first = inst->next;
        dmi_transfer_retired(s, inst);
        dmi_instance_free(&s->engine, inst);
    }
    dmi_instances_free(&s->engine);
    dmi_rests_end(s, UINT64_MAX, DM_ERR_STATE);
    dmi_trace_destroy(s->engine.trace);
    dmi_journal_close(s->journal);
    dmi_profiling_stop(s);
    dmi_keep_free(s);
    dmi_recording_free(s->recording);
    dmi_programs_free(s);
    dmi_groups_free(s);
    dmi_replicas_stop(s);
    dmi_pool_destroy(s->staging);
    free_layouts(s);
    for (uint32_t i = 1; i < s->handles; i++) {
        if ((s->handle[i].live || s->handle[i].hidden) && --s->handle[i].storage->handles == 0) {
            free(s->handle[i].storage);
        }
    }
    for (int i = 0; i < s->old_handle_tables; i++) {
        free(s->old_handles[i]);
    }
    free(s->old_handles);
    free(s->recent);
    free(s->watched);
    free(s->taken);
    free(s->failure);
    free(s->handle);
    free(s->scope);
    free(s->live_bytes);
    free(s->explain_text);
    free(s->placement);
    free(s->scrap);
    if (s->here) {
        munmap(s->here, (size_t)sysconf(_SC_PAGESIZE));
    }
    free(s);
}

/* Frees nothing unless the workers can be ended: a worker that moves again still uses it. */
static dm_status give_up(dm_session *session, dmi_session *s)
{
    bool died = atomic_load(&s->died), broken = s->stuck == DMI_STUCK_BROKEN && !died;
    const dm_status why =
        broken ? (dm_status)atomic_load(&dmi_hub_port(&s->hub, s->broken)->broken) : DM_ERR_TIMEOUT;
    take_away(session);
    if ((broken || died) && s->launch->abandon && s->launch->abandon(s)) {
        dm_status first =
            broken          ? dmi_fail(why, "a worker could not take part in a command; the session has ended")
            : s->death_told ? DM_OK
                            : dmi_fail(DM_ERR_DIED, "%s. The session has ended", s->death);
        dmi_session_close(s);
        return first;
    }
    session->given_up = s;
    dm_status status = died ? dmi_broken(s)
                            : dmi_fail(why, "a worker %s; the session ends without its workers: %s",
                                       broken ? "has failed" : "is stuck", s->launch->left);
    dmi_log(DMI_LOG_ERROR, "dm_finalize: %s", dmi_error_text());
    return status;
}

/* Under dm_session_limit, before anything of the session goes. */
static dm_status wait_to_end(dmi_session *s)
{
    dm_status status = s->checkpoint ? dmi_checkpoint_wait(s, s->checkpoint->number, 0) : DM_OK;
    return status == DM_ERR_PENDING ? status : dmi_wait_done(s, s->remote ? dmi_wait_mark(s) : s->command, 0);
}

dm_status dm_finalize(dm_session *session, int64_t *alive)
{
    dmi_session *s = NULL;
    dm_status status = dmi_enter_stuck(session, &s);
    if (status != DM_OK) {
        return status;
    }
    dmi_feeds_stop(s);
    if (s->limited && !s->stuck && wait_to_end(s) == DM_ERR_PENDING) {
        return DM_ERR_PENDING;
    }
    dmi_checkpoint_end(s);
    dmi_signals_end(&s->config, session);
    if (!s->stuck || (s->stuck == DMI_STUCK_WAITING && dmi_all_done(s))) {
        s->stuck = DMI_NOT_STUCK;
        status = dmi_wait(s, s->command);
    }
    if (alive) {
        *alive = s->alive;
    }
    if (s->stuck || atomic_load(&s->died)) {
        return give_up(session, s);
    }
    if (s->alive > 0 && !alive) { /* else the caller knows */
        dmi_log(DMI_LOG_WARN, "dm_finalize: %" PRId64 " arrays and views were still alive; they are freed",
                s->alive);
    }
    take_away(session);
    dmi_profile_write(s);
    end(s);
    return status;
}

dm_status dm_sync(dm_session *session)
{
    dmi_session *s = NULL;
    dm_status status = dmi_enter_stuck(session, &s);
    return status == DM_OK ? dmi_wait(s, s->command) : status;
}

int dm_workers(const dm_session *session)
{
    dmi_session *s = NULL;
    return dmi_enter_stuck(session, &s) == DM_OK ? dmi_group_size(s) : 0;
}

dm_status dm_noop(dm_session *session)
{
    dmi_session *s = NULL;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK) {
        (void)dmi_frame_begin(s, sizeof(dmi_frame), DMI_FRAME_NOOP, 0);
        dmi_frame_send(s);
    }
    return status;
}
