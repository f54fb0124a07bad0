/* Memory of emulated devices, and the known memory of the host. */
#include "base/fault.h"
#include "device/emulated/emulated.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

/* The contents of new memory: not zero, and NaN in floating types. A large allocation holds it at its
 * beginning, where a pool's first allocations are: all of its pages would take long to make, and few are ever
 * used. */
enum { PATTERN = 0xff, PATTERN_BYTES = 1 << 16, MOST_PATTERN = 1 << 20 };

typedef struct allocation {
    struct allocation *next;
    char *base;
    int64_t bytes;
    int64_t mapped; /* whole pages, and one behind them that nobody may touch; 0: not by us */
    int kind, device, fd;
    bool registered; /* PINNED: memory that was there already */
} allocation;

static struct {
    pthread_mutex_t lock;
    allocation *first;
    int64_t used[DMI_EMU_DEVICES];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Whose bytes are in the handle. */
typedef struct handle_content {
    int64_t bytes;
    uint64_t inode; /* a number of a file that is closed may be another's afterwards */
    int pid, fd, device;
} handle_content;

/* --- the table --------------------------------------------------------------------------- */
static bool insert(allocation a)
{
    allocation *kept = malloc(sizeof *kept);
    if (kept) {
        *kept = a;
        pthread_mutex_lock(&table.lock);
        kept->next = table.first;
        table.first = kept;
        pthread_mutex_unlock(&table.lock);
    }
    return kept != NULL;
}

/* The allocation that begins at p; with `take` it leaves the table. */
static bool look_up(const void *p, bool take, allocation *out)
{
    bool found = false;
    pthread_mutex_lock(&table.lock);
    for (allocation **at = &table.first; *at && !found; at = found ? at : &(*at)->next) {
        allocation *a = *at;
        found = a->base == p;
        if (found) {
            *out = *a;
        }
        if (found && take) {
            *at = a->next;
            free(a);
            break;
        }
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}

dmi_emu_place dmi_emu_find(const void *p)
{
    dmi_emu_place place = {.kind = DMI_EMU_PAGEABLE, .device = -1, .bytes = INT64_MAX};
    const char *at = p;
    pthread_mutex_lock(&table.lock);
    for (const allocation *a = table.first; a; a = a->next) {
        if (at >= a->base && at <= a->base + a->bytes) {
            place = (dmi_emu_place){.kind = a->kind, .device = a->device, .bytes = a->base + a->bytes - at};
            if (at < a->base + a->bytes) { /* where one ends another may begin */
                break;
            }
        }
    }
    pthread_mutex_unlock(&table.lock);
    return place;
}

/* --- files in memory ------------------------------------------------------------------------ */
static int64_t whole_pages(int64_t bytes)
{
    int64_t page = sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

/* Maps a file with a page behind it that is no memory; NULL: errno says why. */
static char *map(int fd, int64_t bytes, int64_t *mapped)
{
    int64_t pages = whole_pages(bytes), all = pages + sysconf(_SC_PAGESIZE);
    char *base = mmap(NULL, (size_t)all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }
    if (mmap(base, (size_t)pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
        int error = errno;
        munmap(base, (size_t)all);
        errno = error;
        return NULL;
    }
    *mapped = all;
    ASAN_POISON_MEMORY_REGION(base + bytes, (size_t)(pages - bytes)); /* is nobody's either */
    return base;
}

static void unmap(char *base, int64_t mapped)
{
    ASAN_UNPOISON_MEMORY_REGION(base, (size_t)mapped);
    munmap(base, (size_t)mapped);
}

/* By writing to the file: sanitizers do not have to follow it. */
static bool write_pattern(int fd, int64_t bytes)
{
    char *pattern = malloc(PATTERN_BYTES);
    bool ok = pattern != NULL;
    if (ok) {
        memset(pattern, PATTERN, PATTERN_BYTES);
    }
    for (int64_t at = 0; ok && at < bytes;) {
        ssize_t n = pwrite(fd, pattern, (size_t)DMI_MIN(bytes - at, PATTERN_BYTES), at);
        ok = n > 0;
        at += n;
    }
    free(pattern);
    return ok;
}

static bool reserve(int device, int64_t bytes, int64_t limit)
{
    pthread_mutex_lock(&table.lock);
    bool fits = bytes <= limit - table.used[device];
    table.used[device] += fits ? bytes : 0;
    pthread_mutex_unlock(&table.lock);
    return fits;
}

static void unreserve(int device, int64_t bytes)
{
    pthread_mutex_lock(&table.lock);
    table.used[device] -= bytes;
    pthread_mutex_unlock(&table.lock);
}

void *dmi_cu_malloc(int64_t bytes)
{
    int device = dmi_emu_current();
    allocation a = {.bytes = bytes, .kind = DMI_EMU_DEVICE, .device = device, .fd = -1};
    if (bytes <= 0 || dmi_fault(DMI_FAULT_MALLOC) || dmi_emu_refuse(NULL, "an allocation") != DM_OK ||
        !reserve(device, bytes, dmi_emu_settings_read().memory_bytes)) {
        return NULL;
    }
    dmi_emu_may_wait();
    a.fd = memfd_create("dmath-emulated-gpu", MFD_CLOEXEC);
    if (a.fd >= 0 && ftruncate(a.fd, whole_pages(bytes)) == 0 &&
        write_pattern(a.fd, DMI_MIN(whole_pages(bytes), MOST_PATTERN))) {
        a.base = map(a.fd, bytes, &a.mapped);
    }
    if (a.base && insert(a)) {
        return a.base;
    }
    if (a.base) {
        unmap(a.base, a.mapped);
    }
    if (a.fd >= 0) {
        close(a.fd);
    }
    unreserve(device, bytes);
    return NULL;
}

/* As on a GPU, after all that its streams have been given so far. */
void dmi_cu_release(void *p)
{
    allocation a;
    if (!p || !look_up(p, false, &a) || dmi_emu_refuse(NULL, "giving memory back") != DM_OK) {
        return;
    }
    dmi_emu_device_wait(a.device);
    dmi_emu_may_wait();
    if (look_up(p, true, &a)) {
        unmap(a.base, a.mapped);
        close(a.fd);
        unreserve(a.device, a.bytes);
    }
}

dm_status dmi_cu_memory(int64_t *free_bytes, int64_t *total_bytes)
{
    int device = dmi_emu_current();
    *total_bytes = dmi_emu_settings_read().memory_bytes;
    pthread_mutex_lock(&table.lock);
    *free_bytes = DMI_MAX(*total_bytes - table.used[device], 0);
    pthread_mutex_unlock(&table.lock);
    return DM_OK;
}

dm_status dmi_cu_move(void *dst, const void *src, int64_t bytes)
{
    dm_status status = dmi_emu_refuse(NULL, "a copy that waits");
    if (status != DM_OK) {
        return status;
    }
    memcpy(dst, src, (size_t)bytes);
    return DM_OK;
}

dm_status dmi_cu_set(void *p, int byte, int64_t bytes)
{
    dmi_emu_place place = dmi_emu_find(p);
    dm_status status = dmi_emu_refuse(NULL, "a filling that waits");
    if (status != DM_OK) {
        return status;
    }
    if (bytes > place.bytes || place.kind == DMI_EMU_PAGEABLE) {
        return dmi_fail(DM_ERR_INTERNAL, "%lld bytes at %p are not memory of a device", (long long)bytes, p);
    }
    memset(p, byte, (size_t)bytes);
    return DM_OK;
}

dm_status dmi_cu_zero(void *p, int64_t bytes)
{
    return dmi_cu_set(p, 0, bytes);
}

/* --- between processes ----------------------------------------------------------------------- */
dm_status dmi_cu_export(void *p, dmi_cu_handle *out)
{
    allocation a;
    struct stat about;
    if (!look_up(p, false, &a) || a.kind != DMI_EMU_DEVICE || fstat(a.fd, &about) != 0) {
        return dmi_fail(DM_ERR_INTERNAL, "no memory of an emulated GPU begins at %p", p);
    }
    handle_content content = {
        .bytes = a.bytes, .inode = (uint64_t)about.st_ino, .pid = getpid(), .fd = a.fd, .device = a.device};
    _Static_assert(sizeof content <= sizeof out->bytes, "a handle has room for it");
    memset(out, 0, sizeof *out);
    memcpy(out->bytes, &content, sizeof content);
    return DM_OK;
}

dm_status dmi_cu_open(const dmi_cu_handle *handle, void **out)
{
    handle_content content;
    struct stat about;
    char path[64];
    memcpy(&content, handle->bytes, sizeof content);
    if (content.pid == getpid()) { /* as with CUDA */
        return dmi_fail(DM_ERR_INTERNAL, "memory of an emulated GPU is opened where it was made");
    }
    snprintf(path, sizeof path, "/proc/%d/fd/%d", content.pid, content.fd);
    allocation a = {.bytes = content.bytes, .kind = DMI_EMU_OPENED, .device = content.device, .fd = -1};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool same = fd >= 0 && fstat(fd, &about) == 0 && (uint64_t)about.st_ino == content.inode;
    a.base = same ? map(fd, a.bytes, &a.mapped) : NULL;
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (!a.base) {
        return dmi_fail(DM_ERR_TRANSPORT, "memory of an emulated GPU, %s: %s", path,
                        fd >= 0 && !same ? "it has been given back" : strerror(error));
    }
    if (!insert(a)) {
        unmap(a.base, a.mapped);
        return dmi_fail(DM_ERR_NOMEM, "no memory for a mapping");
    }
    *out = a.base;
    return DM_OK;
}

void dmi_cu_close(void *p)
{
    allocation a;
    if (p && look_up(p, true, &a)) {
        unmap(a.base, a.mapped);
    }
}

/* --- pinned memory ---------------------------------------------------------------------------- */
void *dmi_cu_malloc_host(int64_t bytes)
{
    void *p = NULL;
    if (bytes <= 0 || dmi_emu_refuse(NULL, "an allocation of pinned memory") != DM_OK ||
        dmi_fault(DMI_FAULT_MALLOC) || posix_memalign(&p, (size_t)sysconf(_SC_PAGESIZE), (size_t)bytes) != 0) {
        return NULL;
    }
    dmi_emu_may_wait();
    memset(p, PATTERN, (size_t)bytes);
    if (!insert((allocation){.base = p, .bytes = bytes, .kind = DMI_EMU_PINNED, .device = -1, .fd = -1})) {
        free(p);
        return NULL;
    }
    return p;
}

void dmi_cu_release_host(void *p)
{
    allocation a;
    if (p && look_up(p, false, &a) && dmi_emu_refuse(NULL, "giving pinned memory back") == DM_OK) {
        dmi_emu_device_wait(dmi_emu_current());
        free(look_up(p, true, &a) ? p : NULL);
    }
}

dm_status dmi_cu_pin(void *p, int64_t bytes)
{
    dm_status status = dmi_emu_refuse(NULL, "pinning memory");
    if (status != DM_OK) {
        return status;
    }
    const dmi_emu_place place = dmi_emu_find(p);
    if (place.kind != DMI_EMU_PAGEABLE && place.bytes > 0) { /* 0: it begins where other memory ends */
        return dmi_fail(DM_ERR_INTERNAL, "memory at %p is pinned already", p);
    }
    allocation a = {
        .base = p, .bytes = bytes, .kind = DMI_EMU_PINNED, .device = -1, .fd = -1, .registered = true};
    return insert(a) ? DM_OK : dmi_fail(DM_ERR_NOMEM, "no memory to pin memory");
}

dm_status dmi_cu_pin_to_read(const void *p, int64_t bytes)
{
    return dmi_cu_pin((void *)(uintptr_t)p, bytes);
}

void dmi_cu_unpin(void *p)
{
    allocation a;
    if (p && look_up(p, false, &a) && a.registered) {
        dmi_emu_device_wait(dmi_emu_current());
        (void)look_up(p, true, &a);
    }
}
