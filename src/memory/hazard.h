/* Who waits for whom at one memory: a read for the last writes, a write for the last writes and reads.
 * Between commands (engine, simulator) and between the planners of one command (plan/phases.c). */
#ifndef DMI_HAZARD_H
#define DMI_HAZARD_H

#include "memory/pool.h"

enum { DMI_READ = 1, DMI_WRITE = 2, DMI_READWRITE = 3 };

typedef struct dmi_hazard {
    dmi_stamp write, read; /* the last ones */
} dmi_hazard;

/* Adds what an access must wait for. */
static inline void dmi_hazard_wait(const dmi_hazard *last, int mode, dmi_stamp *wait)
{
    dmi_stamp_merge(wait, &last->write);
    if (mode & DMI_WRITE) {
        dmi_stamp_merge(wait, &last->read);
    }
}

/* Step number `seq` of a lane is such an access. */
static inline void dmi_hazard_use(dmi_hazard *last, int mode, int lane, uint64_t seq)
{
    dmi_stamp *use = mode & DMI_WRITE ? &last->write : &last->read;
    use->seq[lane] = DMI_MAX(use->seq[lane], seq);
}

static inline void dmi_hazard_merge(dmi_hazard *into, const dmi_hazard *from)
{
    dmi_stamp_merge(&into->write, &from->write);
    dmi_stamp_merge(&into->read, &from->read);
}

#endif
