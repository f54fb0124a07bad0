/* Shared objects with user functions. */
#include "base/config.h"
#include "ops/common_task.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* dlopen looks for a name without a slash in the system's folders only; a file of that name here comes first.
 */
static void *open_object(const char *path)
{
    char here[DMI_CONFIG_TEXT + 2];
    snprintf(here, sizeof here, "./%s", path);
    bool beside = !strchr(path, '/') && access(here, F_OK) == 0;
    return dlopen(beside ? here : path, RTLD_NOW | RTLD_LOCAL);
}

/* dlopen would wait for the writer of a pipe. A name without a slash that is not here is not looked at. */
static bool is_no_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode);
}

static dm_status load_one(const char *path)
{
    if (is_no_file(path)) {
        return dmi_fail(DM_ERR_CONFIG, "option load: %s is not a regular file", path);
    }
    void *object = open_object(path);
    if (!object) {
        return dmi_fail(DM_ERR_CONFIG, "option load: %s", dlerror());
    }
    void *symbol = dlsym(object, "dmath_ops");
    void (*ops)(void) = NULL;
    memcpy(&ops, &symbol, sizeof ops); /* POSIX says that they are alike, C does not */
    if (!ops) {
        return dmi_fail(DM_ERR_CONFIG, "option load: %s has no function dmath_ops", path);
    }
    dm_status status = dmi_task_load(ops);
    return status == DM_OK ? DM_OK : dmi_fail(status, "option load: %s: %s", path, dmi_error_text());
}

dm_status dmi_load_operations(const char *list)
{
    dm_status status = DM_OK;
    while (*list && status == DM_OK) {
        char path[DMI_CONFIG_TEXT];
        size_t length = strcspn(list, ":");
        memcpy(path, list, length);
        path[length] = 0;
        list += length + (list[length] == ':');
        status = length > 0 ? load_one(path) : DM_OK;
    }
    return status;
}
