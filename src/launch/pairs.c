/* GPUs of workers that are threads: can they write each other's memory, and how fast? Tests with real bytes,
 * because drivers have reported it wrongly. */
#include "launch/pairs.h"

#include <string.h>

#define LINK_BYTES (INT64_C(32) << 20)

/* Writes a pattern into a's memory, copies it to b's memory on a's stream, and checks it. */
static dm_status try_pair(const dmi_device *device, dmi_engine *a, dmi_engine *b, dmi_allocation *from,
                          dmi_allocation *to)
{
    unsigned char sent[DMI_PROBE_BYTES], got[DMI_PROBE_BYTES] = {0};
    double seconds;
    for (int i = 0; i < DMI_PROBE_BYTES; i++) {
        sent[i] = dmi_probe_byte(a->config.me, b->config.me, i);
    }
    dm_status status = device->use(b->config.device_number);
    status = status == DM_OK ? device->put(to->base, got, sizeof got) : status;
    status = status == DM_OK ? device->use(a->config.device_number) : status;
    status = status == DM_OK ? device->put(from->base, sent, sizeof sent) : status;
    status = status == DM_OK ? device->carry(a, to->base, from->base, sizeof sent, 1, &seconds) : status;
    status = status == DM_OK ? device->use(b->config.device_number) : status;
    status = status == DM_OK ? device->get(got, to->base, sizeof got) : status;
    return status == DM_OK && memcmp(sent, got, sizeof sent) != 0
               ? dmi_fail(DM_ERR_TRANSPORT, "bytes from GPU %d to GPU %d come out wrong",
                          a->config.device_number, b->config.device_number)
               : status;
}

/* A pool takes memory of the thread's current device, and writes its red zones there. */
static dm_status take(const dmi_device *device, dmi_engine *e, dmi_allocation *out)
{
    dm_status status = device->use(e->config.device_number);
    return status == DM_OK ? dmi_pool_alloc(e->config.pool, DMI_PROBE_BYTES, DMI_OWNER_STAGING, out) : status;
}

static void give_back(const dmi_device *device, dmi_engine *e, dmi_allocation *allocation)
{
    dmi_stamp now = {{0}};
    if (allocation->base) {
        (void)!device->use(e->config.device_number);
        (void)!dmi_pool_free(e->config.pool, allocation, &now);
    }
}

static dm_status connect_pair(const dmi_device *device, dmi_engine *a, dmi_engine *b)
{
    dmi_allocation from = {0}, to = {0};
    dm_status status = device->connect(a, b->config.me, b);
    status = status == DM_OK ? take(device, a, &from) : status;
    status = status == DM_OK ? take(device, b, &to) : status;
    status = status == DM_OK ? try_pair(device, a, b, &from, &to) : status;
    give_back(device, a, &from);
    give_back(device, b, &to);
    return status;
}

dm_status dmi_pairs_connect(const dmi_device *device, dmi_engine *const *engine, int workers,
                            const int *host_of)
{
    dm_status status = DM_OK;
    for (int a = 0; a < workers && status == DM_OK; a++) {
        for (int b = 0; b < workers && status == DM_OK; b++) {
            if (a != b && (!host_of || host_of[a] == host_of[b])) {
                status = connect_pair(device, engine[a], engine[b]);
            }
        }
    }
    for (int w = 0; w < workers && status != DM_OK; w++) {
        device->disconnect(engine[w]);
    }
    return status;
}

dm_status dmi_pairs_rates(const dmi_device *device, dmi_engine *const *engine, int workers, dmi_rates *out)
{
    double seconds = 0;
    int gpus = DMI_MIN(device->count(), workers);
    *out = (dmi_rates){0};
    if (workers < 2) { /* there is nothing to choose */
        return DM_OK;
    }
    dm_status status = device->rates(engine[0], out); /* the GPUs of a host are alike */
    if (status == DM_OK && out->memory > 0 && gpus > 1) {
        status = device->bare_ring(gpus, LINK_BYTES, 4, &seconds);
        out->link = (double)LINK_BYTES / seconds;
    }
    dmi_rates_round(out);
    return status;
}
