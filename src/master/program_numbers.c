/* Numbers of a program that the caller may give anew before a run. A number is an array that lives in the
 * program only, and a fill that is recorded in front of the calls that read it. The number of that fill comes
 * with a run. */
#include "master/recording.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>

static const dmi_named *find(const dmi_named *named, int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(named[i].name, name) == 0) {
            return &named[i];
        }
    }
    return NULL;
}

static dm_status check_name(const dmi_recording *r, const char *name)
{
    const size_t room = sizeof r->named->name;
    if (!name) {
        return dmi_fail(DM_ERR_ARG, "program_number: name is NULL");
    }
    if (!name[0] || strlen(name) >= room) {
        return dmi_fail(DM_ERR_ARG, "program_number: name has %zu characters, not 1 to %zu", strlen(name),
                        room - 1);
    }
    if (find(r->named, r->nameds, name)) {
        return dmi_fail(DM_ERR_ARG, "program_number: name: the program has a number `%s` already", name);
    }
    return DM_OK;
}

/* A copy on every worker of the group that has begun, else of the session. */
static dm_status make(dmi_session *s, dm_dtype dtype, double value, dm_array *out)
{
    const dm_layout everywhere = dm_layout_replicated(s->public_handle);
    dm_array a;
    dm_status status = dm_array_create(s->public_handle, dtype, 0, NULL, &everywhere, &a);
    if (status != DM_OK) {
        return status;
    }
    status = dm_fill(s->public_handle, a, value);
    if (status != DM_OK) {
        return dmi_array_release(s->public_handle, a, status);
    }
    *out = a;
    return DM_OK;
}

dm_status dm_program_number(dm_session *session, const char *name, dm_dtype dtype, double value, dm_array *out)
{
    dmi_session *s;
    dm_array a = {0};
    dm_status status = dmi_enter(session, &s);
    dmi_recording *r = status == DM_OK ? s->recording : NULL;
    if (status == DM_OK && !r) {
        status = dmi_fail(DM_ERR_STATE, "program_number: no program is being recorded");
    }
    if (status == DM_OK && !out) {
        status = dmi_fail(DM_ERR_ARG, "program_number: out is NULL");
    }
    if (status != DM_OK || (status = check_name(r, name)) != DM_OK) {
        return status;
    }
    if (!dmi_record_room(&r->named, &r->named_room, r->nameds, 1, sizeof *r->named) ||
        !dmi_record_room(&r->named_id, &r->named_id_room, r->nameds, 1, sizeof *r->named_id)) {
        return dmi_fail(DM_ERR_NOMEM, "program_number: no memory for a number");
    }
    if ((status = make(s, dtype, value, &a)) != DM_OK) {
        return status;
    }
    dmi_call *fill = &r->p.call[r->p.calls - 1];
    fill->seeds |= DMI_GIVEN_ANEW;
    dmi_named *named = &r->named[r->nameds];
    *named = (dmi_named){.call = r->p.calls - 1, .at = r->p.numbers - fill->numbers};
    strcpy(named->name, name);
    r->named_id[r->nameds++] = a.id;
    *out = a;
    return DM_OK;
}

void dmi_numbers_end(dmi_session *s, dmi_recording *r)
{
    for (int i = 0; i < r->nameds; i++) {
        const uint32_t slot = dmi_id_slot(r->named_id[i]);
        if (s->handle[slot].live && dmi_handle_id(s, slot) == r->named_id[i]) {
            dmi_array_drop(s, (dm_array){r->named_id[i]});
        }
    }
}

dm_status dmi_number_set(dmi_recorded *r, const char *name, double value)
{
    const dmi_named *found = name ? find(r->named, r->nameds, name) : NULL;
    if (!found) {
        return dmi_fail(DM_ERR_ARG,
                        name ? "program_set_number: name: the program has no number `%s`"
                             : "program_set_number: name is NULL",
                        name);
    }
    dmi_named *named = &r->named[found - r->named];
    dmi_call fill = r->p.call[named->call];
    fill.number[0] = (dmi_number){.re = value};
    fill.called = dmi_api_number();
    dm_status status = dmi_ops[fill.op].check(&fill);
    if (status == DM_OK) {
        r->p.call[named->call].number[0] = fill.number[0]; /* as the check has made it */
        r->given += !named->given;
        named->given = true;
    }
    return status;
}

void dmi_numbers_put(dmi_recorded *r, dmi_given_number *to)
{
    for (int i = 0; i < r->nameds && r->given > 0; i++) {
        dmi_named *named = &r->named[i];
        if (named->given) {
            *to++ = (dmi_given_number){named->at, r->p.call[named->call].number[0]};
            named->given = false;
            r->given--;
        }
    }
}
