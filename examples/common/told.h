/* Did workers tell the program anything? */
#ifndef TOLD_H
#define TOLD_H

#include <dmath/check.h>

/* What workers have sent less what workers have received: what went to the program, less what it sent. */
static inline int64_t bytes_to_program(dm_session *s, int64_t *sent)
{
    int64_t balance = 0;
    *sent = 0;
    for (int w = 0; w < dm_workers(s); w++) {
        dm_counters c = {.size = sizeof c};
        DM_CHECK(dm_counters_get(s, w, &c));
        balance += c.bytes_sent - c.bytes_received;
        *sent += c.bytes_sent;
    }
    return balance;
}

#endif
