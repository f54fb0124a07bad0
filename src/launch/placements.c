/* Chooses and reports the placement of a worker. */
#include "launch/placements.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void dmi_placements_begin(const dmi_config *config, const dmi_device *device, dmi_placements *out)
{
    *out = (dmi_placements){.config = config, .device = device};
    out->restricted = sched_getaffinity(0, sizeof out->allowed, &out->allowed) == 0;
}

void dmi_placements_end(dmi_placements *p)
{
    dmi_topology_free(p->topology);
    p->topology = NULL;
}

/* Reads the host's topology only if something depends on it: it takes milliseconds. */
static const dmi_topology *look(dmi_placements *p)
{
    if (!p->looked) {
        p->looked = true;
        p->topology = dmi_topology_load();
    }
    return p->topology;
}

void dmi_placements_choose(dmi_placements *p, int worker, int number, dmi_placement *placement,
                           dmi_placement_report *report)
{
    /* The model is only printed, and CUDA is slow to return it. */
    size_t model_room = p->config->placement ? sizeof report->device : 0;
    bool bind = p->config->bind != DMI_BIND_NONE && p->device && p->restricted;
    dmi_near near;
    memset(report, 0, sizeof *report);
    report->worker = worker;
    report->pid = (int32_t)getpid();
    dmi_host_name(report->host, sizeof report->host);
    if (!p->device) {
        snprintf(report->device, sizeof report->device, "cpu");
    } else if (p->device->name(number, report->bus, sizeof report->bus, report->device, model_room) != DM_OK) {
        dmi_log(DMI_LOG_INFO, "worker %d: %s", worker, dmi_error_text());
        snprintf(report->device, sizeof report->device, "GPU %d", number);
        report->bus[0] = 0;
    }
    bool look_up = p->config->placement || (bind && report->bus[0]);
    const char *bus =
        p->device ? report->bus : NULL; /* a device without an address is near to nothing we know */
    dmi_topology_near(look_up ? look(p) : NULL, bus, &p->allowed, &near);
    if (!p->device && p->config->bind == DMI_BIND_CORES && p->restricted) {
        dmi_placement_core(&p->allowed, worker, placement);
    } else {
        dmi_placement_choose(&near, &p->allowed, bind, placement);
    }
    dmi_placement_describe(&near, &p->allowed, placement, report);
    if (!p->restricted) {
        snprintf(report->cpus, sizeof report->cpus, "unknown");
    }
    if (placement->how == DMI_PLACEMENT_KEPT) {
        dmi_log(DMI_LOG_INFO, "worker %d runs on cpus %s, %s", worker, report->cpus, report->binding);
    }
}

void dmi_placements_peers(const dmi_engine *e, dmi_placement_report *report)
{
    int workers = e->config.endpoints - 1;
    const char **transport = calloc((size_t)workers + 1, sizeof *transport);
    for (int w = 0; transport && w < workers; w++) {
        transport[w] = w == e->config.me ? NULL : dmi_engine_transport(e, w);
    }
    if (transport) {
        dmi_placement_peers(transport, workers, report);
    } else {
        snprintf(report->peers, sizeof report->peers, "peers unknown");
    }
    free(transport);
}
