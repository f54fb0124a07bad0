/* dm_session_save and dm_session_load: all that a session has, as the items of a checkpoint. */
#include "master/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GENERATOR "session/generator"
enum { NAME_ROOM = 32 }; /* of "array/1" */

static const dm_checkpoint_item *item_of(int count, const dm_checkpoint_item *items, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(items[i].name, name) == 0) {
            return &items[i];
        }
    }
    return NULL;
}

/* --- saving --- */

typedef struct whole {
    dm_checkpoint_item *item; /* [count] those with a name, arrays without one, the generator */
    char (*name)[NAME_ROOM];  /* of arrays without one */
    uint64_t generator[2];
    int count;
} whole;

static bool is_kept(int count, const dm_checkpoint_item *items, dm_array a)
{
    for (int i = 0; i < count; i++) {
        if (items[i].array.id == a.id) {
            return true;
        }
    }
    return false;
}

typedef struct made {
    uint32_t number; /* of its storage: they count up */
    dm_array array;
} made;

static int by_number(const void *a, const void *b)
{
    const made *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* Arrays that the program has and that have no name, the oldest first; list has room for all handles. */
static int unnamed(const dmi_session *s, int kept, const dm_checkpoint_item *items, made *list)
{
    int count = 0;
    for (uint32_t slot = 1; slot < s->handles; slot++) {
        const dmi_handle *h = &s->handle[slot];
        dm_array a = {h->live ? dmi_handle_id(s, slot) : 0};
        if (h->live && !h->view && !h->storage->replica && !dmi_feeds_own(s, a) && !is_kept(kept, items, a)) {
            list[count++] = (made){h->storage->number, a};
        }
    }
    qsort(list, (size_t)count, sizeof *list, by_number);
    return count;
}

static void add_unnamed(const dmi_session *s, int kept, const dm_checkpoint_item *items, made *list, whole *w)
{
    int count = unnamed(s, kept, items, list);
    for (int i = 0, number = 1; i < count; i++, number++) {
        char *name = w->name[i];
        do { /* a session that was loaded may have such names */
            snprintf(name, NAME_ROOM, "array/%d", number);
        } while (item_of(kept, items, name) && ++number);
        w->item[w->count++] = (dm_checkpoint_item)DM_KEEP_ARRAY(name, list[i].array);
    }
}

static dm_status collect(dmi_session *s, bool named, whole *w)
{
    const dm_checkpoint_item *items = NULL;
    dm_checkpoint_item *owned = NULL;
    int kept = 0;
    size_t most = (size_t)s->handles + 1;
    dm_status status = dmi_items_take(s, 0, NULL, &items, &kept, &owned);
    made *list = calloc(most, sizeof *list);
    w->name = calloc(most, sizeof *w->name);
    w->item = calloc(most + (size_t)kept, sizeof *w->item);
    if (status == DM_OK && (!list || !w->name || !w->item)) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory for a list of items");
    }
    if (status == DM_OK && item_of(kept, items, GENERATOR)) {
        status = dmi_fail(DM_ERR_ARG, "the name %s is the session's own", GENERATOR);
    }
    if (status == DM_OK) {
        memcpy(w->item, items, (size_t)kept * sizeof *items);
        w->count = kept;
        if (!named) {
            add_unnamed(s, kept, items, list, w);
        }
        w->generator[0] = s->random_seed;
        w->generator[1] = s->random_next;
        w->item[w->count++] = (dm_checkpoint_item){GENERATOR, DM_NO_ARRAY, w->generator, DM_U64, 2};
    }
    free(list);
    free(owned);
    return status;
}

dm_status dm_session_save(dm_session *session, const char *path, const dm_checkpoint_options *options,
                          dm_event *event)
{
    dmi_session *s = NULL;
    dm_checkpoint_options known;
    whole w = {0};
    dm_status status = dmi_checkpoint_enter(session, path, options, &s, &known);
    status = status == DM_OK ? collect(s, known.named, &w) : status;
    status = status == DM_OK ? dmi_checkpoint_write(s, path, w.count, w.item, known.keep, event) : status;
    free(w.item);
    free(w.name);
    return status;
}

/* --- loading --- */

typedef struct loading {
    dmi_checkpoint_opened o;
    dm_checkpoint_item *kept; /* [count] what has a name here */
    int count;
    dm_array *made; /* [items of the checkpoint] zero: none was made */
} loading;

static const dmi_saved *generator_of(const loading *l)
{
    return dmi_manifest_find(&l->o.manifest, GENERATOR);
}

/* Before anything changes. */
static dm_status check(const loading *l)
{
    const dmi_saved *generator = generator_of(l);
    dm_status status = DM_OK;
    for (int i = 0; i < l->o.manifest.items && status == DM_OK; i++) {
        const dm_checkpoint_item *kept = item_of(l->count, l->kept, l->o.manifest.item[i].name);
        status = kept ? dmi_checkpoint_check(&l->o, kept) : DM_OK;
    }
    if (status == DM_OK && generator &&
        (generator->file || generator->dtype != DM_U64 || generator->count != 2)) {
        status = dmi_fail(DM_ERR_FORMAT, "%s: %s is no generator", l->o.folder, GENERATOR);
    }
    return status;
}

static dm_status fill_arrays(loading *l)
{
    dm_session *session = l->o.s->public_handle;
    dm_status status = DM_OK;
    for (int i = 0; i < l->o.manifest.items && status == DM_OK; i++) {
        const dmi_saved *saved = &l->o.manifest.item[i];
        const dm_checkpoint_item *kept = item_of(l->count, l->kept, saved->name);
        if (!saved->file) {
            continue;
        }
        dm_array target = kept ? kept->array : DM_NO_ARRAY;
        if (!kept) {
            status = dmi_checkpoint_make(&l->o, saved, (dm_dtype)0, NULL, &target);
            l->made[i] = status == DM_OK ? target : DM_NO_ARRAY;
            status = status == DM_OK ? dm_keep(session, &(dm_checkpoint_item)DM_KEEP_ARRAY(saved->name, target))
                                     : status;
        }
        status = status == DM_OK ? dmi_checkpoint_fill(&l->o, saved, target) : status;
    }
    return status;
}

static void fill_values(const loading *l)
{
    const dmi_saved *generator = generator_of(l);
    for (int i = 0; i < l->count; i++) {
        const dmi_saved *saved = dmi_manifest_find(&l->o.manifest, l->kept[i].name);
        if (saved && !saved->file && saved->value_bytes > 0) {
            memcpy(l->kept[i].value, saved->value, (size_t)saved->value_bytes);
        }
    }
    if (generator) {
        memcpy(&l->o.s->random_seed, generator->value, sizeof l->o.s->random_seed);
        memcpy(&l->o.s->random_next, generator->value + sizeof l->o.s->random_seed, sizeof l->o.s->random_next);
    }
}

/* What was made goes again, with its name. */
static dm_status drop(loading *l, dm_status status)
{
    for (int i = 0; l->made && i < l->o.manifest.items; i++) {
        if (l->made[i].id) {
            dmi_keep_forget(l->o.s, l->o.manifest.item[i].name);
            status = dmi_array_release(l->o.s->public_handle, l->made[i], status);
        }
    }
    return status;
}

static dm_status load(loading *l, const char *path)
{
    dm_status status = dmi_checkpoint_open(path, &l->o);
    status = status == DM_OK ? check(l) : status;
    if (status == DM_OK && !(l->made = calloc((size_t)l->o.manifest.items + 1, sizeof *l->made))) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory for a list of arrays");
    }
    status = status == DM_OK ? fill_arrays(l) : status;
    status = dmi_checkpoint_filled(&l->o, status);
    if (status == DM_OK) {
        fill_values(l);
    } else {
        status = drop(l, status);
    }
    free(l->made);
    l->made = NULL;
    return status;
}

dm_status dm_session_load(dm_session *session, const char *path)
{
    loading l = {0};
    const dm_checkpoint_item *items;
    int tries = 0;
    bool again = true;
    dm_status status = dmi_checkpoint_reading(session, &l.o.s);
    status = status == DM_OK ? dmi_items_take(l.o.s, 0, NULL, &items, &l.count, &l.kept) : status;
    while (status == DM_OK && again) {
        status = load(&l, path);
        again = status != DM_OK && dmi_checkpoint_lost(path, &l.o, &tries);
        status = again ? DM_OK : status;
        dmi_checkpoint_close(&l.o);
    }
    free(l.kept);
    return status;
}
