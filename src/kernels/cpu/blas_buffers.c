/* OpenBLAS maps a buffer when a thread multiplies and those before are in use, and where it cannot it tries
 * again for ever. So each thread, before it first multiplies, sees that there are as many buffers as threads
 * that do. */
#include "base/process.h"
#include "kernels/cpu/cpu.h"

#include <pthread.h>
#include <sys/mman.h>

/* Of OpenBLAS, not in its headers. Other libraries do not have them. */
extern void *blas_memory_alloc(int purpose) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

enum { MOST = 64 }; /* OpenBLAS has room for twice as many; in more threads than that it is not looked after */
static const size_t buffer_bytes = (size_t)128 << 20;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
DMI_FORK_KEEP(&lock, NULL)
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t counted; /* has the thread been counted? */
static bool has_key;
static int threads, buffers;
static void *buffer[MOST];

static void leave(void *thread)
{
    (void)thread;
    pthread_mutex_lock(&lock);
    threads--;
    pthread_mutex_unlock(&lock);
}

static void make_key(void)
{
    has_key = pthread_key_create(&counted, leave) == 0;
}

static bool known(const void *at)
{
    bool found = false;
    for (int i = 0; i < buffers; i++) {
        found = found || buffer[i] == at;
    }
    return found;
}

/* Is there room for one more? */
static bool has_room(void)
{
    void *at = mmap(NULL, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at != MAP_FAILED && munmap(at, buffer_bytes) == 0;
}

/* Takes buffers until there are `wanted`, and gives them back. Other threads may use some meanwhile. */
static bool make_buffers(int wanted)
{
    void *held[MOST];
    int count = 0;
    bool room = true;
    while (buffers < wanted && count < MOST && room) {
        room = has_room();
        held[count] = room ? blas_memory_alloc(0) : NULL;
        if (held[count] && !known(held[count])) {
            buffer[buffers++] = held[count];
        }
        count += held[count] != NULL;
    }
    while (count > 0) {
        blas_memory_free(held[--count]);
    }
    return buffers >= wanted;
}

dm_status dmi_cpu_blas_ready(void)
{
    bool made = true;
    if (!blas_memory_alloc || !blas_memory_free || pthread_once(&once, make_key) != 0 || !has_key ||
        pthread_getspecific(counted)) {
        return DM_OK;
    }
    pthread_mutex_lock(&lock);
    if (threads < MOST) {
        made = make_buffers(threads + 1);
    }
    if (made && pthread_setspecific(counted, &counted) == 0) {
        threads++;
    }
    pthread_mutex_unlock(&lock);
    return made ? DM_OK
                : dmi_fail(DM_ERR_NOMEM,
                           "no memory for a buffer of OpenBLAS: it needs %zu MiB of address space (ulimit -v) "
                           "for each worker of "
                           "a process that multiplies",
                           buffer_bytes >> 20);
}
