/* Slabs in memfds: other processes of the host map them through /proc, which needs no room in /dev/shm. */
#include "base/process.h"
#include "launch/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Memory that the host still has, in bytes; INT64_MAX: unknown. A memfd gets its pages only when they are
 * touched, and then the kernel kills a process rather than refuse. */
static int64_t available_bytes(void)
{
    char line[128];
    long long kib = -1;
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && kib < 0 && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemAvailable: %lld kB", &kib) != 1) {
            kib = -1;
        }
    }
    if (f) {
        fclose(f);
    }
    return kib < 0 ? INT64_MAX : kib * 1024;
}

static void *get_slab(void *context, int index, int64_t bytes)
{
    dmi_port *port = context;
    if (index >= DMI_MAX_SLABS) {
        dmi_log(DMI_LOG_ERROR, "more than %d slabs: set a larger slab size (option slab)", DMI_MAX_SLABS);
        return NULL;
    }
    int64_t available = available_bytes();
    if (bytes > available) {
        dmi_log(DMI_LOG_WARN, "a slab of %lld bytes is more than the %lld that this host has left",
                (long long)bytes, (long long)available);
        return NULL;
    }
    int fd = memfd_create("dmath-slab", MFD_CLOEXEC);
    void *at = MAP_FAILED;
    dmi_file_limit held;
    dmi_file_limit_enter(&held);
    bool sized = fd >= 0 && ftruncate(fd, (off_t)bytes) == 0;
    dmi_file_limit_leave(&held);
    if (sized) {
        at = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (at == MAP_FAILED) {
        dmi_log(DMI_LOG_WARN, "a slab of %lld bytes could not be had: %s%s", (long long)bytes, strerror(errno),
                errno == EFBIG ? " (ulimit -f limits it)" : "");
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    (void)madvise(at, (size_t)bytes, MADV_HUGEPAGE); /* where the kernel allows it for shared memory */
    atomic_store(&port->slab_bytes[index], bytes);
    atomic_store(&port->slab_fd[index], fd + 1);
    atomic_fetch_add(&port->slab_serial[index], 1);
    return at;
}

static void give_back_slab(void *context, int index, void *base, int64_t bytes)
{
    dmi_port *port = context;
    int fd = atomic_exchange(&port->slab_fd[index], 0) - 1;
    munmap(base, (size_t)bytes);
    if (fd >= 0) {
        close(fd);
    }
}

dmi_slab_ops dmi_slab_ops_shared(dmi_port *port)
{
    dmi_slab_ops ops = dmi_slab_ops_anonymous(); /* its red-zone calls serve here too */
    ops.context = port;
    ops.get = get_slab;
    ops.give_back = give_back_slab;
    return ops;
}
