/* Slabs of a GPU's memory. Red zones and debug fill are written and checked synchronously, on no stream. That
 * is safe because the pool's caller first waits for all users of the allocation. */
#include "exec/gpu/gpu.h"

#include <string.h>

enum { ZONE_AT_ONCE = 1024 };

static void *get_device(void *context, int index, int64_t bytes)
{
    dmi_port *port = context;
    if (port && index >= DMI_MAX_SLABS) {
        dmi_log(DMI_LOG_ERROR, "more than %d slabs: set a larger slab size (option slab)", DMI_MAX_SLABS);
        return NULL;
    }
    void *at = dmi_cu_malloc(bytes);
    dmi_cu_handle handle;
    if (at && port) {
        if (dmi_cu_export(at, &handle) == DM_OK) {
            memcpy(port->slab_handle[index], handle.bytes, sizeof handle.bytes);
            atomic_fetch_add(&port->slab_serial[index], 1);
        } else {
            dmi_log(DMI_LOG_WARN, "%s", dmi_error_text());
        }
    }
    return at;
}

/* A peer that has it mapped closes that first: to free it before is undefined. */
static bool held(void *context, int index)
{
    dmi_port *port = context;
    return port && index < DMI_MAX_SLABS && atomic_load(&port->slab_users[index]) > 0;
}

static void release_device(void *context, int index, void *base, int64_t bytes)
{
    (void)context;
    (void)index;
    (void)bytes;
    dmi_cu_release(base);
}

/* --- debug pools --- */

static void report(dm_status status)
{
    if (status != DM_OK) {
        dmi_log(DMI_LOG_ERROR, "cannot check red zones in GPU memory: %s", dmi_error_text());
    }
}

static void fill_zone(void *context, void *at, int64_t bytes)
{
    char zone[ZONE_AT_ONCE];
    dmi_redzone_fill(context, zone, sizeof zone);
    for (int64_t i = 0; i < bytes; i += ZONE_AT_ONCE) {
        report(dmi_cu_move((char *)at + i, zone, DMI_MIN(bytes - i, ZONE_AT_ONCE)));
    }
}

static bool check_zone(void *context, const void *at, int64_t bytes)
{
    char zone[ZONE_AT_ONCE];
    bool right = true;
    for (int64_t i = 0; i < bytes && right; i += ZONE_AT_ONCE) {
        int64_t n = DMI_MIN(bytes - i, ZONE_AT_ONCE);
        dm_status status = dmi_cu_move(zone, (const char *)at + i, n);
        report(status);
        right = status != DM_OK || dmi_redzone_check(context, zone, n);
    }
    return right;
}

static void debug_fill_device(void *context, void *at, int64_t bytes)
{
    (void)context;
    report(dmi_cu_set(at, DMI_DEBUG_FILL, bytes));
}

dmi_slab_ops dmi_gpu_slabs(dmi_port *port)
{
    return (dmi_slab_ops){.context = port,
                          .get = get_device,
                          .give_back = release_device,
                          .held = held,
                          .fill = fill_zone,
                          .check = check_zone,
                          .debug_fill = debug_fill_device};
}
