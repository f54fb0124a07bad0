/* Places of workers, their devices and executors: which CPUs their threads run on, and what is told of it. */
#ifndef DMI_PLACES_H
#define DMI_PLACES_H

#include "base/config.h"
#include "exec/engine.h"
#include "launch/placement/place.h"

/* What the workers of this process choose their places from. */
typedef struct dmi_places {
    const dmi_config *config;
    const dmi_device *device; /* of all of them; NULL: the CPU */
    bool looked;
    dmi_topology *topology;
    bool restricted;   /* allowed is known */
    cpu_set_t allowed; /* where this process was started to run: no place goes beyond it */
} dmi_places;

/* By the thread whose CPUs the process was given, before anything changes them. */
void dmi_places_begin(const dmi_config *config, const dmi_device *device, dmi_places *out);
void dmi_places_end(dmi_places *p);
/* The place of a worker with GPU `number`, and all that is told of it but the ways to its peers. */
void dmi_places_choose(dmi_places *p, int worker, int number, dmi_place *place, dmi_placement *told);
/* The ways to its peers, once they are settled. */
void dmi_places_peers(const dmi_engine *e, dmi_placement *told);

#endif
