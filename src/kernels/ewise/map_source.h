/* CUDA C++ for an elementwise program. Pure text: nothing here needs CUDA. */
#ifndef DMI_MAP_SOURCE_H
#define DMI_MAP_SOURCE_H

#include "kernels/ewise/ewise.h"

/* The kernels of a source; both take a dmi_map_args. In GROUPS an item is dmi_map_group elements that are
 * consecutive and aligned on every side, in ITEMS it is one element. */
#define DMI_MAP_KERNEL_GROUPS "dmath_map_groups"
#define DMI_MAP_KERNEL_ITEMS "dmath_map_items"

/* Is there a source for this program? */
bool dmi_map_has_source(const dmi_map *d);
/* Elements of an item of GROUPS: 16 bytes of the widest type. */
int dmi_map_group(const dmi_map *d);
/* The source: of the program and the dtypes of d alone. To be freed; NULL: no memory. */
char *dmi_map_source(const dmi_map *d);

/* --- made by cmake/embed.cmake: the rows of ewise.def and what they use on GPUs */
extern const char dmi_map_text[];

#endif
