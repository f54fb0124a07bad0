/* The loops of elementwise rows on the CPU. */
#ifndef DMI_EWISE_CPU_H
#define DMI_EWISE_CPU_H

#include "kernels/ewise/ewise.h"

/* n dense elements; out may be one of the operands where elements have one size. */
typedef void dmi_ewise_fn(void *out, const void *a, const void *b, const void *c, const dmi_number *s,
                          const dmi_number *t, int64_t n);
/* NULL where the row does not have the carrier. */
extern dmi_ewise_fn *const dmi_ewise_bool[DMI_EW_ROWS], *const dmi_ewise_i32[DMI_EW_ROWS],
    *const dmi_ewise_i64[DMI_EW_ROWS], *const dmi_ewise_u64[DMI_EW_ROWS], *const dmi_ewise_f32[DMI_EW_ROWS],
    *const dmi_ewise_f64[DMI_EW_ROWS], *const dmi_ewise_c64[DMI_EW_ROWS], *const dmi_ewise_c128[DMI_EW_ROWS];

#endif
