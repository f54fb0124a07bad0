/* Recording: calls between dm_program_begin and dm_program_end. */
#include "master/recording.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool dmi_record_room(void *table, int *room, int count, int more, size_t size)
{
    void **at = table;
    int n = *room ? *room : 8;
    while (n < count + more) {
        n *= 2;
    }
    if (n == *room) {
        return true;
    }
    void *grown = realloc(*at, (size_t)n * size);
    if (grown) {
        *at = grown;
        *room = n;
    }
    return grown != NULL;
}

dm_status dm_program_begin(dm_session *session)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && (s->recording || s->explaining)) {
        status = dmi_fail(DM_ERR_STATE, "program_begin: %s",
                          s->recording ? "a program is already being recorded"
                                       : "calls are being explained (dm_explain_begin)");
    }
    if (status != DM_OK) {
        return status;
    }
    s->recording = calloc(1, sizeof *s->recording);
    if (!s->recording) {
        return dmi_fail(DM_ERR_NOMEM, "program_begin: no memory for a program");
    }
    s->recording->scopes = s->scopes;
    return DM_OK;
}

dm_status dm_program_advance_seeds(dm_session *session)
{
    dmi_session *s;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && !s->recording) {
        status = dmi_fail(DM_ERR_STATE, "program_advance_seeds: no program is being recorded");
    }
    if (status == DM_OK) {
        s->recording->advance = true;
    }
    return status;
}

uint64_t dm_program_seed(uint64_t seed, int64_t run)
{
    return dmi_program_seed(seed, run);
}

bool dmi_record_outside(const dmi_session *s)
{
    return s->scopes <= s->recording->scopes;
}

int dmi_record_part(const dmi_session *s)
{
    return s->recording ? s->recording->marks : 0;
}

bool dmi_record_hidden(dmi_session *s, uint32_t slot)
{
    dmi_recording *r = s->recording;
    if (!dmi_record_room(&r->hidden, &r->hidden_room, r->hiddens, 1, sizeof *r->hidden)) {
        r->lost = true;
        return false;
    }
    r->hidden[r->hiddens++] = slot;
    return true;
}

int dmi_record_array(dmi_recording *r, const dmi_operand *o)
{
    dmi_program *p = &r->p;
    for (int i = 0; i < p->arrays; i++) {
        dmi_program_array *a = &p->array[i];
        if (a->id == o->id) {
            a->mode = dmi_record_mode(a->mode, o->mode);
            return i;
        }
    }
    if (!dmi_record_room(&p->array, &r->array_room, p->arrays, 1, sizeof *p->array)) {
        return -1;
    }
    p->array[p->arrays] =
        (dmi_program_array){.id = o->id, .desc = o->desc, .memory = o->memory, .mode = o->mode};
    return p->arrays++;
}

dm_status dmi_record(dmi_session *s, const dmi_call *call)
{
    dmi_recording *r = s->recording;
    dmi_program *p = &r->p;
    assert(!(dmi_ops[call->op].attributes & DMI_ALONE)); /* such calls wait, and are refused for that */
    if (p->numbers + call->numbers > UINT16_MAX || p->calls == UINT16_MAX - 1) { /* dmi_step.number, .call */
        return dmi_fail(DM_ERR_LIMIT, "%s: the program has too many calls", dmi_call_name(call));
    }
    dmi_call copy = *call;
    void *tail = call->tail_bytes > 0 ? malloc((size_t)call->tail_bytes) : NULL;
    bool ok = (tail || call->tail_bytes == 0) && dmi_record_room(&p->call, &r->call_room, p->calls, 1, sizeof *p->call) &&
              dmi_record_room(&p->number, &r->number_room, p->numbers, call->numbers, sizeof *p->number);
    for (int i = 0; i < call->noperand && ok; i++) {
        int number = call->operand[i].mode ? dmi_record_array(r, &call->operand[i]) : 0;
        ok = number >= 0;
        copy.operand[i].id = (uint64_t)number;
    }
    if (!ok) {
        free(tail);
        return dmi_fail(DM_ERR_NOMEM, "%s: no memory for a program", dmi_call_name(call));
    }
    if (tail) {
        memcpy(tail, call->tail, (size_t)call->tail_bytes);
    }
    copy.seeds = r->advance ? call->seeds : 0;
    copy.tail = tail;
    copy.names = NULL;
    copy.recorded = (uint16_t)(p->calls + 1);
    if (call->numbers > 0) {
        memcpy(p->number + p->numbers, call->number, (size_t)call->numbers * sizeof *call->number);
    }
    p->numbers += call->numbers;
    p->call[p->calls++] = copy;
    p->recorded = p->calls;
    return DM_OK;
}

void dmi_program_free(dmi_program *p)
{
    for (int i = 0; i < p->calls; i++) {
        free((void *)(uintptr_t)p->call[i].tail);
    }
    free(p->call);
    free(p->array);
    free(p->number);
}

void dmi_recording_free(dmi_recording *r)
{
    if (r) {
        dmi_program_free(&r->p);
        free(r->hidden);
        free(r->mark);
        free(r->named);
        free(r->named_id);
        free(r);
    }
}
