/* The parameter of the kernels that are compiled for an elementwise program. This file is also compiled at run
 * time, so it includes nothing: whoever includes it has int64_t and uint32_t. */
#ifndef DMI_MAP_ARGS_H
#define DMI_MAP_ARGS_H

enum {
    DMI_MAP_ARG_SIDES = 12, /* DMI_MAP_SIDES */
    DMI_MAP_ARG_DIMS = 8,   /* DM_MAX_DIMS */
    DMI_MAP_ARG_NUMBERS = 16,
    DMI_MAP_THREADS = 256,
    DMI_MAP_DEPTH = 4 /* items of a thread, where an item is one element */
};

/* i / extent, for i < 2^31, as i * factor >> 31 + shift. */
typedef struct dmi_map_divisor {
    uint32_t extent, factor, shift;
} dmi_map_divisor;

typedef struct dmi_map_scalar {
    double re, im;
    int64_t whole;
} dmi_map_scalar;

/* How the number of an element becomes its row-major index in the array: dims, the innermost first. */
typedef struct dmi_cuda_place {
    int64_t extent, whole;              /* of the dim here, and of x */
    int64_t first;                      /* g == 1: index of the first */
    int64_t place, block, g, c, origin; /* else as a dmi_dimset; place: of the first */
} dmi_cuda_place;
typedef struct dmi_cuda_places {
    int ndim;
    dmi_cuda_place dim[DMI_MAP_ARG_DIMS];
} dmi_cuda_places;

/* The same for inputs that are made of it. */
typedef struct dmi_map_linear {
    unsigned char plain; /* the index is base + the number */
    int64_t base;
    dmi_cuda_places places;
    int64_t first[DMI_MAP_ARG_SIDES]; /* number of the first element, of inputs that are made */
} dmi_map_linear;

/* A strided box of items, dims innermost first, at least one. Sides: the inputs, out, then what is kept. */
typedef struct dmi_map_args {
    uint32_t items;
    int ndim;
    dmi_map_divisor
        chunks; /* thread blocks for a row of the innermost dim; extent 0: blocks do not keep to rows */
    dmi_map_divisor extent[DMI_MAP_ARG_DIMS];
    int64_t stride[DMI_MAP_ARG_SIDES][DMI_MAP_ARG_DIMS]; /* elements */
    void *memory[DMI_MAP_ARG_SIDES];
    dmi_map_scalar number[DMI_MAP_ARG_NUMBERS];
    unsigned char splat[DMI_MAP_ARG_SIDES]; /* groups: one element serves a whole group */
    dmi_map_linear linear;
} dmi_map_args;

#endif
