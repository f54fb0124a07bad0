/* Plans by their plan key: chained hash table, least recently used plan goes first. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    struct entry *chain;         /* same bucket */
    struct entry *older, *newer; /* by last use */
    uint64_t hash;
    dmi_plan *plan;
    size_t key_bytes;
    unsigned char key[];
} entry;

struct dmi_plan_cache {
    dmi_plan_maker *make;
    int capacity, count;
    size_t buckets; /* power of two */
    entry **bucket;
    entry *newest, *oldest;
    unsigned char *scratch; /* the key being looked up */
    size_t scratch_room;
};

dm_status dmi_plan_cache_create(int capacity, dmi_plan_maker *make, dmi_plan_cache **out)
{
    dmi_plan_cache *cache = calloc(1, sizeof *cache);
    if (!cache) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the plan cache");
    }
    cache->make = make;
    cache->capacity = DMI_MAX(capacity, 1);
    cache->buckets = 64;
    while (cache->buckets < (size_t)cache->capacity) {
        cache->buckets *= 2;
    }
    cache->bucket = calloc(cache->buckets, sizeof *cache->bucket);
    if (!cache->bucket) {
        free(cache);
        return dmi_fail(DM_ERR_NOMEM, "no memory for the plan cache");
    }
    *out = cache;
    return DM_OK;
}

static void put(dmi_plan_cache *cache, size_t *at, const void *bytes, size_t count)
{
    if (count > 0 && *at + count <= cache->scratch_room) { /* a call without a tail has no bytes at all */
        memcpy(cache->scratch + *at, bytes, count);
    }
    *at += count;
}

/* The plan key, what the plan depends on: op, operands' descriptors and which share memory, integer arguments,
 * what the call asks for, tail. */
static size_t make_key(dmi_plan_cache *cache, const dmi_call *call)
{
    size_t at = 0;
    put(cache, &at, &call->op, sizeof call->op);
    for (int i = 0; i < call->noperand; i++) {
        const dmi_operand *o = &call->operand[i];
        int alias = 0;
        while (alias < i && call->operand[alias].memory != o->memory) {
            alias++;
        }
        uint32_t head[5] = {o->desc.layout_id, (uint32_t)o->desc.dtype, (uint32_t)o->desc.ndim,
                            (uint32_t)o->mode, (uint32_t)alias};
        put(cache, &at, head, sizeof head);
        put(cache, &at, o->desc.lo, (size_t)o->desc.ndim * sizeof(int64_t));
        put(cache, &at, o->desc.extent, (size_t)o->desc.ndim * sizeof(int64_t));
        put(cache, &at, o->desc.skip, (size_t)o->desc.ndim * sizeof(int64_t));
    }
    put(cache, &at, call->args.i, sizeof call->args.i);
    put(cache, &at, &call->compute, sizeof call->compute);
    put(cache, &at, &call->workspace_limit, sizeof call->workspace_limit);
    put(cache, &at, call->tail, (size_t)call->tail_key);
    return at;
}

static uint64_t hash_bytes(const unsigned char *p, size_t count)
{
    uint64_t hash = UINT64_C(0x9E3779B97F4A7C15) ^ count;
    for (; count >= 8; p += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = (hash ^ word) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    for (; count > 0; p++, count--) {
        hash = (hash ^ *p) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 29;
}

static void unlink_use(dmi_plan_cache *cache, entry *e)
{
    *(e->newer ? &e->newer->older : &cache->newest) = e->older;
    *(e->older ? &e->older->newer : &cache->oldest) = e->newer;
}

static void link_newest(dmi_plan_cache *cache, entry *e)
{
    e->newer = NULL;
    e->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = e;
    cache->newest = e;
}

static void drop(dmi_plan_cache *cache, entry *e)
{
    entry **at = &cache->bucket[e->hash & (cache->buckets - 1)];
    while (*at != e) {
        at = &(*at)->chain;
    }
    *at = e->chain;
    unlink_use(cache, e);
    dmi_plan_release(e->plan);
    free(e);
    cache->count--;
}

void dmi_plan_cache_destroy(dmi_plan_cache *cache)
{
    if (!cache) {
        return;
    }
    while (cache->oldest) {
        drop(cache, cache->oldest);
    }
    free(cache->bucket);
    free(cache->scratch);
    free(cache);
}

dm_status dmi_plan_cache_get(dmi_plan_cache *cache, const dmi_call *call, const dmi_profile *profile, int me,
                             dmi_plan **out, bool *reused)
{
    size_t bytes = make_key(cache, call);
    if (bytes > cache->scratch_room) {
        unsigned char *grown = realloc(cache->scratch, 2 * bytes);
        if (!grown) {
            return dmi_fail(DM_ERR_NOMEM, "no memory for a plan key");
        }
        cache->scratch = grown;
        cache->scratch_room = 2 * bytes;
        bytes = make_key(cache, call);
    }
    uint64_t hash = hash_bytes(cache->scratch, bytes);
    entry *e = cache->bucket[hash & (cache->buckets - 1)];
    while (e && !(e->hash == hash && e->key_bytes == bytes && memcmp(e->key, cache->scratch, bytes) == 0)) {
        e = e->chain;
    }
    *reused = e != NULL;
    if (e) {
        unlink_use(cache, e);
    } else {
        dmi_plan *plan = NULL;
        dm_status status = cache->make(call, profile, me, &plan);
        if (status != DM_OK) {
            return status;
        }
        e = plan->once ? NULL : malloc(sizeof *e + bytes);
        if (!e) { /* usable all the same, only not kept */
            *out = plan;
            return DM_OK;
        }
        if (cache->count >= cache->capacity) {
            drop(cache, cache->oldest);
        }
        *e = (entry){.chain = cache->bucket[hash & (cache->buckets - 1)],
                     .hash = hash,
                     .plan = plan,
                     .key_bytes = bytes};
        memcpy(e->key, cache->scratch, bytes);
        cache->bucket[hash & (cache->buckets - 1)] = e;
        cache->count++;
    }
    link_newest(cache, e);
    atomic_fetch_add(&e->plan->refs, 1);
    *out = e->plan;
    return DM_OK;
}
