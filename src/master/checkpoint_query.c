/* What checkpoints have, without a session: dm_checkpoint_query, dm_checkpoint_verify. */
#include "base/sized.h"
#include "io/folder.h"
#include "master/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_TRIES = 20 };

static bool is_gone(const char *folder)
{
    char *manifest = dmi_folder_path(folder, DMI_MANIFEST);
    bool gone = manifest && access(manifest, F_OK) != 0 && errno == ENOENT;
    free(manifest);
    return gone;
}

bool dmi_checkpoint_lost(const char *path, const dmi_checkpoint_opened *o, int *tries)
{
    return o->folder && strcmp(o->folder, path) != 0 && ++*tries < MOST_TRIES && is_gone(o->folder);
}

dm_status dmi_checkpoint_open(const char *path, dmi_checkpoint_opened *out)
{
    int tries = 0;
    out->first = out->s ? out->s->command + 1 : 0;
    dm_status status = path && path[0]
                           ? dmi_folder_find(path, &out->folder)
                           : dmi_fail(DM_ERR_ARG, "%s: path is %s", dmi_api_called(), path ? "empty" : "NULL");
    while (status == DM_OK && (status = dmi_manifest_read(out->folder, &out->manifest)) != DM_OK &&
           dmi_checkpoint_lost(path, out, &tries)) {
        free(out->folder);
        out->folder = NULL;
        status = dmi_folder_find(path, &out->folder);
    }
    return status;
}

void dmi_checkpoint_close(dmi_checkpoint_opened *o)
{
    free(o->folder);
    o->folder = NULL;
    dmi_manifest_free(&o->manifest);
}

int dm_checkpoint_exists(const char *path)
{
    dmi_checkpoint_opened o = {0};
    bool is = path && path[0] && dmi_checkpoint_open(path, &o) == DM_OK;
    dmi_checkpoint_close(&o);
    return is;
}

static void describe_layout(const dmi_saved *saved, char *text, size_t room)
{
    const dmi_saved_layout *y = &saved->layout;
    if (y->is_explicit) {
        snprintf(text, room, "explicit, %" PRId64 " blocks", y->map_count);
        return;
    }
    int n = snprintf(text, room, "grid");
    for (int d = 0; d < saved->parts.ndim && n < (int)room; d++) {
        n += snprintf(text + n, room - (size_t)n, "%s%d%s", d ? "x" : " ", y->grid[d], y->order[d] ? "c" : "");
    }
    if (y->replicas > 1 && n < (int)room) {
        snprintf(text + n, room - (size_t)n, ", %d replicas", y->replicas);
    }
}

void dmi_checkpoint_describe(const char *folder, const dmi_manifest *m, const dmi_saved *saved,
                             dm_checkpoint_info *out)
{
    *out = (dm_checkpoint_info){
        .size = sizeof *out, .dtype = saved->dtype, .ndim = saved->file ? saved->parts.ndim : 1};
    snprintf(out->name, sizeof out->name, "%s", saved->name);
    snprintf(out->folder, sizeof out->folder, "%s", folder);
    out->bytes = saved->value_bytes;
    out->shape[0] = saved->count;
    out->workers = m->workers;
    out->version = m->version;
    if (saved->file) {
        snprintf(out->file, sizeof out->file, "%s", saved->file);
        memcpy(out->shape, saved->parts.shape, sizeof out->shape);
        out->bytes = saved->file_bytes;
        out->parts = saved->parts.count;
        describe_layout(saved, out->layout, sizeof out->layout);
    }
}

dm_status dm_checkpoint_query(const char *path, int index, dm_checkpoint_info *out)
{
    dmi_checkpoint_opened o = {0};
    dm_status status =
        out ? dmi_sized_check(out, DMI_SIZED_LEAST(dm_checkpoint_info, version), "out: set its size")
            : dmi_fail(DM_ERR_ARG, "checkpoint_query: out is NULL");
    status = status == DM_OK ? dmi_checkpoint_open(path, &o) : status;
    if (status == DM_OK && (index < 0 || index >= o.manifest.items)) {
        status = dmi_fail(DM_ERR_ARG, "checkpoint_query: index is %d, and there are %d items", index,
                          o.manifest.items);
    }
    if (status == DM_OK) {
        dm_checkpoint_info info;
        dmi_checkpoint_describe(o.folder, &o.manifest, &o.manifest.item[index], &info);
        dmi_sized_give(&info, sizeof info, out);
    }
    dmi_checkpoint_close(&o);
    return status;
}

dm_status dm_checkpoint_verify(const char *path, dm_checkpoint_damaged damaged, void *context)
{
    dmi_checkpoint_opened o = {0};
    char *text = NULL;
    dm_status status = dmi_checkpoint_open(path, &o), worst = status;
    if (status != DM_OK && damaged) {
        damaged(context, dmi_error_text());
    }
    for (int i = 0; i < o.manifest.items; i++) {
        status =
            o.manifest.item[i].file ? dmi_saved_verify(&o.manifest.item[i], o.folder, damaged, context) : DM_OK;
        if (status != DM_OK && worst == DM_OK) {
            worst = status;
            text = strdup(dmi_error_text());
        }
    }
    if (text) {
        (void)dmi_fail(worst, "%s", text);
    }
    free(text);
    dmi_checkpoint_close(&o);
    return worst;
}
