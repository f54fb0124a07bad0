/* Who waits for whom at one memory: a read for the last writes, a write for the last writes and reads; but nobody for those
 * who use other areas of it. Between commands (engine, simulator) and between the planners of one command
 * (plan/phases.c). */
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

/* Which elements of a memory: a box of the indices of its layout, or every so manieth index of one. Those of
 * different layouts are compared by the bytes between their first and last element, where these are known. */
typedef struct dmi_area {
    int ndim; /* -1: all of them, or not known which */
    const void *layout;
    int64_t lo[DM_MAX_DIMS], hi[DM_MAX_DIMS];
    int64_t step[DM_MAX_DIMS]; /* indices lo, lo + step, ... below hi; 0: as 1 */
    int64_t from, to; /* these bytes, the same in each shard; to 0: not known */
} dmi_area;
bool dmi_area_disjoint(const dmi_area *a, const dmi_area *b);

/* The accesses to one memory so far: of a few areas apart, of all others together. Zeros: none. */
typedef struct dmi_hazards {
    dmi_hazard rest;
    int most; /* areas; 0: 32 */
    int areas;
    struct dmi_area_hazard *area; /* [areas] the oldest first */
} dmi_hazards;
/* The accesses that one to `area` may meet. */
void dmi_hazards_before(const dmi_hazards *h, const dmi_area *area, dmi_hazard *out);
void dmi_hazards_add(dmi_hazards *h, const dmi_area *area, const dmi_hazard *use);
dmi_stamp dmi_hazards_last(const dmi_hazards *h); /* of all */
void dmi_hazards_free(dmi_hazards *h);

#endif
