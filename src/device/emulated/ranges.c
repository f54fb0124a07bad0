/* Ranges, written to a file where one is named: a line a beginning, a line an end. */
#include "device/runtime.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NAME_BYTES = 32, LINE_BYTES = 128 };

struct dmi_cu_ranges {
    int fd;
    char (*name)[NAME_BYTES];
};

dmi_cu_ranges *dmi_cu_ranges_create(const char *domain, const char *const *names, int count)
{
    const char *path = getenv("DMATH_EMULATED_RANGES");
    dmi_cu_ranges *r = path && *path ? calloc(1, sizeof *r) : NULL;
    (void)domain;
    if (r) {
        r->name = calloc((size_t)count, sizeof *r->name);
        r->fd = r->name ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
        for (int i = 0; r->name && i < count; i++) {
            snprintf(r->name[i], NAME_BYTES, "%s", names[i]);
        }
        if (r->fd < 0) {
            free(r->name);
            free(r);
            r = NULL;
        }
    }
    return r;
}

void dmi_cu_ranges_destroy(dmi_cu_ranges *r)
{
    if (r) {
        close(r->fd);
        free(r->name);
        free(r);
    }
}

/* In one write, so that those of several threads do not mix. */
static void put(const dmi_cu_ranges *r, const char *line, int length)
{
    ssize_t written = write(r->fd, line, (size_t)length);
    assert(written == length);
    (void)written;
}

void dmi_cu_range_push(const dmi_cu_ranges *r, int name, uint64_t number)
{
    char line[LINE_BYTES];
    put(r, line,
        snprintf(line, sizeof line, "%d begin %s %llu\n", (int)gettid(), r->name[name],
                 (unsigned long long)number));
}

void dmi_cu_range_pop(const dmi_cu_ranges *r)
{
    char line[LINE_BYTES];
    put(r, line, snprintf(line, sizeof line, "%d end\n", (int)gettid()));
}
