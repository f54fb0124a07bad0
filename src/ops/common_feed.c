#include "ops/common_feed.h"
#include "base/process.h"
#include "base/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, YIELDS = 64, LONGEST_PAUSE_NS = 1000000 };

static int64_t pages(int64_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static int make_shared(int64_t bytes)
{
    dmi_file_limit held;
    dmi_file_limit_enter(&held);
    int fd = memfd_create("dmath-feed", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        fd = -1;
    }
    dmi_file_limit_leave(&held);
    return fd;
}

dm_status dmi_feed_ring_make(int64_t buffer_bytes, int buffers, int workers, bool shared, dmi_feed_ring **out,
                             int *fd)
{
    int64_t first = pages((int64_t)(sizeof(dmi_feed_ring) + (size_t)workers * sizeof(dmi_feed_turns)));
    int64_t apart = pages(DMI_MAX(buffer_bytes, 1)), bytes;
    if (!dmi_mul_fits(apart, buffers, &bytes) || bytes > INT64_MAX - first) {
        return dmi_fail(DM_ERR_ARG, "feed_create: the buffers have more than 2^63 bytes");
    }
    bytes += first;
    int file = shared ? make_shared(bytes) : -1;
    void *base = MAP_FAILED;
    if (!shared || file >= 0) {
        base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE,
                    shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, file, 0);
    }
    if (base == MAP_FAILED) {
        int error = errno;
        if (file >= 0) {
            close(file);
        }
        return dmi_fail(DM_ERR_NOMEM, "feed_create: no memory for %d buffers of %lld bytes: %s", buffers,
                        (long long)buffer_bytes, strerror(error));
    }
    dmi_feed_ring *ring = base; /* of zeros */
    ring->bytes = bytes;
    ring->first = first;
    ring->apart = apart;
    ring->buffers = buffers;
    ring->workers = workers;
    *out = ring;
    *fd = file;
    return DM_OK;
}

void dmi_feed_ring_free(dmi_feed_ring *ring, int fd)
{
    munmap(ring, (size_t)ring->bytes);
    if (fd >= 0) {
        close(fd);
    }
}

bool dmi_feed_free(const dmi_feed_ring *ring, int64_t turn)
{
    for (int w = 0; w < ring->workers; w++) {
        if (atomic_load_explicit(&ring->worker[w].taken, memory_order_acquire) <= turn - ring->buffers) {
            return false;
        }
    }
    return true;
}

void dmi_feed_pause(int look)
{
    if (dmi_turns_yield()) {
        return;
    }
    if (look < YIELDS) {
        sched_yield();
    } else {
        const int64_t ns = DMI_MIN((int64_t)(look - YIELDS + 1) * 10000, (int64_t)LONGEST_PAUSE_NS);
        (void)nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
    }
}

/* --- at a worker --- */

/* Rings of another process that this one has mapped. */
typedef struct attached {
    int64_t serial;
    int pid;
    dmi_feed_ring *ring;
    struct attached *next;
} attached;
static attached *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
DMI_FORK_KEEP(&lock, NULL)

static void drop_ended(void)
{
    for (attached **at = &all; *at;) {
        attached *a = *at;
        if (atomic_load(&a->ring->ended)) {
            *at = a->next;
            munmap(a->ring, (size_t)a->ring->bytes);
            free(a);
        } else {
            at = &a->next;
        }
    }
}

static attached *map(const dmi_feed_args *args)
{
    attached *a = malloc(sizeof *a);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", args->pid, args->fd);
    int fd = a ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *base =
        fd >= 0 ? mmap(NULL, (size_t)args->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) {
        close(fd);
    }
    if (base == MAP_FAILED) {
        free(a);
        return NULL;
    }
    *a = (attached){args->serial, args->pid, base, all};
    return a;
}

/* NULL: it cannot be reached. */
static dmi_feed_ring *attach(const dmi_feed_args *args)
{
    if (args->ring) {
        return args->ring;
    }
    pthread_mutex_lock(&lock);
    attached *a = all;
    while (a && (a->serial != args->serial || a->pid != args->pid)) {
        a = a->next;
    }
    if (!a) {
        drop_ended();
        a = map(args);
        all = a ? a : all;
    }
    pthread_mutex_unlock(&lock);
    return a ? a->ring : NULL;
}

static bool in_ring(const dmi_feed_ring *ring, int64_t turn)
{
    return atomic_load_explicit(&ring->put, memory_order_acquire) > turn;
}

bool dmi_feed_ready(const dmi_task_desc *desc, int worker, const void *given)
{
    dmi_feed_args args;
    memcpy(&args, given, sizeof args);
    dmi_feed_ring *ring = desc->blocks[0] > 0 && desc->blocks[1] > 0 ? attach(&args) : NULL;
    if (!ring) { /* it holds nothing of the array, or the step says what is wrong */
        return true;
    }
    dmi_feed_turns *w = &ring->worker[worker];
    const int64_t now = dmi_now_ns();
    w->since_ns = w->since_ns ? w->since_ns : now;
    return in_ring(ring, atomic_load_explicit(&w->taken, memory_order_relaxed)) ||
           atomic_load(&ring->stopped) ||
           (args.seconds >= 0 && (double)(now - w->since_ns) >= args.seconds * 1e9);
}

/* The elements of a rectangle, from a whole array in C order. */
static void copy_block(const dmi_feed_args *args, const char *from, const dm_block *block)
{
    const int64_t bytes = dmi_dtype_bytes(block->dtype);
    const int last = block->ndim - 1;
    int64_t at[DM_MAX_DIMS] = {0};
    for (int d = 0; d <= last; d++) {
        if (block->extent[d] == 0) {
            return;
        }
    }
    for (int d = 0; d >= 0;) {
        int64_t source = 0, target = 0;
        for (int i = 0; i <= last; i++) {
            source = source * args->shape[i] + block->start[i] + at[i];
            target += at[i] * block->stride[i];
        }
        const int64_t row = last >= 0 ? block->extent[last] : 1, step = last >= 0 ? block->stride[last] : 1;
        for (int64_t i = 0; i < row; i += step == 1 ? row : 1) {
            memcpy((char *)block->data + (target + i * step) * bytes, from + (source + i) * bytes,
                   (size_t)((step == 1 ? row : 1) * bytes));
        }
        for (d = last - 1; d >= 0 && ++at[d] == block->extent[d]; d--) {
            at[d] = 0;
        }
    }
}

int dmi_feed_read(const dm_task *task)
{
    dmi_feed_args args;
    if (task->blocks[0] == 0) { /* a worker that is none of the feed's */
        return 0;
    }
    memcpy(&args, task->args, sizeof args);
    dmi_feed_ring *ring = attach(&args);
    if (!ring) {
        return dm_task_fail(task, "the buffers cannot be mapped");
    }
    dmi_feed_turns *w = &ring->worker[task->worker];
    const int64_t turn = atomic_load_explicit(&w->taken, memory_order_relaxed);
    w->since_ns = 0;
    if (task->blocks[1] > 0 && !in_ring(ring, turn)) {
        return dm_task_fail(task, "%s",
                            atomic_load(&ring->stopped) ? "the feed was stopped, and no buffer was left"
                                                        : "no buffer was put in time");
    }
    for (int64_t i = 0; i < task->blocks[1]; i++) {
        copy_block(&args, dmi_feed_buffer(ring, turn), &task->block[1][i]);
    }
    atomic_store_explicit(&w->taken, turn + 1, memory_order_release);
    return 0;
}
