/* Places of elements as kernels take them. */
#include "kernels/cuda/launch.h"

_Static_assert((int)DMI_MAP_ARG_DIMS == (int)DM_MAX_DIMS, "map_args.h has room for all dims");

dmi_cuda_place dmi_cuda_place_of(const dmi_dimset *set, int64_t extent, int64_t whole)
{
    int64_t first = dmi_dimset_index(set, 0), raw = first + set->origin;
    return (dmi_cuda_place){.extent = extent,
                            .whole = whole,
                            .first = first,
                            .place = raw / set->block / set->g * set->block + raw % set->block,
                            .block = set->block,
                            .g = set->g,
                            .c = set->c,
                            .origin = set->origin};
}

/* Plain: the numbers grow as the indices do, by one along the innermost dim. */
void dmi_cuda_linear_of(const dmi_map_places *p, dmi_map_linear *out)
{
    int64_t number = 1, weight = 1;
    out->plain = true;
    for (int d = p ? p->ndim - 1 : -1; d >= 0; d--) {
        out->places.dim[out->places.ndim++] = dmi_cuda_place_of(&p->index[d], p->extent[d], p->whole[d]);
        out->plain = out->plain && (p->extent[d] == 1 || (number == weight && p->index[d].g == 1));
        out->base += dmi_dimset_index(&p->index[d], 0) * weight;
        number *= p->extent[d];
        weight *= p->whole[d];
    }
}
