#include "base/threads.h"

#include <stdbool.h>

/* What the C library gives without a limit, on some machines. */
static const size_t least_stack = (size_t)2 << 20;

int dmi_thread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
    pthread_attr_t own;
    size_t stack = 0;
    if (attributes) {
        return (pthread_create)(thread, attributes, run, context);
    }
    int error = pthread_attr_init(&own);
    if (error != 0) {
        return error;
    }
    if (pthread_attr_getstacksize(&own, &stack) == 0 && stack < least_stack) {
        error = pthread_attr_setstacksize(&own, least_stack);
    }
    error = error ? error : (pthread_create)(thread, &own, run, context);
    (void)pthread_attr_destroy(&own);
    return error;
}

int64_t dmi_stack_left(void)
{
    pthread_attr_t here;
    void *lowest = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &here) != 0) {
        return -1;
    }
    bool known = pthread_attr_getstack(&here, &lowest, &bytes) == 0 && lowest;
    (void)pthread_attr_destroy(&here);
    uintptr_t left = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)lowest;
    return known && left < bytes ? (int64_t)left : -1; /* a coroutine has a stack elsewhere */
}
