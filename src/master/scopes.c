/* Scopes: arrays and views that are destroyed together. Each open scope has a list of the handles made in it.
 */
#include "master/session.h"

#include <stdio.h>
#include <stdlib.h>

static void link_to(dmi_session *s, uint32_t slot, uint32_t scope)
{
    dmi_handle *h = &s->handle[slot];
    h->scope = scope;
    if (scope == 0) {
        return;
    }
    uint32_t *head = &s->scope[scope - 1];
    h->scope_prev = 0;
    h->scope_next = *head;
    if (*head) {
        s->handle[*head].scope_prev = slot;
    }
    *head = slot;
}

void dmi_scope_join(dmi_session *s, uint32_t slot)
{
    link_to(s, slot, s->scopes);
}

void dmi_scope_leave(dmi_session *s, uint32_t slot)
{
    dmi_handle *h = &s->handle[slot];
    if (h->scope == 0) {
        return;
    }
    if (h->scope_prev) {
        s->handle[h->scope_prev].scope_next = h->scope_next;
    } else {
        s->scope[h->scope - 1] = h->scope_next;
    }
    if (h->scope_next) {
        s->handle[h->scope_next].scope_prev = h->scope_prev;
    }
    h->scope = 0;
}

dm_status dm_scope_begin(dm_session *session)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK) {
        return status;
    }
    if (s->scopes == s->scope_room) {
        uint32_t room = s->scope_room ? 2 * s->scope_room : 8;
        uint32_t *grown = realloc(s->scope, room * sizeof *grown);
        if (!grown) {
            return dmi_fail(DM_ERR_NOMEM, "scope_begin: no memory for a scope");
        }
        s->scope = grown;
        s->scope_room = room;
    }
    s->scope[s->scopes++] = 0;
    return DM_OK;
}

static dm_status check_keep(dmi_session *s, const dm_array *keep, int nkeep)
{
    if (s->scopes == 0) {
        return dmi_fail(DM_ERR_STATE, "scope_end: no scope is open");
    }
    if (s->recording && dmi_record_outside(s)) {
        return dmi_fail(DM_ERR_STATE, "scope_end: the scope was open before the program that is being recorded");
    }
    if (nkeep < 0 || (nkeep > 0 && !keep)) {
        return dmi_fail(DM_ERR_ARG,
                        nkeep < 0 ? "scope_end: nkeep is %d" : "scope_end: keep is NULL, but nkeep is %d",
                        nkeep);
    }
    for (int i = 0; i < nkeep; i++) {
        dmi_handle *unused;
        char name[24];
        snprintf(name, sizeof name, "keep[%d]", i);
        dm_status status = keep[i].id ? dmi_handle_find(s, keep[i], name, &unused) : DM_OK;
        if (status != DM_OK) {
            return status;
        }
    }
    return DM_OK;
}

static void mark_kept(dmi_session *s, const dm_array *keep, int nkeep, bool kept)
{
    for (int i = 0; i < nkeep; i++) {
        if (keep[i].id) {
            s->handle[dmi_id_slot(keep[i].id)].kept = kept;
        }
    }
}

dm_status dm_scope_end(dm_session *session, const dm_array *keep, int nkeep)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status != DM_OK || (status = check_keep(s, keep, nkeep)) != DM_OK) {
        return status;
    }
    mark_kept(s, keep, nkeep, true);
    uint32_t *head = &s->scope[s->scopes - 1];
    while (*head) {
        uint32_t slot = *head;
        if (s->handle[slot].kept) {
            dmi_scope_leave(s, slot);
            link_to(s, slot, s->scopes - 1);
        } else {
            dmi_array_drop(s, (dm_array){dmi_id_make(s->number, s->handle[slot].generation, slot)});
        }
    }
    s->scopes--;
    mark_kept(s, keep, nkeep, false);
    return DM_OK;
}
