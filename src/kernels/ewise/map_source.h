/* CUDA C++ for an elementwise program. Pure text: nothing here needs CUDA. */
#ifndef DMI_MAP_SOURCE_H
#define DMI_MAP_SOURCE_H

#include "kernels/ewise/ewise.h"

#include <stdio.h>

/* The kernels of a source; both take a dmi_map_args. In GROUPS an item is dmi_map_group elements that are
 * consecutive and aligned on every side, in ITEMS it is one element. */
#define DMI_MAP_KERNEL_GROUPS "dmath_map_groups"
#define DMI_MAP_KERNEL_ITEMS "dmath_map_items"
/* Those of a source for tiles: of such groups, along both dims, and of elements. A thread block has a tile. */
#define DMI_MAP_KERNEL_TILES_OF_GROUPS "dmath_tiles_of_groups"
#define DMI_MAP_KERNEL_TILES_OF_ITEMS "dmath_tiles_of_items"

/* Is there a source for this program? */
bool dmi_map_has_source(const dmi_map *d);
/* Elements of an item of GROUPS: 16 bytes of the widest type. */
int dmi_map_group(const dmi_map *d);
int dmi_map_group_read(const dmi_map *d); /* of the inputs alone */
/* The source: of the program and the dtypes of d alone. To be freed; NULL: no memory. */
char *dmi_map_source(const dmi_map *d);
char *dmi_map_tile_source(const dmi_map *d);
int dmi_map_tile_edge(const dmi_map *d, bool groups); /* elements along each side of a tile */

/* --- for other kernels around a program */
const char *dmi_map_element_type(int dtype); /* types of elements in memory; NULL: no type */
const char *dmi_map_carrier_type(int dtype);
/* The beginning of a source: the embedded text, and the types in_type_0 and so on of the inputs. */
void dmi_map_write_types(FILE *to, const dmi_map *d);
/* What an input is at a place, `count` elements: "load_group<...>(...);". step: from the number of an element to the next
 * one's, of an input that is made. */
void dmi_map_write_load(FILE *to, const dmi_map *d, int input, const char *count, const char *at, const char *step);
/* The function program(p, x0, ...); args: the type of p, whose `number` it reads. result: its type, NULL: the carrier. */
void dmi_map_write_program(FILE *to, const dmi_map *d, const char *args, const char *result);

/* --- made by cmake/embed.cmake: the rows of ewise.def and what they use on GPUs */
extern const char dmi_map_text[];

#endif
