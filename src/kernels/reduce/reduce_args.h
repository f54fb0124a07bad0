/* The parameter of the kernels that are compiled for the reduction of an elementwise program, and how places are counted.
 * This file is also compiled at run time, behind map_args.h, so it includes nothing. */
#ifndef DMI_REDUCE_ARGS_H
#define DMI_REDUCE_ARGS_H

/* How the number of an element among those reduced over becomes its index: dims, the innermost first. */
typedef struct dmi_cuda_place {
    int64_t extent, whole;              /* of the dim here, and of x */
    int64_t first;                      /* g == 1: index of the first */
    int64_t place, block, g, c, origin; /* else as a dmi_dimset; place: of the first */
} dmi_cuda_place;
typedef struct dmi_cuda_places {
    int ndim;
    dmi_cuda_place dim[DMI_MAP_ARG_DIMS];
} dmi_cuda_places;

/* A strided box, dims innermost first, at least one. Sides: the inputs, then what counts results or elements. */
typedef struct dmi_reduce_box {
    uint32_t items;
    int ndim;
    dmi_map_divisor extent[DMI_MAP_ARG_DIMS];
    int64_t stride[DMI_MAP_ARG_SIDES][DMI_MAP_ARG_DIMS];
} dmi_reduce_box;

/* As dmi_cuda_rows, whose members have the same names, of a program of several inputs. */
typedef struct dmi_reduce_args {
    struct {
        dmi_reduce_box kept, summed;
        uint32_t team, parts, items_per_part, tail;
        int64_t tail_at, results;
    } base;
    unsigned char last, ordered;
    unsigned char splat[DMI_MAP_ARG_SIDES]; /* groups: one element serves a whole group */
    int64_t place;
    dmi_cuda_places places;
    const void *memory[DMI_MAP_ARG_SIDES];
    dmi_map_scalar number[DMI_MAP_ARG_NUMBERS];
    void *out;
} dmi_reduce_args;

#endif
