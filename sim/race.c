/* Are all steps of one endpoint that touch the same bytes ordered?
 *
 * What is known to be done when a step starts is a stamp, one position a lane: lanes finish in order, so "n
 * steps of that lane" says it all. Known at the start: what the waits name and what was known when those steps
 * finished; what was known at the start of the step before in the lane; on a compute lane also that step
 * itself (pushes and grants of one lane may overlap). Bytes are cut where any access begins or ends; each range
 * keeps the last reader and writer of each lane, which is enough for the same reason. */
#include "sim/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct known {
    uint32_t n[DMI_LANES];
} known;

typedef struct place { /* a step */
    known start;
    uint32_t ordinal;
    int32_t call, index; /* in the plan: counted from 0 */
    uint8_t lane, kind;
} place;

typedef struct access {
    uint64_t from, to;
    uint32_t place;
    uint8_t rw, ref_kind;
    uint16_t ref_index;
} access;

typedef struct range {
    uint32_t read[DMI_LANES], write[DMI_LANES];
    int32_t written_by; /* call + 1 */
} range;

struct dmi_race {
    int me, call, index;
    dmi_sim_report *report;
    place *place;
    access *access;
    size_t places, place_room, accesses, access_room;
    known *done[DMI_LANES];  /* by position in the lane, from 1 on */
    uint32_t *at[DMI_LANES]; /* which place */
    uint32_t count[DMI_LANES], room[DMI_LANES];
    const dmi_step *step;
    /* while touching */
    uint64_t base;
    int ref, rw;
    bool failed;
};

dmi_race *dmi_race_new(int me, dmi_sim_report *report)
{
    dmi_race *r = calloc(1, sizeof *r);
    if (r) {
        r->me = me;
        r->call = -1;
        r->report = report;
    }
    return r;
}

void dmi_race_free(dmi_race *r)
{
    if (r) {
        for (int l = 0; l < DMI_LANES; l++) {
            free(r->done[l]);
            free(r->at[l]);
        }
        free(r->place);
        free(r->access);
        free(r);
    }
}

/* Room for one more. */
static bool grow(void *table, size_t *room, size_t count, size_t size)
{
    void **at = table;
    if (count < *room) {
        return true;
    }
    size_t n = *room ? 2 * *room : 256;
    void *grown = realloc(*at, n * size);
    if (grown) {
        *at = grown;
        *room = n;
    }
    return grown != NULL;
}

static bool lane_grow(dmi_race *r, int lane)
{
    size_t done_room = r->room[lane], at_room = r->room[lane];
    if (!grow(&r->done[lane], &done_room, r->count[lane] + 1, sizeof(known)) ||
        !grow(&r->at[lane], &at_room, r->count[lane] + 1, sizeof(uint32_t))) {
        return false;
    }
    r->room[lane] = (uint32_t)done_room;
    return true;
}

static void merge(known *into, const known *from)
{
    for (int l = 0; l < DMI_LANES; l++) {
        into->n[l] = DMI_MAX(into->n[l], from->n[l]);
    }
}

bool dmi_race_step(dmi_race *r, int call, const dmi_step *step, const dmi_stamp *at, const dmi_stamp *wait)
{
    int lane = step->lane;
    if (!lane_grow(r, lane) || !grow(&r->place, &r->place_room, r->places, sizeof *r->place)) {
        return false;
    }
    r->index = call == r->call ? r->index + 1 : 0;
    r->call = call;
    r->step = step;
    uint32_t before = r->count[lane];
    place *p = &r->place[r->places];
    *p = (place){
        .ordinal = before + 1, .call = call, .index = r->index, .lane = (uint8_t)lane, .kind = step->kind};
    if (at->seq[lane] != p->ordinal) {
        dmi_sim_note(r->report, DMI_SIM_ORDER,
                     "endpoint %d: call %d step %d (%s) is number %" PRIu64 " of its lane, not %u", r->me, call,
                     r->index, dmi_step_name(step->kind), at->seq[lane], p->ordinal);
    }
    if (before > 0) {
        merge(&p->start,
              dmi_lane_computes(lane) ? &r->done[lane][before] : &r->place[r->at[lane][before]].start);
    }
    for (int l = 0; l < DMI_LANES; l++) {
        uint64_t n = wait->seq[l];
        if (n > r->count[l]) {
            dmi_sim_note(r->report, DMI_SIM_ORDER,
                         "endpoint %d: call %d step %d (%s) waits for a step made later", r->me, call, r->index,
                         dmi_step_name(step->kind));
        } else if (n > 0) {
            merge(&p->start, &r->done[l][n]);
        }
    }
    known done = p->start;
    if (before > 0) {
        merge(&done, &r->done[lane][before]);
    }
    done.n[lane] = p->ordinal;
    r->done[lane][p->ordinal] = done;
    r->at[lane][p->ordinal] = (uint32_t)r->places++;
    r->count[lane] = p->ordinal;
    for (int l = 0; l < DMI_LANES; l++) {
        r->report->closure = (r->report->closure ^ p->start.n[l]) * UINT64_C(0x9e3779b97f4a7c15);
        r->report->closure ^= r->report->closure >> 31;
    }
    return true;
}

static void add_access(void *context, int64_t from, int64_t to)
{
    dmi_race *r = context;
    if (r->failed || !grow(&r->access, &r->access_room, r->accesses, sizeof *r->access)) {
        r->failed = true;
        return;
    }
    const dmi_ref *ref = &r->step->ref[r->ref];
    r->access[r->accesses++] = (access){r->base + (uint64_t)from,
                                        r->base + (uint64_t)to,
                                        (uint32_t)r->places - 1,
                                        (uint8_t)r->rw,
                                        ref->kind,
                                        ref->index};
}

bool dmi_race_touch(dmi_race *r, int ref, const dmi_touch *touch, uint64_t base)
{
    r->base = base;
    r->ref = ref;
    r->rw = touch->rw;
    dmi_sim_walk(touch, add_access, r);
    return !r->failed;
}

/* --- checking --- */

/* Ascending, by bytes that differ among them. other: room for as many. Returns where the result is. */
static uint64_t *radix_sort(uint64_t *v, uint64_t *other, size_t n)
{
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++) {
        differ |= v[i] ^ v[0];
    }
    for (int shift = 0; shift < 64; shift += 8) {
        size_t start[257] = {0};
        if (!(differ >> shift & 255)) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            start[(v[i] >> shift & 255) + 1]++;
        }
        for (int b = 0; b < 256; b++) {
            start[b + 1] += start[b];
        }
        for (size_t i = 0; i < n; i++) {
            other[start[v[i] >> shift & 255]++] = v[i];
        }
        uint64_t *swap = v;
        v = other;
        other = swap;
    }
    return v;
}

static size_t find(const uint64_t *cut, size_t n, uint64_t value)
{
    size_t lo = 0, hi = n;
    while (lo + 1 < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (cut[mid] <= value) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static const char *memory_text(const access *a, char text[48])
{
    static const char *const kinds[] = {"nothing", "operand", "workspace", "the caller's memory"};
    snprintf(text, 48, "%s %d", kinds[a->ref_kind], a->ref_index);
    return text;
}

static void tell_race(dmi_race *r, const access *a, int lane, uint32_t ordinal, bool other_writes)
{
    const place *p = &r->place[a->place], *q = &r->place[r->at[lane][ordinal]];
    char text[48];
    dmi_sim_note(r->report, DMI_SIM_RACE,
                 "endpoint %d: call %d step %d (%s) %s %s while call %d step %d (%s) may still %s there", r->me,
                 p->call, p->index, dmi_step_name(p->kind), a->rw & DMI_WRITE ? "writes" : "reads",
                 memory_text(a, text), q->call, q->index, dmi_step_name(q->kind),
                 other_writes ? "write" : "read");
}

/* One access to one range; true if it raced. */
static bool check_range(dmi_race *r, const access *a, range *at)
{
    const place *p = &r->place[a->place];
    for (int l = 0; l < DMI_LANES; l++) {
        bool own = l == p->lane; /* the step itself comes with several references */
        uint32_t write = own && at->write[l] == p->ordinal ? 0 : at->write[l];
        uint32_t read = !(a->rw & DMI_WRITE) || (own && at->read[l] == p->ordinal) ? 0 : at->read[l];
        if (write > p->start.n[l] || read > p->start.n[l]) {
            tell_race(r, a, l, write > p->start.n[l] ? write : read, write > p->start.n[l]);
            return true;
        }
    }
    return false;
}

static void apply_access(dmi_race *r, const access *a, range *ranges, size_t first, size_t last)
{
    const place *p = &r->place[a->place];
    bool raced = false, unset = false;
    for (size_t i = first; i < last; i++) {
        range *at = &ranges[i];
        raced = raced || check_range(r, a, at);
        unset = unset || ((a->rw & DMI_READ) && a->ref_kind == DMI_REF_WORK && at->written_by != p->call + 1);
        if (a->rw & DMI_WRITE) {
            at->write[p->lane] = p->ordinal;
            at->written_by = p->call + 1;
        }
        if (a->rw & DMI_READ) {
            at->read[p->lane] = p->ordinal;
        }
    }
    if (unset) {
        char text[48];
        dmi_sim_note(r->report, DMI_SIM_UNSET,
                     "endpoint %d: call %d step %d (%s) reads %s where nothing was written", r->me, p->call,
                     p->index, dmi_step_name(p->kind), memory_text(a, text));
    }
}

bool dmi_race_check(dmi_race *r)
{
    size_t n = 2 * r->accesses, cuts = 0;
    if (n == 0) {
        return true;
    }
    uint64_t *points = malloc(2 * n * sizeof *points);
    range *ranges = NULL;
    if (!points) {
        return false;
    }
    for (size_t i = 0; i < r->accesses; i++) {
        points[2 * i] = r->access[i].from;
        points[2 * i + 1] = r->access[i].to;
    }
    uint64_t *cut = radix_sort(points, points + n, n);
    for (size_t i = 0; i < n; i++) {
        if (cuts == 0 || cut[cuts - 1] != cut[i]) {
            cut[cuts++] = cut[i];
        }
    }
    ranges = calloc(cuts, sizeof *ranges);
    for (size_t i = 0; i < r->accesses && ranges; i++) {
        const access *a = &r->access[i];
        apply_access(r, a, ranges, find(cut, cuts, a->from), find(cut, cuts, a->to));
    }
    bool ok = ranges != NULL;
    free(ranges);
    free(points);
    return ok;
}
