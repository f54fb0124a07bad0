/* CUDA C++ for the reduction of an elementwise program. Pure text: nothing here needs CUDA. */
#ifndef DMI_REDUCE_SOURCE_H
#define DMI_REDUCE_SOURCE_H

#include "kernels/ewise/ewise.h"
#include "kernels/reduce/reduction.h"

/* The kernels of a source; all take a dmi_reduce_args. In GROUPS an item is dmi_map_group_read elements that
 * are consecutive and aligned in every input, else it is one element. */
#define DMI_REDUCE_KERNELS(X) X(along_groups) X(along_items) X(across_groups) X(across_items)
enum {
#define X(name) DMI_REDUCE_KERNEL_##name,
    DMI_REDUCE_KERNELS(X)
#undef X
};

/* The source: of the row, the program and the dtypes of d alone; that of its out is the elements'. To be freed;
 * NULL: there is none, or no memory. */
char *dmi_reduce_source(int row, const dmi_map *d);

/* --- made by cmake/embed.cmake: the rows of reduce.def and the loops around them */
extern const char dmi_reduce_text[];

#endif
