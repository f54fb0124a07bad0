#include "io/unfinished.h"
#include "base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct entry {
    struct entry *next;
    void (*remove)(const char *path);
    char path[];
} entry;

static struct {
    pthread_mutex_t lock;
    entry *first;
    bool ending; /* the process ends: no more are begun */
} unfinished = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* They are the parent's. */
static void forget_all(void)
{
    while (unfinished.first) {
        entry *e = unfinished.first;
        unfinished.first = e->next;
        free(e);
    }
    unfinished.ending = false;
}
DMI_FORK_KEEP(&unfinished.lock, forget_all)

int dmi_unfinished_file(const char *path, mode_t mode)
{
    return open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
}

int dmi_unfinished_make(const char *path, mode_t mode, int (*make)(const char *path, mode_t mode),
                        void (*remove)(const char *path))
{
    size_t bytes = strlen(path) + 1;
    entry *e = remove ? malloc(sizeof *e + bytes) : NULL;
    if (remove && !e) {
        errno = ENOMEM;
        return -1;
    }
    pthread_mutex_lock(&unfinished.lock);
    errno = ECANCELED;
    int made = unfinished.ending ? -1 : make(path, mode), error = errno;
    if (made >= 0 && e) {
        e->remove = remove;
        memcpy(e->path, path, bytes);
        e->next = unfinished.first;
        unfinished.first = e;
        e = NULL;
    }
    pthread_mutex_unlock(&unfinished.lock);
    free(e);
    errno = error;
    return made;
}

void dmi_unfinished_forget(const char *path)
{
    pthread_mutex_lock(&unfinished.lock);
    for (entry **at = &unfinished.first; *at; at = &(*at)->next) {
        if (strcmp((*at)->path, path) == 0) {
            entry *e = *at;
            *at = e->next;
            free(e);
            break;
        }
    }
    pthread_mutex_unlock(&unfinished.lock);
}

void dmi_unfinished_remove_all(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    if (pthread_mutex_timedlock(&unfinished.lock, &until) == 0) {
        unfinished.ending = true;
        for (const entry *e = unfinished.first; e; e = e->next) {
            e->remove(e->path);
        }
        pthread_mutex_unlock(&unfinished.lock);
    }
}
