/* Size classes of free ranges, found by two look-ups of bits (after TLSF: Masmano, Ripoll, Crespo, Real 2004),
 * and the splitting and joining of ranges. Unlike TLSF, the search includes the request's own class: some of
 * its ranges may be large enough, and skipping them could cost a slab. */
#include "memory/pool_bins.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_BITS = 4, FIRST_NODES = 64 };
_Static_assert(1 << STEP_BITS == DMI_BIN_STEPS, "steps are a field of bits");

typedef struct bin {
    int power, step;
} bin;

/* Sizes below DMI_BIN_STEPS units have bins of their own, all in power 0. */
static bin bin_of(const dmi_bins *bins, int64_t bytes)
{
    uint64_t units = (uint64_t)(bytes / bins->unit);
    if (units < DMI_BIN_STEPS) {
        return (bin){0, (int)units};
    }
    int log = 63 - __builtin_clzll(units);
    return (bin){log - STEP_BITS + 1, (int)(units >> (log - STEP_BITS)) & (DMI_BIN_STEPS - 1)};
}

static void bin_add(dmi_bins *bins, uint32_t number)
{
    dmi_pool_node *node = &bins->node[number];
    bin b = bin_of(bins, node->bytes);
    uint32_t *newest = &bins->newest[b.power][b.step];
    node->older = *newest;
    node->newer = 0;
    if (*newest) {
        bins->node[*newest].newer = number;
    } else {
        bins->oldest[b.power][b.step] = number;
    }
    *newest = number;
    bins->steps[b.power] |= UINT32_C(1) << b.step;
    bins->powers |= UINT64_C(1) << b.power;
}

static void bin_remove(dmi_bins *bins, uint32_t number)
{
    dmi_pool_node *node = &bins->node[number];
    bin b = bin_of(bins, node->bytes);
    if (node->older) {
        bins->node[node->older].newer = node->newer;
    } else {
        bins->oldest[b.power][b.step] = node->newer;
    }
    if (node->newer) {
        bins->node[node->newer].older = node->older;
    } else {
        bins->newest[b.power][b.step] = node->older;
    }
    if (!bins->oldest[b.power][b.step]) {
        bins->steps[b.power] &= ~(UINT32_C(1) << b.step);
        if (!bins->steps[b.power]) {
            bins->powers &= ~(UINT64_C(1) << b.power);
        }
    }
}

bool dmi_bins_reserve(dmi_bins *bins, uint32_t count)
{
    if (bins->unused_count >= count) {
        return true;
    }
    if (bins->capacity > UINT32_MAX / 4) {
        return false;
    }
    uint32_t capacity = bins->capacity ? bins->capacity * 2 : FIRST_NODES;
    dmi_pool_node *node = realloc(bins->node, capacity * sizeof *node);
    if (!node) {
        return false;
    }
    bins->node = node;
    /* Highest first, so that the lowest is used first; number 0 is never given out. */
    for (uint32_t number = capacity - 1; number >= DMI_MAX(bins->capacity, 1); number--) {
        node[number] = (dmi_pool_node){.newer = bins->unused, .owner = DMI_OWNERS};
        bins->unused = number;
        bins->unused_count++;
    }
    bins->capacity = capacity;
    return bins->unused_count >= count;
}

static uint32_t node_take(dmi_bins *bins)
{
    uint32_t number = bins->unused;
    assert(number != 0);
    bins->unused = bins->node[number].newer;
    bins->unused_count--;
    bins->node[number] = (dmi_pool_node){.owner = DMI_OWNERS};
    return number;
}

static void node_put(dmi_bins *bins, uint32_t number)
{
    bins->node[number] = (dmi_pool_node){.newer = bins->unused, .owner = DMI_OWNERS};
    bins->unused = number;
    bins->unused_count++;
}

uint32_t dmi_bins_add_slab(dmi_bins *bins, int slab, int64_t bytes)
{
    uint32_t number = node_take(bins);
    bins->node[number].slab = slab;
    bins->node[number].bytes = bytes;
    bin_add(bins, number);
    return number;
}

void dmi_bins_drop_slab(dmi_bins *bins, uint32_t first)
{
    const dmi_pool_node *node = &bins->node[first];
    assert(node->owner == DMI_OWNERS && node->offset == 0 && !node->before && !node->after);
    (void)node;
    bin_remove(bins, first);
    node_put(bins, first);
}

/* The tightest range of the request's own class that is large enough; the oldest of equals, whose stamp is
 * likely to be reached first. */
static uint32_t find_in_class(const dmi_bins *bins, bin b, int64_t bytes)
{
    uint32_t best = 0;
    for (uint32_t at = bins->oldest[b.power][b.step]; at; at = bins->node[at].newer) {
        int64_t size = bins->node[at].bytes;
        if (size >= bytes && (!best || size < bins->node[best].bytes)) {
            best = at;
            if (size == bytes) {
                break;
            }
        }
    }
    return best;
}

static uint32_t find(const dmi_bins *bins, int64_t bytes)
{
    bin b = bin_of(bins, bytes);
    uint32_t found = find_in_class(bins, b, bytes);
    if (found) {
        return found;
    }
    /* Whatever is in a higher class is large enough. */
    uint32_t steps = bins->steps[b.power] & ~((UINT32_C(2) << b.step) - 1);
    if (!steps) {
        uint64_t powers = bins->powers & ~((UINT64_C(2) << b.power) - 1);
        if (!powers) {
            return 0;
        }
        b.power = __builtin_ctzll(powers);
        steps = bins->steps[b.power];
    }
    return bins->oldest[b.power][__builtin_ctz(steps)];
}

uint32_t dmi_bins_take(dmi_bins *bins, int64_t bytes)
{
    assert(bytes > 0 && bytes % bins->unit == 0);
    uint32_t number = find(bins, bytes);
    if (!number) {
        return 0;
    }
    bin_remove(bins, number);
    dmi_pool_node *node = &bins->node[number];
    if (node->bytes > bytes) {
        uint32_t number_rest = node_take(bins);
        dmi_pool_node *rest = &bins->node[number_rest];
        *rest = (dmi_pool_node){.offset = node->offset + bytes,
                                .bytes = node->bytes - bytes,
                                .before = number,
                                .after = node->after,
                                .slab = node->slab,
                                .owner = DMI_OWNERS,
                                .stamp = node->stamp};
        if (rest->after) {
            bins->node[rest->after].before = number_rest;
        }
        node->after = number_rest;
        node->bytes = bytes;
        bin_add(bins, number_rest);
    }
    return number;
}

static bool is_free(const dmi_bins *bins, uint32_t number)
{
    return number && bins->node[number].owner == DMI_OWNERS;
}

/* The range after `number` becomes part of it. */
static void swallow_next(dmi_bins *bins, uint32_t number)
{
    dmi_pool_node *node = &bins->node[number];
    uint32_t gone = node->after;
    node->bytes += bins->node[gone].bytes;
    node->after = bins->node[gone].after;
    if (node->after) {
        bins->node[node->after].before = number;
    }
    dmi_stamp_merge(&node->stamp, &bins->node[gone].stamp);
    node_put(bins, gone);
}

void dmi_bins_put(dmi_bins *bins, uint32_t number, const dmi_stamp *stamp)
{
    dmi_pool_node *node = &bins->node[number];
    assert(!is_free(bins, number));
    node->owner = DMI_OWNERS;
    dmi_stamp_merge(&node->stamp, stamp);
    if (is_free(bins, node->after)) {
        bin_remove(bins, node->after);
        swallow_next(bins, number);
    }
    if (is_free(bins, node->before)) {
        number = node->before;
        bin_remove(bins, number);
        swallow_next(bins, number);
    }
    bin_add(bins, number);
}
