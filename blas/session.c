/* The session: starts at the first call that is large enough, and ends with the program.
 *
 * A call has the session from dmb_enter to dmb_leave, and its workers compute only in that time. Whoever else
 * calls BLAS then finds the session busy and goes to OpenBLAS: other threads of the program, and the workers
 * themselves. */
#include "blas.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NOT_STARTED, OPEN, CLOSED };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static dm_session *session;
static _Atomic int state;
static pid_t owner;

void dmb_say_once(const char *format, ...)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    va_list args;
    if (atomic_flag_test_and_set(&said)) {
        return;
    }
    va_start(args, format);
    fputs("libdmath_blas: ", stderr);
    vfprintf(stderr, format, args);
    fputs("; calls go to OpenBLAS\n", stderr);
    va_end(args);
}

_Atomic double dmb_known_threshold = -1;

double dmb_threshold(void)
{
    double value = dmb_known_threshold;
    if (value < 0) {
        const char *text = getenv("DMATH_BLAS_THRESHOLD");
        char *end = NULL;
        value = text ? strtod(text, &end) : 0;
        if (!text || end == text || *end || !(value >= 0)) {
            if (text) {
                fprintf(stderr,
                        "libdmath_blas: DMATH_BLAS_THRESHOLD=%s is no number of operations; it is 1e9\n", text);
            }
            value = 1e9;
        }
        dmb_known_threshold = value;
    }
    return value;
}

static void finish(void)
{
    if (state != OPEN || owner != getpid() || pthread_mutex_trylock(&lock) != 0) {
        return;
    }
    state = CLOSED;
    if (dm_session_take(session) != DM_OK || dm_finalize(session, NULL) != DM_OK) {
        fprintf(stderr, "libdmath_blas: %s\n", dm_error_message());
    }
    pthread_mutex_unlock(&lock);
}

/* Under a launcher a session would be one of all ranks. */
static bool launched(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
                                        "MV2_COMM_WORLD_SIZE"};
    for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
        const char *value = getenv(sizes[i]);
        if (value && atoi(value) > 1) {
            return true;
        }
    }
    return getenv("PMIX_RANK") || getenv("PMI_RANK");
}

static void start(void)
{
    if (launched()) {
        dmb_say_once("a launcher started this process");
        state = CLOSED;
    } else if (dm_init(NULL, &session) != DM_OK) {
        dmb_say_once("no session: %s", dm_error_message());
        state = CLOSED;
    } else {
        owner = getpid();
        state = OPEN;
        atexit(finish);
    }
}

dm_session *dmb_enter(void)
{
    if (state == CLOSED || pthread_mutex_trylock(&lock) != 0) {
        return NULL;
    }
    if (state == NOT_STARTED) {
        start();
    }
    if (state == OPEN && owner != getpid()) {
        dmb_say_once("this process is a child of the one whose session it is");
        state = CLOSED;
    }
    if (state == OPEN && dm_session_take(session) != DM_OK) {
        dmb_say_once("%s", dm_error_message());
        state = CLOSED;
    }
    if (state != OPEN) {
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    return session;
}

void dmb_leave(void)
{
    pthread_mutex_unlock(&lock);
}
