/* Workspace of reductions: of programs on GPUs. */
#include "kernels/kernel.h"

enum { ALIGNED = 256 };

int64_t dmi_reduce_room(const dmi_reduce *d)
{
    int64_t elements = 1;
    for (int dim = 0; dim < d->ndim; dim++) {
        elements *= d->extent[dim];
    }
    int64_t bytes = DMI_MIN(elements, DMI_REDUCE_PIECE) * dmi_dtype_bytes(d->dtype);
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

int64_t dmi_reduce_workspace(const void *desc, const dmi_device_facts *facts)
{
    const dmi_reduce *d = desc;
    int64_t elements = 1, kept = 1;
    if (!d->map || !facts->gpu || facts->emulated) { /* emulated GPUs run the CPU's */
        return 0;
    }
    for (int dim = 0; dim < d->ndim; dim++) {
        elements *= d->extent[dim];
        kept *= d->reduced >> dim & 1 ? 1 : d->extent[dim];
    }
    int64_t states = elements > DMI_REDUCE_PIECE ? DMI_MIN(kept, DMI_REDUCE_PIECE) : 0;
    return dmi_reduce_room(d) + states * dmi_acc_bytes(dmi_acc_for(d->row, d->dtype));
}
