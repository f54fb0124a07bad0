/* Distribution arithmetic: which worker holds which element, and where in its memory.
 * Pure: no MPI, no threads, no globals. All extents and positions count elements. */
#ifndef DMI_LAYOUT_H
#define DMI_LAYOUT_H

#include "base/base.h"

enum { DMI_LAYOUT_GRID = 0, DMI_LAYOUT_EXPLICIT = 1 };
enum { DMI_ORDER_CONTIGUOUS = 0, DMI_ORDER_CYCLIC = 1 };
/* Elements an array may have: so few that its bytes, accumulators of 16 bytes included, fit in int64. */
#define DMI_LAYOUT_MOST (INT64_MAX / 16)

/* A layout as the caller gives it; dmi_layout_create checks and completes it. */
typedef struct dmi_layout_spec {
    int kind;
    int ndim;                      /* 0 .. 8; 0: a scalar, one element */
    int64_t shape[DM_MAX_DIMS];
    int64_t block[DM_MAX_DIMS];    /* elements; 0: chosen (ceil(shape/grid) for a contiguous or undivided dim,
                                      for cyclic min(64, ceil(shape/grid)); at least 1) */
    int grid[DM_MAX_DIMS];         /* workers along each dim (>= 1); product G. GRID only */
    int order[DM_MAX_DIMS];        /* how blocks of a dim go to its grid positions. GRID only */
    int nworkers;                  /* workers used; 0 with workers == NULL: G * replicas as below */
    const int *workers;            /* their numbers, distinct, each in [0, session_workers); NULL: 0,1,2,... */
    int replicas;                  /* GRID only: the array is held this many times; 0 means 1.
                                      nworkers must equal G * replicas */
    const int *map;                /* EXPLICIT only: worker of each block, row-major over the block grid */
    int64_t map_count;             /* EXPLICIT only: must equal the number of blocks */
    int session_workers;           /* how many workers the session has */
} dmi_layout_spec;

/* A complete, immutable layout of an array of one shape.
 * GRID: block b of dim d sits at grid position  cyclic: b % grid[d];  contiguous: b / ceil(nblock/grid).
 *   The worker at positions p[] of replica r is workers[(r * G) + row-major index of p in grid[]].
 *   A worker's shard is one dense row-major array: along each dim its blocks in increasing order, packed.
 * EXPLICIT: each block on one worker; a worker's shard is its blocks in increasing row-major block number,
 *   one after the other, each a dense row-major array of its own (ragged) extents. */
typedef struct dmi_layout {
    int kind, ndim, session_workers, nworkers, replicas, group; /* group = G, product of grid */
    int64_t shape[DM_MAX_DIMS], block[DM_MAX_DIMS], nblock[DM_MAX_DIMS];
    int grid[DM_MAX_DIMS], order[DM_MAX_DIMS];
    int64_t count;        /* elements of the whole array */
    int64_t blocks;       /* blocks of the whole array */
    const int *workers;   /* [nworkers] */
    const int *position;  /* [session_workers]: index in workers[], or -1. EXPLICIT: NULL is fine */
    const int *map;       /* EXPLICIT: [blocks] */
    uint64_t members;     /* bit w % 64: worker w may hold something */
    /* EXPLICIT: blocks of worker w are own[first[w] .. first[w+1]), their offsets in its shard beside. */
    const int64_t *first, *own, *own_offset;
    uint64_t hash;        /* of everything above: equal layouts have equal hashes */
    dmi_arena arena;      /* holds the arrays */
} dmi_layout;

/* DM_ERR_ARG (ndim, shape, session_workers) or DM_ERR_LAYOUT (all else) with a text naming the field;
 * DM_ERR_NOMEM. Zero extents are fine (no blocks along that dim). The product of the extents other than 0 may
 * be DMI_LAYOUT_MOST at most. An undivided dim's order becomes contiguous. EXPLICIT: the map may name only
 * workers of the layout, which with workers == NULL and nworkers 0 are all of the session's; grid becomes 1. */
DM_CHECKED dm_status dmi_layout_create(const dmi_layout_spec *spec, dmi_layout **out);
void dmi_layout_destroy(dmi_layout *layout);
bool dmi_layout_equal(const dmi_layout *a, const dmi_layout *b);

/* The default for a shape: dim 0 split contiguously over all workers, and no other; all of it on worker 0 where it has
 * less than 4 KiB. */
void dmi_layout_default(int ndim, const int64_t *shape, int64_t element_bytes, int session_workers,
                        dmi_layout_spec *out);

/* Elements in the shard of worker w (0 if it holds nothing). */
int64_t dmi_layout_shard_count(const dmi_layout *layout, int worker);

/* One dim of a region: the indices i of [lo, hi) whose block lies at position c of g (cyclic blocks of
 * `block`); g == 1: all of [lo, hi). Contiguous distribution is expressed by lo/hi with g == 1.
 * The caller sees index i as i - origin (origin: where a view begins).
 * Position in the shard's memory along this dim:
 *     g == 1: i - lbase        g > 1: (i / block / g) * block + i % block - lbase               */
typedef struct dmi_dimset {
    int64_t lo, hi, block;
    int32_t g, c;
    int64_t origin, lbase;
    int64_t count; /* how many indices; they have consecutive memory positions, in increasing order of i */
} dmi_dimset;

/* A box of a shard: the product of its dims; element at memory positions p[] lies at
 * offset + sum(p[d] * stride[d]) elements from the start of the shard. The indices of one dim occupy
 * consecutive memory positions, so in memory a region is one strided box. */
typedef struct dmi_region {
    int ndim;
    dmi_dimset dim[DM_MAX_DIMS];
    int64_t offset;
    int64_t stride[DM_MAX_DIMS];
    int64_t count;
} dmi_region;

/* Regions of worker w's shard: GRID: 1 if the worker takes part (possibly of count 0), else 0;
 * EXPLICIT: one a block it owns. */
int64_t dmi_layout_region_count(const dmi_layout *layout, int worker);
void dmi_layout_region(const dmi_layout *layout, int worker, int64_t which, dmi_region *out);
/* The next region after number `after` (-1: the first) that may have elements with lo[d] <= index[d] < hi[d];
 * the count of regions or more when there is none. May return regions without such elements, but misses none
 * with them. */
int64_t dmi_layout_region_next(const dmi_layout *layout, int worker, const int64_t *lo, const int64_t *hi,
                               int64_t after);
/* Replica that worker w belongs to; -1: the worker has no region in this layout. EXPLICIT: 0 for workers that
 * own a block. */
int dmi_layout_replica(const dmi_layout *layout, int worker);
/* Worker that holds the element in replica r (index in whole-array coordinates). */
int dmi_layout_owner(const dmi_layout *layout, const int64_t *index, int replica);

/* Restricts a set to [lo, lo+extent) of the coordinates it now has, which may reach beyond the set; afterwards
 * indices count from lo. The set's lo and hi become its first index and last + 1, and a set that is left without
 * gaps becomes an interval (g == 1). in and out may be the same; in->count is not read. */
void dmi_dimset_clip(const dmi_dimset *in, int64_t lo, int64_t extent, dmi_dimset *out);

/* Restricts a region to the rectangle [lo, lo+extent) of the coordinates it now has; afterwards indices count
 * from lo. Returns false when nothing is left (out->count == 0 then). in and out may be the same. */
bool dmi_region_clip(const dmi_region *in, const int64_t *lo, const int64_t *extent, dmi_region *out);
/* Element offset of a region's first element from the start of its memory. */
int64_t dmi_region_start(const dmi_region *region);

/* Memory position (along this dim) of the first index (0 for an empty set); and of a given caller-visible index
 * that is in the set. */
int64_t dmi_dimset_first_position(const dmi_dimset *set);
int64_t dmi_dimset_position(const dmi_dimset *set, int64_t index);
/* Caller-visible index of the k-th element of the set, 0 <= k < count. */
int64_t dmi_dimset_index(const dmi_dimset *set, int64_t k);
bool dmi_dimset_contains(const dmi_dimset *set, int64_t index);
/* Same caller-visible indices? (memory positions and origin may differ) */
bool dmi_dimset_same(const dmi_dimset *a, const dmi_dimset *b);

/* A range of consecutive indices, with where it begins in two sets, counted from each set's first element. */
typedef struct dmi_run {
    int64_t index; /* caller-visible */
    int64_t a, b;  /* ordinal in set a and in set b: 0 .. count-1 */
    int64_t len;
} dmi_run;
/* If `part`, a subset of `whole`, is one range of ordinals there: its first ordinal. -1: it is not, or the
 * closed forms do not show it. */
int64_t dmi_dimset_range_within(const dmi_dimset *whole, const dmi_dimset *part);
/* The maximal runs of the intersection of two sets (by caller-visible index), in increasing order. A run ends
 * where either set's next ordinal stops being consecutive with the index. Writes into arena; returns the number
 * of runs, -1 when out of memory. */
int64_t dmi_dimset_intersect(const dmi_dimset *a, const dmi_dimset *b, dmi_arena *arena, dmi_run **out);
/* Elements in the intersection, without making the runs. */
int64_t dmi_dimset_overlap(const dmi_dimset *a, const dmi_dimset *b);
/* A plain interval set [lo, lo+count) whose first element has memory position 0. */
dmi_dimset dmi_dimset_interval(int64_t lo, int64_t count);

#endif
