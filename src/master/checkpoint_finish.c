/* The thread of a checkpoint: it waits for the workers' parts, and then makes of the files a checkpoint. It
 * uses nothing of the session but counters that workers raise, and the bell. */
#include "io/folder.h"
#include "io/hash.h"
#include "master/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SHORTEST_NS = 100000, LONGEST_NS = 5000000 };

void dmi_checkpoint_free(dmi_checkpoint_job *job)
{
    if (job) {
        dmi_manifest_free(&job->manifest);
        free(job->series);
        free(job->folder);
        free(job->copy);
        free(job);
    }
}

static bool all_written(dmi_checkpoint_job *job)
{
    for (int w = 0; w < job->session->workers; w++) {
        if (atomic_load_explicit(&dmi_hub_port(&job->session->hub, w)->background, memory_order_acquire) <
            job->last) {
            return false;
        }
    }
    return true;
}

/* False: the session has been given up. */
static bool await_workers(dmi_checkpoint_job *job)
{
    for (int64_t pause_ns = SHORTEST_NS; !all_written(job); pause_ns = DMI_MIN(2 * pause_ns, LONGEST_NS)) {
        if (atomic_load(&job->abandoned)) {
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
    }
    return true;
}

static dm_status read_table(int fd, const char *path, dmi_saved *saved)
{
    for (int64_t part = 0; part < saved->parts.count; part++) {
        dmi_part_entry entry = {0};
        if (fd < 0 || pread(fd, &entry, sizeof entry, (off_t)(part * (int64_t)sizeof entry)) != sizeof entry) {
            return dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno));
        }
        if (entry.check != (entry.hash ^ DMI_PART_WRITTEN)) {
            return dmi_fail(DM_ERR_IO, "%s: part %" PRId64 " was not written", saved->name, part);
        }
        saved->hash[part] = entry.hash;
    }
    return DM_OK;
}

/* The hashes that the workers have entered in the table; the table goes. */
static dm_status take_table(const char *folder, dmi_saved *saved)
{
    char name[300];
    snprintf(name, sizeof name, "%s%s", saved->file, DMI_PART_TABLE);
    char *path = dmi_folder_path(folder, name);
    if (!path) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a path");
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    dm_status status = read_table(fd, path, saved);
    if (fd >= 0) {
        close(fd);
    }
    if (status == DM_OK && unlink(path) != 0) {
        status = dmi_fail(DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    free(path);
    return status;
}

static dm_status finish(dmi_checkpoint_job *job)
{
    dm_status status = DM_OK;
    int64_t number;
    for (int i = 0; i < job->manifest.items && status == DM_OK; i++) {
        dmi_saved *saved = &job->manifest.item[i];
        if (saved->file && (status = take_table(job->folder, saved)) == DM_OK) {
            status = dmi_folder_sync(job->folder, saved->file);
        }
    }
    status = status == DM_OK ? dmi_manifest_write(&job->manifest, job->folder) : status;
    status = status == DM_OK ? dmi_folder_sync(job->folder, DMI_MANIFEST) : status;
    status = status == DM_OK ? dmi_folder_sync(job->folder, NULL) : status;
    status = status == DM_OK ? dmi_folder_publish(job->series, job->folder, &number) : status;
    if (status == DM_OK) {
        dmi_folder_thin(job->series, job->keep);
    }
    return status;
}

void *dmi_checkpoint_finish(void *argument)
{
    dmi_checkpoint_job *job = argument;
    dmi_thread_name("checkpoint");
    job->status =
        await_workers(job) ? finish(job) : dmi_fail(DM_ERR_STATE, "the session ended before it was written");
    if (job->status != DM_OK) {
        snprintf(job->text, sizeof job->text, "the checkpoint in %s was not made: %s", job->series,
                 dmi_error_text());
        dmi_folder_remove(job->folder); /* nothing, where it has its number already */
    }
    atomic_store(&job->done, 1);
    dmi_bell_ring(&job->session->engine.port->bell);
    return NULL;
}
