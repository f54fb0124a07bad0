/* Placements of workers: the CPUs of their threads, and the report of option placement. */
#ifndef DMI_PLACEMENTS_H
#define DMI_PLACEMENTS_H

#include "base/config.h"
#include "exec/engine.h"
#include "launch/placement/placement.h"

/* What the workers of this process choose their placements from. */
typedef struct dmi_placements {
    const dmi_config *config;
    const dmi_device *device; /* of all of them; NULL: the CPU */
    bool looked;
    dmi_topology *topology;
    bool restricted;   /* allowed is known */
    cpu_set_t allowed; /* where this process was started to run: no placement goes beyond it */
} dmi_placements;

/* By the thread whose CPUs the process was given, before anything changes them. */
void dmi_placements_begin(const dmi_config *config, const dmi_device *device, dmi_placements *out);
void dmi_placements_end(dmi_placements *p);
/* The placement of a worker with GPU `number`, and its report without the transports to its peers. */
void dmi_placements_choose(dmi_placements *p, int worker, int number, dmi_placement *placement,
                           dmi_placement_report *report);
/* The ways to its peers, once they are settled. */
void dmi_placements_peers(const dmi_engine *e, dmi_placement_report *report);

#endif
