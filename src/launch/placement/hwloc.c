/* The host as hwloc sees it. GPUs are found by their PCI address among hwloc's own PCI devices: its plugins for
 * CUDA, OpenCL and the like would start those libraries in processes that may have no use for them, and that for PCI
 * leaks; the kernel's files name PCI devices as well. */
#include "launch/placement/placement.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dmi_topology {
    hwloc_topology_t host;
};

const bool dmi_topology_built = true;

dmi_topology *dmi_topology_load(void)
{
    static const char *const not_wanted[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "pci"};
    dmi_topology *t = calloc(1, sizeof *t);
    if (!t || hwloc_topology_init(&t->host) != 0) {
        free(t);
        return NULL;
    }
    for (int i = 0; i < DMI_COUNT(not_wanted); i++) { /* fails for those that are not installed */
        (void)hwloc_topology_set_components(t->host, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, not_wanted[i]);
    }
    if (hwloc_topology_set_io_types_filter(t->host, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 ||
        hwloc_topology_load(t->host) != 0) {
        dmi_log(DMI_LOG_INFO, "hwloc cannot describe this host: workers stay where they are started");
        dmi_topology_free(t);
        return NULL;
    }
    return t;
}

void dmi_topology_free(dmi_topology *t)
{
    if (t) {
        hwloc_topology_destroy(t->host);
        free(t);
    }
}

/* --- the nearest network card --- */

static int level(hwloc_obj_t o)
{
    int n = 0;
    for (; o->parent; o = o->parent) {
        n++;
    }
    return n;
}

/* hwloc's own search goes by depths, which I/O objects do not have. */
static int shared_level(hwloc_obj_t a, hwloc_obj_t b)
{
    int la = level(a), lb = level(b);
    for (; la > lb; la--) {
        a = a->parent;
    }
    for (; lb > la; lb--) {
        b = b->parent;
    }
    for (; a != b; la--) {
        a = a->parent;
        b = b->parent;
    }
    return la;
}

/* A card is one device for verbs and one for IP, at the same place: the former names it. */
static void nearest_card(hwloc_topology_t t, hwloc_obj_t from, char out[DMI_PLACE_TEXT])
{
    int best = -1;
    snprintf(out, DMI_PLACE_TEXT, "none");
    for (hwloc_obj_t o = hwloc_get_next_osdev(t, NULL); o; o = hwloc_get_next_osdev(t, o)) {
        bool verbs = o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
        if (!verbs && o->attr->osdev.type != HWLOC_OBJ_OSDEV_NETWORK) {
            continue;
        }
        int score = 2 * shared_level(from, o) + verbs;
        if (score > best) {
            best = score;
            snprintf(out, DMI_PLACE_TEXT, "%s", o->name ? o->name : "nameless");
        }
    }
}

/* --- what is near --- */

static void take_cpus(hwloc_const_bitmap_t from, cpu_set_t *out)
{
    CPU_ZERO(out);
    for (int i = hwloc_bitmap_first(from); i >= 0 && i < CPU_SETSIZE; i = hwloc_bitmap_next(from, i)) {
        CPU_SET((size_t)i, out);
    }
}

/* The object of the machine that the I/O device is attached to; near CPUs: the least that has them all. */
static hwloc_obj_t anchor(hwloc_topology_t t, const char *bus, const cpu_set_t *cpus, hwloc_bitmap_t nodes,
                          hwloc_obj_t *from)
{
    if (bus) {
        *from = hwloc_get_pcidev_by_busidstring(t, bus);
        hwloc_obj_t at = *from ? hwloc_get_non_io_ancestor_obj(t, *from) : NULL;
        return at && at->nodeset && hwloc_bitmap_copy(nodes, at->nodeset) == 0 ? at : NULL;
    }
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    for (int i = 0; set && i < CPU_SETSIZE; i++) {
        if (CPU_ISSET((size_t)i, cpus)) {
            (void)hwloc_bitmap_set(set, (unsigned)i);
        }
    }
    if (set) { /* a host described by a file may have fewer than this one */
        (void)hwloc_bitmap_and(set, set, hwloc_topology_get_topology_cpuset(t));
    }
    *from = set ? hwloc_get_obj_covering_cpuset(t, set) : NULL;
    bool found = *from && hwloc_cpuset_to_nodeset(t, set, nodes) == 0;
    hwloc_bitmap_free(set);
    return found ? *from : NULL;
}

void dmi_topology_near(const dmi_topology *topology, const char *bus, const cpu_set_t *cpus, dmi_near *out)
{
    hwloc_topology_t t = topology ? topology->host : NULL;
    hwloc_bitmap_t nodes = t ? hwloc_bitmap_alloc() : NULL;
    hwloc_obj_t from = NULL, at = nodes ? anchor(t, bus, cpus, nodes, &from) : NULL;
    memset(out, 0, sizeof *out);
    out->known = at != NULL;
    snprintf(out->numa, sizeof out->numa, "unknown");
    snprintf(out->card, sizeof out->card, "unknown");
    if (at) {
        hwloc_obj_t node = hwloc_bitmap_weight(nodes) == 1
                               ? hwloc_get_numanode_obj_by_os_index(t, (unsigned)hwloc_bitmap_first(nodes))
                               : NULL;
        take_cpus(node ? node->cpuset : at->cpuset, &out->cpus);
        (void)hwloc_bitmap_list_snprintf(out->numa, sizeof out->numa, nodes);
        nearest_card(t, from, out->card);
    }
    hwloc_bitmap_free(nodes);
}
