/* NVRTC, the compiler of CUDA C++ in a library, opened when it is first needed and never linked: without it
 * elementwise programs are interpreted. */
#ifndef DMI_NVRTC_H
#define DMI_NVRTC_H

#include "base/base.h"

/* Its version; false: it is not found. The answer stays the same for the life of the process. */
bool dmi_nvrtc_version(int *major, int *minor);
/* Machine code for GPUs of a compute capability (90: 9.0), to be freed; NULL: there is none, and the log at
 * level debug says why. Calls from several threads at once are fine. */
void *dmi_nvrtc_compile(const char *source, int capability, size_t *bytes);

#endif
