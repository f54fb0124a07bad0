/* dmath ckpt: checkpoints: list, verify, save again with other layouts or types, compare. */
#include "dmath.h"
#include "io/folder.h"
#include "master/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct ckpt_options {
    tool_common common;
    const char *path[2];
    int paths, most; /* how many are given, and how many the command takes */
    dm_dtype dtype;  /* 0: as saved */
    tool_layout layout;
    bool laid_out;
} ckpt_options;

static const struct argp_option options[] = {
    {"dtype", 'd', "TYPE", 0, "reshard: element type of floating arrays (default: as saved)", 0},
    {"layout", 'l', "LAYOUT", 0, "reshard: " TOOL_LAYOUTS " (default: default)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    ckpt_options *o = state->input;
    dm_dtype dtypes[TOOL_LIST];
    bool fits = true;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        break;
    case 'd':
        fits = tool_dtype_entry(arg, 0, dtypes);
        o->dtype = fits ? dtypes[0] : 0;
        break;
    case 'l':
        fits = o->laid_out = tool_layout_parse(arg, &o->layout);
        break;
    case ARGP_KEY_ARG:
        fits = o->paths < o->most;
        if (fits) {
            o->path[o->paths++] = arg;
        }
        break;
    case ARGP_KEY_END:
        if (o->paths < o->most) {
            argp_error(state, o->most == 1 ? "a checkpoint or a series is needed"
                                           : "two checkpoints or series are needed");
        } else if (o->common.nworkers > 1) {
            argp_error(state, "--workers: one number, not a list");
        }
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    if (!fits) {
        tool_refuse(state, key, arg, "is not understood");
    }
    return 0;
}

static const struct argp_child children[] = {{&tool_common_argp, 0, NULL, 0}, {0}};

static bool take_options(int argc, char **argv, int paths, const char *usage, ckpt_options *o)
{
    const struct argp argp = {options, parse, usage, NULL, children, NULL, NULL};
    *o = (ckpt_options){.most = paths};
    (void)tool_layout_parse("default", &o->layout);
    return argp_parse(&argp, argc, argv, 0, NULL, o) == 0;
}

/* "64x128" */
static void shape_text(const dm_checkpoint_info *info, char *text, size_t room)
{
    int n = snprintf(text, room, "%s", info->ndim == 0 ? "()" : "");
    for (int d = 0; d < info->ndim && n < (int)room; d++) {
        n += snprintf(text + n, room - (size_t)n, d ? "x%" PRId64 : "%" PRId64, info->shape[d]);
    }
}

/* A folder of the series that is no checkpoint yet, and may never be. */
static void list_unfinished(void *context, const char *name, dmi_partial_writer writer, int pid)
{
    const ckpt_options *o = context;
    if (o->common.json) {
        tool_table table = {.json = true, .command = "ckpt ls"};
        tool_row_begin(&table);
        tool_row_text(&table, "unfinished", 0, name);
        tool_row_int(&table, "process", 0, pid);
        tool_row_text(&table, "writer", 0,
                      writer == DMI_WRITER_LIVES  ? "alive"
                      : writer == DMI_WRITER_DEAD ? "dead"
                                                  : "elsewhere");
        tool_row_end(&table);
        return;
    }
    printf("unfinished: %s/%s: process %d %s\n", o->path[0], name, pid,
           writer == DMI_WRITER_LIVES  ? "is at work on it"
           : writer == DMI_WRITER_DEAD ? "has died; the next save into the series removes it"
                                       : "of another host or container has, or had, begun it");
}

static dm_status list(const ckpt_options *o)
{
    tool_table table = {.json = o->common.json, .command = "ckpt ls"};
    dmi_checkpoint_opened c = {0};
    dm_status status = dmi_checkpoint_open(o->path[0], &c);
    if (status == DM_OK && !o->common.json) {
        printf("%s: format %d, saved by %d workers, %d items\n", c.folder, c.manifest.version,
               c.manifest.workers, c.manifest.items);
    }
    for (int i = 0; status == DM_OK && i < c.manifest.items; i++) {
        char shape[160];
        dm_checkpoint_info info;
        dmi_checkpoint_describe(c.folder, &c.manifest, &c.manifest.item[i], &info);
        shape_text(&info, shape, sizeof shape);
        tool_row_begin(&table);
        tool_row_text(&table, "name", 24, info.name);
        tool_row_text(&table, "kind", 6, info.file[0] ? "array" : "value");
        tool_row_text(&table, "dtype", 7, info.dtype ? dm_dtype_name(info.dtype) : "bytes");
        tool_row_text(&table, "shape", 16, shape);
        tool_row_int(&table, "bytes", 14, info.bytes);
        tool_row_int(&table, "parts", 6, info.parts);
        tool_row_text(&table, "layout", 20, info.layout);
        tool_row_end(&table);
    }
    dmi_checkpoint_close(&c);
    dmi_folder_unfinished(o->path[0], list_unfinished, (void *)(uintptr_t)o);
    return status;
}

static void print_damage(void *context, const char *text)
{
    ++*(int *)context;
    tool_progress(NULL, 0, 0);
    printf("damaged: %s\n", text);
}

static dm_status verify(const ckpt_options *o)
{
    int damaged = 0;
    dmi_checkpoint_opened c = {0};
    tool_watch watch;
    const bool there = dmi_checkpoint_open(o->path[0], &c) == DM_OK;
    tool_watch_begin(&watch, o->path[0], there ? tool_bytes_below(c.folder) : 0);
    dmi_checkpoint_close(&c);
    dm_status status = dm_checkpoint_verify(o->path[0], print_damage, &damaged);
    tool_watch_end(&watch);
    if (status == DM_OK) {
        printf("%s: every byte is as it was saved\n", o->path[0]);
    }
    return status;
}

/* --- on workers --- */

static dm_dtype dtype_for(const ckpt_options *o, dm_dtype saved)
{
    return o->dtype && dmi_dtype_is_float(saved) ? o->dtype : saved;
}

static dm_status open_in(dm_session *s, const char *path, dmi_checkpoint_opened *out)
{
    dm_status status = dmi_enter(s, &out->s);
    return status == DM_OK ? dmi_checkpoint_open(path, out) : status;
}

static dm_status reshard_items(dm_session *s, const ckpt_options *o, const dmi_checkpoint_opened *c,
                               dm_checkpoint_item *items)
{
    const dmi_manifest *m = &c->manifest;
    dm_status status = DM_OK;
    for (int i = 0; i < m->items && status == DM_OK; i++) {
        const dmi_saved *saved = &m->item[i];
        tool_progress(saved->name, i, m->items);
        items[i] = (dm_checkpoint_item){
            .name = saved->name, .value = saved->value, .dtype = saved->dtype, .count = saved->count};
        if (saved->file) {
            dm_layout layout = tool_layout_for(&o->layout, dm_workers(s), saved->parts.ndim);
            status = dmi_checkpoint_array(c, saved, dtype_for(o, saved->dtype), &layout, &items[i].array);
        }
    }
    tool_progress(NULL, 0, 0);
    return status == DM_OK ? dm_checkpoint_save(s, o->path[1], m->items, items, NULL, NULL) : status;
}

static dm_status reshard(dm_session *s, const ckpt_options *o)
{
    dmi_checkpoint_opened c = {0};
    dm_status status = open_in(s, o->path[0], &c);
    const int count = c.manifest.items;
    dm_checkpoint_item *items = calloc((size_t)count + 1, sizeof *items);
    if (status == DM_OK) {
        status = items ? reshard_items(s, o, &c, items) : dmi_fail(DM_ERR_NOMEM, "no memory for a list");
    }
    for (int i = 0; items && i < count; i++) {
        (void)!dm_array_destroy(s, items[i].array);
    }
    if (status == DM_OK) {
        printf("%s: %d items, on %d workers\n", o->path[1], count, dm_workers(s));
    }
    free(items);
    dmi_checkpoint_close(&c);
    return status;
}

static bool same_bits(const dmi_saved *a, const dmi_saved *b)
{
    if (!a->file) {
        return a->value_bytes == b->value_bytes && memcmp(a->value, b->value, (size_t)a->value_bytes) == 0;
    }
    return a->parts.count == b->parts.count &&
           memcmp(a->parts.block, b->parts.block, (size_t)a->parts.ndim * sizeof *a->parts.block) == 0 &&
           memcmp(a->hash, b->hash, (size_t)a->parts.count * sizeof *a->hash) == 0;
}

static bool same_kind(const dmi_saved *a, const dmi_saved *b)
{
    return !a->file == !b->file && a->dtype == b->dtype && a->count == b->count &&
           a->parts.ndim == b->parts.ndim &&
           memcmp(a->parts.shape, b->parts.shape, (size_t)a->parts.ndim * sizeof *a->parts.shape) == 0;
}

/* How many elements differ, and by how much at most. */
static dm_status compare(dm_session *s, const dmi_checkpoint_opened c[2], const dmi_saved *const saved[2],
                         double out[2])
{
    static const char *const texts[] = {"count_nonzero(x != y)", "max(abs(x - y))"};
    dm_array in[2] = {DM_NO_ARRAY, DM_NO_ARRAY}, result = DM_NO_ARRAY;
    dm_dtype dtype = dmi_dtype_is_complex(saved[0]->dtype) ? DM_C128 : DM_F64;
    dm_status status = DM_OK;
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = dmi_checkpoint_array(&c[i], saved[i], dtype, NULL, &in[i]);
    }
    if (status == DM_OK) {
        status = dm_array_create(s, DM_F64, 0, NULL, NULL, &result);
    }
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = dm_map(s, texts[i], 2, (dm_map_arg[]){DM_ARG("x", in[0]), DM_ARG("y", in[1])}, result);
        status = status == DM_OK ? dm_array_read(s, result, NULL, NULL, &out[i], 0) : status;
    }
    const dm_array all[] = {in[0], in[1], result};
    for (int i = 0; i < 3; i++) {
        (void)!dm_array_destroy(s, all[i]);
    }
    return status;
}

static dm_status diff_item(dm_session *s, const dmi_checkpoint_opened c[2], const dmi_saved *a,
                           const dmi_saved *b, int *differ)
{
    double by[2] = {0, 0};
    if (!b || !same_kind(a, b)) {
        printf("%s: %s\n", a->name, b ? "another kind, type or shape" : "only in the first");
        ++*differ;
        return DM_OK;
    }
    if (same_bits(a, b)) {
        return DM_OK;
    }
    if (!a->file) {
        printf("%s: another value\n", a->name);
        ++*differ;
        return DM_OK;
    }
    dm_status status = compare(s, c, (const dmi_saved *const[]){a, b}, by);
    if (status == DM_OK && by[0] > 0) {
        printf("%s: %.0f of %" PRId64 " elements differ, by %g at most\n", a->name, by[0],
               dmi_parts_bytes(&a->parts) / dmi_dtype_bytes(a->dtype), by[1]);
        ++*differ;
    } else if (status == DM_OK && memcmp(a->parts.block, b->parts.block, sizeof a->parts.block) == 0) {
        printf("%s: equal numbers of other bits\n", a->name);
        ++*differ;
    }
    return status;
}

static dm_status diff(dm_session *s, const ckpt_options *o, int *differ)
{
    dmi_checkpoint_opened c[2] = {{0}, {0}};
    const dmi_manifest *first = &c[0].manifest, *second = &c[1].manifest;
    dm_status status = DM_OK;
    for (int i = 0; i < 2 && status == DM_OK; i++) {
        status = open_in(s, o->path[i], &c[i]);
    }
    for (int i = 0; i < first->items && status == DM_OK; i++) {
        const dmi_saved *a = &first->item[i];
        tool_progress(a->name, i, first->items);
        status = diff_item(s, c, a, dmi_manifest_find(second, a->name), differ);
    }
    tool_progress(NULL, 0, 0);
    for (int i = 0; i < second->items && status == DM_OK; i++) {
        if (!dmi_manifest_find(first, second->item[i].name)) {
            printf("%s: only in the second\n", second->item[i].name);
            ++*differ;
        }
    }
    if (status == DM_OK && *differ == 0) {
        printf("equal\n");
    }
    for (int i = 0; i < 2; i++) {
        dmi_checkpoint_close(&c[i]);
    }
    return status;
}

static int run_ls(int argc, char **argv)
{
    ckpt_options o;
    if (!take_options(argc, argv, 1, "PATH", &o)) {
        return TOOL_USAGE;
    }
    dm_status status = list(&o);
    tool_complain(status);
    return status == DM_OK ? 0 : TOOL_FAILED;
}

static int run_verify(int argc, char **argv)
{
    ckpt_options o;
    if (!take_options(argc, argv, 1, "PATH", &o)) {
        return TOOL_USAGE;
    }
    dm_status status = verify(&o);
    tool_complain(status);
    return status == DM_OK ? 0 : TOOL_FAILED;
}

static int run_reshard(int argc, char **argv)
{
    ckpt_options o;
    dm_session *s = NULL;
    if (!take_options(argc, argv, 2, "FROM SERIES", &o)) {
        return TOOL_USAGE;
    }
    dm_status status = tool_open(&o.common, 0, &s);
    return tool_close(s, status == DM_OK ? reshard(s, &o) : status);
}

static int run_diff(int argc, char **argv)
{
    ckpt_options o;
    dm_session *s = NULL;
    int differ = 0;
    if (!take_options(argc, argv, 2, "PATH PATH", &o)) {
        return TOOL_USAGE;
    }
    dm_status status = tool_open(&o.common, 0, &s);
    status = status == DM_OK ? diff(s, &o, &differ) : status;
    return tool_close(s, status) || differ ? TOOL_FAILED : 0;
}

int tool_ckpt(int argc, char **argv)
{
    static const tool_command commands[] = {
        {"ls", run_ls, "what a checkpoint, or the newest of a series, has"},
        {"verify", run_verify, "is every byte as it was saved?"},
        {"reshard", run_reshard, "save it again, in another layout or type"},
        {"diff", run_diff, "compare two checkpoints"},
        {NULL, NULL, NULL},
    };
    return tool_dispatch("dmath ckpt", commands, argc, argv);
}
