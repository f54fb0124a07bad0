/* The last commands of each worker, in a file: what led to a time-out or a death. */
#include "base/process.h"
#include "master/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 64, BEFORE = 32 /* of them done, where many are not */ };

/* Where the worker is with a command; step: of the command that runs, else 0. */
static const char *state_of(const dmi_port *port, uint64_t command, uint64_t *step)
{
    *step = 0;
    if (command <= atomic_load(&port->completed)) {
        return "done";
    }
    if (command > atomic_load(&port->now_command)) {
        return "not read";
    }
    if (atomic_load(&port->now_busy) && atomic_load(&port->runs.command) == command) {
        *step = atomic_load(&port->runs.step);
        return "runs";
    }
    if (atomic_load(&port->now_peer) && atomic_load(&port->waits.command) == command) {
        *step = atomic_load(&port->waits.step);
        return "waits";
    }
    return "begun";
}

static void put_worker(FILE *to, const dmi_session *s, int worker, uint64_t last)
{
    const dmi_port *port = dmi_hub_port(&s->hub, worker);
    uint64_t done = atomic_load(&port->completed);
    uint64_t first = last > SHOWN ? last - SHOWN + 1 : 1;
    if (done < first + BEFORE) {
        first = done > BEFORE ? done - BEFORE : 1;
        last = DMI_MIN(last, first + SHOWN - 1);
    }
    fprintf(to, "\nworker %d (%s, process %d): %" PRIu64 " commands done, number %" PRIu64 " was read last\n",
            worker, port->host, port->pid, done, (uint64_t)atomic_load(&port->now_command));
    for (uint64_t command = first; command <= last; command++) {
        char text[1024];
        uint64_t step;
        const char *state = state_of(port, command, &step);
        dmi_command_describe(s, command, step, text, sizeof text);
        fprintf(to, "%-8s %s\n", state, text);
    }
    int peer = atomic_load(&port->now_peer) - 1;
    if (peer >= 0 && done < last) {
        fprintf(to, "it waits for %s %d\n", peer < s->workers ? "worker" : "the master, endpoint", peer);
    }
}

/* A file of our own: nobody else's behind a link of that name. */
static FILE *create(const dmi_session *s, char *path, size_t room)
{
    const char *folder = s->config.report_dir[0] ? s->config.report_dir : getenv("TMPDIR");
    int n = snprintf(path, room, "%s/dmath-report-%d-%" PRIu32 ".txt", folder && *folder ? folder : "/tmp",
                     s->pid, s->number);
    if (n < 0 || (size_t)n >= room) {
        return NULL;
    }
    (void)unlink(path);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *to = file >= 0 ? fdopen(file, "w") : NULL;
    if (!to && file >= 0) {
        close(file);
    }
    return to;
}

void dmi_report(const dmi_session *s, char *text, size_t room)
{
    char path[PATH_MAX];
    FILE *to = create(s, path, sizeof path);
    if (!to) {
        return;
    }
    uint64_t last = __atomic_load_n(&s->command, __ATOMIC_RELAXED);
    dmi_file_limit held;
    dmi_file_limit_enter(&held);
    fprintf(to, "%s\n\n%d workers, %" PRIu64 " commands sent\n", text, s->workers, last);
    for (int w = 0; w < s->workers; w++) {
        put_worker(to, s, w, last);
    }
    bool ok = !ferror(to);
    ok = fclose(to) == 0 && ok;
    int error = errno;
    dmi_file_limit_leave(&held);
    size_t at = strlen(text);
    if (ok && at < room) {
        snprintf(text + at, room - at, ". Last commands of each worker: %s", path);
    } else if (at < room) {
        snprintf(text + at, room - at, ". The last commands of each worker cannot be written to %s: %s", path,
                 strerror(error));
    }
}
