/* The parameter of the kernels that are compiled for the reduction of an elementwise program. This
 * file is also compiled at run time, behind map_args.h, so it includes nothing. */
#ifndef DMI_REDUCE_ARGS_H
#define DMI_REDUCE_ARGS_H

/* A strided box, dims innermost first, at least one. Sides: the inputs, then what counts results or elements.
 */
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
        uint32_t *ticket;
        void *acc;
    } base;
    unsigned char last, ordered;
    unsigned char splat[DMI_MAP_ARG_SIDES]; /* groups: one element serves a whole group */
    int64_t place;
    dmi_cuda_places places;
    dmi_map_linear linear;
    const void *memory[DMI_MAP_ARG_SIDES];
    dmi_map_scalar number[DMI_MAP_ARG_NUMBERS];
    void *out;
} dmi_reduce_args;

#endif
