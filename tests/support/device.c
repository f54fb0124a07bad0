/* What the workers of a test compute on. */
#include "support/cases.h"

#include "base/config.h"
#include "exec/engine.h"

#include <stdlib.h>
#include <string.h>

bool dmt_on_cpu(void)
{
    const char *device = getenv("DMATH_DEVICE");
    bool emulated = device && strcmp(device, "emulated") == 0;
    const dmi_device *gpu = dmi_device_gpu(emulated ? DMI_DEVICE_EMULATED : DMI_DEVICE_AUTO);
    return (device && strcmp(device, "cpu") == 0) || !gpu || gpu->count() == 0;
}
