/* Named arrays and values: those of a call, and those that dm_keep has named. */
#include "master/checkpoint.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct dmi_kept {
    dm_checkpoint_item item; /* its name is owned */
    struct dmi_kept *next;
} dmi_kept;

int64_t dmi_item_bytes(const dm_checkpoint_item *item)
{
    return item->count * (item->dtype ? dmi_dtype_bytes(item->dtype) : 1);
}

static dm_status check_item(dmi_session *s, const dm_checkpoint_item *item, int number)
{
    dmi_handle *h;
    if (!item->name || !dmi_manifest_name_fits(item->name)) {
        return dmi_fail(DM_ERR_ARG, "%s: the name of item %d is not 1 to %d bytes of UTF-8", dmi_api_called(),
                        number, DMI_NAME_BYTES);
    }
    if (item->array.id) {
        return dmi_handle_find(s, item->array, item->name, &h);
    }
    if (item->dtype && !dmi_dtype_bytes(item->dtype)) {
        return dmi_fail(DM_ERR_DTYPE, "%s: %s: dtype %d is unknown", dmi_api_called(), item->name,
                        (int)item->dtype);
    }
    if (item->count < 0 || item->count > DMI_VALUE_BYTES || dmi_item_bytes(item) > DMI_VALUE_BYTES ||
        (!item->value && item->count > 0)) {
        return dmi_fail(DM_ERR_ARG, "%s: %s: %s", dmi_api_called(), item->name,
                        item->value || item->count <= 0 ? "a value has 0 to 1 MiB" : "value is NULL");
    }
    return DM_OK;
}

static dm_status kept_items(const dmi_session *s, int *count, dm_checkpoint_item **owned)
{
    *count = 0;
    for (const dmi_kept *k = s->kept; k; k = k->next) {
        ++*count;
    }
    *owned = calloc((size_t)*count + 1, sizeof **owned);
    if (!*owned) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a list of items");
    }
    int at = *count;
    for (const dmi_kept *k = s->kept; k; k = k->next) {
        (*owned)[--at] = k->item; /* in the order in which they were named */
    }
    return DM_OK;
}

dm_status dmi_items_take(dmi_session *s, int count, const dm_checkpoint_item *items,
                         const dm_checkpoint_item **out, int *items_out, dm_checkpoint_item **owned)
{
    dm_status status = DM_OK;
    *owned = NULL;
    if (count < 0 || (count > 0 && !items)) {
        return dmi_fail(DM_ERR_ARG, "%s: %s", dmi_api_called(),
                        count < 0 ? "count is negative" : "items is NULL");
    }
    if (!items) {
        status = kept_items(s, &count, owned);
        items = *owned;
    }
    for (int i = 0; i < count && status == DM_OK; i++) {
        status = check_item(s, &items[i], i);
        for (int k = 0; k < i && status == DM_OK; k++) {
            if (strcmp(items[i].name, items[k].name) == 0) {
                status =
                    dmi_fail(DM_ERR_ARG, "%s: two items have the name %s", dmi_api_called(), items[i].name);
            }
        }
    }
    *out = items;
    *items_out = count;
    return status;
}

const dm_checkpoint_item *dmi_kept_value(const dmi_session *s, int number)
{
    for (const dmi_kept *k = s->kept; k; k = k->next) {
        if (!k->item.array.id && number-- == 0) {
            return &k->item;
        }
    }
    return NULL;
}

void dmi_keep_forget(dmi_session *s, const char *name)
{
    for (dmi_kept **at = (dmi_kept **)&s->kept; *at; at = &(*at)->next) {
        dmi_kept *k = *at;
        if (strcmp(k->item.name, name) == 0) {
            *at = k->next;
            free((char *)(uintptr_t)k->item.name);
            free(k);
            return;
        }
    }
}

dm_status dm_keep(dm_session *session, const dm_checkpoint_item *item)
{
    dmi_session *s = NULL;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && !item) {
        return dmi_fail(DM_ERR_ARG, "keep: item is NULL");
    }
    bool none = status == DM_OK && !item->array.id && !item->value;
    if (status != DM_OK || (status = check_item(s, item, 0)) != DM_OK) {
        return status;
    }
    dmi_kept *k = none ? NULL : malloc(sizeof *k);
    char *name = k ? strdup(item->name) : NULL;
    if (!none && !name) {
        free(k);
        return dmi_fail(DM_ERR_NOMEM, "keep: no memory for a name");
    }
    dmi_keep_forget(s, item->name);
    if (k) {
        *k = (dmi_kept){*item, s->kept};
        k->item.name = name;
        s->kept = k;
    }
    return DM_OK;
}

dm_status dm_kept_array(dm_session *session, const char *name, dm_array *out)
{
    dmi_session *s = NULL;
    dmi_handle *h;
    dm_status status = dmi_enter(session, &s);
    if (status == DM_OK && (!name || !out)) {
        return dmi_fail(DM_ERR_ARG, "kept_array: %s is NULL", name ? "out" : "name");
    }
    for (const dmi_kept *k = status == DM_OK ? s->kept : NULL; k; k = k->next) {
        if (strcmp(k->item.name, name) == 0 && k->item.array.id) {
            status = dmi_handle_find(s, k->item.array, name, &h);
            if (status == DM_OK) {
                *out = k->item.array;
            }
            return status;
        }
    }
    if (status == DM_OK) {
        *out = DM_NO_ARRAY;
    }
    return status;
}

void dmi_keep_free(dmi_session *s)
{
    while (s->kept) {
        dmi_keep_forget(s, s->kept->item.name);
    }
}
