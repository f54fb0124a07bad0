/* DM_CHECK: for programs that end when a call fails.  BSD-3-Clause, see LICENSE. */
#ifndef DMATH_CHECK_H
#define DMATH_CHECK_H

#include <dmath/dmath.h>

#include <stdio.h>
#include <stdlib.h>

/* DM_CHECK(call): makes the call. Where it fails, prints file, line, the call's text, the status and the message to
 * stderr, and ends the program: exit(EXIT_FAILURE). To end it in another way, or to say something else, give the
 * session an error handler (dm_config.on_error), which runs before: when it ends the program, DM_CHECK does not come to
 * it. */
#define DM_CHECK(call) dm_check((call), #call, __FILE__, __LINE__)

static inline void dm_check(dm_status status, const char *call, const char *file, int line)
{
    if (status != DM_OK) {
        fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, call, dm_status_name(status), dm_error_message());
        exit(EXIT_FAILURE);
    }
}

#endif
