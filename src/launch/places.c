/* Which place a worker gets, and what is told of it. */
#include "launch/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void dmi_places_begin(const dmi_config *config, const dmi_device *device, dmi_places *out)
{
    *out = (dmi_places){.config = config, .device = device};
    out->restricted = sched_getaffinity(0, sizeof out->allowed, &out->allowed) == 0;
}

void dmi_places_end(dmi_places *p)
{
    dmi_topology_free(p->topology);
    p->topology = NULL;
}

/* Looking at a host takes milliseconds, so it is done when something depends on it. */
static const dmi_topology *look(dmi_places *p)
{
    if (!p->looked) {
        p->looked = true;
        p->topology = dmi_topology_load();
    }
    return p->topology;
}

void dmi_places_choose(dmi_places *p, int worker, int number, dmi_place *place, dmi_placement *told)
{
    /* The model is only printed, and CUDA is slow to return it. */
    size_t model_room = p->config->placement ? sizeof told->device : 0;
    bool bind = p->config->bind == DMI_BIND_AUTO && p->device && p->restricted;
    dmi_near near;
    memset(told, 0, sizeof *told);
    told->worker = worker;
    told->pid = (int32_t)getpid();
    dmi_host_name(told->host, sizeof told->host);
    if (!p->device) {
        snprintf(told->device, sizeof told->device, "cpu");
    } else if (p->device->name(number, told->bus, sizeof told->bus, told->device, model_room) != DM_OK) {
        dmi_log(DMI_LOG_INFO, "worker %d: %s", worker, dmi_error_text());
        snprintf(told->device, sizeof told->device, "GPU %d", number);
        told->bus[0] = 0;
    }
    bool look_up = p->config->placement || (bind && told->bus[0]);
    const char *bus = p->device ? told->bus : NULL; /* a device without an address is near to nothing we know */
    dmi_topology_near(look_up ? look(p) : NULL, bus, &p->allowed, &near);
    dmi_place_choose(&near, &p->allowed, bind, place);
    dmi_placement_describe(&near, &p->allowed, place, told);
    if (!p->restricted) {
        snprintf(told->cpus, sizeof told->cpus, "unknown");
    }
    if (place->how == DMI_PLACE_KEPT) {
        dmi_log(DMI_LOG_INFO, "worker %d runs on cpus %s, %s", worker, told->cpus, told->binding);
    }
}

void dmi_places_peers(const dmi_engine *e, dmi_placement *told)
{
    int workers = e->config.endpoints - 1;
    const char **transport = calloc((size_t)workers + 1, sizeof *transport);
    for (int w = 0; transport && w < workers; w++) {
        transport[w] = w == e->config.me ? NULL : dmi_engine_transport(e, w);
    }
    if (transport) {
        dmi_placement_peers(transport, workers, told);
    } else {
        snprintf(told->peers, sizeof told->peers, "peers unknown");
    }
    free(transport);
}
