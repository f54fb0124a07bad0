/* How far something is, on one line of a terminal; nothing where stderr is no terminal. */
#include "dmath.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 30, MOST_COLUMNS = 200 };

static bool enough_time(void)
{
    static const int64_t between_ns = 50000000;
    static int64_t last_ns;
    int64_t now = dmi_now_ns();
    bool enough = now - last_ns >= between_ns;
    last_ns = enough ? now : last_ns;
    return enough;
}

void tool_progress(const char *what, int64_t done, int64_t total)
{
    static bool shown;
    if (!what) { /* the end: the line goes */
        if (shown) {
            fputs("\r\033[K", stderr);
            fflush(stderr);
        }
        shown = false;
        return;
    }
    if (!isatty(STDERR_FILENO) || total <= 0 || !enough_time()) {
        return;
    }
    struct winsize size = {0};
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    char bar[BAR + 1], line[MOST_COLUMNS];
    int full = (int)(BAR * done / total);
    for (int i = 0; i < BAR; i++) {
        bar[i] = i < full ? '#' : '.';
    }
    bar[BAR] = 0;
    snprintf(line, sizeof line, "[%s] %3d %% %s", bar, (int)(100 * done / total), what);
    fprintf(stderr, "\r\033[K%.*s", DMI_MIN(columns - 1, MOST_COLUMNS - 1), line);
    fflush(stderr);
    shown = true;
}
