/* Values of an elementwise program on the CPU, tile by tile, for kernels that do something with them. */
#ifndef DMI_CPU_MAP_H
#define DMI_CPU_MAP_H

#include "kernels/ewise/ewise.h"
#include "kernels/ewise/ewise_cpu.h"

/* Measured on an expression of seven operations in f32: 1 and 2 KiB are alike, 4 and 8 are 1.1 and 1.25 times slower. */
enum { DMI_TILE_BYTES = 2048 };

typedef struct dmi_tile {
    _Alignas(64) unsigned char bytes[DMI_TILE_BYTES];
} dmi_tile;

typedef struct dmi_map_job {
    const dmi_map *d;
    const dmi_map_program *p;
    const dmi_number *number;
    int64_t most;  /* elements of a tile */
    bool constant; /* some constant fills tiles */
    dmi_ewise_fn *fn[DMI_MAP_STEPS]; /* of each step; NULL: it converts */
    uint8_t keeper[DMI_MAP_STEPS];   /* not 0: the step makes what is kept as this number, from 1 */
    void *where[DMI_AT_KIND];        /* by the codes DMI_AT_*: values of a tile */
    bool direct[DMI_MAP_KEPT];       /* what is kept is written to where it goes */
    int64_t bytes[DMI_MAP_SIDES];
    char *at[DMI_MAP_SIDES]; /* memory of the inputs and results */
    dmi_tile input[DMI_MAP_INPUTS], constants[DMI_MAP_NUMBERS], temporary[DMI_MAP_TEMPORARIES];
} dmi_map_job;

/* --- map_made_cpu.c: values of an input that is made, of n elements from `number` on, `step` numbers apart; out: [n] of its
 * carrier */
void dmi_map_make(const dmi_map_places *places, int made, dm_dtype dtype, uint64_t seed, int64_t number, int64_t step,
                  int64_t n, void *out);

/* at: memory of the inputs; an input that is NULL is not read. */
void dmi_map_begin(dmi_map_job *job, const dmi_map *d, const dmi_number *number, void *const *at);
/* n values (job->most at most) in the program's carrier, of inputs at element positions at[] with these
 * strides. They are written to `out`, or, where that is NULL, returned in the job. Values that are kept are in
 * its temporaries, or where they go (job->direct). */
void *dmi_map_values(dmi_map_job *job, const int64_t *at, const int64_t *stride, int64_t n, void *out);

#endif
