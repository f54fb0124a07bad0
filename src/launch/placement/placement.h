/* Placement of workers: the CPUs, the memory and the network card near a device, and the report of it. Nothing
 * here knows devices or executors; src/launch/placements.c asks them. */
#ifndef DMI_PLACEMENT_H
#define DMI_PLACEMENT_H

#include "base/base.h"

#include <sched.h>

enum { DMI_PLACE_TEXT = 32, DMI_CPUS_TEXT = 128 };

/* --- hwloc.c, or unknown.c where the build has no hwloc --------------------------------------------------- */
extern const bool dmi_topology_built; /* does the build have hwloc? */
/* The hardware of this host. NULL: unknown; every call accepts it. */
typedef struct dmi_topology dmi_topology;
dmi_topology *dmi_topology_load(void);
void dmi_topology_free(dmi_topology *t);

typedef struct dmi_near {
    bool known;                /* the rest means something */
    cpu_set_t cpus;            /* of the NUMA node; of several nodes if the device is as near to all of them */
    char numa[DMI_PLACE_TEXT]; /* "1", "0-1" */
    char card[DMI_PLACE_TEXT]; /* the network card that shares the deepest part of the machine: "mlx5_0"; "none"
                                */
} dmi_near;
/* The hardware near the device with that PCI address ("0000:1b:00.0"); bus NULL: near these CPUs. */
void dmi_topology_near(const dmi_topology *t, const char *bus, const cpu_set_t *cpus, dmi_near *out);

/* --- placement.c ------------------------------------------------------------------------------------------ */
/* STARTED: threads stay where they were started. KEPT: the same, because the process may not use any CPU near
 * the device. */
enum dmi_placement_how { DMI_PLACEMENT_STARTED, DMI_PLACEMENT_BOUND, DMI_PLACEMENT_KEPT };
typedef struct dmi_placement {
    int how;
    cpu_set_t cpus; /* BOUND: where the worker's threads run */
} dmi_placement;

/* allowed: where the process may run; a placement never goes beyond it. */
void dmi_placement_choose(const dmi_near *near, const cpu_set_t *allowed, bool bind, dmi_placement *out);
/* The CPUs that the process may use, one for each worker, from the first one on again where there are more workers. */
void dmi_placement_core(const cpu_set_t *allowed, int worker, dmi_placement *out);
/* The calling thread, and the threads it starts from now on, run there. True: it has moved; then *before (may
 * be NULL) is where it ran. */
bool dmi_placement_enter(const dmi_placement *placement, cpu_set_t *before);
void dmi_placement_leave(const cpu_set_t *before);
/* "0-3,8"; what does not fit ends in "...". */
void dmi_cpus_describe(const cpu_set_t *cpus, char *text, size_t room);

/* The report of a worker's placement. Its size is fixed, because it goes from process to process as bytes. */
typedef struct dmi_placement_report {
    int32_t worker, pid;
    char host[64];
    char device[80], bus[DMI_PLACE_TEXT]; /* bus "": it has no PCI address */
    char numa[DMI_PLACE_TEXT], card[DMI_PLACE_TEXT];
    char cpus[DMI_CPUS_TEXT];
    char binding[64 + DMI_CPUS_TEXT]; /* "bound", "as started", and why */
    char peers[256];                  /* "ipc to 1-3, staged mpi to 4-7" */
} dmi_placement_report;
enum { DMI_PLACEMENT_LINE = 1024 };

void dmi_placement_describe(const dmi_near *near, const cpu_set_t *allowed, const dmi_placement *placement,
                            dmi_placement_report *out);
/* transport[i]: the transport to worker i; NULL: i is this worker. */
void dmi_placement_peers(const char *const *transport, int workers, dmi_placement_report *out);
/* All of it in one line, without an end of line. */
void dmi_placement_line(const dmi_placement_report *p, char line[DMI_PLACEMENT_LINE]);

#endif
