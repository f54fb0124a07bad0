/* Threads of the library's own. */
#ifndef DMI_THREADS_H
#define DMI_THREADS_H

#include <pthread.h>
#include <stdint.h>

/* As pthread_create, which base/fault_calls.h makes of it. A thread without attributes has a stack of 2 MiB
 * where `ulimit -s` would give it less: kernels need more than such a limit may leave. */
int dmi_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
/* Bytes that are left of the calling thread's stack; -1: not known. */
int64_t dmi_stack_left(void);

#endif
