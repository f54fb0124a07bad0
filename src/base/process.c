#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* All of a small file; -1: there is none. Without stdio, which allocates. */
static int read_whole(const char *path, char *out, int room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    ssize_t n = read(fd, out, (size_t)room - 1);
    close(fd);
    out[n > 0 ? n : 0] = 0;
    return (int)n;
}

/* The fields of a stat file behind the name, which may hold anything. */
static const char *stat_fields(const char *path, char *text, int room)
{
    const char *at = read_whole(path, text, room) > 0 ? strrchr(text, ')') : NULL;
    return at && at[1] == ' ' ? at + 2 : NULL;
}

uint64_t dmi_process_start(int pid)
{
    char path[48], text[1024], state = 0;
    uint64_t start = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const char *at = stat_fields(path, text, sizeof text);
    if (!at ||
        sscanf(at, "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %" SCNu64,
               &state, &start) != 2 ||
        state == 'Z' || state == 'X') {
        return 0;
    }
    return start;
}

bool dmi_process_lives(int pid, uint64_t start)
{
    uint64_t now = dmi_process_start(pid);
    return now != 0 && (start == 0 || now == start);
}

/* The number of kB behind the name, in bytes. */
static int64_t kilobytes(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    int64_t kb;
    return at && sscanf(at + strlen(name), " %" SCNd64 " kB", &kb) == 1 ? kb * 1024 : -1;
}

void dmi_process_memory_now(dmi_process_memory *out)
{
    char text[1024];
    int kept = errno;
    int64_t addresses = 0, resident = 0, page = sysconf(_SC_PAGESIZE);
    struct rlimit limit;
    *out = (dmi_process_memory){-1, -1, -1, -1, -1};
    if (read_whole("/proc/meminfo", text, sizeof text) > 0) {
        out->total = kilobytes(text, "MemTotal:");
        out->free = kilobytes(text, "MemAvailable:");
    }
    if (read_whole("/proc/self/statm", text, sizeof text) > 0 &&
        sscanf(text, "%" SCNd64 " %" SCNd64, &addresses, &resident) == 2) {
        out->addresses = addresses * page;
        out->resident = resident * page;
    }
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        out->most = (int64_t)limit.rlim_cur;
    }
    errno = kept;
}

int dmi_process_parent(int pid)
{
    char path[48], text[1024];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const char *at = stat_fields(path, text, sizeof text);
    return at && sscanf(at, "%*c %d", &parent) == 1 ? parent : 0;
}

bool dmi_process_has(int pid, const char *entry)
{
    char path[48], bytes[1024];
    size_t at = 0; /* so much of the entry has been seen, if it is the same so far */
    bool same = true, found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && !found && (n = read(fd, bytes, sizeof bytes)) > 0;) {
        for (ssize_t i = 0; i < n && !found; i++) {
            same = same && entry[at] == bytes[i];
            found = same && bytes[i] == '\0';
            at = same ? at + 1 : at;
            if (bytes[i] == '\0') {
                at = 0;
                same = true;
            }
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return found;
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

uint64_t dmi_process_place(void)
{
    char boot[64] = "";
    struct stat space = {0};
    (void)!read_whole("/proc/sys/kernel/random/boot_id", boot, sizeof boot);
    (void)!stat("/proc/self/ns/pid", &space);
    uint64_t hash = mix(UINT64_C(0xcbf29ce484222325), boot, strlen(boot));
    return mix(hash, &space.st_ino, sizeof space.st_ino);
}

bool dmi_thread_times_get(int pid, int tid, dmi_thread_times *out)
{
    char path[64], text[1024];
    long long user = 0, system = 0;
    *out = (dmi_thread_times){0};
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    const char *at = stat_fields(path, text, sizeof text);
    if (!at ||
        sscanf(at, "%c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lld %lld", &out->state, &user, &system) != 3) {
        return false;
    }
    out->cpu_ns = (user + system) * (INT64_C(1000000000) / sysconf(_SC_CLK_TCK));
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, tid);
    if (read_whole(path, text, sizeof text) > 0) {
        (void)!sscanf(text, "%" SCNd64 " %" SCNd64, &out->cpu_ns, &out->waited_ns);
    }
    return true;
}

int dmi_thread_number(void)
{
    return (int)syscall(SYS_gettid);
}

static dmi_fork_lock *fork_locks;

static void before_fork(void)
{
    for (dmi_fork_lock *l = fork_locks; l; l = l->next) {
        pthread_mutex_lock(l->lock);
    }
}

static void after_fork(void)
{
    for (dmi_fork_lock *l = fork_locks; l; l = l->next) {
        pthread_mutex_unlock(l->lock);
    }
}

static void in_child(void)
{
    for (dmi_fork_lock *l = fork_locks; l; l = l->next) {
        if (l->child) {
            l->child();
        }
    }
    after_fork();
}

/* Called while the library is loaded, by one thread. */
void dmi_fork_keep(dmi_fork_lock *lock)
{
    if (fork_locks || pthread_atfork(before_fork, after_fork, in_child) == 0) {
        lock->next = fork_locks;
        fork_locks = lock;
    }
}

static void limit_signal(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGXFSZ);
}

void dmi_file_limit_enter(dmi_file_limit *held)
{
    int error = errno;
    sigset_t set;
    limit_signal(&set);
    pthread_sigmask(SIG_BLOCK, &set, &held->before);
    errno = error;
}

void dmi_file_limit_leave(const dmi_file_limit *held)
{
    int error = errno;
    if (!sigismember(&held->before, SIGXFSZ)) {
        sigset_t set;
        limit_signal(&set);
        while (sigtimedwait(&set, NULL, &(struct timespec){0}) < 0 && errno == EINTR) {
        }
        pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    }
    errno = error;
}
