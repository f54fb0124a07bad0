/* Streams: a queue of operations and a thread that does them. Each has its own, so that streams really run
 * beside one another. */
#include "device/emulated/emulated.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Time limit for a stream that must end while it waits, and for a host that waits for a whole device. */
#define GIVE_UP_NS INT64_C(1000000000)
#define DEVICE_WAIT_NS INT64_C(10000000000)

struct dmi_emu_stream {
    dmi_emu_stream *next; /* of all */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    dmi_emu_op *first, **last;
    int device;
    int64_t delay_us, kernel_us;
    bool waits;
    uint64_t random;
    atomic_int busy;             /* does an operation, other than to wait */
    bool abandoned;              /* of the thread alone: what remains is dropped */
    _Atomic(int64_t) stopped_ns; /* when its end was requested; 0: not yet */
};

/* All streams of the process: a device waits for its own. */
static struct {
    pthread_mutex_t lock;
    dmi_emu_stream *first;
    uint64_t made;
    atomic_int quiesced; /* the process ends */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* While a call waits for all devices no thread puts anything on a stream, as if the driver had one lock for the
 * process. */
static pthread_rwlock_t driver = PTHREAD_RWLOCK_INITIALIZER;
static _Thread_local bool waits_for_all;

/* --- operations ------------------------------------------------------------------------ */
void *dmi_emu_op_new(size_t bytes)
{
    return calloc(1, bytes);
}

static void sleep_us(int64_t us)
{
    if (us > 0) {
        nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
    }
}

void dmi_emu_kernel_time(const dmi_emu_stream *s)
{
    sleep_us(s->kernel_us);
}

/* Of one operation in four, so that a stream gets far ahead of another one now and then. */
static void delay(dmi_emu_stream *s)
{
    if (s->delay_us > 0) {
        s->random ^= s->random << 13;
        s->random ^= s->random >> 7;
        s->random ^= s->random << 17;
        sleep_us(s->random >> 62 ? 0 : (int64_t)((s->random >> 11) % (uint64_t)(s->delay_us + 1)));
    }
}

/* NULL: the stream ends. */
static dmi_emu_op *next_op(dmi_emu_stream *s)
{
    pthread_mutex_lock(&s->lock);
    while (!s->first && atomic_load(&s->stopped_ns) == 0) {
        pthread_cond_wait(&s->more, &s->lock);
    }
    dmi_emu_op *op = s->first;
    if (op) {
        s->first = op->next;
        s->last = s->first ? s->last : &s->first;
    }
    pthread_mutex_unlock(&s->lock);
    return op;
}

static void wait_for_word(dmi_emu_stream *s, dmi_emu_op *op);

static void run(dmi_emu_stream *s, dmi_emu_op *op)
{
    bool uses = op->run != wait_for_word;
    atomic_store(&s->busy, uses);
    while (uses && atomic_load(&all.quiesced)) {
        atomic_store(&s->busy, 0);
        pause();
    }
    op->run(s, op);
    atomic_store(&s->busy, 0);
}

static void *serve(void *argument)
{
    dmi_emu_stream *s = argument;
    for (dmi_emu_op *op; (op = next_op(s)) != NULL;) {
        if (!s->abandoned) {
            delay(s);
        }
        if (op->run && !s->abandoned) {
            run(s, op);
        }
        if (op->drop) {
            op->drop(op);
        }
        free(op);
    }
    return NULL;
}

void dmi_emu_put(dmi_emu_stream *s, dmi_emu_op *op)
{
    if (dmi_emu_keep(s, op)) {
        return;
    }
    const bool locks = s->waits && !waits_for_all;
    op->next = NULL;
    if (locks) {
        pthread_rwlock_rdlock(&driver);
    }
    pthread_mutex_lock(&s->lock);
    *s->last = op;
    s->last = &op->next;
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
    if (locks) {
        pthread_rwlock_unlock(&driver);
    }
}

int dmi_emu_device_of(const dmi_emu_stream *s)
{
    return s->device;
}

/* --- marks and waits ----------------------------------------------------------------------- */
typedef struct mark_op {
    dmi_emu_op op;
    dmi_emu_mark *mark;
} mark_op;

/* Also if the stream was abandoned, so that nobody waits for it any more. */
static void reach_mark(dmi_emu_op *op)
{
    dmi_emu_mark *mark = ((mark_op *)op)->mark;
    mark->when_ns = dmi_now_ns();
    dmi_emu_raise(&mark->reached, 1);
    dmi_emu_mark_unref(mark);
}

dmi_emu_mark *dmi_emu_mark_put(dmi_emu_stream *s)
{
    dmi_emu_mark *mark = dmi_emu_op_new(sizeof *mark);
    mark_op *m = dmi_emu_op_new(sizeof *m);
    if (!mark || !m) {
        free(mark);
        free(m);
        return NULL;
    }
    atomic_init(&mark->references, 2);
    m->mark = mark;
    m->op.drop = reach_mark;
    dmi_emu_put(s, &m->op);
    return mark;
}

void dmi_emu_mark_unref(dmi_emu_mark *mark)
{
    if (mark && atomic_fetch_sub(&mark->references, 1) == 1) {
        free(mark);
    }
}

typedef struct wait_op {
    dmi_emu_op op;
    const uint32_t *word;
    uint32_t value;
    dmi_emu_mark *mark;
} wait_op;

static void wait_for_word(dmi_emu_stream *s, dmi_emu_op *op)
{
    const wait_op *w = (const wait_op *)op;
    while (!dmi_emu_has_reached(w->word, w->value)) {
        int64_t stopped = atomic_load(&s->stopped_ns);
        if (stopped != 0 && dmi_now_ns() - stopped > GIVE_UP_NS) {
            dmi_log(DMI_LOG_DEBUG, "a stream of emulated GPU %d ended while it waited", s->device);
            s->abandoned = true;
            return;
        }
        dmi_emu_sleep_on(w->word, w->value);
    }
}

static void drop_wait(dmi_emu_op *op)
{
    dmi_emu_mark_unref(((wait_op *)op)->mark);
}

dm_status dmi_emu_put_wait(dmi_emu_stream *s, uint32_t *word, uint32_t value, dmi_emu_mark *mark)
{
    wait_op *w = dmi_emu_op_new(sizeof *w);
    if (!w) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for an operation of emulated GPU %d", s->device);
    }
    *w = (wait_op){.op = {.run = wait_for_word, .drop = drop_wait}, .word = word, .value = value, .mark = mark};
    if (mark) {
        atomic_fetch_add(&mark->references, 1);
    }
    dmi_emu_put(s, &w->op);
    return DM_OK;
}

/* --- streams ------------------------------------------------------------------------------- */
dm_status dmi_cu_stream_create(dmi_stream *out)
{
    dm_status status = dmi_emu_refuse(NULL, "a new stream");
    if (status != DM_OK) {
        return status;
    }
    dmi_emu_stream *s = calloc(1, sizeof *s);
    if (!s) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a stream");
    }
    s->last = &s->first;
    s->device = dmi_emu_current();
    dmi_emu_settings settings = dmi_emu_settings_read();
    s->delay_us = settings.delay_us;
    s->waits = settings.waits;
    s->kernel_us = settings.kernel_us;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->more, NULL);
    pthread_mutex_lock(&all.lock);
    s->random = (++all.made * UINT64_C(0x9E3779B97F4A7C15)) | 1;
    int error = pthread_create(&s->thread, NULL, serve, s);
    if (error == 0) {
        s->next = all.first;
        all.first = s;
    }
    pthread_mutex_unlock(&all.lock);
    if (error != 0) {
        pthread_cond_destroy(&s->more);
        pthread_mutex_destroy(&s->lock);
        free(s);
        return dmi_fail(DM_ERR_NOMEM, "a thread for a stream: %s", strerror(error));
    }
    *out = s;
    return DM_OK;
}

/* Finishes the stream's operations, unless they wait too long. */
void dmi_cu_stream_destroy(dmi_stream stream)
{
    dmi_emu_stream *s = stream;
    if (!s) {
        return;
    }
    pthread_mutex_lock(&all.lock);
    dmi_emu_stream **at = &all.first;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    pthread_mutex_unlock(&all.lock);
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->stopped_ns, dmi_now_ns());
    pthread_cond_signal(&s->more);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->more);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void dmi_cu_quiesce(int64_t until_ns)
{
    atomic_store(&all.quiesced, 1);
    pthread_mutex_lock(&all.lock);
    for (const dmi_emu_stream *s = all.first; s; s = s->next) {
        while (atomic_load(&s->busy) && dmi_now_ns() < until_ns) {
            usleep(100);
        }
    }
    pthread_mutex_unlock(&all.lock);
}

dm_status dmi_cu_stream_wait(dmi_stream s)
{
    dm_status status = dmi_emu_refuse(NULL, "a wait for a stream");
    if (status != DM_OK) {
        return status;
    }
    dmi_emu_mark *mark = dmi_emu_mark_put(s);
    if (!mark) {
        return dmi_fail(DM_ERR_NOMEM, "no memory to wait for a stream");
    }
    while (!dmi_emu_has_reached(&mark->reached, 1)) {
        dmi_emu_sleep_on(&mark->reached, 1);
    }
    dmi_emu_mark_unref(mark);
    return DM_OK;
}

/* If a device's streams wait for work that only this host thread could issue, the call would never return.
 * Report that and give up. */
static void wait_some_time(dmi_emu_mark *mark, int device, int64_t until_ns)
{
    while (!dmi_emu_has_reached(&mark->reached, 1)) {
        if (dmi_now_ns() > until_ns) {
            dmi_log(DMI_LOG_ERROR, "a call that waits for all of emulated GPU %d would never return", device);
            return;
        }
        dmi_emu_sleep_on(&mark->reached, 1);
    }
}

void dmi_emu_may_wait(void)
{
    const dmi_emu_settings settings = dmi_emu_settings_read();
    if (!settings.waits) {
        return;
    }
    pthread_rwlock_wrlock(&driver);
    waits_for_all = true;
    for (int device = 0; device < settings.devices; device++) {
        dmi_emu_device_wait(device);
    }
    waits_for_all = false;
    pthread_rwlock_unlock(&driver);
}

void dmi_emu_device_wait(int device)
{
    int64_t until_ns = dmi_now_ns() + DEVICE_WAIT_NS, n = 0, room = 0;
    dmi_emu_mark **marks = NULL;
    const bool before = waits_for_all;
    waits_for_all = true;
    pthread_mutex_lock(&all.lock);
    for (const dmi_emu_stream *s = all.first; s; s = s->next) {
        room += s->device == device;
    }
    marks = dmi_emu_op_new((size_t)DMI_MAX(room, 1) * sizeof *marks);
    for (dmi_emu_stream *s = all.first; s && marks; s = s->next) {
        if (s->device == device) {
            marks[n++] = dmi_emu_mark_put(s);
        }
    }
    pthread_mutex_unlock(&all.lock);
    waits_for_all = before;
    for (int64_t i = 0; i < n; i++) {
        if (marks[i]) {
            wait_some_time(marks[i], device, until_ns);
            dmi_emu_mark_unref(marks[i]);
        }
    }
    free(marks);
}
