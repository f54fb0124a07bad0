#include "base/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* The C library's own calls: base/fault_calls.h makes of the others what uses this file. */
void dmi_standard_taken(void)
{
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++) {
        if (fcntl(file, F_GETFD) < 0) {
            int null = (open)("/dev/null",
                              O_RDWR);  /* the lowest that is free; programs that are started have it too */
            if (null > STDERR_FILENO) { /* another thread was faster */
                (void)(close)(null);
            }
        }
    }
}

static int copy_above(int file)
{
    return fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

int dmi_above_standard(int file)
{
    if (file < 0 || file > STDERR_FILENO) {
        return file;
    }
    int copy = copy_above(file), error = errno;
    (void)(close)(file);
    errno = error;
    return copy;
}

FILE *dmi_above_standard_file(FILE *file, const char *how)
{
    if (!file || fileno(file) > STDERR_FILENO) {
        return file;
    }
    int copy = copy_above(fileno(file));
    FILE *out = copy >= 0 ? fdopen(copy, how) : NULL;
    int error = errno;
    (void)(fclose)(file);
    if (!out && copy >= 0) {
        (void)(close)(copy);
    }
    errno = error;
    return out;
}
