/* Workers that read their own records: a function that each worker runs (dm_apply), and what it keeps from call
 * to call in the worker's process. */
#include "data/readers.h"

#include "data/fetch.h"
#include "data/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static const char function_name[] = "dmath.nn.read";

enum order_kind { ASK, OPEN, TAKE, CLOSE, MAP, UNMAP };

/* What rows of images are: no images, windows, whole records. */
enum { FLOATS, WINDOWS, WHOLE };

/* The function's operands: what workers tell; what keeps its calls in order, for others may run at once; then
 * of OPEN the settings, of TAKE the arrays. */
enum { TOLD, TURN, OPERANDS };

/* Its argument. */
typedef struct order {
    int32_t kind, images;
    uint64_t process; /* of the program */
    uint64_t session; /* there; no two have one number */
    int64_t feed;     /* its number in that process */
    int64_t batch;
} order;

/* What a worker tells: a row of bytes. */
typedef struct told {
    int64_t knows;  /* 1: the worker's program has the function */
    int64_t thread; /* of the program's process */
    int64_t gpu;    /* the worker's device is one */
    int64_t maps;   /* it reads the memory of the source: 1 asked for, 2 does */
    int64_t worker, status, damaged;
    uint64_t host;
    double waited;
    char text[NN_DAMAGE_TEXT]; /* what went wrong at OPEN; the damaged records at TAKE; why it does not map */
} told;

/* --- in the process of a worker */

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
    nn_rows rows;  /* of the ring or the team */
    nn_ring *ring; /* of a CPU, */
    nn_team *team; /* of a GPU: functions run beside steps there, so that nothing is gained by pages ahead */
    double ended, waited; /* seconds: when the team was last done; that it read without a pause before */
    struct station *next;
} station;

static station *stations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t this_process(void)
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
static station *station_of(const order *o, int worker)
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

static void close_station(const order *o, int worker)
{
    station *found = station_of(o, worker);
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
static void close_ended(const order *o)
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
    told *told;
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

static void open_station(const dm_task *task, const order *o, told *t)
{
    pthread_t thread;
    station *s = calloc(1, sizeof *s);
    opening all = {.station = s, .told = t};
    if (task->operand_blocks[OPERANDS] > 0) {
        all.bytes = task->operand[OPERANDS][0].data;
        all.length = (size_t)task->operand[OPERANDS][0].extent[0];
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
    s->place = task->operand_blocks[TOLD] > 0 ? task->operand[TOLD][0].start[0] : -1;
    s->images = o->images != FLOATS;
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
static void map_source(const dm_task *task, const order *o, told *t)
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

static void unmap_source(const dm_task *task, const order *o)
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
    for (int i = OPERANDS; i < task->count; i++) {
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
    const int at = i - OPERANDS;
    return !s->images ? s->each[at]
           : at == 0  ? (s->whole ? s->record : s->each[0])
           : at == 1  ? 3
                      : s->each[at - 1];
}

/* What a page has for it. */
static const void *source_of(const station *s, int i, const nn_page *p)
{
    const int at = i - OPERANDS;
    return !s->images ? (const void *)p->top[at]
           : at > 1   ? (const void *)p->top[at - 1]
           : at == 0  ? (const void *)p->windows
                      : (const void *)p->places;
}

static bool all_whole_rows(const dm_task *task, const station *s)
{
    for (int i = OPERANDS; i < task->count; i++) {
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
    for (int i = OPERANDS; i < c->task->count; i++) {
        const char *from = source_of(c->station, i, p);
        for (int64_t k = 0; k < c->task->operand_blocks[i]; k++) {
            const dm_block *b = &c->task->operand[i][k];
            const int64_t size = bytes_of(b->dtype), bytes = each_of(c->station, i) * size,
                          step = b->stride[0] * size, last = b->start[0] + b->extent[0];
            const int64_t begin = first > b->start[0] ? first : b->start[0],
                          end = first + count < last ? first + count : last;
            const int64_t together = step == bytes && end > begin ? end - begin : 1;
            if (c->station->whole && i == OPERANDS) {
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
    s->rows.each[0] = s->whole ? s->record : s->each[0];
    return gpu ? nn_team_open(s->type, s->state, &s->rows, s->sharing, s->sharing, &s->team)
               : nn_ring_open(s->type, s->state, &s->rows, s->sharing, s->sharing, &s->ring);
}

static void tell_page(told *t, const nn_page *p, double waited)
{
    t->damaged = p->damaged;
    t->waited = waited;
    snprintf(t->text, sizeof t->text, "%s", p->why);
}

static int copy_page(const dm_task *task, station *s, int64_t batch, told *t)
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
static int make_batch(const dm_task *task, station *s, int64_t batch, told *t)
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

static int take_page(const dm_task *task, const order *o, told *t)
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
    s->whole = o->images == WHOLE;
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
    order o;
    told t = {.knows = 1, .gpu = task->gpu, .worker = task->worker, .host = host_hash()};
    int result = 0;
    memcpy(&o, task->args, sizeof o);
    t.thread = o.process == this_process();
    switch (o.kind) {
    case ASK:
        if (!t.thread) { /* the program's own process may have several sessions */
            close_ended(&o);
        }
        break;
    case OPEN:
        open_station(task, &o, &t);
        break;
    case TAKE:
        result = take_page(task, &o, &t);
        break;
    case CLOSE:
        close_station(&o, task->worker);
        break;
    case MAP:
        map_source(task, &o, &t);
        break;
    case UNMAP:
        unmap_source(task, &o);
        break;
    default: /* of another version */
        t.knows = 0;
        break;
    }
    for (int64_t k = 0; k < task->operand_blocks[TURN]; k++) {
        const dm_block *b = &task->operand[TURN][k];
        memset(b->data, 0, (size_t)(b->extent[0] * b->extent[b->ndim - 1]));
    }
    for (int64_t k = 0; k < task->operand_blocks[TOLD]; k++) {
        const dm_block *b = &task->operand[TOLD][k];
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
    registered = dm_register(function_name, read_records) == DM_OK;
}

DM_API void dmath_ops(void);
void dmath_ops(void)
{
}

/* --- in the program's process */
struct nn_readers {
    dm_session *session;
    order order;
    dm_array told[2]; /* of takes in turn, so that one is read while the next runs */
    dm_array turn;    /* of their shape, which no top has: arrays of one shape must lie alike */
    int64_t taken;    /* takes so far */
    int workers;
    told *all; /* [workers] */
    double waited;
    bool mapped;       /* some worker's GPU may read the memory of its source */
    int64_t record[3]; /* of whole records */
    char why[128];     /* they do not fetch those; "": it makes no sense */
};

static dm_status make_told(nn_readers *r)
{
    const int64_t shape[] = {r->workers, 1, 1, 1, (int64_t)sizeof(told)};
    const dm_layout rows = dm_layout_cyclic(r->session, 0, 1);
    r->all = calloc((size_t)r->workers, sizeof *r->all);
    dm_status status =
        r->all ? DM_OK : dm_error_no_memory("what workers have read", (size_t)r->workers * sizeof *r->all);
    for (int i = 0; status == DM_OK && i < 2; i++) {
        status = dm_array_create(r->session, DM_U8, 5, shape, &rows, &r->told[i]);
        /* what lacks the function leaves it so */
        status = status == DM_OK ? dm_fill(r->session, r->told[i], 0) : status;
    }
    return status == DM_OK ? dm_array_create(r->session, DM_U8, 5, shape, &rows, &r->turn) : status;
}

static dm_status run(const nn_readers *r, enum order_kind kind, int mode, int count, const dm_array *arrays)
{
    order o = r->order;
    dm_array all[DM_APPLY_OPERANDS] = {r->told[r->taken % 2], r->turn};
    int modes[DM_APPLY_OPERANDS] = {kind == ASK ? DM_READWRITE : DM_WRITE, DM_WRITE};
    o.kind = kind;
    for (int i = 0; i < count; i++) {
        all[OPERANDS + i] = arrays[i];
        modes[OPERANDS + i] = mode;
    }
    dm_apply_options options = DM_APPLY_OPTIONS_INIT;
    options.early = 1;
    return dm_apply_with(r->session, function_name, OPERANDS + count, all, modes, &o, (int64_t)sizeof o,
                         &options);
}

/* which: of the two. */
static dm_status hear(nn_readers *r, int64_t which)
{
    dm_status status = dm_array_read(r->session, r->told[which], NULL, NULL, r->all, 0);
    for (int w = 0; status == DM_OK && w < r->workers; w++) {
        r->all[w].text[sizeof r->all[w].text - 1] = 0;
    }
    return status;
}

/* Who they are; why: they cannot read. one: one reader serves them all, for they are CPUs and threads of this
 * process. */
static dm_status ask(nn_readers *r, bool *one, char *why, size_t room)
{
    dm_status status = run(r, ASK, 0, 0, NULL);
    status = status == DM_OK ? hear(r, 0) : status;
    *one = true;
    for (int w = 0; status == DM_OK && w < r->workers; w++) {
        *one = *one && r->all[w].thread && !r->all[w].gpu;
        if (!r->all[w].knows) {
            snprintf(
                why, room,
                "a worker's program is without libdmath_nn; start dmath-worker with --load libdmath_nn.so");
        }
    }
    return status;
}

/* Workers of each worker's host. */
static void pack_hosts(const nn_readers *r, nn_pack *out)
{
    nn_pack_int(out, r->workers);
    for (int w = 0; w < r->workers; w++) {
        int64_t beside = 0;
        for (int v = 0; v < r->workers; v++) {
            beside += r->all[v].host == r->all[w].host;
        }
        nn_pack_int(out, beside);
    }
}

static dm_status pack_settings(const nn_readers *r, const nn_feed_type *type, const void *state,
                               const nn_rows *rows, nn_pack *out)
{
    nn_pack_text(out, type->name);
    pack_hosts(r, out);
    nn_pack_int(out, rows->tops);
    for (int i = 0; i < rows->tops; i++) {
        nn_pack_int(out, rows->each[i]);
    }
    dm_status status = type->pack(state, out);
    return status == DM_OK && out->missed ? dm_error_no_memory("the settings of a data layer", out->missed)
                                          : status;
}

/* Each worker opens the source. failed: what went wrong there, with its text in `why`; else DM_OK. */
static dm_status open_all(nn_readers *r, const nn_pack *settings, dm_status *failed, char *why, size_t room)
{
    const dm_layout everywhere = dm_layout_replicated(r->session);
    const int64_t bytes = (int64_t)settings->length;
    dm_array a = DM_NO_ARRAY;
    dm_status status = dm_array_create(r->session, DM_U8, 1, &bytes, &everywhere, &a);
    status = status == DM_OK ? dm_write(r->session, a, settings->bytes) : status;
    status = status == DM_OK ? run(r, OPEN, DM_READ, 1, &a) : status;
    status = status == DM_OK ? hear(r, 0) : status;
    dm_status end = dm_array_destroy(r->session, a);
    *failed = DM_OK;
    for (int w = 0; status == DM_OK && *failed == DM_OK && w < r->workers; w++) {
        *failed = (dm_status)r->all[w].status;
        snprintf(why, room, "%s", *failed == DM_OK ? "" : r->all[w].text);
    }
    return status == DM_OK ? end : status;
}

static dm_status unmap_all(nn_readers *r)
{
    r->mapped = false;
    return run(r, UNMAP, 0, 0, NULL);
}

/* Do the GPUs of all workers fetch whole records? Asked twice: a GPU reads the memory when the first call has
 * ended. */
static dm_status map_all(nn_readers *r, const nn_feed_type *type, const void *state)
{
    int64_t bytes;
    bool all = r->order.images && type->memory;
    dm_status status = DM_OK;
    for (int w = 0; w < r->workers; w++) {
        all = all && r->all[w].gpu;
    }
    for (int times = 0; all && status == DM_OK && times < 2; times++) {
        status = run(r, MAP, 0, 0, NULL);
        status = status == DM_OK ? hear(r, 0) : status;
        for (int w = 0; status == DM_OK && w < r->workers; w++) {
            const told *t = &r->all[w];
            r->mapped = r->mapped || t->maps > 0;
            if (t->maps <= times) {
                all = false;
                snprintf(r->why, sizeof r->why, "%.100s", t->text);
            }
        }
    }
    if (status == DM_OK && all) {
        r->order.images = WHOLE;
        (void)type->memory(state, &bytes, r->record);
    }
    return status == DM_OK && r->mapped && !all ? unmap_all(r) : status;
}

/* why: the workers cannot read, for a reason that is no error where nobody forces them. */
static dm_status begin(nn_readers *r, const nn_feed_type *type, const void *state, const nn_rows *rows,
                       bool force, bool *one, char *why, size_t room)
{
    nn_pack settings = {0};
    dm_status failed = DM_OK, status = make_told(r);
    status = status == DM_OK ? ask(r, one, why, room) : status;
    if (status != DM_OK || why[0] || (*one && !force)) {
        return status;
    }
    status = pack_settings(r, type, state, rows, &settings);
    status = status == DM_OK ? open_all(r, &settings, &failed, why, room) : status;
    free(settings.bytes);
    /* Files that a host lacks are for the program's process, which has them; other files of these names are
     * not. */
    const bool lacks = failed == DM_ERR_IO || failed == DM_ERR_UNSUPPORTED;
    if (failed != DM_OK) {
        return force || !lacks ? dm_error_set(failed, "%s", why) : status;
    }
    return status == DM_OK ? map_all(r, type, state) : status;
}

dm_status nn_readers_open(dm_session *session, const nn_feed_type *type, const void *state, const nn_rows *rows,
                          bool force, nn_readers **out, char *why, size_t room)
{
    static atomic_int_fast64_t feeds;
    const char *alone = type->alone ? type->alone(state) : NULL;
    bool one = false;
    dm_status status = DM_OK;
    *out = NULL;
    why[0] = 0;
    nn_readers *r = calloc(1, sizeof *r);
    if (!r) {
        return dm_error_no_memory("readers", sizeof *r);
    }
    r->session = session;
    r->workers = dm_workers(session);
    r->order = (order){.images = rows->images ? WINDOWS : FLOATS,
                       .process = this_process(),
                       .session = (uint64_t)(uintptr_t)session,
                       .feed = atomic_fetch_add(&feeds, 1)};
    if (alone) {
        snprintf(why, room, "%s", alone);
    } else if (rows->tops + (rows->images ? 1 : 0) > NN_READERS_ARRAYS) {
        snprintf(why, room, "the layer has more than %d tops", NN_READERS_ARRAYS);
    } else if (!registered) {
        snprintf(why, room, "libdmath_nn was loaded when a session was open");
    } else {
        status = begin(r, type, state, rows, force, &one, why, room);
    }
    if (status == DM_OK && why[0] && force) {
        status = dm_error_set(DM_ERR_UNSUPPORTED, "%s", why);
    }
    if (status == DM_OK && !why[0] && (!one || force)) {
        *out = r;
        return DM_OK;
    }
    char text[1024];
    snprintf(text, sizeof text, "%s", dm_error_message());
    nn_readers_close(r);
    return status == DM_OK ? DM_OK : dm_error_set(status, "%s", text);
}

void nn_readers_close(nn_readers *r)
{
    if (!r) {
        return;
    }
    /* Where the session has ended its arrays have too, and workers that were processes. */
    dm_status end = r->mapped ? unmap_all(r) : DM_OK;
    end = end == DM_OK && r->turn.id ? run(r, CLOSE, 0, 0, NULL) : end;
    const dm_array all[] = {r->told[0], r->told[1], r->turn};
    for (int i = 0; i < NN_COUNT(all) && end == DM_OK; i++) {
        end = all[i].id ? dm_array_destroy(r->session, all[i]) : DM_OK;
    }
    free(r->all);
    free(r);
}

bool nn_readers_whole(const nn_readers *r, int64_t record[3], const char **why)
{
    memcpy(record, r->record, sizeof r->record);
    *why = r->why;
    return r->order.images == WHOLE;
}

dm_status nn_readers_take(nn_readers *r, int64_t batch, int count, const dm_array *arrays)
{
    r->order.batch = batch;
    dm_status status = run(r, TAKE, DM_WRITE, count, arrays);
    r->taken += status == DM_OK;
    return status;
}

dm_status nn_readers_report(nn_readers *r, bool last, nn_tell_damage tell, void *context)
{
    dm_status status = hear(r, (last ? r->taken + 1 : r->taken) % 2);
    for (int w = 0; status == DM_OK && w < r->workers; w++) {
        const told *t = &r->all[w];
        tell(context, t->damaged, t->text);
        r->waited = t->waited > r->waited ? t->waited : r->waited;
    }
    return status;
}

double nn_readers_waited(const nn_readers *r)
{
    return r->waited;
}
