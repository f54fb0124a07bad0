/* Pools: limits, slabs, red zones and figures round the bins. */
#include "memory/pool.h"
#include "memory/pool_bins.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FILL_END (INT64_C(1) << 20)

typedef struct slab {
    char *base; /* NULL: the number is free for another slab */
    int64_t bytes;
    uint32_t first; /* node of the range at offset 0 */
} slab;

struct dmi_pool {
    dmi_pool_config config;
    dmi_bins bins;
    slab *slab;
    int slab_capacity;
    dmi_pool_stats stats;
};

dm_status dmi_pool_create(const dmi_pool_config *config, dmi_pool **out)
{
    if (config->align < 64 || (config->align & (config->align - 1)) != 0 || config->redzone < 0 ||
        config->redzone % config->align != 0 || config->slab_bytes < 1 ||
        config->slab_bytes > INT64_MAX - config->align || config->limit_bytes < 0 ||
        (config->own && config->redzone > 0)) {
        return dmi_fail(DM_ERR_ARG,
                        "pool: align %" PRId64 ", red zone %" PRId64 ", slab %" PRId64 ", limit %" PRId64
                        " do not make a pool",
                        config->align, config->redzone, config->slab_bytes, config->limit_bytes);
    }
    dmi_pool *pool = calloc(1, sizeof *pool);
    if (!pool) {
        return dmi_fail(DM_ERR_NOMEM, "pool: no host memory for its tables");
    }
    pool->config = *config;
    pool->bins.unit = config->align;
    *out = pool;
    return DM_OK;
}

void dmi_pool_destroy(dmi_pool *pool)
{
    if (!pool) {
        return;
    }
    for (int i = 0; i < pool->slab_capacity; i++) {
        if (pool->slab[i].base) {
            pool->config.ops.give_back(pool->config.ops.context, i, pool->slab[i].base, pool->slab[i].bytes);
        }
    }
    free(pool->bins.node);
    free(pool->slab);
    free(pool);
}

int64_t dmi_pool_rounded(const dmi_pool_config *config, int64_t bytes)
{
    if (bytes <= 0) {
        return 0;
    }
    int64_t mask = config->align - 1, around = 2 * config->redzone;
    /* Beyond what any memory holds: the largest size there is, which is refused like any other too large one.
     */
    return bytes > INT64_MAX - mask - around ? INT64_MAX - mask : ((bytes + mask) & ~mask) + around;
}

/* The lowest number without a slab, or -1 when the table cannot grow. */
static int slab_number(dmi_pool *pool)
{
    for (int i = 0; i < pool->slab_capacity; i++) {
        if (!pool->slab[i].base) {
            return i;
        }
    }
    int capacity = pool->slab_capacity ? pool->slab_capacity * 2 : 16;
    slab *grown = realloc(pool->slab, (size_t)capacity * sizeof *grown);
    if (!grown) {
        return -1;
    }
    int number = pool->slab_capacity;
    for (int i = number; i < capacity; i++) {
        grown[i] = (slab){0};
    }
    pool->slab = grown;
    pool->slab_capacity = capacity;
    return number;
}

/* need: the allocation's size, which is `asked` rounded. */
static bool add_slab(dmi_pool *pool, int64_t need, int64_t asked)
{
    const dmi_slab_ops *ops = &pool->config.ops;
    int64_t mask = pool->config.align - 1;
    int64_t bytes = pool->config.own ? need : DMI_MAX((pool->config.slab_bytes + mask) & ~mask, need);
    int number = slab_number(pool);
    if (number < 0) {
        return false;
    }
    pool->stats.slab_calls++;
    dmi_memory_missed(0); /* a GPU's memory is not noted */
    char *base = ops->get(ops->context, number, pool->config.own ? asked : bytes);
    if (!base && bytes > need) { /* no memory for a whole one */
        bytes = need;
        pool->stats.slab_calls++;
        base = ops->get(ops->context, number, bytes);
    }
    if (!base) {
        return false;
    }
    assert(((uintptr_t)base & (uintptr_t)mask) == 0);
    pool->slab[number] = (slab){base, bytes, dmi_bins_add_slab(&pool->bins, number, bytes)};
    pool->stats.slab_bytes += bytes;
    pool->stats.slabs++;
    return true;
}

static void drop_slab(dmi_pool *pool, int number)
{
    slab *s = &pool->slab[number];
    dmi_bins_drop_slab(&pool->bins, s->first);
    pool->config.ops.give_back(pool->config.ops.context, number, s->base, s->bytes);
    pool->stats.slab_bytes -= s->bytes;
    pool->stats.slabs--;
    *s = (slab){0};
}

typedef struct zones {
    char *low, *high; /* the high one begins with the last byte asked for, not with the rounded size */
    int64_t low_bytes, high_bytes;
} zones;

static zones zones_of(const dmi_pool *pool, const dmi_pool_node *node)
{
    char *start = pool->slab[node->slab].base + node->offset;
    int64_t redzone = pool->config.redzone;
    return (zones){start, start + redzone + node->asked, redzone, node->bytes - redzone - node->asked};
}

static void zones_fill(const dmi_pool *pool, const dmi_pool_node *node)
{
    const dmi_slab_ops *ops = &pool->config.ops;
    if (pool->config.redzone > 0 && ops->fill) {
        zones z = zones_of(pool, node);
        ops->fill(ops->context, z.low, z.low_bytes);
        ops->fill(ops->context, z.high, z.high_bytes);
    }
}

static dm_status zones_check(const dmi_pool *pool, const dmi_pool_node *node)
{
    static const char *const owners[DMI_OWNERS + 1] = {"array", "workspace", "replica", "staging", "free"};
    const dmi_slab_ops *ops = &pool->config.ops;
    if (pool->config.redzone == 0 || !ops->check) {
        return DM_OK;
    }
    zones z = zones_of(pool, node);
    bool low = ops->check(ops->context, z.low, z.low_bytes);
    bool high = ops->check(ops->context, z.high, z.high_bytes);
    if (low && high) {
        return DM_OK;
    }
    dm_status status = dmi_fail(
        DM_ERR_INTERNAL,
        "the red zone %s an allocation of %" PRId64 " bytes (%s, slab %d, offset %" PRId64 ") was overwritten",
        low    ? "after"
        : high ? "before"
               : "before and after",
        node->asked, owners[node->owner], node->slab, node->offset + pool->config.redzone);
    dmi_log(DMI_LOG_ERROR, "%s", dmi_error_text());
    return status;
}

/* Large allocations are filled at both ends only, so that untouched pages stay unmapped. */
static void debug_fill(const dmi_pool *pool, const dmi_pool_node *node)
{
    const dmi_slab_ops *ops = &pool->config.ops;
    if ((pool->config.redzone > 0 || pool->config.own) && ops->debug_fill) {
        char *at = (char *)pool->slab[node->slab].base + node->offset + pool->config.redzone;
        int64_t end = DMI_MIN(node->asked, FILL_END), rest = DMI_MIN(node->asked - end, FILL_END);
        ops->debug_fill(ops->context, at, end);
        ops->debug_fill(ops->context, at + node->asked - rest, rest);
    }
}

static void account(dmi_pool_stats *stats, const dmi_pool_node *node, int sign)
{
    stats->live_bytes[node->owner] += sign * node->bytes;
    stats->live_allocations[node->owner] += sign;
    stats->live_total += sign * node->bytes;
    stats->peak_total = DMI_MAX(stats->peak_total, stats->live_total);
}

static dm_status out_of_memory(const dmi_pool *pool, int64_t bytes, int64_t need)
{
    const int64_t *live = pool->stats.live_bytes;
    char limit[48] = "there is no limit";
    if (pool->config.limit_bytes > 0) {
        snprintf(limit, sizeof limit, "the limit is %" PRId64, pool->config.limit_bytes);
    }
    return dmi_fail(DM_ERR_NOMEM,
                    "no memory for an allocation of %" PRId64 " bytes (%" PRId64 " after rounding): %" PRId64
                    " are live (arrays %" PRId64 ", workspace %" PRId64 ", replicas %" PRId64
                    ", staging %" PRId64 "), %" PRId64 " are held in %d slabs, %s",
                    bytes, need, pool->stats.live_total, live[DMI_OWNER_ARRAY], live[DMI_OWNER_WORKSPACE],
                    live[DMI_OWNER_REPLICA], live[DMI_OWNER_STAGING], pool->stats.slab_bytes, pool->stats.slabs,
                    limit);
}

dm_status dmi_pool_alloc(dmi_pool *pool, int64_t bytes, int owner, dmi_allocation *out)
{
    assert(bytes >= 0 && owner >= 0 && owner < DMI_OWNERS);
    int64_t need = dmi_pool_rounded(&pool->config, bytes), limit = pool->config.limit_bytes;
    if (need == 0) {
        *out = (dmi_allocation){.slab = -1, .owner = owner};
        return DM_OK;
    }
    if (limit > 0 && need > limit - pool->stats.live_total) {
        return dmi_fail(DM_ERR_LIMIT,
                        "an allocation of %" PRId64 " bytes (%" PRId64
                        " after rounding) exceeds the limit: %" PRId64 " are live, the limit is %" PRId64,
                        bytes, need, pool->stats.live_total, limit);
    }
    /* One node for a slab and one for what is left of it: from here on only the slab can fail. */
    if (!dmi_bins_reserve(&pool->bins, 2)) {
        return out_of_memory(pool, bytes, need);
    }
    uint32_t number = dmi_bins_take(&pool->bins, need);
    if (!number) {
        if (!add_slab(pool, need, bytes)) {
            return out_of_memory(pool, bytes, need);
        }
        number = dmi_bins_take(&pool->bins, need);
    }
    dmi_pool_node *node = &pool->bins.node[number];
    node->owner = owner;
    node->asked = bytes;
    account(&pool->stats, node, 1);
    zones_fill(pool, node);
    debug_fill(pool, node);
    int64_t offset = node->offset + pool->config.redzone;
    *out = (dmi_allocation){.base = pool->slab[node->slab].base + offset,
                            .slab = node->slab,
                            .offset = offset,
                            .bytes = bytes,
                            .ready = node->stamp,
                            .node = number,
                            .owner = owner};
    return DM_OK;
}

dm_status dmi_pool_free(dmi_pool *pool, const dmi_allocation *allocation, const dmi_stamp *stamp)
{
    static const dmi_stamp ended = {{0}};
    if (allocation->node == 0) {
        return DM_OK;
    }
    dmi_pool_node *node = allocation->node < pool->bins.capacity ? &pool->bins.node[allocation->node] : NULL;
    if (!node || node->owner == DMI_OWNERS || node->owner != allocation->owner ||
        node->asked != allocation->bytes || node->slab != allocation->slab ||
        node->offset + pool->config.redzone != allocation->offset) {
        return dmi_fail(DM_ERR_INTERNAL,
                        "an allocation of %" PRId64 " bytes at slab %d, offset %" PRId64
                        " is freed that is not live",
                        allocation->bytes, allocation->slab, allocation->offset);
    }
    dm_status status = zones_check(pool, node);
    int number = node->slab;
    debug_fill(pool, node);
    account(&pool->stats, node, -1);
    dmi_bins_put(&pool->bins, allocation->node, stamp ? stamp : &ended);
    if (pool->config.own) {
        drop_slab(pool, number);
    }
    return status;
}

static bool reached(const dmi_stamp *stamp, const dmi_stamp *done)
{
    for (int i = 0; i < DMI_STAMP_LANES; i++) {
        if (stamp->seq[i] > done->seq[i]) {
            return false;
        }
    }
    return true;
}

int64_t dmi_pool_trim(dmi_pool *pool, const dmi_stamp *done)
{
    const dmi_slab_ops *ops = &pool->config.ops;
    int64_t given = 0;
    for (int i = 0; i < pool->slab_capacity; i++) {
        slab *s = &pool->slab[i];
        const dmi_pool_node *first = &pool->bins.node[s->base ? s->first : 0];
        if (s->base && first->owner == DMI_OWNERS && first->bytes == s->bytes && reached(&first->stamp, done) &&
            !(ops->held && ops->held(ops->context, i))) {
            given += s->bytes;
            drop_slab(pool, i);
        }
    }
    return given;
}

void dmi_pool_stats_get(const dmi_pool *pool, dmi_pool_stats *out)
{
    *out = pool->stats;
}
