/* Images to databases: those of a list, or of a folder with a folder for each class. */
#include "data/convert.h"
#include "data/list.h"

#include "base/base.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a folder, sorted; each and the list are the caller's to free. */
static dm_status names_in(const char *folder, char ***out, int64_t *count)
{
    DIR *d = opendir(folder);
    char **all = NULL;
    int64_t n = 0, room = 0;
    dm_status status = d ? DM_OK : dm_error_set(DM_ERR_IO, "%s: the folder cannot be read", folder);
    for (struct dirent *e = d ? readdir(d) : NULL; e && status == DM_OK; e = readdir(d)) {
        if (e->d_name[0] == '.') {
            continue;
        }
        if (n == room) {
            room = room ? 2 * room : 64;
            char **more = realloc(all, (size_t)room * sizeof *all);
            status = more ? DM_OK : dm_error_no_memory("a list of names", (size_t)room * sizeof *all);
            all = more ? more : all;
        }
        if (status == DM_OK && !(all[n] = strdup(e->d_name))) {
            status = dm_error_no_memory("a name", strlen(e->d_name) + 1);
        }
        n += status == DM_OK;
    }
    if (d) {
        closedir(d);
    }
    if (n) {
        qsort(all, (size_t)n, sizeof *all, by_name);
    }
    *out = all;
    *count = n;
    return status;
}

static void free_names(char **names, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        free(names[i]);
    }
    free(names);
}

/* Lines "class/file number" of all files in the folders of a folder. */
static dm_status list_folder(const char *folder, FILE *to)
{
    char **classes = NULL;
    int64_t class_count = 0, label = 0;
    dm_status status = names_in(folder, &classes, &class_count);
    for (int64_t i = 0; status == DM_OK && i < class_count; i++) {
        char path[4096], **files = NULL;
        int64_t file_count = 0;
        struct stat about;
        snprintf(path, sizeof path, "%s/%s", folder, classes[i]);
        if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
            continue;
        }
        status = names_in(path, &files, &file_count);
        for (int64_t k = 0; status == DM_OK && k < file_count; k++) {
            fprintf(to, "/%s/%s %lld\n", classes[i], files[k], (long long)label);
        }
        label++;
        free_names(files, file_count);
    }
    free_names(classes, class_count);
    return status;
}

void nn_list_path(const char *database, char *path, size_t room)
{
    snprintf(path, room, "%s.list", database);
}

bool nn_is_there(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

/* A list of a folder's images beside the database: it says which label each class has. That of a database that
 * is there already stays as it is. */
static dm_status make_list(const dm_data_options *o, char *path, size_t room)
{
    if (nn_is_there(o->database)) {
        return dm_error_set(DM_ERR_IO, "%s: is there already", o->database);
    }
    nn_list_path(o->database, path, room);
    FILE *f = fopen(path, "we");
    dm_status status =
        f ? list_folder(o->inputs[0], f) : dm_error_set(DM_ERR_IO, "%s: cannot be written", path);
    if (f && fclose(f) != 0 && status == DM_OK) {
        status = dm_error_set(DM_ERR_IO, "%s: cannot be written", path);
    }
    return status;
}

dm_status nn_convert_images(const dm_data_options *o, nn_sink *sink, int64_t *count)
{
    char made[4096];
    struct stat about;
    const char *list = o->inputs[0];
    nn_source *source = NULL;
    nn_list_setup setup = {o->root ? o->root : "", !o->gray, o->height, o->width, o->encoded != 0};
    dm_status status = DM_OK;
    if (stat(list, &about) == 0 && S_ISDIR(about.st_mode)) {
        status = make_list(o, made, sizeof made);
        setup.folder = list;
        list = made;
    }
    status = status == DM_OK ? nn_list_open(list, &setup, &source) : status;
    status = status == DM_OK ? nn_put_all(o, source, sink, count) : status;
    nn_source_close(source);
    return status;
}
