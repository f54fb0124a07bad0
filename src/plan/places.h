/* Where the workspaces of a plan lie: places.c. */
#ifndef DMI_PLACES_H
#define DMI_PLACES_H

#include <stdbool.h>
#include <stdint.h>

/* A workspace: the first and the last phase that uses it, and where it gets its memory. */
typedef struct dmi_workspace {
    int number, first, last, place;
    int64_t bytes, offset; /* in its place */
    double rank;           /* those of the highest are placed first */
    int64_t chosen;        /* offset and rank of the best try */
    double chosen_rank;
} dmi_workspace;

/* Which of `count` workspaces share memory. work: by number, with the phases that use each, 0 to `phases`.
 * Gives each a place and an offset in it; bytes: [count] the sizes of the *places. *packed: some lie side by
 * side in one. False: no memory. */
bool dmi_places_choose(dmi_workspace *work, int count, int phases, int64_t *bytes, int *places, bool *packed);

#endif
