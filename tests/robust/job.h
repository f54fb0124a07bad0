/* What the parts of job_main share. */
#ifndef JOB_H
#define JOB_H

#include <dmath/dmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(what)                                                                                            \
    do {                                                                                                       \
        if (!(what)) {                                                                                         \
            wrong(#what, __FILE__, __LINE__);                                                                  \
        }                                                                                                      \
    } while (0)
#define OK(call) CHECK((call) == DM_OK)

enum { N = 60 };

/* Says what is not as it must be, and ends the process. */
_Noreturn void wrong(const char *what, const char *file, int line);
double seconds(void);
/* This rank's file in the folder. */
void leave_pid(const char *in);
pid_t pid_of(int rank);
dm_session *start(const char *options);
/* dm_init with these options gives that status, with a text that has both words. */
void refused(const char *options, dm_status status, const char *word, const char *other);
/* N x N of f64, every element `value`; the status of reading one, whose elements must be `value`. */
dm_array matrix(dm_session *s, dm_layout layout, double value);
dm_status value_is(dm_session *s, dm_array a, double value);
/* So many commands. */
void products(dm_session *s, int count);

/* --- job_stop.c */
void stop_and_move(void);
void stop_and_finalize(const char *options);
void stop_and_finalize_at_once(void);
void stop_and_continue(const char *options);
void stop_full_ring(void);
/* --- job_fault.c */
/* The environment of one rank plants a fault. Whatever happens, nobody hangs, values are right or poisoned. */
void fault(void);
void idle(void);
/* A damaged message comes, of commands or with a payload. */
void damaged(const char *options);
void unmapped(void);
void unread(void);
/* Too much memory, and too many pieces of it. */
void slabs(void);

#endif
