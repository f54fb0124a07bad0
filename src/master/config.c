/* The configuration of a session: environment, options and the public struct. */
#include "base/fault.h"
#include "base/sized.h"
#include "io/folder.h"
#include "master/session.h"
#include "ops/common_task.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WORKERS = 65536 }; /* as the option's */
enum { MEET_S = 120 };         /* as the option's standard */

static dm_status take_config(const dm_config *config, dm_config *known)
{
    if (!config) {
        *known = (dm_config)DM_CONFIG_INIT;
        return DM_OK;
    }
    return dmi_sized_take(config, DMI_SIZED_LEAST(dm_config, options), known, sizeof *known,
                          "config: start from DM_CONFIG_INIT");
}

dmi_error_handler dmi_error_handler_of(const dm_config *config)
{
    dm_config known;
    if (take_config(config, &known) != DM_OK) {
        return (dmi_error_handler){0};
    }
    return (dmi_error_handler){known.on_error, known.error_context};
}

/* The name of a file or folder that is opened later, or by others. */
static dm_status fix_path(const char *key, char path[DMI_CONFIG_TEXT])
{
    char *absolute = NULL;
    dm_status status = path[0] && path[0] != '/' ? dmi_folder_absolute(path, &absolute) : DM_OK;
    if (absolute && strlen(absolute) >= DMI_CONFIG_TEXT) {
        status =
            dmi_fail(DM_ERR_CONFIG, "%s=%s: with the working folder before it, it has more than %d characters",
                     key, path, DMI_CONFIG_TEXT - 1);
    } else if (absolute) {
        strcpy(path, absolute);
    }
    free(absolute);
    return status;
}

static dm_status fix_paths(dmi_config *config)
{
    dm_status status = fix_path("trace", config->trace);
    status = status == DM_OK ? fix_path("report_dir", config->report_dir) : status;
    bool named = dmi_config_profile(config) && strcmp(config->profile, "1") != 0;
    return status == DM_OK && named ? fix_path("profile", config->profile) : status;
}

dm_status dmi_config_from(const dm_config *config, dmi_config *out)
{
    memset(out, 0, sizeof *out);
    out->meet_s = MEET_S;
    dm_config known;
    dm_status status = take_config(config, &known);
    if (status == DM_OK) {
        status = dmi_config_load(out, known.options);
    }
    status = status == DM_OK ? fix_paths(out) : status;
    if (status == DM_OK && (known.workers < 0 || known.workers > MOST_WORKERS)) {
        status = dmi_fail(DM_ERR_ARG, "config: workers is %d, not 0 to %d", known.workers, MOST_WORKERS);
    }
    if (status == DM_OK) {
        out->workers = known.workers > 0 ? known.workers : out->workers;
        dmi_log_set_level((int)out->log);
        dmi_log_set_who("master");
        dmi_fault_plant(out->fault);
        status = dmi_load_operations(out->load);
    }
    return status;
}
