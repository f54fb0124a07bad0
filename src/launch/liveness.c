/* Deaths. A thread of each process sleeps until another process of the machine dies that matters to it, or what
 * started it (mpirun, its daemon, srun's, a script between them and it, the script of a batch job): a file
 * descriptor of the process tells, at no cost. Rank 0 watches the workers of its machine; elsewhere the first
 * rank of the machine does. The others watch that one. So a death ends all processes of a machine, whatever the
 * launcher does. */
#include "base/process.h"
#include "io/unfinished.h"
#include "launch/job.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LOOK_MS = 500 /* where there are no such descriptors */,
    GRACE_MS = 1000,
    MOST_PARENTS = 8,
    MOST_LEVELS = 64
};

typedef struct watched_process {
    int endpoint, pid,
        fd; /* endpoint -1: what started this process, or its parent; fd -1: looked for by its number */
    uint64_t start;
    bool batch; /* endpoint -1: the script of the batch job */
    bool gone; /* and this process lives on */
    bool passed; /* it died between two sessions, though that may be noticed only in the next one */
} watched_process;

typedef struct dmi_liveness {
    dmi_job *job;
    pthread_t thread;
    pthread_mutex_t lock;           /* of these two: */
    dmi_session *session;           /* rank 0's; NULL: none yet, or it ends */
    bool ignore;                    /* who dies now does so between two sessions */
    int stop;                       /* an eventfd */
    int warden;                     /* the endpoint that the others of this machine watch */
    atomic_bool expects_looks;      /* of another process, the leader of this host */
    int count;
    watched_process *process; /* [count] */
    struct pollfd *poll;      /* [count + 1]; of a process that is not the warden, number 1 is the warden */
} dmi_liveness;

static int open_process(const dmi_job *job, int pid)
{
#ifdef SYS_pidfd_open
    if (strcmp(job->config.fault, "no_pidfd") != 0) {
        return (int)syscall(SYS_pidfd_open, pid, 0);
    }
#endif
    (void)job;
    return -1;
}

static void watch_process(dmi_liveness *l, int endpoint, int pid, uint64_t start)
{
    l->process[l->count++] =
        (watched_process){.endpoint = endpoint, .pid = pid, .start = start, .fd = open_process(l->job, pid)};
}

/* Is one of these variables set? Then it is the entry, "name=value". */
static bool find_entry(const char *const names[], int count, char *entry, size_t room)
{
    entry[0] = '\0';
    for (int i = 0; i < count && !entry[0]; i++) {
        const char *value = getenv(names[i]);
        if (value) {
            snprintf(entry, room, "%s=%s", names[i], value);
        }
    }
    return entry[0] != '\0';
}

/* Batch systems set a variable in a job's environment. What they have started themselves, the script or the
 * interactive shell, is the outermost process that has it: its end is the end of the job, whatever it has left
 * behind. A shell between it and the launcher may have ended long ago, as one that starts a program in the
 * background. */
static void choose_script(dmi_liveness *l, int launcher)
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"};
    char entry[300];
    int outermost = 0, pid = launcher;
    if (find_entry(names, DMI_COUNT(names), entry, sizeof entry)) {
        for (int i = 0; i < MOST_LEVELS && pid > 1 && dmi_process_has(pid, entry); i++) {
            outermost = pid;
            pid = dmi_process_parent(pid);
        }
    }
    if (outermost && outermost != launcher) {
        watch_process(l, -1, outermost, dmi_process_start(outermost));
        l->process[l->count - 1].batch = true;
    }
}

/* What started this process. A script may stand between the launcher and the program, and live on without the
 * launcher, so what started the script is watched, too. Scripts have the environment that the launcher made for
 * the rank, the launcher has not. */
static void choose_parents(dmi_liveness *l)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "PMI_RANK"}; /* Open MPI and Slurm; MPICH */
    char entry[300];
    bool launched = find_entry(names, DMI_COUNT(names), entry, sizeof entry);
    int parent = (int)getppid(), launcher = 0;
    for (int i = 0; i < MOST_PARENTS && parent > 1; i++) { /* else it was gone before */
        watch_process(l, -1, parent, dmi_process_start(parent));
        launcher = parent;
        parent = launched && dmi_process_has(parent, entry) ? dmi_process_parent(parent) : 0;
    }
    choose_script(l, launcher);
}

static void choose_processes(dmi_liveness *l)
{
    const dmi_job *job = l->job;
    l->warden = job->workers;
    for (int e = 0; e < job->workers && !job->near[l->warden]; e++) {
        l->warden = job->near[e] ? e : l->warden;
    }
    for (int e = 0; e <= job->workers; e++) {
        if (e != job->me && job->near[e] && (job->me == l->warden || e == l->warden)) {
            watch_process(l, e, job->pid_of[e], job->start_of[e]);
        }
    }
    choose_parents(l);
}

/* A reader of this process's errors that has stopped may not keep it here. */
void dmi_liveness_say(const char *text)
{
    char line[1200];
    struct pollfd to = {.fd = STDERR_FILENO, .events = POLLOUT};
    int bytes = snprintf(line, sizeof line, "dmath error: %s\n", text);
    bytes = DMI_MIN(bytes, (int)sizeof line - 1);
    line[bytes - 1] = '\n';
    if (poll(&to, 1, 200) == 1 && to.revents & POLLOUT) {
        (void)!write(STDERR_FILENO, line, (size_t)bytes);
    }
}

static bool has_passed(const dmi_liveness *l, int worker)
{
    bool passed = false;
    for (int i = 0; i < l->count; i++) {
        passed = passed || (l->process[i].endpoint == worker && l->process[i].passed);
    }
    return passed;
}

/* Rank 0: a worker has died. The program's calls return that, and it may end by itself. Returns whether the process
 * lives on: the session ends, and its workers leave it at once. */
static bool tell_session(dmi_liveness *l, int worker, const char *how)
{
    pthread_mutex_lock(&l->lock);
    dmi_session *s = l->session;
    bool ignore = l->ignore || has_passed(l, worker);
    bool lives = l->job->outlives && (s || ignore), known = s ? atomic_load(&s->died) != 0 : ignore;
    char text[sizeof s->death + 32];
    if (s && !known) {
        dmi_death_describe(s, worker, how, s->death, sizeof s->death);
        size_t length = strlen(s->death);
        snprintf(text, sizeof text, "%s: the %s ends", s->death, lives ? "session" : "job");
        dmi_liveness_say(text); /* before the report is written: the launcher may end this process, too */
        dmi_report(s, s->death, sizeof s->death);
        if (s->death[length]) {
            dmi_liveness_say(s->death + length + strlen(". "));
        }
        atomic_store(&s->died, worker + 1);
    } else if (!known) {
        snprintf(text, sizeof text, "worker %d (process %d) has died %s: the job ends", worker,
                 l->job->pid_of[worker],
                 l->job->outlives ? "while the session began or ended" : "before the session began");
        dmi_liveness_say(text);
    }
    if (s && lives) {
        atomic_store(&s->hub.ring->closed, DMI_RING_DEAD);
        for (int w = 0; w < l->job->workers; w++) {
            dmi_bell_ring(&dmi_hub_port(&s->hub, w)->bell);
        }
    }
    if (s) {
        dmi_bell_ring(&s->engine.port->bell);
    }
    pthread_mutex_unlock(&l->lock);
    if (s && !lives) {
        (void)poll(NULL, 0, GRACE_MS);
    }
    return lives;
}

/* Has the session of this rank ended, and no other begun? */
static bool between(dmi_liveness *l)
{
    pthread_mutex_lock(&l->lock);
    bool result = l->ignore;
    pthread_mutex_unlock(&l->lock);
    return result;
}

/* This process ends, unless the session alone does. Files that are half written go first: what follows may fail. */
static void died(dmi_liveness *l, watched_process *p)
{
    const dmi_job *job = l->job;
    char text[256] = "";
    if (job->rank != 0 && p->endpoint == job->workers && between(l)) {
        _exit(EXIT_SUCCESS); /* the program has ended, and needs no other session */
    }
    if (p->batch) {
        if (job->me == l->warden) {
            snprintf(text, sizeof text,
                     "process %d, the script of this batch job, has died: the ranks of this host leave",
                     p->pid);
        } else { /* the warden goes first, else it would take this rank for the one that has died */
            (void)poll(&l->poll[1], 1, GRACE_MS);
        }
    } else if (p->endpoint < 0) {
        snprintf(text, sizeof text, "process %d, which started rank %d, has died: the rank leaves", p->pid,
                 job->rank);
    } else if (job->rank == 0) {
        if (tell_session(l, p->endpoint, "has died")) {
            p->gone = true;
            return;
        }
    } else if (job->me == l->warden) {
        dmi_heartbeat_died(l->job, p->endpoint);
        (void)poll(NULL, 0, job->heartbeat ? GRACE_MS : 0); /* the communication thread tells rank 0 */
        snprintf(text, sizeof text, "worker %d (process %d) has died: the ranks of this host leave",
                 p->endpoint, p->pid);
    } else if (job->me == (l->warden == job->workers ? 0 : l->warden + 1)) { /* one says it for all */
        snprintf(text, sizeof text, "rank %d (process %d) has died: the ranks of this host leave",
                 job->rank_of[p->endpoint], p->pid);
    }
    dmi_unfinished_remove_all();
    if (text[0]) {
        dmi_liveness_say(text);
    }
    _exit(EXIT_FAILURE);
}

_Noreturn void dmi_liveness_leave(dmi_job *job, const char *what, double seconds)
{
    char text[256];
    snprintf(text, sizeof text, "%s for %.3g s (option heartbeat_s=%g): the ranks of host %s leave", what, seconds,
             job->config.heartbeat_s, dmi_hub_port(&job->hub, job->me)->host);
    dmi_unfinished_remove_all();
    dmi_liveness_say(text);
    _exit(EXIT_FAILURE);
}

/* Rank 0, while there is a session: what it hears of other hosts. */
static void listen_to_hosts(dmi_liveness *l)
{
    bool died = false;
    char how[96] = "has died";
    pthread_mutex_lock(&l->lock);
    int worker = l->session && l->job->heartbeat ? dmi_heartbeat_look(l->job, &died) : -1;
    pthread_mutex_unlock(&l->lock);
    if (worker >= 0) {
        if (!died) {
            snprintf(how, sizeof how, "and its host have given no sign of life for %g s (option heartbeat_s)",
                     l->job->config.heartbeat_s);
        }
        (void)tell_session(l, worker, how);
        dmi_unfinished_remove_all();
        _exit(EXIT_FAILURE);
    }
}

typedef struct looks {
    unsigned last; /* of the leader */
    int64_t seen_ns, still_ns; /* still: so long the leader has not looked, as far as this thread was there to see it */
} looks;

/* A stopped leader cannot leave, and rank 0 cannot tell the others of its host. The time of a leader that listens to
 * rank 0 counts as a leader counts rank 0's. */
static void watch_leader(dmi_liveness *l, looks *k)
{
    dmi_job *job = l->job;
    if (!atomic_load_explicit(&l->expects_looks, memory_order_acquire)) {
        return;
    }
    int leader = job->leader[job->host_of[job->me]];
    unsigned now = atomic_load_explicit(&dmi_hub_port(&job->hub, leader)->looks, memory_order_relaxed);
    int64_t now_ns = dmi_now_ns();
    k->still_ns = now == 0 || now != k->last ? 0 : k->still_ns + DMI_MIN(now_ns - k->seen_ns, DMI_SILENCE_MOST_NS);
    k->last = now;
    k->seen_ns = now_ns;
    if ((double)k->still_ns > job->config.heartbeat_s * 1e9) {
        char text[128];
        snprintf(text, sizeof text, "worker %d (process %d), the first one of this host, has given no sign of life", leader,
                 job->pid_of[leader]);
        dmi_liveness_leave(job, text, (double)k->still_ns / 1e9);
    }
}

/* How long the thread may sleep. */
static int pause_ms(dmi_liveness *l, bool look)
{
    pthread_mutex_lock(&l->lock);
    bool begun = l->job->rank != 0 || l->session;
    look = look || !l->job->near[l->job->workers]; /* a leader's looks ring no bell */
    int beat = l->job->rank == 0 && l->session ? dmi_heartbeat_pause_ms(l->job) : -1;
    pthread_mutex_unlock(&l->lock);
    return beat >= 0 ? DMI_MIN(beat, LOOK_MS) : look || !begun ? LOOK_MS : -1;
}

static void *watch(void *context)
{
    dmi_liveness *l = context;
    bool look = false;
    dmi_thread_name("liveness");
    looks leader = {0};
    l->poll[0] = (struct pollfd){.fd = l->stop, .events = POLLIN};
    for (int i = 0; i < l->count; i++) {
        watched_process *p = &l->process[i];
        look = look || p->fd < 0;
        /* it may have died, and its number may be another's, before the descriptor was opened */
        if (!dmi_process_lives(p->pid, p->start)) {
            died(l, p);
        }
        l->poll[i + 1] = (struct pollfd){.fd = p->gone ? -1 : p->fd, .events = POLLIN};
    }
    for (;;) {
        int ready = poll(l->poll, (nfds_t)l->count + 1, pause_ms(l, look));
        if (ready < 0 && errno != EINTR) {
            return NULL;
        }
        if (ready > 0 && l->poll[0].revents) {
            return NULL;
        }
        listen_to_hosts(l);
        watch_leader(l, &leader);
        for (int i = 0; i < l->count; i++) {
            watched_process *p = &l->process[i];
            if (!p->gone &&
                (p->fd >= 0 ? ready > 0 && l->poll[i + 1].revents : !dmi_process_lives(p->pid, p->start))) {
                died(l, p);
                l->poll[i + 1].fd = -1;
            }
        }
    }
}

static void free_liveness(dmi_liveness *l)
{
    for (int i = 0; i < l->count; i++) {
        if (l->process[i].fd >= 0) {
            close(l->process[i].fd);
        }
    }
    if (l->stop >= 0) {
        close(l->stop);
    }
    pthread_mutex_destroy(&l->lock);
    free(l->process);
    free(l->poll);
    free(l);
}

dm_status dmi_liveness_start(dmi_job *job)
{
    size_t most = (size_t)job->workers + MOST_PARENTS + 1;
    dmi_liveness *l = calloc(1, sizeof *l);
    if (l) {
        pthread_mutex_init(&l->lock, NULL);
        l->job = job;
        l->stop = dmi_above_standard(eventfd(0, EFD_CLOEXEC));
        l->process = calloc(most, sizeof *l->process);
        l->poll = calloc(most + 1, sizeof *l->poll);
    }
    if (!l || l->stop < 0 || !l->process || !l->poll) {
        if (l) {
            free_liveness(l);
        }
        return dmi_fail(DM_ERR_NOMEM, "no memory or descriptor to watch the other ranks");
    }
    choose_processes(l);
    sigset_t all, before; /* the program's signals are not for this thread */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&l->thread, NULL, watch, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        free_liveness(l);
        return dmi_fail(DM_ERR_NOMEM, "cannot start the thread that watches the other ranks: %s",
                        strerror(error));
    }
    job->liveness = l;
    return DM_OK;
}

void dmi_liveness_tell(dmi_job *job, dmi_session *s)
{
    if (job->liveness) {
        pthread_mutex_lock(&job->liveness->lock);
        job->liveness->session = s;
        pthread_mutex_unlock(&job->liveness->lock);
    }
}

void dmi_liveness_ignore(dmi_job *job, bool ignore)
{
    if (job->liveness) {
        pthread_mutex_lock(&job->liveness->lock);
        dmi_liveness *l = job->liveness;
        l->session = NULL;
        l->ignore = ignore;
        for (int i = 0; i < l->count && !ignore; i++) { /* the thread may not have looked yet */
            l->process[i].passed = !dmi_process_lives(l->process[i].pid, l->process[i].start);
        }
        pthread_mutex_unlock(&job->liveness->lock);
    }
}

void dmi_liveness_expect_looks(dmi_job *job)
{
    if (job->liveness) {
        atomic_store_explicit(&job->liveness->expects_looks, true, memory_order_release);
    }
}

void dmi_liveness_free(dmi_job *job)
{
    dmi_liveness *l = job->liveness;
    uint64_t one = 1;
    job->liveness = NULL;
    if (l) {
        (void)!write(l->stop, &one, sizeof one);
        pthread_join(l->thread, NULL);
        free_liveness(l);
    }
}

void dmi_liveness_stop(dmi_job *job)
{
    if (job->config.liveness) {
        dmi_liveness_free(job);
        DMI_MPI(MPI_Barrier(job->ctl)); /* nobody ends before the others have stopped watching it */
    }
}
