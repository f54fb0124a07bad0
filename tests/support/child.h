/* Checks in a process that a test has forked, whose end is all that the test sees of it. */
#ifndef DMT_CHILD_H
#define DMT_CHILD_H

#include <dmath/dmath.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(what)                                                                                            \
    do {                                                                                                       \
        if (!(what)) {                                                                                         \
            fprintf(stderr, "line %d: not %s: %s\n", __LINE__, #what, dm_error_message());                     \
            _exit(1);                                                                                          \
        }                                                                                                      \
    } while (0)

#endif
