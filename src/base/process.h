/* What the kernel tells about processes and threads of this host. */
#ifndef DMI_PROCESS_H
#define DMI_PROCESS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* When a process started, in ticks since the boot of the host; 0: there is none with that number, or it has
 * ended and only its parent has not noticed. A number is given to another process later, number and start are
 * not. */
uint64_t dmi_process_start(int pid);
/* Is it still the process that started then? start 0: any. */
bool dmi_process_lives(int pid, uint64_t start);
/* The process that started it, or that has adopted it since; 0: unknown. */
int dmi_process_parent(int pid);
/* Was it started with this entry, "name=value", in its environment? false too where it may not be asked. */
bool dmi_process_has(int pid, const char *entry);
/* A number of this boot of this host, and of the processes that can see one another: the same for two processes
 * means that each can look for the other by its number. */
uint64_t dmi_process_place(void);

/* What a thread has done since its start. */
typedef struct dmi_thread_times {
    char state;        /* as in /proc: R, S, D, T (stopped) ... */
    int64_t cpu_ns;    /* it ran */
    int64_t waited_ns; /* it could have run, and had no processor; 0 where the kernel does not say */
} dmi_thread_times;
bool dmi_thread_times_get(int pid, int tid, dmi_thread_times *out);

/* Bytes; -1: not known. most: of addresses, ulimit -v; -1: any. */
typedef struct dmi_process_memory {
    int64_t total, free;               /* of the host; free: what could be had without swapping */
    int64_t resident, addresses, most; /* of this process */
} dmi_process_memory;
void dmi_process_memory_now(dmi_process_memory *out); /* allocates nothing, and keeps errno */

/* A lock of the process. fork() waits for who holds it, so a child finds it free, and what it protects whole. A
 * thread takes one such lock at a time. In the child `child` is called, with the locks held; NULL: nothing. */
typedef struct dmi_fork_lock {
    pthread_mutex_t *lock;
    void (*child)(void);
    struct dmi_fork_lock *next;
} dmi_fork_lock;
void dmi_fork_keep(dmi_fork_lock *lock);
#define DMI_FORK_KEEP(at, in_child)                                                                            \
    __attribute__((constructor)) static void keep_over_fork(void)                                              \
    {                                                                                                          \
        static dmi_fork_lock kept = {.lock = (at), .child = (in_child)};                                       \
        dmi_fork_keep(&kept);                                                                                  \
    }

int dmi_thread_number(void); /* of the calling thread, as the kernel numbers it */

/* A write beyond `ulimit -f` sends the thread a signal that ends the process. Between these two calls, which
 * keep errno, the thread gets EFBIG instead. */
typedef struct dmi_file_limit {
    sigset_t before;
} dmi_file_limit;
void dmi_file_limit_enter(dmi_file_limit *held);
void dmi_file_limit_leave(const dmi_file_limit *held);

#endif
