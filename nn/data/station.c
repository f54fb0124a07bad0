/* Workers that read their own records, on the worker's side: the function that it runs, and what it keeps from
 * call to call. */
#include "data/fetch.h"
#include "data/readers.h"
#include "data/reading.h"
#include "data/team.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

const char nn_read_function[] = "dmath.nn.read";

/* The rows of one worker of one feed. */
typedef struct station {
    uint64_t process, session;
    int64_t feed;
    int worker, sharing;
    int64_t place; /* among the workers of the session, or of the group, that read */
    const nn_feed_type *type;
    void *state;
    bool images, whole;
    int tops;
    int64_t each[NN_FEED_TOPS];
    const void *memory;           /* of the source, which the GPU is to read; NULL: it is not */
    int64_t memory_bytes, record; /* record: bytes of a whole one */
    nn_rows rows;                 /* of the ring or the team */
    nn_ring *ring;                /* of a CPU, */
    nn_team *team; /* of a GPU: functions run beside steps there, so that nothing is gained by pages ahead */
    double ended, waited; /* seconds: when the team was last done; that it read without a pause before */
    struct station *next;
} station;

static station *stations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

uint64_t nn_read_process(void)
{
    static uint64_t number;
    pthread_mutex_lock(&lock);
    while (number == 0) {
        if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
            number = (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)&number;
        }
    }
    pthread_mutex_unlock(&lock);
    return number;
}

static void host_name(char *out, size_t room)
{
    if (gethostname(out, room) != 0) {
        snprintf(out, room, "?");
    }
    out[room - 1] = 0;
}

static uint64_t host_hash(void)
{
    char name[256];
    uint64_t hash = 1469598103934665603U;
    host_name(name, sizeof name);
    for (const char *p = name; *p; p++) {
        hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
    }
    return hash;
}

/* Only this worker uses it, one call at a time. */
static station *station_of(const nn_read_order *o, int worker)
{
    pthread_mutex_lock(&lock);
    station *s = stations;
    while (s && (s->process != o->process || s->feed != o->feed || s->worker != worker)) {
        s = s->next;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

static void free_station(station *s)
{
    nn_ring_close(s->ring);
    nn_team_close(s->team);
    if (s->state) {
        s->type->close(s->state);
    }
    free(s);
}

/* Memory that the GPU may still read stays: what asked for its end may have been lost. */
static void close_station(const dm_task *task, const nn_read_order *o)
{
    station *found = station_of(o, task->worker);
    if (found && found->memory && dm_task_unmap(task, found->memory)) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (station **at = &stations; found && *at; at = &(*at)->next) {
        if (*at == found) {
            *at = found->next;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    if (found) {
        free_station(found);
    }
}

/* A rank may outlive a session that a death has ended, and serve another one: what the first has left open
 * ends. */
static void close_ended(const nn_read_order *o)
{
    station *ended = NULL;
    pthread_mutex_lock(&lock);
    for (station **at = &stations; *at;) {
        station *s = *at;
        if (s->process == o->process && s->session != o->session) {
            *at = s->next;
            s->next = ended;
            ended = s;
        } else {
            at = &s->next;
        }
    }
    pthread_mutex_unlock(&lock);
    while (ended) {
        station *next = ended->next;
        free_station(ended);
        ended = next;
    }
}

/* The settings: of this file, then of the type. */
typedef struct opening {
    const void *bytes;
    size_t length;
    station *station;
    nn_read_told *told;
} opening;

static dm_status open_source(nn_unpack *in, station *s)
{
    const char *name = nn_unpack_text(in);
    const int64_t workers = nn_unpack_int(in);
    const void *sharing = nn_unpack_bytes(in, (size_t)workers * sizeof(int64_t));
    s->tops = (int)nn_unpack_int(in);
    for (int i = 0; i < s->tops && i < NN_FEED_TOPS; i++) {
        s->each[i] = nn_unpack_int(in);
    }
    for (int i = 0; nn_feed_types[i]; i++) {
        s->type = strcmp(nn_feed_types[i]->name, name) == 0 ? nn_feed_types[i] : s->type;
    }
    if (in->failed || !s->type || s->place < 0 || s->place >= workers || s->tops > NN_FEED_TOPS) {
        return dm_error_set(DM_ERR_VERSION, "the program has another version of libdmath_nn than the worker");
    }
    int64_t value;
    memcpy(&value, (const char *)sharing + (size_t)s->place * sizeof value, sizeof value);
    s->sharing = (int)value;
    return s->type->open(in, &s->state);
}

/* On a thread of its own: calls of dmath, such as those that note errors, are not for threads of the library.
 */
static void *open_there(void *context)
{
    opening *o = context;
    nn_unpack in = {o->bytes, (const unsigned char *)o->bytes + o->length, false};
    char host[256];
    o->told->status = open_source(&in, o->station);
    if (o->told->status != DM_OK) {
        host_name(host, sizeof host);
        snprintf(o->told->text, sizeof o->told->text, "worker %d (%s): %s", o->station->worker, host,
                 dm_error_message());
    }
    return NULL;
}

static void open_station(const dm_task *task, const nn_read_order *o, nn_read_told *t)
{
    pthread_t thread;
    station *s = calloc(1, sizeof *s);
    opening all = {.station = s, .told = t};
    if (task->operand_blocks[NN_READ_OPERANDS] > 0) {
        all.bytes = task->operand[NN_READ_OPERANDS][0].data;
        all.length = (size_t)task->operand[NN_READ_OPERANDS][0].extent[0];
    }
    if (!s) {
        t->status = DM_ERR_NOMEM;
        snprintf(t->text, sizeof t->text, "worker %d: no memory", task->worker);
        return;
    }
    s->process = o->process;
    s->session = o->session;
    s->feed = o->feed;
    s->worker = task->worker;
    s->place = task->operand_blocks[NN_READ_TOLD] > 0 ? task->operand[NN_READ_TOLD][0].start[0] : -1;
    s->images = o->images != NN_READ_FLOATS;
    if (pthread_create(&thread, NULL, open_there, &all) != 0) {
        t->status = DM_ERR_IO;
        snprintf(t->text, sizeof t->text, "worker %d: no thread for the data can be started", task->worker);
    } else {
        pthread_join(thread, NULL);
    }
    if (t->status != DM_OK) {
        free_station(s);
        return;
    }
    pthread_mutex_lock(&lock);
    s->next = stations;
    stations = s;
    pthread_mutex_unlock(&lock);
}

/* Called twice: the GPU reads the memory when the first function has returned. */
static void map_source(const dm_task *task, const nn_read_order *o, nn_read_told *t)
{
    station *s = station_of(o, task->worker);
    int64_t record[3] = {0};
    if (!s || !task->gpu || !s->images || !s->type->memory) {
        return;
    }
    s->memory = s->type->memory(s->state, &s->memory_bytes, record);
    s->record = record[0] * record[1] * record[2];
    const char *wrong = nn_fetch_wrong(s->memory, s->memory_bytes, record);
    t->maps = wrong ? 0 : dm_task_map(task, s->memory, s->memory_bytes);
    snprintf(t->text, sizeof t->text, "%s", wrong ? wrong : "GPUs cannot read that memory");
}

static void unmap_source(const dm_task *task, const nn_read_order *o)
{
    const station *s = station_of(o, task->worker);
    if (s && s->memory) {
        (void)dm_task_unmap(task, s->memory);
    }
}

/* Which rows of a batch the worker holds. */
static void find_rows(const dm_task *task, nn_rows *rows)
{
    int64_t end = 0;
    rows->first = INT64_MAX;
    for (int i = NN_READ_OPERANDS; i < task->count; i++) {
        for (int64_t k = 0; k < task->operand_blocks[i]; k++) {
            const dm_block *b = &task->operand[i][k];
            rows->first = b->start[0] < rows->first ? b->start[0] : rows->first;
            end = b->start[0] + b->extent[0] > end ? b->start[0] + b->extent[0] : end;
        }
    }
    rows->first = end > 0 ? rows->first : 0;
    rows->count = end - rows->first;
}

/* Rows come whole and packed: the arrays are dealt out along the batch. */
static bool is_whole_rows(int64_t each, const dm_block *b)
{
    int64_t dense = 1;
    for (int d = b->ndim - 1; d > 0; d--) {
        if (b->start[d] != 0 || (b->stride[d] != dense && b->extent[d] != 1)) {
            return false;
        }
        dense *= b->extent[d];
    }
    return dense == each;
}

static int64_t bytes_of(dm_dtype dtype)
{
    return dtype == DM_U8 ? 1 : 4;
}

/* Elements of a row of operand i. */
static int64_t each_of(const station *s, int i)
{
    const int at = i - NN_READ_OPERANDS;
    return !s->images ? s->each[at]
           : at == 0  ? (s->whole ? s->record : s->each[0])
           : at == 1  ? 3
                      : s->each[at - 1];
}

/* What a page has for it. */
static const void *source_of(const station *s, int i, const nn_page *p)
{
    const int at = i - NN_READ_OPERANDS;
    return !s->images ? (const void *)p->top[at]
           : at > 1   ? (const void *)p->top[at - 1]
           : at == 0  ? (const void *)p->windows
                      : (const void *)p->places;
}

static bool all_whole_rows(const dm_task *task, const station *s)
{
    for (int i = NN_READ_OPERANDS; i < task->count; i++) {
        for (int64_t k = 0; k < task->operand_blocks[i]; k++) {
            if (!is_whole_rows(each_of(s, i), &task->operand[i][k])) {
                return false;
            }
        }
    }
    return true;
}

static void copy_to(char *to, const char *from, size_t bytes)
{
    memcpy(to, from, bytes);
}

/* Past the caches: what a GPU fetches next is not read here. Others may say that it is there after a fence. */
static void stream_to(char *to, const char *from, size_t bytes)
{
#if defined(__SSE2__)
    const size_t before = (size_t)(-(uintptr_t)to & 15), head = before < bytes ? before : bytes;
    const size_t middle = (bytes - head) / 16;
    memcpy(to, from, head);
    for (size_t k = 0; k < middle; k++) {
        const __m128i x = _mm_loadu_si128((const __m128i *)(const void *)(from + head + 16 * k));
        _mm_stream_si128((__m128i *)(void *)(to + head + 16 * k), x);
    }
    memcpy(to + head + 16 * middle, from + head + 16 * middle, bytes - head - 16 * middle);
#else
    memcpy(to, from, bytes);
#endif
}

static void fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* Rows of the batch go into the arrays. */
typedef struct putting {
    const dm_task *task;
    const station *station;
    void (*copy)(char *to, const char *from, size_t bytes);
} putting;

/* Whole records, which the GPU fetches if it can. */
static void put_records(const putting *c, const dm_block *b, int64_t first, int64_t begin, int64_t end,
                        const nn_page *p)
{
    const int64_t bytes = c->station->record;
    for (int64_t row = begin; row < end; row++) {
        char *to = (char *)b->data + (row - b->start[0]) * b->stride[0];
        const unsigned char *lies = p->lies[row - first];
        if (!lies || !dm_task_fetch(c->task, to, lies, bytes)) {
            c->copy(to, (const char *)(lies ? lies : p->windows + (row - first) * bytes), (size_t)bytes);
        }
    }
}

/* The page has `count` rows, from row `first` of the batch on. */
static void put_rows(void *context, int64_t first, int64_t count, const nn_page *p)
{
    const putting *c = context;
    for (int i = NN_READ_OPERANDS; i < c->task->count; i++) {
        const char *from = source_of(c->station, i, p);
        for (int64_t k = 0; k < c->task->operand_blocks[i]; k++) {
            const dm_block *b = &c->task->operand[i][k];
            const int64_t size = bytes_of(b->dtype), bytes = each_of(c->station, i) * size,
                          step = b->stride[0] * size, last = b->start[0] + b->extent[0];
            const int64_t begin = first > b->start[0] ? first : b->start[0],
                          end = first + count < last ? first + count : last;
            const int64_t together = step == bytes && end > begin ? end - begin : 1;
            if (c->station->whole && i == NN_READ_OPERANDS) {
                put_records(c, b, first, begin, end, p);
                continue;
            }
            for (int64_t row = begin; row < end; row += together) {
                c->copy((char *)b->data + (row - b->start[0]) * step, from + (row - first) * bytes,
                        (size_t)(together * bytes));
            }
        }
    }
    fence();
}

/* A ring or a team for the rows that the worker has: always the same, unless a program gives other arrays. */
static dm_status open_for(station *s, const nn_rows *rows, bool gpu)
{
    if ((gpu ? s->team != NULL : s->ring != NULL) && s->rows.first == rows->first &&
        s->rows.count == rows->count) {
        return DM_OK;
    }
    nn_ring_close(s->ring);
    nn_team_close(s->team);
    s->ring = NULL;
    s->team = NULL;
    s->rows = *rows;
    s->rows.tops = s->tops;
    s->rows.images = s->images;
    s->rows.whole = s->whole;
    memcpy(s->rows.each, s->each, sizeof s->rows.each);
    s->rows.each[0] = each_of(s, NN_READ_OPERANDS);
    return gpu ? nn_team_open(s->type, s->state, &s->rows, s->sharing, s->sharing, &s->team)
               : nn_ring_open(s->type, s->state, &s->rows, s->sharing, s->sharing, &s->ring);
}

static void tell_page(nn_read_told *t, const nn_page *p, double waited)
{
    t->damaged = p->damaged;
    t->waited = waited;
    snprintf(t->text, sizeof t->text, "%s", p->why);
}

static int copy_page(const dm_task *task, station *s, int64_t batch, nn_read_told *t)
{
    putting c = {task, s, copy_to};
    nn_page *p = NULL;
    if (nn_ring_take(s->ring, batch, &p) != DM_OK) {
        return dm_task_fail(task, "no memory or no thread for the records");
    }
    if (p->status != DM_OK) { /* the page stays: asked again, it says the same */
        return dm_task_fail(task, "%s", p->error);
    }
    put_rows(&c, s->rows.first, s->rows.count, p);
    tell_page(t, p, nn_ring_waited(s->ring));
    nn_ring_give(s->ring, p);
    return 0;
}

/* When a team of this worker was last done. */
static double last_end(int worker)
{
    double last = 0;
    pthread_mutex_lock(&lock);
    for (const station *s = stations; s; s = s->next) {
        last = s->worker == worker && s->ended > last ? s->ended : last;
    }
    pthread_mutex_unlock(&lock);
    return last;
}

/* Steps wait for batches where a worker's teams are called one directly after the other. */
static int make_batch(const dm_task *task, station *s, int64_t batch, nn_read_told *t)
{
    enum { PAUSE = 16 }; /* a pause below 1/PAUSE of the batch's time counts as none */
    putting c = {task, s, stream_to};
    nn_page page;
    const double last = last_end(task->worker), began = nn_now_s();
    nn_team_make(s->team, batch, put_rows, &c, &page);
    const double ended = nn_now_s();
    s->waited += s->ended > 0 && (began - last) * PAUSE < ended - began ? ended - began : 0;
    pthread_mutex_lock(&lock);
    s->ended = ended;
    pthread_mutex_unlock(&lock);
    if (page.status != DM_OK) {
        return dm_task_fail(task, "%s", page.error);
    }
    tell_page(t, &page, s->waited);
    return 0;
}

static int take_page(const dm_task *task, const nn_read_order *o, nn_read_told *t)
{
    station *s = station_of(o, task->worker);
    nn_rows rows;
    find_rows(task, &rows);
    if (rows.count == 0) {
        return 0;
    }
    if (!s) {
        return dm_task_fail(task, "the source of the records has not been opened");
    }
    s->whole = o->images == NN_READ_WHOLE;
    if (!all_whole_rows(task, s)) {
        return dm_task_fail(task, "the arrays for the records have other rows than the records");
    }
    if (open_for(s, &rows, task->gpu) != DM_OK) {
        return dm_task_fail(task, "no memory or no thread for the records");
    }
    return task->gpu ? make_batch(task, s, o->batch, t) : copy_page(task, s, o->batch, t);
}

static int read_records(const dm_task *task)
{
    nn_read_order o;
    nn_read_told t = {.knows = 1, .gpu = task->gpu, .worker = task->worker, .host = host_hash()};
    int result = 0;
    memcpy(&o, task->args, sizeof o);
    t.thread = o.process == nn_read_process();
    switch (o.kind) {
    case NN_READ_ASK:
        if (!t.thread) { /* the program's own process may have several sessions */
            close_ended(&o);
        }
        break;
    case NN_READ_OPEN:
        open_station(task, &o, &t);
        break;
    case NN_READ_TAKE:
        result = take_page(task, &o, &t);
        break;
    case NN_READ_CLOSE:
        close_station(task, &o);
        break;
    case NN_READ_MAP:
        map_source(task, &o, &t);
        break;
    case NN_READ_UNMAP:
        unmap_source(task, &o);
        break;
    default: /* of another version */
        t.knows = 0;
        break;
    }
    for (int64_t k = 0; k < task->operand_blocks[NN_READ_TURN]; k++) {
        const dm_block *b = &task->operand[NN_READ_TURN][k];
        memset(b->data, 0, (size_t)(b->extent[0] * b->extent[b->ndim - 1]));
    }
    for (int64_t k = 0; k < task->operand_blocks[NN_READ_TOLD]; k++) {
        const dm_block *b = &task->operand[NN_READ_TOLD][k];
        memset(b->data, 0, (size_t)(b->extent[0] * b->extent[b->ndim - 1]));
        if (k == 0) { /* of several rows the first */
            memcpy(b->data, &t, sizeof t);
        }
    }
    return result;
}

/* Programs that link this library know the function; dmath-worker does with `--load libdmath_nn.so`. */
static bool registered;

__attribute__((constructor)) static void register_function(void)
{
    registered = dm_register(nn_read_function, read_records) == DM_OK;
}

bool nn_read_registered(void)
{
    return registered;
}

DM_API void dmath_ops(void);
void dmath_ops(void)
{
}
