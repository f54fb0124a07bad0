/* Reading the items of checkpoints from a journal, and the values that dm_keep has named. */
#include "api/replay_parts.h"
#include "io/manifest.h"

#include <stdlib.h>
#include <string.h>

/* Into memory of so many bytes, which holds zeros. */
static void fill_value(dmi_replay *r, void *memory, int64_t bytes, dm_dtype dtype)
{
    const char *word = dmi_replay_next(r);
    int64_t count = 0;
    const char *data = word[0] == 'h' ? dmi_replay_made_up(r, bytes, dtype ? dtype : DM_U8,
                                                           (uint32_t)dmi_replay_number(r, word + 1, 16))
                                      : dmi_replay_bytes(r, word, &count);
    count = word[0] == 'h' ? bytes : count;
    if (data && count != bytes) {
        dmi_replay_bad(r, "a value has another size than it says");
    } else if (data && bytes > 0) {
        memcpy(memory, data, (size_t)bytes);
    }
}

/* persistent: its value's memory is the replay's, and found by the name. */
static void get_item(dmi_replay *r, bool persistent, dm_checkpoint_item *item)
{
    item->name = dmi_get_text(r);
    item->array = dmi_get_array(r);
    item->dtype = (dm_dtype)dmi_get_integer(r);
    item->count = dmi_get_integer(r);
    bool value = dmi_get_integer(r) != 0 && !item->array.id;
    int64_t each = item->dtype ? dmi_dtype_bytes(item->dtype) : 1,
            bytes =
                each > 0 && item->count > 0 && item->count <= DMI_VALUE_BYTES / each ? item->count * each : 0;
    if (!value || r->bad) {
        (void)dmi_replay_next(r);
        return;
    }
    if (persistent && item->name) {
        dmi_replay_kept *k = calloc(1, sizeof *k + (size_t)bytes + 1);
        k = k && (k->name = strdup(item->name)) ? k : (free(k), NULL);
        if (!k) {
            dmi_replay_bad(r, "there is no memory for a value");
            return;
        }
        k->bytes = bytes;
        k->next = r->values;
        r->values = k;
        item->value = k->memory;
    } else {
        item->value = dmi_replay_room(r, bytes + 1, 1);
    }
    if (item->value) {
        fill_value(r, item->value, bytes, item->dtype);
    }
}

const dm_checkpoint_item *dmi_get_items(dmi_replay *r)
{
    int64_t n = dmi_replay_list(r);
    dm_checkpoint_item *item = n < 0 ? NULL : dmi_replay_room(r, n, sizeof *item);
    for (int64_t i = 0; item && i < n && !r->bad; i++) {
        get_item(r, false, &item[i]);
    }
    r->length = n;
    return item;
}

const dm_checkpoint_item *dmi_get_kept(dmi_replay *r)
{
    dm_checkpoint_item *item = dmi_replay_list(r) == 1 ? dmi_replay_room(r, 1, sizeof *item) : NULL;
    if (item) {
        get_item(r, true, item);
    }
    return item;
}

/* The newest of the name is the session's. */
static void set_kept(dmi_replay *r, const char *name)
{
    for (dmi_replay_kept *k = r->values; k && name; k = k->next) {
        if (strcmp(k->name, name) == 0) {
            fill_value(r, k->memory, k->bytes, (dm_dtype)0);
            return;
        }
    }
    dmi_replay_bad(r, "a value has a name that was not given");
}

const dm_checkpoint_options *dmi_get_checkpoint_options(dmi_replay *r)
{
    dm_checkpoint_options *options = NULL;
    if (strcmp(dmi_replay_next(r), "-") != 0 && (options = dmi_replay_room(r, 1, sizeof *options)) != NULL) {
        *options = (dm_checkpoint_options)DM_CHECKPOINT_OPTIONS_INIT;
        options->keep = (int)dmi_get_integer(r);
        options->named = (int)dmi_get_integer(r);
    }
    for (int64_t n = dmi_get_integer(r); n > 0 && !r->bad; n--) {
        set_kept(r, dmi_get_text(r));
    }
    return options;
}

/* The session's names for values go with their memory. */
void dmi_replay_free_values(dmi_replay *r)
{
    while (r->values) {
        dmi_replay_kept *k = r->values;
        r->values = k->next;
        (void)!dm_keep(r->session, &(dm_checkpoint_item){.name = k->name});
        free(k->name);
        free(k);
    }
}
