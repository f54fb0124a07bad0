/* Lines for people, to stderr. One level for the process; each thread has its own name in the log. */
#include "base/base.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { LINE_BYTES = 4096, LEVEL_UNSET = -1 };

static const char *const level_names[] = {"error", "warn", "info", "debug", "trace"};
static _Atomic int log_level = LEVEL_UNSET;
static _Thread_local char log_who[32];

/* A malformed DMATH_LOG counts as absent here; the configuration is what reports it. */
static int level_from_environment(void)
{
    const char *value = getenv("DMATH_LOG");
    for (int i = 0; value && i < DMI_COUNT(level_names); i++) {
        if (strcasecmp(value, level_names[i]) == 0) {
            return i;
        }
    }
    return DMI_LOG_WARN;
}

bool dmi_log_on(int level)
{
    int limit = atomic_load_explicit(&log_level, memory_order_relaxed);
    if (limit == LEVEL_UNSET) {
        /* A level set meanwhile by another thread wins. */
        int found = level_from_environment();
        limit = atomic_compare_exchange_strong(&log_level, &limit, found) ? found : limit;
    }
    return level <= limit;
}

void dmi_log_set_level(int level)
{
    atomic_store(&log_level, DMI_MAX(DMI_LOG_ERROR, DMI_MIN(level, DMI_LOG_TRACE)));
}

void dmi_log_set_who(const char *who)
{
    snprintf(log_who, sizeof log_who, "%s", who ? who : "");
}

void dmi_thread_name(const char *who)
{
    dmi_log_set_who(who);
    (void)prctl(PR_SET_NAME, who); /* its first 15 bytes */
}

void dmi_log(int level, const char *format, ...)
{
    if (!dmi_log_on(level)) {
        return;
    }
    char line[LINE_BYTES];
    int index = DMI_MAX(0, DMI_MIN(level, DMI_COUNT(level_names) - 1));
    bool named = log_who[0] != 0; /* empty until a session begins */
    int length = snprintf(line, sizeof line, "dmath%s%s%s %s: ", named ? "[" : "", log_who, named ? "]" : "",
                          level_names[index]);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + length, sizeof line - (size_t)length, format, args);
    va_end(args);
    length += DMI_MAX(more, 0);
    if (length > LINE_BYTES - 2) {
        length = LINE_BYTES - 2;
        memcpy(line + length - 3, "...", 3);
    }
    line[length++] = '\n';
    /* One write a line, so that lines of many workers do not mix; if it fails there is nobody to tell. */
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
}
