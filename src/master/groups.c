/* Groups: some of the workers, as a handle. The master alone knows them; workers learn from each command who
 * takes part, and in which group it was given. */
#include "base/sized.h"
#include "master/session.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct dmi_group {
    uint32_t number;    /* from 1: no other group of the session has it, before or after */
    uint32_t place;     /* in the session's table */
    int count, begun;   /* begun: how many dm_group_begin are open */
    int *map, map_room; /* of an explicit layout, with numbers of the session */
    int worker[];
};

/* The place of the group of that number in the table; 0: of the first free one. group_places: there is none. */
static uint32_t place_of(const dmi_session *s, uint32_t number)
{
    uint32_t at = 0;
    while (at < s->group_places && (s->group[at] ? s->group[at]->number : 0) != number) {
        at++;
    }
    return at;
}

static dm_status find(dmi_session *s, dm_group group, struct dmi_group **out)
{
    uint32_t number = (uint32_t)group.id;
    bool made = group.id >> 32 == s->number && number > 0 && number <= s->groups;
    uint32_t at = made ? place_of(s, number) : s->group_places;
    if (at == s->group_places) {
        return dmi_fail(DM_ERR_HANDLE, "%s: group %s", dmi_api_called(),
                        made ? "has been destroyed" : "is not a group of this session");
    }
    *out = s->group[at];
    return DM_OK;
}

static dm_status enter(dm_session *session, dm_group group, dmi_session **s, struct dmi_group **out)
{
    dm_status status = dmi_enter(session, s);
    return status == DM_OK ? find(*s, group, out) : status;
}

static dm_status check_workers(const dmi_session *s, const int *workers, int count)
{
    if (count < 1 || count > s->workers || !workers) {
        return workers ? dmi_fail(DM_ERR_ARG, "group_create: count is %d, not 1 to %d", count, s->workers)
                       : dmi_fail(DM_ERR_ARG, "group_create: workers is NULL");
    }
    bool *taken = calloc((size_t)s->workers, sizeof *taken);
    dm_status status = taken ? DM_OK : dmi_fail(DM_ERR_NOMEM, "group_create: no memory for a group");
    for (int i = 0; i < count && status == DM_OK; i++) {
        int w = workers[i];
        if (w < 0 || w >= s->workers || taken[w]) {
            status = dmi_fail(DM_ERR_ARG, "group_create: workers[%d] is %d%s", i, w,
                              w < 0 || w >= s->workers ? ", which is no worker of the session"
                                                       : ", for the second time");
        } else {
            taken[w] = true;
        }
    }
    free(taken);
    return status;
}

dm_status dm_group_create(dm_session *session, const int *workers, int count, dm_group *out)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && !out) {
        status = dmi_fail(DM_ERR_ARG, "group_create: out is NULL");
    }
    if (status != DM_OK || (status = check_workers(s, workers, count)) != DM_OK) {
        return status;
    }
    uint32_t at = place_of(s, 0);
    if (at >= DMI_MOST_GROUPS) {
        return dmi_fail(DM_ERR_LIMIT, "group_create: the session has %d groups already", DMI_MOST_GROUPS);
    }
    struct dmi_group **table =
        at < s->group_places ? s->group : realloc(s->group, (at + 1) * sizeof(struct dmi_group *));
    struct dmi_group *g = calloc(1, sizeof *g + (size_t)count * sizeof *g->worker);
    s->group = table ? table : s->group;
    if (!table || !g) {
        free(g);
        return dmi_fail(DM_ERR_NOMEM, "group_create: no memory for a group");
    }
    g->count = count;
    g->number = ++s->groups;
    g->place = at;
    memcpy(g->worker, workers, (size_t)count * sizeof *g->worker);
    s->group_places = DMI_MAX(s->group_places, at + 1);
    s->group[at] = g;
    out->id = (uint64_t)s->number << 32 | g->number;
    return DM_OK;
}

static void free_group(struct dmi_group *g)
{
    if (g) {
        free(g->map);
        free(g);
    }
}

dm_status dm_group_destroy(dm_session *session, dm_group group)
{
    dmi_session *s;
    struct dmi_group *g = NULL;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || group.id == 0 || (status = find(s, group, &g)) != DM_OK) {
        return status;
    }
    if (g->begun > 0) {
        return dmi_fail(DM_ERR_STATE, "group_destroy: the group has begun: call dm_group_end first");
    }
    s->group[g->place] = NULL;
    free_group(g);
    return DM_OK;
}

dm_status dm_group_begin(dm_session *session, dm_group group)
{
    dmi_session *s;
    struct dmi_group *g = NULL;
    dm_status status = enter(session, group, &s, &g);
    if (status == DM_OK && s->open_groups == DMI_OPEN_GROUPS) {
        status = dmi_fail(DM_ERR_LIMIT, "group_begin: %d groups have begun and not ended", s->open_groups);
    }
    if (status == DM_OK) {
        g->begun++;
        s->open_group[s->open_groups++] = g;
    }
    return status;
}

dm_status dm_group_end(dm_session *session)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && s->open_groups == 0) {
        status = dmi_fail(DM_ERR_STATE, "group_end: no group has begun");
    }
    if (status == DM_OK) {
        s->open_group[--s->open_groups]->begun--;
    }
    return status;
}

dm_status dm_group_workers(dm_session *session, dm_group group, int room, int *workers, int *count)
{
    dmi_session *s;
    struct dmi_group *g = NULL;
    dm_status status = enter(session, group, &s, &g);
    if (status != DM_OK) {
        return status;
    }
    if (!count || (workers && room < g->count)) {
        return count ? dmi_fail(DM_ERR_ARG, "group_workers: room is %d, but the group has %d workers", room,
                                g->count)
                     : dmi_fail(DM_ERR_ARG, "group_workers: count is NULL");
    }
    *count = g->count;
    if (workers) {
        memcpy(workers, g->worker, (size_t)g->count * sizeof *workers);
    }
    return DM_OK;
}

/* Waits for the group's workers alone. */
static dm_status wait_for(dmi_session *s, const struct dmi_group *g, uint64_t command, int64_t until_ns)
{
    s->awaited = g->worker;
    s->awaiting = g->count;
    dm_status status = dmi_wait_until(s, command, until_ns);
    s->awaited = NULL;
    if (status == DM_OK || status == DM_ERR_PENDING) {
        return status;
    }
    char *text = strdup(dmi_error_text());
    (void)!dmi_wait_done(s, dmi_wait_mark(s), 0); /* what failed is spread when all have done it */
    status = dmi_fail(status, "%s", text ? text : "no memory for the reason");
    free(text);
    return status;
}

dm_status dm_group_sync(dm_session *session, dm_group group)
{
    dmi_session *s;
    struct dmi_group *g = NULL;
    dm_status status = enter(session, group, &s, &g);
    return status == DM_OK ? wait_for(s, g, s->command, 0) : status;
}

dm_status dm_group_wait(dm_session *session, dm_group group, double seconds, int *done)
{
    dmi_session *s;
    struct dmi_group *g = NULL;
    dm_status status = enter(session, group, &s, &g);
    if (status == DM_OK && (!done || seconds != seconds)) {
        return dmi_fail(DM_ERR_ARG, "group_wait: %s", done ? "seconds is NaN" : "done is NULL");
    }
    if (status == DM_OK) {
        status = wait_for(s, g, s->command, dmi_deadline(seconds));
        *done = status == DM_OK ? 1 : status == DM_ERR_PENDING ? 0 : *done;
    }
    return status == DM_ERR_PENDING ? DM_OK : status;
}

static bool has(const struct dmi_group *g, int worker)
{
    for (int i = 0; i < g->count; i++) {
        if (g->worker[i] == worker) {
            return true;
        }
    }
    return false;
}

dm_status dmi_group_transferred(dmi_session *s, const dmi_layout *layout, uint64_t command, int64_t until_ns)
{
    const struct dmi_group *g = s->open_groups > 0 ? s->open_group[s->open_groups - 1] : NULL;
    for (int w = 0; g && w < s->workers; w++) {
        g = dmi_layout_shard_count(layout, w) == 0 || has(g, w) ? g : NULL;
    }
    return g ? wait_for(s, g, command, until_ns) : dmi_wait_until(s, command, until_ns);
}

/* Asks all workers what they have done for the group: an answer is there when the group's have done the
 * command. */
static dm_status ask_counters(dmi_session *s, const struct dmi_group *g)
{
    dm_status status = dmi_wait_room(s);
    if (status == DM_OK) {
        dmi_group_frame *f = dmi_frame_begin(s, sizeof *f, DMI_FRAME_GROUP, 0);
        f->group = g->number;
        f->group_place = g->place;
        dmi_frame_send(s);
        status = wait_for(s, g, s->command, 0);
    }
    return status;
}

dm_status dm_group_counters(dm_session *session, dm_group group, dm_counters *out)
{
    dmi_session *s;
    struct dmi_group *g = NULL;
    dm_status status = out ? dmi_sized_check(out, DMI_SIZED_LEAST(dm_counters, plans_reused),
                                             "group_counters: out: set size to sizeof(dm_counters)")
                           : dmi_fail(DM_ERR_ARG, "group_counters: out is NULL");
    if (status != DM_OK || (status = enter(session, group, &s, &g)) != DM_OK ||
        (status = wait_for(s, g, s->command, 0)) != DM_OK || (status = ask_counters(s, g)) != DM_OK) {
        return status;
    }
    dm_counters sum = {0};
    for (int i = 0; i < g->count; i++) {
        const dmi_tally *t = &dmi_hub_port(&s->hub, g->worker[i])->tally;
        dm_counters c = dmi_counters_from(&t->of_group, atomic_load(&t->group_commands));
        assert(atomic_load(&t->group) == g->number);
        sum.commands += c.commands;
        sum.steps += c.steps;
        sum.bytes_sent += c.bytes_sent;
        sum.bytes_received += c.bytes_received;
        sum.messages_sent += c.messages_sent;
        sum.messages_received += c.messages_received;
        sum.flops += c.flops;
        sum.workspace_peak_bytes = DMI_MAX(sum.workspace_peak_bytes, c.workspace_peak_bytes);
        sum.plans_made += c.plans_made;
        sum.plans_reused += c.plans_reused;
    }
    dmi_sized_give(&sum, sizeof sum, out);
    return DM_OK;
}

/* --- layouts in a group --- */

int dmi_group_size(const dmi_session *s)
{
    return s->open_groups > 0 ? s->open_group[s->open_groups - 1]->count : s->workers;
}

int dmi_groups_leave(dmi_session *s)
{
    int open = s->open_groups;
    s->open_groups = 0;
    return open;
}

void dmi_groups_back(dmi_session *s, int open)
{
    s->open_groups = open;
}

void dmi_group_mark(const dmi_session *s, uint32_t *group, uint32_t *place)
{
    const struct dmi_group *g = s->open_groups > 0 ? s->open_group[s->open_groups - 1] : NULL;
    *group = g ? g->number : 0;
    *place = g ? g->place : 0;
}

static dm_status translate_map(struct dmi_group *g, dmi_layout_spec *spec)
{
    if (spec->map_count > g->map_room) {
        int *map = realloc(g->map, (size_t)spec->map_count * sizeof *map);
        if (!map) {
            return dmi_fail(DM_ERR_NOMEM, "layout: no memory for its tables");
        }
        g->map = map;
        g->map_room = (int)spec->map_count;
    }
    for (int64_t i = 0; i < spec->map_count; i++) {
        if (spec->map[i] < 0 || spec->map[i] >= g->count) {
            return dmi_fail(DM_ERR_LAYOUT, "layout: map[%lld] is %d, but the group has %d workers",
                            (long long)i, spec->map[i], g->count);
        }
        g->map[i] = g->worker[spec->map[i]];
    }
    spec->map = g->map;
    return DM_OK;
}

dm_status dmi_group_place(dmi_session *s, const dm_layout *layout, dmi_layout_spec *spec)
{
    struct dmi_group *g = s->open_groups > 0 ? s->open_group[s->open_groups - 1] : NULL;
    if (!g || (layout && layout->workers && layout->kind != 2)) {
        return DM_OK;
    }
    if (layout && layout->kind == 2) {
        spec->workers = &g->worker[layout->single];
        return DM_OK;
    }
    spec->workers = g->worker;
    if (spec->kind == DMI_LAYOUT_EXPLICIT) {
        spec->nworkers = g->count;
        return spec->map ? translate_map(g, spec) : DM_OK;
    }
    int64_t need = spec->replicas ? spec->replicas : 1;
    for (int d = 0; d < spec->ndim && need <= g->count; d++) {
        need *= spec->grid[d];
    }
    if (need < 1 || need > g->count) {
        return dmi_fail(DM_ERR_LAYOUT,
                        "layout: its grid and replicas take %s workers than the group has, which are %d",
                        need < 1 ? "fewer" : "more", g->count);
    }
    spec->nworkers = (int)need;
    return DM_OK;
}

dm_status dmi_group_apply(dmi_session *s, dmi_call *call)
{
    const struct dmi_group *g = s->open_groups > 0 ? s->open_group[s->open_groups - 1] : NULL;
    uint64_t members = g ? 0 : UINT64_MAX;
    if (g && s->workers > 64) {
        return dmi_fail(DM_ERR_UNSUPPORTED, "%s in a group: the session has %d workers, more than 64",
                        dmi_call_name(call), s->workers);
    }
    for (int i = 0; g && i < g->count; i++) {
        members |= UINT64_C(1) << g->worker[i];
    }
    call->args.i[DMI_APPLY_MEMBERS] = (int32_t)(uint32_t)members;
    call->args.i[DMI_APPLY_MEMBERS + 1] = (int32_t)(uint32_t)(members >> 32);
    return DM_OK;
}

void dmi_groups_free(dmi_session *s)
{
    for (uint32_t i = 0; i < s->group_places; i++) {
        free_group(s->group[i]);
    }
    free(s->group);
}
