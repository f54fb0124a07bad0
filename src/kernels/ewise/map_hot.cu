/* Elementwise rows that have kernels of their own. */
#include "kernels/ewise/map.cuh"

map_launcher *dmi_cuda_map_hot_same(int row, dm_dtype dtype, bool groups)
{
    switch (row) {
#define HAS_DMI_HOT(name, form)                                                                                \
    case DMI_EW_##name:                                                                                        \
        return same_launcher<DMI_EW_##name, operands_of(DMI_FORM_##form)>(dtype, groups);
#define HAS_DMI_WARM(name, form)
#define HAS_DMI_COLD(name, form)
#define DMI_EW(name, form, domain, class, ...) HAS_DMI_##class(name, form)
#define DMI_EW_INNER DMI_EW
#include "kernels/ewise/ewise.def"
#undef DMI_EW
#undef DMI_EW_INNER
#undef HAS_DMI_HOT
    default:
        return NULL;
    }
}

void dmi_cuda_map_hot_any(dmi_queue *q, dmi_cuda_map *p, bool groups)
{
    switch (p->row) {
#define HAS_DMI_HOT(name, form)                                                                                \
    case DMI_EW_##name:                                                                                        \
        launch_any_in<DMI_EW_##name, DMI_HOT, operands_of(DMI_FORM_##form)>(q, p, groups);                     \
        break;
#define DMI_EW(name, form, domain, class, ...) HAS_DMI_##class(name, form)
#define DMI_EW_INNER DMI_EW
#include "kernels/ewise/ewise.def"
    default:
        dmi_cuda_failed(q, "elementwise kernel", -1, "not a row with kernels of its own");
    }
}
