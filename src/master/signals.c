/* Signals that a program has asked for: SIGUSR1 and SIGTERM leave a note (option catch_signals), SIGINT cancels
 * the commands of the process's sessions, and the second one ends it (option interrupt). */
#include "base/process.h"
#include "io/unfinished.h"
#include "master/session.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CAUGHT = 2 };
static const int caught_signals[CAUGHT] = {SIGUSR1, SIGTERM};

/* Signals are the process's. Under the lock, but for what handlers use. */
static struct {
    pthread_mutex_t lock;
    int catching, interrupting; /* sessions that ask for it */
    struct sigaction before[CAUGHT], before_interrupt;
    atomic_int first;                             /* the first signal caught */
    atomic_int interrupts;
    int end; /* an eventfd; the thread behind it ends the process */
    atomic_int process; /* whose thread that is; 0: there is none. A child of fork has its own */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .end = -1};

static void note(int number)
{
    int none = 0;
    atomic_compare_exchange_strong(&all.first, &none, number);
}

static void interrupt(int number)
{
    int error = errno;
    (void)number;
    if (atomic_load(&all.process) != (int)getpid()) { /* a child of fork, just made */
        return;
    }
    if (atomic_fetch_add(&all.interrupts, 1) > 0) {
        (void)!write(all.end, &(uint64_t){1}, sizeof(uint64_t));
    }
    dmi_cancel_interrupted();
    errno = error;
}

/* Ends the process as SIGINT does, without files that are half-written. */
static void *end_process(void *unused)
{
    uint64_t count;
    (void)unused;
    while (read(all.end, &count, sizeof count) != sizeof count) {
        /* interrupted */
    }
    dmi_unfinished_remove_all();
    signal(SIGINT, SIG_DFL);
    kill(getpid(), SIGINT);
    return NULL;
}

static void catch (int number, void (*handler)(int), struct sigaction *before)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, before);
}

static dm_status start_thread(void)
{
    pthread_t thread;
    sigset_t every, before;
    if (atomic_load(&all.process) == (int)getpid()) {
        return DM_OK;
    }
    all.end = dmi_above_standard(eventfd(0, EFD_CLOEXEC));
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    bool runs = all.end >= 0 && pthread_create(&thread, NULL, end_process, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!runs) {
        if (all.end >= 0) {
            close(all.end);
        }
        all.end = -1;
        return dmi_fail(DM_ERR_NOMEM, "interrupt: cannot start a thread");
    }
    pthread_detach(thread);
    atomic_store(&all.process, (int)getpid());
    return DM_OK;
}

static dm_status begin_interrupt(dm_session *session)
{
    dm_status status = start_thread();
    if (status != DM_OK) {
        return status;
    }
    atomic_store(&session->interrupts, true);
    if (all.interrupting++ == 0) {
        atomic_store(&all.interrupts, 0);
        catch (SIGINT, interrupt, &all.before_interrupt);
    }
    return DM_OK;
}

static void leave_caught(void)
{
    for (int i = 0; i < CAUGHT; i++) {
        /* a SIGUSR1 that comes while the program ends means nothing, and must not end it otherwise */
        if (caught_signals[i] != SIGUSR1 || all.before[i].sa_handler != SIG_DFL) {
            sigaction(caught_signals[i], &all.before[i], NULL);
        }
    }
}

/* The sessions are the parent's, and the thread. */
static void begin_child(void)
{
    if (all.end >= 0) {
        close(all.end);
    }
    all.end = -1;
    if (all.interrupting > 0) {
        sigaction(SIGINT, &all.before_interrupt, NULL);
    }
    if (all.catching > 0) {
        leave_caught();
    }
    all.interrupting = all.catching = 0;
}
DMI_FORK_KEEP(&all.lock, begin_child)

dm_status dmi_signals_begin(const dmi_config *config, dm_session *session)
{
    dm_status status = DM_OK;
    pthread_mutex_lock(&all.lock);
    if (config->interrupt) {
        status = begin_interrupt(session);
    }
    if (status == DM_OK && config->catch_signals && all.catching++ == 0) {
        atomic_store(&all.first, 0);
        for (int i = 0; i < CAUGHT; i++) {
            catch (caught_signals[i], note, &all.before[i]);
        }
    }
    pthread_mutex_unlock(&all.lock);
    return status;
}

void dmi_signals_end(const dmi_config *config, dm_session *session)
{
    pthread_mutex_lock(&all.lock);
    if (config->interrupt) {
        atomic_store(&session->interrupts, false);
    }
    if (config->interrupt && --all.interrupting == 0) {
        sigaction(SIGINT, &all.before_interrupt, NULL);
    }
    if (config->catch_signals && all.catching == 1) {
        leave_caught();
    }
    all.catching -= config->catch_signals;
    pthread_mutex_unlock(&all.lock);
}

void dmi_signals_ignore(const dmi_config *config)
{
    for (int i = 0; i < CAUGHT && config->catch_signals; i++) {
        signal(caught_signals[i], SIG_IGN);
    }
    if (config->interrupt) {
        signal(SIGINT, SIG_IGN);
    }
}

dm_status dm_session_signalled(dm_session *session, int *number)
{
    dmi_session *s = NULL;
    dm_status status = dmi_hold(session, &s);
    if (status != DM_OK) {
        return status;
    }
    bool catches = s->config.catch_signals;
    dmi_release(session);
    if (!number) {
        return dmi_fail(DM_ERR_ARG, "session_signalled: number is NULL");
    }
    *number = catches ? atomic_load(&all.first) : 0;
    return DM_OK;
}

dm_status dm_checkpoint_boundary(dm_session *session, const char *path, const dm_checkpoint_options *options,
                                 int *leave)
{
    int number = 0;
    dm_status status = dm_session_signalled(session, &number);
    if (status == DM_OK && !leave) {
        return dmi_fail(DM_ERR_ARG, "checkpoint_boundary: leave is NULL");
    }
    if (status == DM_OK && number) {
        status = dm_checkpoint_save(session, path, 0, NULL, options, NULL);
    }
    if (status == DM_OK) {
        *leave = number != 0;
    }
    return status;
}
