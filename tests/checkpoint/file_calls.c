/* Stands between a program and the system (LD_PRELOAD), at every call that changes files below the folder
 * FILE_CALLS_FOLDER. FILE_CALLS_KILL=n: the process dies by SIGKILL before call number n, from 1 on.
 * FILE_CALLS_LOG=path: the calls, in order, for power_cut.py: a line each with its paths and numbers, and
 * behind a write its bytes. Lines that the program writes to its output are in the log too, as "said". */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long calls;

static int path_of(int fd, char *out, size_t room)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, room - 1);
    out[n > 0 ? n : 0] = 0;
    return n > 0;
}

static int is_below(const char *path)
{
    const char *folder = getenv("FILE_CALLS_FOLDER");
    return folder && strncmp(path, folder, strlen(folder)) == 0;
}

/* Called with the lock, which is held until the call is done, so that the log has the order of the calls. */
static void note(const void *data, size_t bytes, const char *format, ...)
{
    const char *kill_at = getenv("FILE_CALLS_KILL"), *log = getenv("FILE_CALLS_LOG");
    if (++calls == (kill_at ? atol(kill_at) : -1)) {
        kill(getpid(), SIGKILL);
        pause();
    }
    if (log) {
        char line[2048];
        va_list args;
        va_start(args, format);
        int n = vsnprintf(line, sizeof line - 1, format, args);
        va_end(args);
        line[n++] = '\n';
        int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        (void)!syscall(SYS_write, fd, line, (size_t)n);
        (void)!syscall(SYS_write, fd, data, bytes);
        syscall(SYS_close, fd);
    }
}

#define AROUND(below, result, ...)                                                                             \
    do {                                                                                                       \
        int watched = (below);                                                                                 \
        if (watched) {                                                                                         \
            pthread_mutex_lock(&lock);                                                                         \
            note(__VA_ARGS__);                                                                                 \
        }                                                                                                      \
        long got = (result);                                                                                   \
        int error = errno;                                                                                     \
        if (watched) {                                                                                         \
            pthread_mutex_unlock(&lock);                                                                       \
        }                                                                                                      \
        errno = error;                                                                                         \
        return got;                                                                                            \
    } while (0)

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    AROUND(flags & O_CREAT && is_below(path), syscall(SYS_openat, AT_FDCWD, path, flags, mode), "", 0,
           "create\t%s", path);
}

int mkdir(const char *path, mode_t mode)
{
    AROUND(is_below(path), syscall(SYS_mkdir, path, mode), "", 0, "mkdir\t%s", path);
}

int rmdir(const char *path)
{
    AROUND(is_below(path), syscall(SYS_rmdir, path), "", 0, "rmdir\t%s", path);
}

int unlink(const char *path)
{
    AROUND(is_below(path), syscall(SYS_unlink, path), "", 0, "unlink\t%s", path);
}

int unlinkat(int dir, const char *name, int flags)
{
    char path[4096];
    int known = path_of(dir, path, sizeof path);
    AROUND(known && is_below(path) && strcmp(name, ".") != 0 && strcmp(name, "..") != 0,
           syscall(SYS_unlinkat, dir, name, flags), "", 0, "unlink\t%s/%s", path, name);
}

int rename(const char *from, const char *to)
{
    AROUND(is_below(from), syscall(SYS_rename, from, to), "", 0, "rename\t%s\t%s", from, to);
}

int ftruncate(int fd, off_t bytes)
{
    char path[4096];
    int known = path_of(fd, path, sizeof path);
    AROUND(known && is_below(path), syscall(SYS_ftruncate, fd, bytes), "", 0, "size\t%s\t%lld", path,
           (long long)bytes);
}

int fsync(int fd)
{
    char path[4096];
    int known = path_of(fd, path, sizeof path);
    AROUND(known && is_below(path), syscall(SYS_fsync, fd), "", 0, "sync\t%s", path);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    char path[4096];
    int known = path_of(fd, path, sizeof path);
    AROUND(known && is_below(path), syscall(SYS_pwrite64, fd, data, bytes, at), data, bytes,
           "write\t%s\t%lld\t%zu", path, (long long)at, bytes);
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    char path[4096];
    int known = path_of(fd, path, sizeof path);
    if (fd == STDOUT_FILENO) {
        AROUND(1, syscall(SYS_write, fd, data, bytes), data, bytes, "said\t%zu", bytes);
    }
    AROUND(known && is_below(path), syscall(SYS_write, fd, data, bytes), data, bytes, "write\t%s\t-1\t%zu",
           path, bytes);
}
