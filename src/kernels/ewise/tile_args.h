/* The parameter of the kernels that are compiled for an elementwise program in tiles. This file is also
 * compiled at run time, behind map_args.h, so it includes nothing. */
#ifndef DMI_TILE_ARGS_H
#define DMI_TILE_ARGS_H

/* Dim 0 is x, in which out is dense, dim 1 is y. */
typedef struct dmi_tile_args {
    dmi_map_args map;
    unsigned char turned[DMI_MAP_ARG_SIDES]; /* an input is dense along y and not along x */
    int64_t edge[2];                         /* extents of x and y */
    dmi_map_divisor tiles[2];                /* along x and along y */
} dmi_tile_args;

#endif
