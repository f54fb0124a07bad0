/* A build without hwloc knows nothing of the host. */
#include "launch/placement/placement.h"

#include <stdio.h>
#include <string.h>

const bool dmi_topology_built = false;

dmi_topology *dmi_topology_load(void)
{
    return NULL;
}

void dmi_topology_free(dmi_topology *t)
{
    (void)t;
}

void dmi_topology_near(const dmi_topology *t, const char *bus, const cpu_set_t *cpus, dmi_near *out)
{
    (void)t;
    (void)bus;
    (void)cpus;
    memset(out, 0, sizeof *out);
    snprintf(out->numa, sizeof out->numa, "unknown");
    snprintf(out->card, sizeof out->card, "unknown");
}
