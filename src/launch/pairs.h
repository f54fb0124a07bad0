#ifndef DMI_PAIRS_H
#define DMI_PAIRS_H

#include "exec/engine.h"

/* Connects and tests every pair of workers of a (simulated) host. If one pair fails, none is connected. */
DM_CHECKED dm_status dmi_pairs_connect(const dmi_device *device, dmi_engine *const *engine, int workers,
                                       const int *host_of);
enum { DMI_PROBE_BYTES = 256 };
/* Byte i of the test data that worker `from` writes into memory of worker `to`. */
static inline unsigned char dmi_probe_byte(int from, int to, int i)
{
    return (unsigned char)(from * 89 + to * 53 + i * 11 + 3);
}
/* Measures the rates for the profile; leaves them 0 on devices whose times mean nothing (emulated GPUs). */
DM_CHECKED dm_status dmi_pairs_rates(const dmi_device *device, dmi_engine *const *engine, int workers, dmi_rates *out);
/* To steps of 19 %, so that runs choose alike. */
void dmi_rates_round(dmi_rates *r);

#endif
