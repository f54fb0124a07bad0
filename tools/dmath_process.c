/* Other programs, for a limited time. */
#include "dmath.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* What comes from the pipe until it ends or the time is over; false: it is over. */
static bool read_until(int from, int64_t until_ns, char *output, size_t room)
{
    size_t used = 0;
    char rest[512];
    for (;;) {
        int64_t left = (until_ns - dmi_now_ns()) / 1000000;
        struct pollfd p = {.fd = from, .events = POLLIN};
        if (left <= 0 || poll(&p, 1, (int)left) <= 0) {
            return false;
        }
        bool full = used + 1 >= room;
        ssize_t n = read(from, full ? rest : output + used, full ? sizeof rest : room - used - 1);
        if (n <= 0) {
            return true;
        }
        used += full ? 0 : (size_t)n;
        output[used] = 0;
    }
}

int tool_run_program(const char *const *argv, int seconds, char *output, size_t room)
{
    int ends[2], status = 0;
    output[0] = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    pid_t child = fork();
    if (child == 0) {
        (void)setpgid(0, 0); /* what it starts ends with it */
        int null = open("/dev/null", O_RDONLY);
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(ends[1]);
    bool ended = child > 0 && read_until(ends[0], dmi_now_ns() + (int64_t)seconds * 1000000000, output, room);
    close(ends[0]);
    if (child < 0) {
        return -1;
    }
    if (!ended) {
        (void)kill(-child, SIGKILL);
        (void)kill(child, SIGKILL);
    }
    (void)waitpid(child, &status, 0);
    return !ended ? -2 : !WIFEXITED(status) ? 128 : WEXITSTATUS(status) == 127 ? -1 : WEXITSTATUS(status);
}
