/* Sub-allocation of a few slabs. Offsets only: the pool never touches the memory (it may be a GPU's), except
 * for the red zones of a debug pool, which go through the `fill` and `check` calls.
 * Deterministic: the same sequence of calls gives the same allocations. Stream-ordered: a freed allocation
 * carries a stamp, the lane positions that must be reached before it may be written again; an allocation handed
 * out carries the maximum of the stamps of the memory it is made of. Not thread-safe: one owner calls it. */
#ifndef DMI_POOL_H
#define DMI_POOL_H

#include "base/base.h"

#define DMI_CHANNELS 2    /* of a pair: payloads of one do not queue behind those of the other */
#define DMI_LANES 6       /* of a plan: three in each channel */
#define DMI_STAMP_LANES                                                                                        \
    10 /* of an executor: a worker with a GPU runs plans on several compute lanes; one for background */
typedef struct dmi_stamp {
    uint64_t seq[DMI_STAMP_LANES];
} dmi_stamp;
static inline void dmi_stamp_merge(dmi_stamp *into, const dmi_stamp *from)
{
    for (int i = 0; i < DMI_STAMP_LANES; i++) {
        into->seq[i] = DMI_MAX(into->seq[i], from->seq[i]);
    }
}

enum dmi_owner { DMI_OWNER_ARRAY, DMI_OWNER_WORKSPACE, DMI_OWNER_REPLICA, DMI_OWNER_STAGING, DMI_OWNERS };

typedef struct dmi_slab_ops {
    void *context;
    /* A new slab; its base address, or NULL. index counts slabs ever made (0, 1, 2 ...; reused after
     * give_back). */
    void *(*get)(void *context, int index, int64_t bytes);
    void (*give_back)(void *context, int index, void *base, int64_t bytes);
    /* May be NULL. True: other processes have the slab mapped, so it must not be returned yet. */
    bool (*held)(void *context, int index);
    /* debug pools only (may be NULL): write the pattern, and verify it (false: overwritten) */
    void (*fill)(void *context, void *at, int64_t bytes);
    bool (*check)(void *context, const void *at, int64_t bytes);
    /* debug pools only: fill with bytes that are NaN in every floating type */
    void (*debug_fill)(void *context, void *at, int64_t bytes);
} dmi_slab_ops;

typedef struct dmi_pool_config {
    dmi_slab_ops ops;
    int64_t slab_bytes;  /* least size of a slab (a larger request gets a slab of its own size, rounded up) */
    int64_t limit_bytes; /* most that live allocations may hold, after rounding; 0: no limit */
    int64_t align;       /* power of two, at least 64 */
    int64_t redzone; /* bytes on each side of an allocation, 0 in release builds; a multiple of align. They are
                        written when an allocation is handed out and verified when it is freed, at once: the
                        caller of a debug pool lets `ready` and the stamp of a free be reached before it calls.
                        Allocations are filled when they are handed out and when they are freed,
                        large ones at both ends */
    bool own; /* a debug pool for tools that know every allocation: each allocation is a slab of its own, of
                 the size asked for, and goes back to the system when it is freed. No red zones */
} dmi_pool_config;

typedef struct dmi_allocation {
    void *base; /* address of the allocation (after the red zone) */
    int slab;
    int64_t offset;  /* of base in the slab */
    int64_t bytes;   /* as asked for; an allocation of 0 bytes is valid, base non-NULL or NULL, takes nothing */
    dmi_stamp ready; /* write only after these positions */
    uint32_t node;   /* the pool's own */
    int owner;
} dmi_allocation;

typedef struct dmi_pool_stats {
    int64_t live_bytes[DMI_OWNERS]; /* after rounding */
    int64_t live_allocations[DMI_OWNERS];
    int64_t live_total, peak_total; /* after rounding */
    int64_t slab_bytes;             /* held from the system */
    int64_t slab_calls;             /* how often the system was asked, ever */
    int slabs;
} dmi_pool_stats;

typedef struct dmi_pool dmi_pool;
DM_CHECKED dm_status dmi_pool_create(const dmi_pool_config *config, dmi_pool **out);
/* Gives back all slabs, whatever is still allocated. */
void dmi_pool_destroy(dmi_pool *pool);
/* Best fit by size class, O(1)-like; DM_ERR_LIMIT / DM_ERR_NOMEM with the numbers asked, live, limit. */
DM_CHECKED dm_status dmi_pool_alloc(dmi_pool *pool, int64_t bytes, int owner, dmi_allocation *out);
/* stamp: when the last use of the allocation ends (what it had to wait for itself stays in force beside it);
 * NULL: it has ended. DM_ERR_INTERNAL (and a log line) if a red zone was overwritten; the allocation is freed
 * all the same. DM_ERR_INTERNAL too if the allocation is not live; then nothing is freed. */
dm_status dmi_pool_free(dmi_pool *pool, const dmi_allocation *allocation, const dmi_stamp *stamp);
/* Gives wholly free slabs, whose stamps are all reached (<= done), back to the system; returns bytes given
 * back. */
int64_t dmi_pool_trim(dmi_pool *pool, const dmi_stamp *done);
void dmi_pool_stats_get(const dmi_pool *pool, dmi_pool_stats *out);
/* What a request of `bytes` takes from the limit after rounding. */
int64_t dmi_pool_rounded(const dmi_pool_config *config, int64_t bytes);

/* --- slab_host.c: anonymous memory of the host, in huge pages where a slab has room for one */
dmi_slab_ops dmi_slab_ops_anonymous(void);
/* Memory of malloc, for pools whose allocations are slabs of their own. */
dmi_slab_ops dmi_slab_ops_malloc(void);
/* The pattern of red zones, for any memory the host can reach; context unused. */
void dmi_redzone_fill(void *context, void *at, int64_t bytes);
bool dmi_redzone_check(void *context, const void *at, int64_t bytes);
enum { DMI_DEBUG_FILL = 0xff }; /* every byte of it: NaN in all floating types */
void dmi_debug_fill(void *context, void *at, int64_t bytes);

#endif
