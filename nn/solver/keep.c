/* Names in the session for what a training continues from: checkpoints of the whole session have them. */
#include "solver/solver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME = 64, NAME_ROOM = 256 };

/* Item number `at` of the solver; false: there are no more. */
static bool item_at(dm_solver *s, int at, char name[NAME_ROOM], dm_checkpoint_item *out)
{
    const int params = s->net->param_count, arrays = params + s->history_count;
    if (at < params) {
        const nn_param *p = s->net->params[at];
        snprintf(name, NAME_ROOM, "%s/%s/%d", s->kept, p->owner->name, p->number);
        *out = (dm_checkpoint_item)DM_KEEP_ARRAY(name, p->data);
    } else if (at < arrays) {
        snprintf(name, NAME_ROOM, "%s/history/%d", s->kept, at - params);
        *out = (dm_checkpoint_item)DM_KEEP_ARRAY(name, s->history[at - params]);
    } else {
        snprintf(name, NAME_ROOM, at == arrays ? "%s/iteration" : "%s/step", s->kept);
        *out = (dm_checkpoint_item)DM_KEEP_VALUE(name, at == arrays ? &s->iter : &s->step);
    }
    return at < arrays + 2;
}

/* The first `count` names go. */
static void forget(dm_solver *s, int count)
{
    char name[NAME_ROOM];
    dm_checkpoint_item item;
    for (int i = 0; i < count && item_at(s, i, name, &item); i++) {
        if (dm_keep(s->session, &(dm_checkpoint_item){.name = name}) != DM_OK) {
            nn_solver_log(s, "the name %s stays: %s", name, dm_error_message());
        }
    }
    free(s->kept);
    s->kept = NULL;
}

void nn_solver_unkeep(dm_solver *s)
{
    if (s->kept) {
        forget(s, s->net->param_count + s->history_count + 2);
    }
}

dm_status dm_solver_keep(dm_solver *s, const char *name)
{
    char full[NAME_ROOM], text[2048];
    dm_checkpoint_item item;
    dm_status status = DM_OK;
    int count = 0;
    if (!s || !name || !name[0] || strlen(name) >= MOST_NAME) {
        return dm_error_set(DM_ERR_ARG, "dm_solver_keep: solver must be there, name be 1 to %d characters",
                            MOST_NAME - 1);
    }
    if (s->kept) {
        return dm_error_set(DM_ERR_STATE, "dm_solver_keep: the solver has names, which begin with %s", s->kept);
    }
    s->kept = strdup(name);
    if (!s->kept) {
        return dm_error_no_memory("a name", strlen(name) + 1);
    }
    while (status == DM_OK && item_at(s, count, full, &item)) {
        dm_array other = DM_NO_ARRAY;
        status = item.array.id ? dm_kept_array(s->session, full, &other) : DM_OK;
        if (status == DM_OK && other.id) {
            status = dm_error_set(DM_ERR_ARG, "dm_solver_keep: another array has the name %s", full);
        } else if (status == DM_OK) {
            status = dm_keep(s->session, &item);
            count += status == DM_OK;
        }
    }
    for (int i = 0; i < s->net->param_count; i++) {
        nn_param_written(s->net->params[i], true); /* by their names */
    }
    if (status != DM_OK) {
        snprintf(text, sizeof text, "%s", dm_error_message());
        forget(s, count);
        return dm_error_set(status, "%s", text);
    }
    return DM_OK;
}
