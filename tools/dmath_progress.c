/* How far something is, on one line of a terminal; nothing where stderr is no terminal. */
#include "dmath.h"

#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 30, MOST_COLUMNS = 200, BETWEEN_MS = 100 };

static pthread_mutex_t line_is_mine = PTHREAD_MUTEX_INITIALIZER;
static bool shown;

static bool enough_time(void)
{
    static const int64_t between_ns = 50000000;
    static int64_t last_ns;
    int64_t now = dmi_now_ns();
    bool enough = now - last_ns >= between_ns;
    last_ns = enough ? now : last_ns;
    return enough;
}

static void clear(void)
{
    pthread_mutex_lock(&line_is_mine);
    if (shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    shown = false;
    pthread_mutex_unlock(&line_is_mine);
}

static void show(const char *what, int64_t done, int64_t total)
{
    struct winsize size = {0};
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    char bar[BAR + 1], line[MOST_COLUMNS];
    int full = (int)(BAR * done / total);
    for (int i = 0; i < BAR; i++) {
        bar[i] = i < full ? '#' : '.';
    }
    bar[BAR] = 0;
    snprintf(line, sizeof line, "[%s] %3d %% %s", bar, (int)(100 * done / total), what);
    pthread_mutex_lock(&line_is_mine);
    fprintf(stderr, "\r\033[K%.*s", DMI_MIN(columns - 1, MOST_COLUMNS - 1), line);
    fflush(stderr);
    shown = true;
    pthread_mutex_unlock(&line_is_mine);
}

void tool_progress(const char *what, int64_t done, int64_t total)
{
    if (!what) {
        clear();
    } else if (isatty(STDERR_FILENO) && total > 0 && enough_time()) {
        show(what, done, total);
    }
}

void tool_stage(const char *what, int done, int total)
{
    if (isatty(STDERR_FILENO)) {
        show(what, done, total);
    }
}

/* --- a bar by what the process reads and writes, beside a call that says nothing before its end --- */

static int64_t bytes_moved(void)
{
    char line[64];
    long long most = 0, bytes;
    FILE *f = fopen("/proc/self/io", "re");
    while (f &&
           fgets(line, sizeof line, f)) { /* databases may be mapped, and are then seen by what is written */
        if (sscanf(line, "rchar: %lld", &bytes) == 1 || sscanf(line, "wchar: %lld", &bytes) == 1) {
            most = DMI_MAX(most, bytes);
        }
    }
    if (f) {
        fclose(f);
    }
    return (int64_t)most;
}

static void *watch(void *context)
{
    tool_watch *w = context;
    const int64_t begin = bytes_moved();
    pthread_mutex_lock(&w->mutex);
    while (!w->over) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += BETWEEN_MS * 1000000L;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_cond_timedwait(&w->ended, &w->mutex, &until) == ETIMEDOUT) {
            show(w->what, DMI_MIN(bytes_moved() - begin, w->total), w->total);
        }
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

void tool_watch_begin(tool_watch *w, const char *what, int64_t total)
{
    *w = (tool_watch){.what = what, .total = total};
    if (!isatty(STDERR_FILENO) || total <= 0) {
        return;
    }
    show(what, 0, total);
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->ended, NULL);
    w->runs = pthread_create(&w->thread, NULL, watch, w) == 0;
}

void tool_watch_end(tool_watch *w)
{
    if (w->runs) {
        pthread_mutex_lock(&w->mutex);
        w->over = true;
        pthread_cond_signal(&w->ended);
        pthread_mutex_unlock(&w->mutex);
        pthread_join(w->thread, NULL);
        w->runs = false;
    }
    clear();
}

static int64_t sum_of_files;

static int add_file(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)path;
    (void)at;
    sum_of_files += type == FTW_F ? (int64_t)s->st_size : 0;
    return 0;
}

int64_t tool_bytes_below(const char *path)
{
    sum_of_files = 0;
    return nftw(path, add_file, 8, 0) == 0 ? sum_of_files : 0;
}
