/* Rectangles of tensors, and host memory with room between its rows for them. */
#ifndef DMT_PART_H
#define DMT_PART_H

#include "support/cases.h"

typedef struct dmt_part {
    int64_t lo[DM_MAX_DIMS], extent[DM_MAX_DIMS];
    int64_t ld, rows, length; /* length: elements of the last dim */
    int64_t bytes;            /* of host memory, to the end of the last row */
    dmt_host *value;          /* of the extent; zeros at first */
} dmt_part;

/* Whole dims and empty ones come up; ld is 0 or at least a row. */
dmt_part dmt_part_random(dmt_case *c, const dmt_host *h);
void dmt_part_say(dmt_case *c, const char *verb, const dmt_part *p);
/* Where element i of the part lies in host memory. */
char *dmt_part_place(const dmt_part *p, char *memory, int64_t i);
/* Host memory with the part's value in it, and a pattern between the rows. */
char *dmt_part_spread(dmt_case *c, const dmt_part *p);
/* The pattern between the rows is still there; takes the elements into *seen. */
bool dmt_part_gather(const dmt_part *p, char *memory, dmt_host *seen);

#endif
