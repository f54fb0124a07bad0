/* The choice of a place, and places in words. */
#include "launch/placement/placement.h"

#include <stdio.h>
#include <string.h>

void dmi_placement_choose(const dmi_near *near, const cpu_set_t *allowed, bool bind, dmi_placement *out)
{
    memset(out, 0, sizeof *out);
    if (bind && near->known) {
        CPU_AND(&out->cpus, &near->cpus, allowed);
        out->how = CPU_COUNT(&out->cpus) > 0 ? DMI_PLACEMENT_BOUND : DMI_PLACEMENT_KEPT;
    }
}

void dmi_placement_core(const cpu_set_t *allowed, int worker, dmi_placement *out)
{
    int left = worker % DMI_MAX(CPU_COUNT(allowed), 1);
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < CPU_SETSIZE && out->how != DMI_PLACEMENT_BOUND; i++) {
        if (CPU_ISSET(i, allowed) && left-- == 0) {
            CPU_SET(i, &out->cpus);
            out->how = DMI_PLACEMENT_BOUND;
        }
    }
}

bool dmi_placement_enter(const dmi_placement *placement, cpu_set_t *before)
{
    cpu_set_t was;
    if (placement->how != DMI_PLACEMENT_BOUND || sched_getaffinity(0, sizeof was, &was) != 0 ||
        sched_setaffinity(0, sizeof placement->cpus, &placement->cpus) != 0) {
        return false; /* a wish: it runs elsewhere too, only slower */
    }
    if (before) {
        *before = was;
    }
    return true;
}

void dmi_placement_leave(const cpu_set_t *before)
{
    (void)sched_setaffinity(0, sizeof *before, before);
}

/* --- in words --- */

/* Appends a text, or "..." if it does not fit; false: the text is full. */
static bool append(char *text, size_t room, const char *piece)
{
    static const char more[] = "...";
    size_t used = strlen(text), length = strlen(piece);
    bool fits = used + length + sizeof more <= room;
    memcpy(text + used, fits ? piece : more, (fits ? length : sizeof more - 1) + 1);
    return fits;
}

/* Numbers from..to as "3" or "3-5", with a comma where something stands before. */
static bool append_range(char *text, size_t room, bool first, int from, int to)
{
    char piece[48];
    if (from == to) {
        snprintf(piece, sizeof piece, "%s%d", first ? "" : ",", from);
    } else {
        snprintf(piece, sizeof piece, "%s%d-%d", first ? "" : ",", from, to);
    }
    return append(text, room, piece);
}

void dmi_cpus_describe(const cpu_set_t *cpus, char *text, size_t room)
{
    text[0] = 0;
    bool fits = true;
    for (int i = 0, last; i < CPU_SETSIZE && fits; i = last + 1) {
        last = i;
        if (!CPU_ISSET((size_t)i, cpus)) {
            continue;
        }
        while (last + 1 < CPU_SETSIZE && CPU_ISSET((size_t)last + 1, cpus)) {
            last++;
        }
        fits = append_range(text, room, text[0] == 0, i, last);
    }
}

void dmi_placement_describe(const dmi_near *near, const cpu_set_t *allowed, const dmi_placement *placement,
                            dmi_placement_report *out)
{
    snprintf(out->numa, sizeof out->numa, "%s", near->numa);
    snprintf(out->card, sizeof out->card, "%s", near->card);
    dmi_cpus_describe(placement->how == DMI_PLACEMENT_BOUND ? &placement->cpus : allowed, out->cpus,
                      sizeof out->cpus);
    if (placement->how == DMI_PLACEMENT_KEPT) {
        char near_cpus[DMI_CPUS_TEXT];
        dmi_cpus_describe(&near->cpus, near_cpus, sizeof near_cpus);
        snprintf(out->binding, sizeof out->binding, "as started: %s near the device may not be used",
                 near_cpus);
    } else {
        snprintf(out->binding, sizeof out->binding, "%s",
                 placement->how == DMI_PLACEMENT_BOUND ? "bound" : "as started");
    }
}

/* Whether a worker before `w` has the same transport: then it has been named. */
static bool named(const char *const *transport, int w)
{
    for (int i = 0; i < w; i++) {
        if (transport[i] && strcmp(transport[i], transport[w]) == 0) {
            return true;
        }
    }
    return false;
}

static bool same(const char *const *transport, int a, int b)
{
    return transport[b] && strcmp(transport[a], transport[b]) == 0;
}

void dmi_placement_peers(const char *const *transport, int workers, dmi_placement_report *out)
{
    char *text = out->peers;
    size_t room = sizeof out->peers;
    bool fits = true;
    text[0] = 0;
    for (int w = 0; w < workers && fits; w++) {
        if (!transport[w] || named(transport, w)) {
            continue;
        }
        char head[80];
        bool first = true;
        snprintf(head, sizeof head, "%s%s to ", text[0] ? ", " : "", transport[w]);
        fits = append(text, room, head);
        for (int i = w, last; i < workers && fits; i = last + 1) {
            last = i;
            if (!same(transport, w, i)) {
                continue;
            }
            while (last + 1 < workers && same(transport, w, last + 1)) {
                last++;
            }
            fits = append_range(text, room, first, i, last);
            first = false;
        }
    }
    if (text[0] == 0) {
        snprintf(text, room, "no peers");
    }
}

void dmi_placement_line(const dmi_placement_report *p, char line[DMI_PLACEMENT_LINE])
{
    snprintf(line, DMI_PLACEMENT_LINE,
             "worker %d: host %s, process %d, %s%s%s, NUMA %s, cpus %s (%s), network %s, %s", (int)p->worker,
             p->host, (int)p->pid, p->device, p->bus[0] ? " " : "", p->bus, p->numa, p->cpus, p->binding,
             p->card, p->peers);
}
