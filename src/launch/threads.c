/* Workers as threads of this process. */
#include "base/process.h"
#include "base/turns.h"
#include "exec/trace.h"
#include "launch/gpu_users.h"
#include "launch/launch.h"
#include "launch/pairs.h"
#include "launch/placements.h"
#include "worker/worker.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLAN_BYTES = 500 }; /* of a plan's steps between two workers */

typedef struct worker_thread {
    dmi_worker worker;
    pthread_t thread;
    dmi_placement place;
} worker_thread;

typedef struct thread_launch {
    dmi_config config;
    dmi_profile profile;
    dmi_hub hub;
    int workers, made, started;
    const dmi_device *device; /* NULL: the CPU */
    bool blas;                /* it has set the process's BLAS threads */
    bool turns;               /* its threads run one at a time (base/turns.h) */
    int *host_of;             /* pretended hosts of workers with GPUs, or NULL */
    int *consumer;
    bool uses_gpus; /* noted (launch/gpu_users.c) */
    worker_thread *thread;
    dmi_placement_report *placement; /* [workers] */
} thread_launch;

int dmi_host_cores(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    return n > 0 ? n : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

dmi_profile dmi_profile_from(const dmi_config *config, int workers, bool one_space)
{
    return (dmi_profile){.workers = workers,
                         .one_space = one_space,
                         .gemm_workspace = config->gemm_workspace,
                         .gemm_transpose = config->gemm_transpose,
                         .forced = config->gemm_algorithm != DMI_GEMM_AUTO,
                         .gemm_algorithm = (int)config->gemm_algorithm,
                         .reduce_algorithm = (int)config->reduce_algorithm,
                         .reduce_chunk = config->reduce_chunk,
                         .sum_bucket = config->sum_bucket,
                         .sort_wide = config->sort_wide,
                         .gemm_compute = DMI_COMPUTE_F32 + (int)config->gemm_compute,
                         .chunk = 2 << 20,
                         .file_chunk = config->file_chunk};
}

int64_t dmi_profile_pace(const dmi_config *config, int workers)
{
    return workers > 2 ? config->pace_bytes : 0;
}

int dmi_file_threads(const dmi_config *config, int workers, int cores)
{
    return config->file_threads > 0 ? config->file_threads
                                    : DMI_MAX(1, DMI_MIN(cores / DMI_MAX(workers, 1) - 1, 16));
}

void dmi_hub_tune(dmi_hub *hub, int threads, int cores, double spin_us)
{
    hub->oversubscribed = threads > cores;
    hub->fits = threads <= cores + 1;
    hub->tight = spin_us < 0 && threads <= cores + 1 && 2 * threads - 1 > cores;
    hub->spin_ns = spin_us >= 0 ? (int64_t)(spin_us * 1e3) : hub->oversubscribed ? 0 : 2000;
}

static void *worker_main(void *arg)
{
    worker_thread *t = arg;
    const dmi_device *device = t->worker.engine.config.device;
    char name[32];
    snprintf(name, sizeof name, "worker %d", t->worker.me);
    dmi_thread_name(name);
    dmi_turns_begin(t->worker.me, DMI_TURNS_COMMUNICATION);
    (void)dmi_placement_enter(&t->place, NULL);
    if (device && (device->own_thread() != DM_OK || device->use(t->worker.engine.config.device_number) != DM_OK)) {
        dmi_log(DMI_LOG_ERROR, "worker %d: %s", t->worker.me, dmi_error_text()); /* its commands will fail */
    }
    dmi_worker_serve(&t->worker);
    if (!atomic_load(&t->worker.hub.ring->closed)) { /* else others may still push to it */
        dmi_worker_finish(&t->worker);
    }
    dmi_turns_end();
    return NULL;
}

/* The process's BLAS threads, as the first of its sessions found them: the last one restores them. */
static struct {
    pthread_mutex_t lock;
    int sessions, before; /* 0: not changed */
} blas = {.lock = PTHREAD_MUTEX_INITIALIZER};
DMI_FORK_KEEP(&blas.lock, NULL)

static void blas_take(thread_launch *l)
{
    pthread_mutex_lock(&blas.lock);
    int before = dmi_cpu_blas_threads((int)l->config.blas_threads);
    blas.before = blas.sessions++ == 0 ? before : blas.before;
    pthread_mutex_unlock(&blas.lock);
    l->blas = true;
}

static void blas_return(void)
{
    pthread_mutex_lock(&blas.lock);
    if (--blas.sessions == 0 && blas.before) {
        (void)dmi_cpu_blas_threads(blas.before);
    }
    pthread_mutex_unlock(&blas.lock);
}

static void free_launch(thread_launch *l)
{
    for (int w = 0; w < l->started; w++) {
        dmi_turns_await(w, DMI_TURNS_COMMUNICATION);
        pthread_join(l->thread[w].thread, NULL);
    }
    bool closed = l->hub.ring && atomic_load(&l->hub.ring->closed);
    for (int w = closed ? 0 : l->started; w < l->made; w++) {
        dmi_worker_finish(&l->thread[w].worker);
    }
    if (l->blas) {
        blas_return();
    }
    if (l->uses_gpus) {
        dmi_gpu_users_remove(dmi_gpu_wants_alone(&l->config, l->workers));
    }
    dmi_hub_close(&l->hub);
    free(l->thread);
    free(l->placement);
    free(l->consumer);
    free(l->host_of);
    if (l->turns) {
        dmi_turns_stop();
    }
    free(l);
}

static void stop_threads(dmi_session *s)
{
    free_launch(s->launch_state);
    memset(&s->hub, 0, sizeof s->hub);
    s->engine.port = NULL;
}

/* Work on a GPU may wait there for ever, so such workers cannot be ended. */
static bool abandon_threads(dmi_session *s)
{
    thread_launch *l = s->launch_state;
    if (l->device) {
        return false;
    }
    atomic_store(&l->hub.ring->closed, 1);
    for (int w = 0; w < l->workers; w++) {
        dmi_bell_ring(&dmi_hub_port(&l->hub, w)->bell);
    }
    stop_threads(s);
    return true;
}

static void quiesce_threads(dmi_session *s)
{
    thread_launch *l = s->launch_state;
    int64_t until = dmi_now_ns() + INT64_C(5000000000);
    for (int w = 0; w < l->workers && dmi_hub_port(&l->hub, w)->pid == (int)getpid();
         w++) { /* not in a fork's child */
        dmi_compute_quiesce(&l->thread[w].worker.engine, until);
    }
    for (int w = 0; w < l->workers && l->device; w++) { /* its hosts stand still */
        l->device->give_up(&l->thread[w].worker.engine);
    }
    if (l->device) {
        l->device->quiesce(until);
    }
}

static const dmi_launch launch_ops = {"threads",
                                      NULL,
                                      NULL,
                                      stop_threads,
                                      quiesce_threads,
                                      abandon_threads,
                                      "its threads and their memory stay until the process ends"};

/* Meanwhile this thread moves to the worker's CPUs, so that pinned memory is first touched and threads of the
 * device's library start where the worker will run. */
static dm_status start_worker(thread_launch *l, int w, int number, dmi_placements *placements)
{
    dmi_slab_ops host = dmi_slab_ops_anonymous();
    dmi_slab_ops slabs = l->device ? l->device->slabs(NULL) : l->config.pool_own ? dmi_slab_ops_malloc() : host;
    dmi_port *port = dmi_hub_port(&l->hub, w);
    cpu_set_t before;
    l->consumer[w] = w;
    port->pid = (int)getpid();
    dmi_host_name(port->host, sizeof port->host);
    dmi_placements_choose(placements, w, number, &l->thread[w].place, &l->placement[w]);
    bool moved = dmi_placement_enter(&l->thread[w].place, &before);
    dm_status status = dmi_worker_start(&l->thread[w].worker, w, &l->config, &l->profile, &l->hub, &slabs,
                                        l->device, number, &host);
    if (moved) {
        dmi_placement_leave(&before);
    }
    return status;
}

/* Payloads between GPUs without direct access pass through host memory. */
static dm_status part_workers(thread_launch *l)
{
    l->host_of = l->host_of ? l->host_of : calloc((size_t)l->workers, sizeof *l->host_of);
    for (int w = 0; l->host_of && w < l->workers; w++) {
        l->host_of[w] = w;
    }
    return l->host_of ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for %d workers", l->workers);
}

/* Ways from GPU to GPU, and what plans must know of them. */
static dm_status connect_workers(thread_launch *l)
{
    dmi_engine **engine = calloc((size_t)l->workers, sizeof *engine);
    if (!engine) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for %d workers", l->workers);
    }
    bool fused = true, compiled = true;
    for (int w = 0; w < l->workers; w++) {
        engine[w] = &l->thread[w].worker.engine;
        fused = fused && engine[w]->fused;
        compiled = compiled && engine[w]->compiles;
    }
    dm_status status = dmi_pairs_connect(l->device, engine, l->workers, l->host_of);
    if (status != DM_OK && l->config.transport != DMI_TRANSPORT_DIRECT) {
        dmi_log(DMI_LOG_WARN, "payloads between GPUs go through host memory: %s", dmi_error_text());
        status = part_workers(l);
    }
    status = status == DM_OK ? dmi_pairs_rates(l->device, engine, l->workers, &l->profile.rates) : status;
    l->profile.host_of = l->host_of;
    l->profile.gemm_fused = fused && !l->host_of;
    l->profile.map_compiled = compiled;
    l->profile.pace_bytes = l->host_of ? 0 : dmi_profile_pace(&l->config, l->workers);
    l->profile.on_device =
        dmi_gpu_alone(&l->config, l->workers, l->workers > l->device->count(), l->host_of == NULL, true);
    for (int w = 0; w < l->workers; w++) {
        dmi_profile *profile = &l->thread[w].worker.profile;
        profile->host_of = l->profile.host_of;
        profile->gemm_fused = l->profile.gemm_fused;
        profile->map_compiled = l->profile.map_compiled;
        profile->pace_bytes = l->profile.pace_bytes;
        profile->rates = l->profile.rates;
        profile->on_device = l->profile.on_device;
    }
    free(engine);
    return status;
}

/* The option fault=turns:SEED. */
static dm_status take_turns(thread_launch *l)
{
    bool wanted = strncmp(l->config.fault, "turns:", 6) == 0;
    l->turns = wanted && !l->device && dmi_turns_start(strtoull(l->config.fault + 6, NULL, 10), l->workers);
    if (l->turns || !wanted) {
        return DM_OK;
    }
    return dmi_fail(DM_ERR_CONFIG, "fault=turns: it is for one session at a time, with up to %d workers on CPUs",
                    DMI_TURNS_WORKERS);
}

/* Starts every worker's executor, then connects them, then starts their threads. */
static dm_status start_workers(thread_launch *l)
{
    int gpus = l->device ? l->device->count() : 1;
    dm_status status = DM_OK;
    dmi_placements placements;
    dmi_placements_begin(&l->config, l->device, &placements);
    for (int w = 0; w < l->workers && status == DM_OK; w++) {
        status = start_worker(l, w, w % gpus, &placements);
        l->made += status == DM_OK;
    }
    dmi_placements_end(&placements);
    status = status == DM_OK && l->device ? connect_workers(l) : status;
    for (int w = 0; w < l->workers && status == DM_OK; w++) {
        dmi_placements_peers(&l->thread[w].worker.engine, &l->placement[w]);
        dmi_turns_add(w, DMI_TURNS_COMMUNICATION);
        if (pthread_create(&l->thread[w].thread, NULL, worker_main, &l->thread[w]) != 0) {
            dmi_turns_remove(w, DMI_TURNS_COMMUNICATION);
            status = dmi_fail(DM_ERR_NOMEM, "cannot start the thread of worker %d of %d", w, l->workers);
        } else {
            l->started++;
        }
    }
    return status;
}

dm_status dmi_device_check(const dmi_config *config, int gpus)
{
    bool emulated = config->device == DMI_DEVICE_EMULATED;
    const dmi_device *gpu = dmi_device_gpu((int)config->device);
    dm_status status = gpu ? gpu->settings() : DM_OK;
    if (status != DM_OK) {
        return status;
    }
    if (gpus > 0 || config->device == DMI_DEVICE_AUTO || config->device == DMI_DEVICE_CPU) {
        return DM_OK;
    }
    bool built = gpu != NULL;
    return dmi_fail(DM_ERR_CONFIG, "device=%s, but %s%s", emulated ? "emulated" : "cuda",
                    !built && emulated ? "this build of dmath has CUDA, and no emulated GPUs: those are in builds without "
                                         "(cmake -DDMATH_CUDA=OFF)"
                    : !built           ? "this build of dmath has no CUDA"
                    : emulated         ? "DMATH_EMULATED_GPUS, which says how many there are, is not set"
                                       : "this host has no GPU that CUDA can use: ",
                    built ? gpu->why_none() : "");
}

dm_status dmi_device_free(const dmi_device *gpu, int number, int64_t *bytes)
{
    enum { STEPS = 16 };
    int64_t free = 0, total = 0;
    dm_status status = gpu->use(number);
    status = status == DM_OK ? gpu->memory(&free, &total) : status;
    int64_t step = DMI_MAX(total / STEPS, 1);
    *bytes = DMI_MAX(free / step, 1) * step;
    return status;
}

dm_status dmi_transport_check(const dmi_config *config, bool gpus, bool processes)
{
    bool messages = config->transport == DMI_TRANSPORT_CUDA_MPI;
    if (config->transport == DMI_TRANSPORT_MPI && !processes) {
        dmi_log(DMI_LOG_WARN, "transport=mpi is for workers that are processes (mpirun): these are threads of one, and "
                              "have no messages between them");
    }
    if (!messages && config->transport != DMI_TRANSPORT_STAGED) {
        return DM_OK;
    }
    if (!gpus) {
        return dmi_fail(DM_ERR_TRANSPORT, "transport=%s is for workers with GPUs, these have none",
                        messages ? "cuda_mpi" : "staged");
    }
    return messages && !processes
               ? dmi_fail(DM_ERR_TRANSPORT,
                          "transport=cuda_mpi is for workers that are processes (mpirun), these are "
                          "threads of one")
               : DM_OK;
}

/* Chooses the GPUs, if any: one per worker unless the option share_gpu is set. */
static dm_status choose_device(thread_launch *l)
{
    const dmi_device *gpu = dmi_device_gpu((int)l->config.device);
    int gpus = gpu ? gpu->count() : 0;
    dm_status status = dmi_device_check(&l->config, gpus);
    if (status != DM_OK) {
        return status;
    }
    if (gpus > 0 && l->workers > gpus && !l->config.share_gpu) {
        return dmi_fail(DM_ERR_CONFIG, "%d workers, but %d GPUs: set workers, or share_gpu=1, or device=cpu",
                        l->workers, gpus);
    }
    l->device = gpus > 0 ? gpu : NULL;
    status = gpus > 0 ? dmi_gpu_users_add(dmi_gpu_wants_alone(&l->config, l->workers)) : DM_OK;
    if (status != DM_OK) {
        return status;
    }
    l->uses_gpus = gpus > 0;
    l->profile.gpu = gpus > 0;
    l->profile.facts =
        (dmi_device_facts){.gpu = gpus > 0, .emulated = gpus > 0 && dmi_device_gpu(DMI_DEVICE_EMULATED)};
    for (int g = 0; g < DMI_MIN(gpus, l->workers); g++) {
        int64_t memory = 0;
        if ((status = dmi_device_free(gpu, g, &memory)) != DM_OK) {
            return status;
        }
        l->profile.device_bytes = g == 0 ? memory : DMI_MIN(memory, l->profile.device_bytes);
    }
    l->profile.device_bytes /= gpus > 0 ? (l->workers + gpus - 1) / gpus : 1; /* of each, where they share one */
    status = dmi_transport_check(&l->config, gpus > 0, false);
    bool staged = l->config.transport == DMI_TRANSPORT_STAGED;
    if (status == DM_OK && (l->config.pretend_hosts > 1 || (gpus > 0 && staged))) {
        l->host_of = calloc((size_t)l->workers, sizeof *l->host_of);
        for (int w = 0; l->host_of && w < l->workers; w++) {
            l->host_of[w] = staged ? w : (int)(w * l->config.pretend_hosts / l->workers);
        }
        l->profile.host_of = l->host_of;
        return l->host_of ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory for %d workers", l->workers);
    }
    return status;
}

/* What all pairs of workers need grows with the square of their number: the program shall not find out by itself. */
static void say_memory(int workers, const dmi_hub *hub)
{
    const double gib = 1 << 30;
    double pairs = (double)hub->header->total_bytes / gib;
    double queues = (double)workers * DMI_LANES * DMI_LANE_ROOM * (double)sizeof(dmi_queued_step) / gib;
    if (pairs + queues > 1) {
        dmi_log(DMI_LOG_WARN,
                "%d workers in one process: their mailboxes for one another take up to %.1f GiB, their queues up to %.1f GiB, and "
                "each plan of a command in which all of them talk to all about %.1f GiB",
                workers, pairs, queues, (double)workers * workers * PLAN_BYTES / gib);
    }
}

/* Where workers are many, their first slabs take at most a small part of the host's memory together: most of
 * them have small arrays. */
static int64_t slab_bytes(int64_t wanted, int workers)
{
    const int64_t least = 256 << 10, part = 32;
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    return memory > 0 ? DMI_MIN(wanted, DMI_MAX(memory / part / workers, least)) : wanted;
}

static dm_status launch(const dmi_config *config, int workers, dmi_session **out)
{
    thread_launch *l = calloc(1, sizeof *l);
    if (!l) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a session");
    }
    l->config = *config;
    l->config.file_threads = dmi_file_threads(config, workers, dmi_host_cores());
    l->workers = workers;
    l->config.slab = slab_bytes(config->slab, workers);
    l->profile = dmi_profile_from(config, workers, true);
    l->thread = dmi_alloc_lines((size_t)workers, sizeof *l->thread);
    l->consumer = calloc((size_t)workers, sizeof *l->consumer);
    l->placement = calloc((size_t)workers, sizeof *l->placement);
    dm_status status = l->thread && l->consumer && l->placement
                           ? dmi_hub_create(workers + 1, config->ring, false, &l->hub)
                           : dmi_fail(DM_ERR_NOMEM, "no memory for %d workers", workers);
    dmi_session *s = NULL;
    if (status == DM_OK) {
        dmi_hub_tune(&l->hub, workers + 1, dmi_host_cores(), config->spin_us);
        say_memory(workers, &l->hub);
        blas_take(l);
        status = choose_device(l);
    }
    if (status == DM_OK && config->trace[0]) {
        status = dmi_trace_try(config->trace);
    }
    status = status == DM_OK ? take_turns(l) : status;
    if (status == DM_OK) {
        status = start_workers(l);
    }
    if (status == DM_OK) {
        dmi_slab_ops slabs = dmi_slab_ops_anonymous();
        status = dmi_session_open(&l->config, &l->profile, &l->hub, &slabs, l->consumer, workers, &s);
    }
    if (status != DM_OK) {
        if (l->started > 0) { /* they only know the command ring: tell them to go */
            dmi_ring_writer writer = {.hub = &l->hub, .consumer = l->consumer, .nconsumer = l->started};
            dmi_frame *frame = dmi_ring_reserve(&writer, sizeof *frame);
            *frame = (dmi_frame){.bytes = sizeof *frame, .kind = DMI_FRAME_STOP, .command = 1};
            dmi_ring_publish(&writer, sizeof *frame);
            dmi_ring_wake(&writer);
        }
        free_launch(l);
        return status;
    }
    if (config->placement) {
        s->placement = l->placement;
        l->placement = NULL;
    }
    s->launch = &launch_ops;
    s->launch_state = l;
    *out = s;
    return DM_OK;
}

/* The calling thread's current device belongs to the program, so it is restored. */
dm_status dmi_launch_threads(const dmi_config *config, int workers, dmi_session **out)
{
    const dmi_device *gpu = dmi_device_gpu((int)config->device);
    int before = gpu && gpu->count() > 0 ? gpu->current() : -1;
    dm_status status = launch(config, workers, out);
    if (before >= 0) {
        (void)!gpu->use(before);
    }
    return status;
}
