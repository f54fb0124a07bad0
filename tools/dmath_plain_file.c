#include "dmath_plain_file.h"

#include "dmath_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct mover {
    const tool_plain_file *file;
    bool reading;
    int fd;
    pthread_mutex_t lock; /* of go and failed */
    pthread_cond_t start;
    bool go;
    int error; /* errno of the first failure; -1: the file ends early */
    atomic_int_fast64_t next;
} mover;

static int move_piece(const mover *m, int64_t at)
{
    const tool_plain_file *f = m->file;
    int64_t left = DMI_MIN(f->piece, f->bytes - at);
    while (left > 0) {
        ssize_t n = m->reading ? pread(m->fd, f->memory + at, (size_t)left, (off_t)(f->offset + at))
                               : pwrite(m->fd, f->memory + at, (size_t)left, (off_t)(f->offset + at));
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            return n < 0 ? errno : -1;
        }
        at += DMI_MAX(n, 0);
        left -= DMI_MAX(n, 0);
    }
    return 0;
}

static void *serve(void *arg)
{
    mover *m = arg;
    pthread_mutex_lock(&m->lock);
    while (!m->go) {
        pthread_cond_wait(&m->start, &m->lock);
    }
    pthread_mutex_unlock(&m->lock);
    int error = 0;
    for (int64_t at; error == 0 && (at = atomic_fetch_add(&m->next, m->file->piece)) < m->file->bytes;) {
        error = move_piece(m, at);
    }
    if (error != 0) {
        pthread_mutex_lock(&m->lock);
        m->error = m->error ? m->error : error;
        pthread_mutex_unlock(&m->lock);
    }
    return NULL;
}

static void run(mover *m, pthread_t *thread, double *seconds)
{
    int started = 0;
    while (started < m->file->threads && pthread_create(&thread[started], NULL, serve, m) == 0) {
        started++;
    }
    if (started < m->file->threads) {
        m->error = EAGAIN;
        atomic_store(&m->next, m->file->bytes);
    }
    pthread_mutex_lock(&m->lock);
    m->go = true;
    pthread_cond_broadcast(&m->start);
    pthread_mutex_unlock(&m->lock);
    int64_t begin = dmi_now_ns();
    for (int i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
    }
    *seconds = tool_seconds_since(begin);
}

dm_status tool_plain_time(const tool_plain_file *f, bool reading, double *seconds)
{
    mover m = {
        .file = f, .reading = reading, .lock = PTHREAD_MUTEX_INITIALIZER, .start = PTHREAD_COND_INITIALIZER};
    pthread_t *thread = calloc((size_t)f->threads, sizeof *thread);
    if (!thread) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for %d threads", f->threads);
    }
    m.fd = open(f->path, reading ? O_RDONLY | O_CLOEXEC : O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (m.fd < 0 || (!reading && ftruncate(m.fd, (off_t)(f->offset + f->bytes)) != 0)) {
        m.error = errno;
    } else {
        run(&m, thread, seconds);
    }
    if (m.fd >= 0 && close(m.fd) != 0 && m.error == 0) {
        m.error = errno;
    }
    free(thread);
    return m.error == 0 ? DM_OK
                        : dmi_fail(DM_ERR_IO, "%s: %s", f->path,
                                   m.error < 0 ? "the file ends early" : strerror(m.error));
}

dm_status tool_plain_begin(tool_plain_file *f)
{
    size_t bytes = (size_t)DMI_MAX(f->bytes, 1);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for the %lld bytes of a file", (long long)f->bytes);
    }
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    f->memory = memory;
    return DM_OK;
}

void tool_plain_end(tool_plain_file *f)
{
    if (f->memory) {
        munmap(f->memory, (size_t)DMI_MAX(f->bytes, 1));
        f->memory = NULL;
    }
}
