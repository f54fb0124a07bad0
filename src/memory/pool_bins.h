/* The book-keeping under a pool: ranges of slabs as nodes in a table of the host, linked by index (0: none) to
 * their neighbours in the slab and, when free, into a bin of ranges of like size. */
#ifndef DMI_POOL_BINS_H
#define DMI_POOL_BINS_H

#include "memory/pool.h"

typedef struct dmi_pool_node {
    int64_t offset, bytes;  /* in the slab; bytes is a multiple of the unit */
    uint32_t before, after; /* neighbours in the slab */
    uint32_t older, newer;  /* in the bin; of an unused node `newer` is the next unused one */
    int slab;
    int owner;       /* of the live ones; DMI_OWNERS: free or unused */
    int64_t asked;   /* live: bytes as the caller asked for */
    dmi_stamp stamp; /* free: when it may be written; live: the same, as it was handed out */
} dmi_pool_node;

/* Two levels: by the power of two of the size in units, and each power in DMI_BIN_STEPS equal steps. */
enum { DMI_BIN_STEPS = 16, DMI_BIN_POWERS = 61 };

typedef struct dmi_bins {
    int64_t unit;
    dmi_pool_node *node; /* [capacity]; number 0 stays unused */
    uint32_t capacity, unused, unused_count;
    uint64_t powers;                /* bit p: some bin of power p is not empty */
    uint32_t steps[DMI_BIN_POWERS]; /* bit s: bin (p, s) is not empty */
    uint32_t oldest[DMI_BIN_POWERS][DMI_BIN_STEPS], newest[DMI_BIN_POWERS][DMI_BIN_STEPS];
} dmi_bins;

/* Makes sure of `count` unused nodes; false when out of memory. Only this call allocates. */
bool dmi_bins_reserve(dmi_bins *bins, uint32_t count);
/* A new slab as one free range whose stamp is zero; the node of the range at offset 0 keeps this number as long
 * as the slab is there. Takes one unused node. */
uint32_t dmi_bins_add_slab(dmi_bins *bins, int slab, int64_t bytes);
/* Forgets a slab that is one free range. */
void dmi_bins_drop_slab(dmi_bins *bins, uint32_t first);
/* A range of exactly `bytes` (a multiple of the unit), out of the smallest size class that has one large
 * enough, the oldest of those; 0 if no range is. Takes up to one unused node. */
uint32_t dmi_bins_take(dmi_bins *bins, int64_t bytes);
/* Frees a range: joined with its free neighbours, the stamps merged. */
void dmi_bins_put(dmi_bins *bins, uint32_t number, const dmi_stamp *stamp);

#endif
