#include "comm/hub.h"
#include "base/fault.h"
#include "base/process.h"
#include "base/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HUB_MAGIC UINT64_C(0x3168746d64627568)

enum { LONG_STEP_NS = 2000 }; /* about what it takes to sleep and to wake up */

static size_t line_up(size_t n)
{
    return (n + DMI_LINE - 1) / DMI_LINE * DMI_LINE;
}

static void bind_pointers(dmi_hub *hub, void *base)
{
    hub->header = base;
    hub->endpoints = hub->header->endpoints;
    hub->ring = (dmi_ring *)(void *)((char *)base + hub->header->ring_offset);
    hub->ports = (char *)base + hub->header->port_offset;
}

dm_status dmi_hub_create(int endpoints, int64_t ring_bytes, bool shared, dmi_hub *out)
{
    uint64_t size = 4096;
    while (size < (uint64_t)ring_bytes) {
        size *= 2;
    }
    size_t ring_at = line_up(sizeof(dmi_hub_header));
    size_t ports_at = line_up(ring_at + sizeof(dmi_ring) + size);
    size_t port_bytes = line_up(sizeof(dmi_port) + (size_t)endpoints * (DMI_CHANNELS * sizeof(dmi_mailbox) +
                                                                        sizeof(atomic_int_fast64_t)));
    size_t total = ports_at + (size_t)endpoints * port_bytes;
    int fd = -1;
    if (shared) {
        dmi_file_limit held;
        dmi_file_limit_enter(&held);
        fd = memfd_create("dmath-hub", MFD_CLOEXEC);
        bool ok = fd >= 0 && ftruncate(fd, (off_t)total) == 0;
        dmi_file_limit_leave(&held);
        if (!ok) {
            int error = errno;
            if (fd >= 0) {
                close(fd);
            }
            return dmi_fail(DM_ERR_NOMEM, "cannot make %zu bytes of shared memory for %d workers: %s%s", total,
                            endpoints - 1, strerror(error), error == EFBIG ? " (ulimit -f limits it)" : "");
        }
    }
    void *base =
        mmap(NULL, total, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    if (base == MAP_FAILED) {
        int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        return dmi_fail(DM_ERR_NOMEM, "cannot map %zu bytes of control memory for %d workers: %s", total,
                        endpoints - 1, strerror(error));
    }
    *(dmi_hub_header *)base = (dmi_hub_header){.magic = HUB_MAGIC,
                                               .endpoints = endpoints,
                                               .ring_offset = ring_at,
                                               .port_offset = ports_at,
                                               .port_bytes = port_bytes,
                                               .total_bytes = total};
    memset(out, 0, sizeof *out);
    out->fd = fd;
    bind_pointers(out, base);
    out->ring->size = size;
    return DM_OK;
}

dm_status dmi_hub_attach(int pid, int fd, dmi_hub *out)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    int own = open(path, O_RDWR | O_CLOEXEC);
    struct stat st;
    void *base = MAP_FAILED;
    if (own >= 0 && fstat(own, &st) == 0) {
        base = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    }
    int error = errno;
    if (own >= 0) {
        close(own);
    }
    if (base == MAP_FAILED) {
        return dmi_fail(DM_ERR_TRANSPORT, "cannot map control memory of process %d (%s): %s", pid, path,
                        strerror(error));
    }
    if (((dmi_hub_header *)base)->magic != HUB_MAGIC) {
        munmap(base, (size_t)st.st_size);
        return dmi_fail(DM_ERR_TRANSPORT, "%s is not control memory of dmath", path);
    }
    memset(out, 0, sizeof *out);
    out->fd = -1;
    bind_pointers(out, base);
    return DM_OK;
}

void dmi_hub_close(dmi_hub *hub)
{
    if (hub->header) {
        munmap(hub->header, hub->header->total_bytes);
        if (hub->fd >= 0) {
            close(hub->fd);
        }
    }
    memset(hub, 0, sizeof *hub);
    hub->fd = -1;
}

/* --- bells ------------------------------------------------------------------------------------------------ */

/* Dekker's pattern: the ringer publishes, then reads `sleeping`; the waiter writes `sleeping`, then checks.
 * Both put a full barrier between the two, so at least one of them sees the other. */
static inline void full_barrier(atomic_uint *word)
{
#if defined(__SANITIZE_THREAD__)
    atomic_fetch_add(word, 0); /* TSan does not model fences */
#else
    (void)word;
    atomic_thread_fence(memory_order_seq_cst);
#endif
}

bool dmi_bell_awaited(dmi_bell *bell)
{
    full_barrier(&bell->sleeping);
    return atomic_load(&bell->sleeping) != 0;
}

void dmi_bell_wake(dmi_bell *bell)
{
    atomic_fetch_add(&bell->count, 1);
    syscall(SYS_futex, (unsigned *)(void *)&bell->count, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void dmi_bell_ring(dmi_bell *bell)
{
    if (dmi_bell_awaited(bell)) {
        dmi_bell_wake(bell);
    }
}

unsigned dmi_bell_announce(dmi_bell *bell)
{
    unsigned token = atomic_load(&bell->count);
    atomic_fetch_add(&bell->sleeping, 1);
    full_barrier(&bell->sleeping);
    return token;
}

void dmi_bell_cancel(dmi_bell *bell)
{
    atomic_fetch_sub(&bell->sleeping, 1);
}

void dmi_bell_sleep(dmi_bell *bell, unsigned token, int64_t timeout_ns)
{
    struct timespec limit = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    if (dmi_fault_turns() && dmi_turns_yield()) {
        dmi_bell_cancel(bell);
        return;
    }
    syscall(SYS_futex, (unsigned *)(void *)&bell->count, FUTEX_WAIT, token, &limit, NULL, 0);
    atomic_fetch_sub(&bell->sleeping, 1);
}

/* The first worker that is inside a kernel, and the kernel's step, as one number; 0: none is. */
static uint64_t running_step(const dmi_hub *hub)
{
    for (int i = 0; i < hub->endpoints; i++) {
        dmi_port *port = dmi_hub_port(hub, i);
        if (atomic_load_explicit(&port->now_busy, memory_order_relaxed)) {
            uint64_t step = atomic_load_explicit(&port->runs.step, memory_order_relaxed);
            uint64_t command = atomic_load_explicit(&port->runs.command, memory_order_relaxed);
            return (step ^ command << 32) + (uint64_t)i + 1;
        }
    }
    return 0;
}

int dmi_backoff_step(dmi_backoff *backoff, const dmi_hub *hub)
{
    if (dmi_fault_turns()) {
        return DMI_WAIT_SLEEP; /* without a look at the clock */
    }
    backoff->round++;
    if (!hub->oversubscribed && backoff->round < 64) {
        __builtin_ia32_pause();
        return DMI_WAIT_AGAIN;
    }
    int64_t now = dmi_now_ns();
    if (backoff->since_ns == 0) {
        backoff->since_ns = now;
    }
    int64_t waited = now - backoff->since_ns;
    uint64_t running = hub->tight ? running_step(hub) : 0;
    if (running != backoff->running) {
        backoff->running = running;
        backoff->running_since_ns = now;
    }
    if (running ? now - backoff->running_since_ns < LONG_STEP_NS : waited < hub->spin_ns) {
        for (int i = 0; i < 16; i++) {
            __builtin_ia32_pause();
        }
        return DMI_WAIT_AGAIN;
    }
    /* Yields for 0.1 ms: other threads of dmath may need the core. But who yields to a long step, or to another
     * program, may not run again before that ends or its slice of time is over; who sleeps is woken by what it
     * waits for. */
    bool waits_long = hub->fits && backoff->longs >= DMI_MOSTLY_LONG;
    if (!running && !waits_long && waited < hub->spin_ns + 100000) {
        sched_yield();
        return DMI_WAIT_AGAIN;
    }
    return DMI_WAIT_SLEEP;
}
