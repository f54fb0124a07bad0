#ifndef DMI_EMULATED_GEMM_H
#define DMI_EMULATED_GEMM_H

#include "device/emulated/emulated.h"
#include "kernels/gemm/gemm.h"

/* Puts a product on the stream; false: no memory. */
DM_CHECKED bool dmi_emu_gemm(dmi_emu_stream *s, const dmi_gemm *d, double alpha, const void *a, const void *b,
                             double beta, void *c, void *workspace);

#endif
