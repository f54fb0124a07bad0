/* Calls that go wrong for the library of the program that has this file in it. DMATH_TEST_WRONG says what, in
 * one rank or in all: threads     MPI has none probe       a byte of each message that tries a pair of
 * endpoints changes lost        messages that try memory of GPUs never leave frames      a message of commands
 * for another host has a wrong length in it report      the first report to another host is too short payload
 * so is a payload open:NAME   memory that other processes have made by this name cannot be opened, as where
 * they are another user's later:NAME  the same from some time on, as where too many files are open */
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of launch/probe.c, gpu_message.c, forward.c, exec/mpi_link.c. */
enum {
    TAG_PAIR = 2,
    TAG_GPU = 3,
    TAG_FRAMES = 11,
    TAG_REPORT = 13,
    TAG_BLOCK = 20,
    WHICH_FRAMES = 20,
    WHICH_PAYLOAD = 5,
    LATER = 12
};

static int is_wrong(const char *what)
{
    const char *wrong = getenv("DMATH_TEST_WRONG");
    return wrong && strcmp(wrong, what) == 0;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int code = PMPI_Init_thread(argc, argv, required, provided);
    *provided = is_wrong("threads") ? MPI_THREAD_SINGLE : *provided;
    return code;
}

int MPI_Isend(const void *from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    static int messages, reports, payloads;
    int change = (tag == TAG_PAIR && is_wrong("probe")) ||
                 (tag == TAG_FRAMES && is_wrong("frames") && ++messages == WHICH_FRAMES);
    if (tag == TAG_GPU && is_wrong("lost")) {
        *request = MPI_REQUEST_NULL; /* as if it had been sent */
        return MPI_SUCCESS;
    }
    if (change && count > 0) {
        char *changed = malloc((size_t)count); /* MPI has it until the process ends */
        if (!changed) {
            return MPI_ERR_NO_MEM;
        }
        from = memcpy(changed, from, (size_t)count);
        changed[0] ^= 1;
    }
    count -= (tag == TAG_REPORT && is_wrong("report") && ++reports == 1) ||
             (tag >= TAG_BLOCK && is_wrong("payload") && ++payloads == WHICH_PAYLOAD);
    return PMPI_Isend(from, count, type, to, tag, comm, request);
}

/* Is this memory that another process has made by the name? */
static int has_name(const char *path, const char *name)
{
    char made[100] = "";
    ssize_t length = strncmp(path, "/proc/", 6) == 0 ? readlink(path, made, sizeof made - 1) : -1;
    return length > 0 && strstr(made, name);
}

/* errno, or 0. */
static int cannot_open(const char *path)
{
    static int times;
    const char *wrong = getenv("DMATH_TEST_WRONG"), *name = wrong ? strchr(wrong, ':') : NULL;
    if (!name || !has_name(path, name + 1)) {
        return 0;
    }
    return strncmp(wrong, "open", 4) == 0 ? EACCES : ++times > LATER ? EMFILE : 0;
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;
    va_end(rest);
    int error = cannot_open(path);
    if (error) {
        errno = error;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
