/* The operands of a run: the arrays that were recorded, or what bindings put in their place. */
#include "master/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dm_status find_operand(dmi_session *s, const dmi_program *p, int i, uint64_t id, const dmi_handle **out)
{
    uint32_t slot = dmi_id_slot(id);
    if (slot >= s->handles || dmi_handle_id(s, slot) != id || !dmi_handle_there(&s->handle[slot])) {
        char text[192];
        dmi_desc_describe(&p->array[i].desc, text, sizeof text);
        return dmi_fail(DM_ERR_HANDLE, "%s: an array of the program has been destroyed: %s", dmi_api_called(),
                        text);
    }
    *out = &s->handle[slot];
    return DM_OK;
}

/* May an array stand for one that was recorded? */
static dm_status check_binding(int which, const dmi_desc *recorded, const dmi_desc *now)
{
    bool shape = recorded->ndim == now->ndim &&
                 memcmp(recorded->extent, now->extent, (size_t)now->ndim * sizeof *now->extent) == 0;
    bool layout = recorded->layout_id == now->layout_id &&
                  memcmp(recorded->lo, now->lo, (size_t)now->ndim * sizeof *now->lo) == 0 &&
                  memcmp(recorded->skip, now->skip, (size_t)now->ndim * sizeof *now->skip) == 0;
    if (!shape || !layout || recorded->dtype != now->dtype) {
        char a[192], b[192], how[128];
        dmi_desc_describe(recorded, a, sizeof a);
        dmi_desc_describe(now, b, sizeof b);
        dmi_desc_difference(now, recorded, how, sizeof how);
        const bool alike = shape && recorded->dtype == now->dtype && how[0];
        return dmi_fail(!shape                          ? DM_ERR_SHAPE
                        : recorded->dtype != now->dtype ? DM_ERR_DTYPE
                                                        : DM_ERR_LAYOUT,
                        "%s: bindings[%d]: %s was recorded%s%s", dmi_api_called(), which, a,
                        alike ? "; array is alike, but " : ", but array is ", alike ? how : b);
    }
    return DM_OK;
}

/* What a binding replaces. */
typedef struct replaced {
    int operand; /* its number; -1: the program uses views of it alone */
    const dmi_desc *desc;
    uint32_t memory;
} replaced;

static dm_status find_replaced(const dmi_session *s, const dmi_program *p, int which, dm_array recorded,
                               replaced *out)
{
    uint32_t slot = dmi_id_slot(recorded.id);
    bool live = slot < s->handles && dmi_handle_id(s, slot) == recorded.id && s->handle[slot].live;
    const dmi_handle *h = live ? &s->handle[slot] : NULL;
    for (int i = 0; i < p->operands; i++) {
        if (p->array[i].id == recorded.id) {
            *out = (replaced){i, &p->array[i].desc, p->array[i].memory};
            return DM_OK;
        }
    }
    for (int i = 0; i < p->operands && h; i++) {
        if (p->array[i].memory == h->storage->number) {
            *out = (replaced){-1, &h->desc, h->storage->number};
            return DM_OK;
        }
    }
    return dmi_fail(DM_ERR_ARG, "%s: bindings[%d]: the program does not use the array `recorded`",
                    dmi_api_called(), which);
}

static dm_status check_once(int which, const dm_program_binding *bindings)
{
    for (int k = 0; k < which; k++) {
        if (bindings[k].recorded.id == bindings[which].recorded.id) {
            return dmi_fail(DM_ERR_ARG, "%s: bindings[%d]: bindings[%d] replaces the array `recorded` already",
                            dmi_api_called(), which, k);
        }
    }
    return DM_OK;
}

/* now: they share memory now, and did not when they were recorded; else the other way round. */
static dm_status refuse_sharing(const dmi_desc *one, const dmi_desc *other, bool now)
{
    char a[192], b[192];
    dmi_desc_describe(one, a, sizeof a);
    dmi_desc_describe(other, b, sizeof b);
    return dmi_fail(DM_ERR_OVERLAP,
                    "%s: bindings: two arrays %s memory when the program was recorded, and %s now: %s, and %s",
                    dmi_api_called(), now ? "did not share" : "shared", now ? "do" : "do not", a, b);
}

/* Waits inside the program are planned: arrays must share memory exactly where they did. */
static dm_status check_sharing(const dmi_program *p, const dmi_handle *const *h)
{
    for (int i = 0; i < p->operands; i++) {
        for (int k = 0; k < i; k++) {
            bool now = h[i]->storage == h[k]->storage;
            if ((p->array[i].memory == p->array[k].memory) != now) {
                return refuse_sharing(&p->array[k].desc, &p->array[i].desc, now);
            }
        }
    }
    return DM_OK;
}

/* What the bindings replace, the other arrays of the same memory included. */
static dm_status bind(dmi_session *s, const dmi_program *p, int count, const dm_program_binding *bindings,
                      dmi_run_operands *o)
{
    for (int k = 0; k < count; k++) {
        replaced r = {0};
        char what[48];
        dmi_handle *h;
        snprintf(what, sizeof what, "bindings[%d]: array", k);
        dm_status status = dmi_handle_find(s, bindings[k].array, what, &h);
        if (status != DM_OK || (status = check_once(k, bindings)) != DM_OK ||
            (status = find_replaced(s, p, k, bindings[k].recorded, &r)) != DM_OK ||
            (status = check_binding(k, r.desc, &h->desc)) != DM_OK) {
            return status;
        }
        for (int i = 0; i < p->operands; i++) {
            bool same = p->array[i].memory == r.memory;
            if (same && o->h[i] && o->h[i]->storage != h->storage) {
                return refuse_sharing(&p->array[i].desc, r.desc, false);
            }
            if (i == r.operand || (same && !o->h[i])) {
                o->h[i] = h;
                o->id[i] = bindings[k].array.id;
                o->other[i] = i != r.operand;
            }
        }
    }
    return DM_OK;
}

/* Views of a memory that was recorded are views of another one, if each worker has as many elements of both. */
static dm_status check_others(const dmi_session *s, const dmi_program *p, const dmi_run_operands *o)
{
    for (int i = 0; i < p->operands; i++) {
        const dmi_layout *was = p->array[i].base, *is = o->h[i]->storage->layout;
        bool same = true;
        for (int w = 0; o->other[i] && was != is && same && w < s->workers; w++) {
            same = dmi_layout_shard_count(was, w) == dmi_layout_shard_count(is, w);
        }
        if (!same) {
            char text[192];
            dmi_desc_describe(&p->array[i].desc, text, sizeof text);
            return dmi_fail(DM_ERR_LAYOUT,
                            "%s: bindings: the program uses another part of what is replaced (%s), and the "
                            "replacement belongs to an array that lies otherwise: give it a binding of its own",
                            dmi_api_called(), text);
        }
    }
    return DM_OK;
}

void dmi_operands_drop(dmi_session *s, const dmi_run_operands *o, int count)
{
    for (int i = 0; i < count; i++) {
        if (o->other[i]) {
            dmi_array_drop(s, (dm_array){o->id[i]});
        }
    }
}

dm_status dmi_operands_make(dmi_session *s, const dmi_program *p, dmi_run_operands *o)
{
    for (int i = 0; i < p->operands; i++) {
        dm_array view;
        dm_status status =
            o->other[i] ? dmi_view_make(s, (dm_array){o->id[i]}, &p->array[i].desc, &view) : DM_OK;
        if (status != DM_OK) {
            dmi_operands_drop(s, o, i);
            return status;
        }
        o->id[i] = o->other[i] ? view.id : o->id[i];
    }
    return DM_OK;
}

dm_status dmi_operands_bind(dmi_session *s, const dmi_program *p, int count, const dm_program_binding *bindings,
                            dmi_run_operands *o)
{
    size_t n = (size_t)p->operands + 1;
    o->id = calloc(n, sizeof *o->id);
    o->h = calloc(n, sizeof(dmi_handle *));
    o->other = calloc(n, sizeof *o->other);
    dm_status status = o->id && o->h && o->other ? bind(s, p, count, bindings, o)
                                                 : dmi_fail(DM_ERR_NOMEM, "%s: no memory", dmi_api_called());
    for (int i = 0; i < p->operands && status == DM_OK; i++) {
        if (!o->h[i]) {
            o->id[i] = p->array[i].id;
            status = find_operand(s, p, i, o->id[i], &o->h[i]);
        }
    }
    if (status == DM_OK && count > 0 && (status = check_others(s, p, o)) == DM_OK) {
        status = check_sharing(p, o->h);
    }
    return status;
}

void dmi_operands_free(dmi_run_operands *o)
{
    free(o->id);
    free(o->h);
    free(o->other);
}
