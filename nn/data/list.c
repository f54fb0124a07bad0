/* Lists of images. */
#include "data/list.h"

#include "data/image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t max_list = (size_t)1 << 32;

typedef struct entry {
    char *path;
    int64_t label, line;
} entry;

typedef struct list_source {
    nn_source source;
    char *text, *folder;
    entry *entries;
    int64_t height, width;
    bool keep;
} list_source;

dm_status nn_lines_read(const char *path, char **text, char ***lines, int64_t *count)
{
    size_t length = 0, n = 1;
    char *bytes = NULL;
    dm_status status = nn_file_read(path, max_list, &bytes, &length);
    if (status != DM_OK) {
        return status;
    }
    if (memchr(bytes, 0, length)) {
        free(bytes);
        return dm_error_set(DM_ERR_FORMAT, "%s: is no text file", path);
    }
    for (size_t i = 0; i < length; i++) {
        n += bytes[i] == '\n';
    }
    char **all = malloc((n + 1) * sizeof *all);
    if (!all) {
        free(bytes);
        return dm_error_no_memory("the lines of a file", (n + 1) * sizeof *all);
    }
    int64_t at = 0;
    for (char *line = bytes; line;) {
        char *end = strchr(line, '\n');
        if (end) {
            *end = 0;
            if (end > line && end[-1] == '\r') {
                end[-1] = 0;
            }
        }
        if (end || *line) {
            all[at++] = line;
        }
        line = end ? end + 1 : NULL;
    }
    *text = bytes;
    *lines = all;
    *count = at;
    return DM_OK;
}

static void close_list(nn_source *source)
{
    list_source *s = (list_source *)source;
    free(s->entries);
    free(s->text);
    free(s->folder);
    free(s->source.path);
    free(s);
}

static dm_status read_image(nn_source *source, int64_t i, nn_record *out)
{
    const list_source *s = (const list_source *)source;
    const entry *e = &s->entries[i];
    nn_image image = {0};
    char *bytes = NULL;
    size_t length = 0, room = strlen(s->folder) + strlen(e->path) + 1;
    char *path = malloc(room);
    if (!path) {
        return dm_error_no_memory("a path", room);
    }
    snprintf(path, room, "%s%s", s->folder, e->path);
    dm_status status = nn_image_read(path, source->colour, &image, &bytes, &length);
    free(path);
    if (status == DM_OK && s->height) {
        status = nn_image_resize(&image, s->height, s->width);
    }
    if (status != DM_OK || !s->keep) {
        free(bytes);
        bytes = NULL;
    }
    if (status != DM_OK) {
        free(image.bytes);
        return dm_error_set(status, "%s:%lld: %s", source->path, (long long)e->line, dm_error_message());
    }
    *out = (nn_record){.decoded = image.bytes,
                       .bytes = image.bytes,
                       .file = bytes,
                       .file_bytes = length,
                       .channels = image.channels,
                       .height = image.height,
                       .width = image.width,
                       .label = e->label};
    return DM_OK;
}

/* "path label": the label is behind the last space. */
static bool parse_line(char *line, entry *out)
{
    char *space = strrchr(line, ' '), *end = NULL;
    if (!space || space == line || !space[1]) {
        return false;
    }
    errno = 0;
    out->label = strtoll(space + 1, &end, 10);
    *space = 0;
    out->path = line;
    return errno == 0 && *end == 0 && out->label >= INT32_MIN && out->label <= INT32_MAX;
}

static dm_status read_list(list_source *s)
{
    char **lines = NULL;
    int64_t count = 0;
    dm_status status = nn_lines_read(s->source.path, &s->text, &lines, &count);
    if (status != DM_OK) {
        return status;
    }
    s->entries = malloc((size_t)(count + 1) * sizeof *s->entries);
    status =
        s->entries ? DM_OK : dm_error_no_memory("a list of images", (size_t)(count + 1) * sizeof *s->entries);
    for (int64_t i = 0; status == DM_OK && i < count; i++) {
        entry *e = &s->entries[s->source.count];
        if (!*lines[i]) {
            continue;
        }
        e->line = i + 1;
        if (!parse_line(lines[i], e)) {
            status = dm_error_set(DM_ERR_FORMAT, "%s:%lld: a line must have a path and a number as label",
                                  s->source.path, (long long)(i + 1));
        }
        s->source.count++;
    }
    free(lines);
    if (status == DM_OK && s->source.count == 0) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: lists no images", s->source.path);
    }
    return status;
}

dm_status nn_list_open(const char *path, const nn_list_setup *setup, nn_source **out)
{
    static const nn_source_type type = {read_image, close_list};
    list_source *s = calloc(1, sizeof *s);
    if (!s) {
        return dm_error_no_memory("a list of images", sizeof *s);
    }
    s->source.type = &type;
    s->source.colour = setup->colour ? NN_COLOUR : NN_GRAY;
    s->height = setup->height;
    s->width = setup->width;
    s->keep = setup->keep;
    s->source.path = strdup(path);
    s->folder = strdup(setup->folder);
    dm_status status = s->source.path && s->folder
                           ? read_list(s)
                           : dm_error_no_memory("paths", strlen(path) + strlen(setup->folder) + 2);
    if (status != DM_OK) {
        close_list(&s->source);
        return status;
    }
    *out = &s->source;
    return DM_OK;
}
