/* The counters of each group at a worker. A group has the place in the table that the session gives it. Its
 * first command makes its counters, or takes those of a destroyed group; after that there is no more to do than
 * to find them. */
#include "comm/frames.h"
#include "worker/worker.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(dmi_worker *w, uint32_t place)
{
    if (place < w->group_room) {
        return true;
    }
    uint32_t room = 2 * place + 4;
    dmi_group_counts **grown = realloc(w->of_group, room * sizeof(dmi_group_counts *));
    if (grown) {
        memset(grown + w->group_room, 0, (room - w->group_room) * sizeof(dmi_group_counts *));
        w->of_group = grown;
        w->group_room = room;
    }
    return grown != NULL;
}

/* One of a former group that no command in flight counts in, or a new one; NULL: no memory. */
static dmi_group_counts *take_unused(dmi_worker *w)
{
    dmi_group_counts **at = &w->former;
    while (*at && (*at)->refs > 0) {
        at = &(*at)->next;
    }
    dmi_group_counts *unused = *at;
    if (unused) {
        *at = unused->next;
        memset(unused, 0, sizeof *unused);
    }
    return unused ? unused : calloc(1, sizeof *unused);
}

dm_status dmi_group_counts_of(dmi_worker *w, uint32_t group, uint32_t place, dmi_group_counts **out)
{
    dmi_group_counts *there = place < w->group_room ? w->of_group[place] : NULL;
    *out = there && there->group == group ? there : NULL;
    if (*out || group == 0 || (there && there->group > group)) {
        return DM_OK;
    }
    dmi_group_counts *fresh = make_room(w, place) ? take_unused(w) : NULL;
    if (!fresh) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the counters of a group");
    }
    if (there) { /* numbers grow: its group has been destroyed */
        there->next = w->former;
        w->former = there;
    }
    fresh->group = group;
    *out = w->of_group[place] = fresh;
    return DM_OK;
}

void dmi_worker_count_plan(dmi_worker *w, dmi_group_counts *of_group, bool reused)
{
    dmi_counts *all = &w->engine.port->tally.all;
    atomic_fetch_add_explicit(reused ? &all->plans_reused : &all->plans_made, 1, memory_order_relaxed);
    if (of_group) {
        dmi_counts *c = &of_group->counts;
        atomic_fetch_add_explicit(reused ? &c->plans_reused : &c->plans_made, 1, memory_order_relaxed);
    }
}

void dmi_group_begun(dmi_instance *inst)
{
    dmi_group_counts *g = inst->of_group;
    if (g) {
        g->refs++;
        g->commands += g->last != inst->command;
        g->last = inst->command;
    }
}

void dmi_group_retired(dmi_instance *inst)
{
    if (inst->of_group) {
        inst->of_group->refs--;
    }
}

static void store(atomic_int_fast64_t *at, int64_t value)
{
    atomic_store_explicit(at, value, memory_order_relaxed);
}

void dmi_group_tell(dmi_worker *w, const void *frame)
{
    const dmi_group_frame *f = frame;
    dmi_tally *tally = &w->engine.port->tally;
    const dmi_group_counts *g = f->group_place < w->group_room ? w->of_group[f->group_place] : NULL;
    g = g && g->group == f->group ? g : NULL;
    const atomic_int_fast64_t *from = g ? (const atomic_int_fast64_t *)(const void *)&g->counts : NULL;
    atomic_int_fast64_t *to = (atomic_int_fast64_t *)(void *)&tally->of_group;
    for (int i = 0; i < DMI_COUNTS; i++) {
        store(&to[i], from ? atomic_load_explicit(&from[i], memory_order_relaxed) : 0);
    }
    store(&tally->group_commands, g ? g->commands : 0);
    store(&tally->group, f->group);
}

void dmi_group_counts_clear(dmi_worker *w)
{
    for (uint32_t i = 0; i < w->group_room; i++) {
        free(w->of_group[i]);
    }
    free(w->of_group);
    w->of_group = NULL;
    w->group_room = 0;
    while (w->former) {
        dmi_group_counts *former = w->former;
        w->former = former->next;
        free(former);
    }
}
