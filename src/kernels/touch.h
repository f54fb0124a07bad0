/* Which bytes a kernel touches: the simulator's race check compares these. */
#ifndef DMI_TOUCH_H
#define DMI_TOUCH_H

#include "memory/hazard.h"
#include "layout/copy.h"

/* Stretches of `inner` bytes over a product of runs, or of plain extents. */
typedef struct dmi_touch {
    int rw; /* DMI_READ, DMI_WRITE, DMI_READWRITE; 0: nothing */
    int ndim;
    int64_t offset, inner;                          /* bytes; inner: consecutive ones at each place */
    int64_t nrun[DM_MAX_DIMS], stride[DM_MAX_DIMS]; /* stride in bytes */
    const dmi_run *run[DM_MAX_DIMS];                /* NULL: one run of len[d] from 0 */
    int64_t len[DM_MAX_DIMS];
    bool dst;
    bool scratch; /* what is there before the step and behind it means nothing: it may lie elsewhere */
} dmi_touch;

/* One side of a copy, of elements of `elem` bytes. */
void dmi_touch_copy(dmi_touch *t, const dmi_copy *copy, bool dst, int64_t elem, int rw);
/* A strided box. */
void dmi_touch_box(dmi_touch *t, int ndim, const int64_t *extent, const int64_t *stride, int64_t offset,
                   int64_t elem, int rw);
/* count elements from the reference's start. */
void dmi_touch_dense(dmi_touch *t, int64_t count, int64_t elem, int rw);

#endif
