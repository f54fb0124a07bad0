#include "ops/common_task.h"
#include "base/process.h"
#include "ops/common_feed.h"
#include "ops/session.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TASKS = 256, MOST_OWN = 16, NAME_BYTES = 64, TEXT_BYTES = 256 };

typedef struct known_task {
    char name[NAME_BYTES];
    dm_task_function function;
} known_task;

/* Filled before any session is open, read only afterwards. */
static known_task table[MOST_TASKS];
static int count;
/* Those of dmath's own libraries, which ranks need not have alike. Their numbers come from their names. */
static const char own_prefix[] = "dmath.";
static known_task own[MOST_OWN];
static int own_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
DMI_FORK_KEEP(&lock, NULL)

static _Thread_local bool inside;

static void (*loaded[MOST_TASKS])(void); /* functions that have been called to register others */
static int loaded_count;
/* The failure of the one that is being called now. */
static _Thread_local struct {
    bool now;
    dm_status status;
    char text[256];
} loading;

bool dmi_task_inside(void)
{
    return inside;
}

static bool is_own(const char *name)
{
    return strncmp(name, own_prefix, sizeof own_prefix - 1) == 0;
}

static uint64_t hash_name(uint64_t hash, const char *name)
{
    for (const char *p = name; *p; p++) {
        hash = (hash ^ (unsigned char)*p) * UINT64_C(1099511628211);
    }
    return (hash ^ 0x100) * UINT64_C(1099511628211);
}

static int own_number(const char *name)
{
    return DMI_TASK_OWN | (int)(hash_name(0, name) % DMI_TASK_OWN);
}

static const known_task *task_of(int number)
{
    for (int i = 0; i < own_count; i++) {
        if (own_number(own[i].name) == number) {
            return &own[i];
        }
    }
    return number >= 0 && number < count ? &table[number] : NULL;
}

static dm_status add_task(const char *name, dm_task_function function)
{
    if (!name || !function) {
        return dmi_fail(DM_ERR_ARG, "register: %s is NULL", name ? "function" : "name");
    }
    if (!name[0] || strlen(name) >= NAME_BYTES) {
        return dmi_fail(DM_ERR_ARG, "register: name has %zu characters, not 1 to %d", strlen(name),
                        NAME_BYTES - 1);
    }
    if (dmi_session_any()) {
        return dmi_fail(DM_ERR_STATE, "register: %s: a session is open; register before dm_init", name);
    }
    dm_status status = DM_OK;
    pthread_mutex_lock(&lock);
    if (dmi_task_find(name) >= 0) {
        status = dmi_fail(DM_ERR_ARG, "register: the name %s is taken", name);
    } else if (is_own(name) ? own_count == MOST_OWN || task_of(own_number(name)) : count == MOST_TASKS) {
        status = dmi_fail(DM_ERR_ARG, "register: %s: there are %d operations already", name,
                          is_own(name) ? own_count : MOST_TASKS);
    } else {
        known_task *t = is_own(name) ? &own[own_count++] : &table[count++];
        strcpy(t->name, name);
        t->function = function;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

dm_status dm_register(const char *name, dm_task_function function)
{
    dm_status status = add_task(name, function);
    if (status != DM_OK && loading.now && loading.status == DM_OK) {
        loading.status = status;
        snprintf(loading.text, sizeof loading.text, "%s", dmi_error_text());
    }
    return status;
}

dm_status dmi_task_load(void (*ops)(void))
{
    pthread_mutex_lock(&lock);
    bool known = false, room = loaded_count < MOST_TASKS;
    for (int i = 0; i < loaded_count; i++) {
        known = known || loaded[i] == ops;
    }
    if (!known && room) {
        loaded[loaded_count++] = ops;
    }
    pthread_mutex_unlock(&lock);
    if (known || !room) {
        return known ? DM_OK : dmi_fail(DM_ERR_LIMIT, "%d objects have been loaded already", MOST_TASKS);
    }
    loading.status = DM_OK;
    loading.now = true;
    ops();
    loading.now = false;
    if (loading.status == DM_OK) {
        return DM_OK;
    }
    pthread_mutex_lock(&lock); /* it may be tried again */
    loaded_count--;
    pthread_mutex_unlock(&lock);
    return dmi_fail(loading.status, "%s", loading.text);
}

int dmi_task_names(char *text)
{
    int bytes = 0;
    for (int i = 0; i < count; i++) {
        int length = (int)strlen(table[i].name) + 1;
        if (text) {
            memcpy(text + bytes, table[i].name, (size_t)length);
        }
        bytes += length;
    }
    return bytes;
}

int dmi_task_find(const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) == 0) {
            return i;
        }
    }
    for (int i = 0; i < own_count; i++) {
        if (strcmp(own[i].name, name) == 0) {
            return own_number(name);
        }
    }
    return -1;
}

const char *dmi_task_name(int number)
{
    const known_task *t = task_of(number);
    return number == DMI_TASK_FEED ? "feed" : t ? t->name : "?";
}

uint64_t dmi_task_fingerprint(void)
{
    uint64_t hash = 0;
    for (int i = 0; i < count; i++) {
        hash = hash_name(hash, table[i].name);
    }
    return hash;
}

/* The argument of a user function, with room for its error text. */
typedef struct running {
    dm_task task; /* first: dm_task_fail finds the rest by it */
    const dmi_task_desc *desc;
    dmi_task_asks *asks;
    atomic_flag said;
    char text[TEXT_BYTES];
} running;

int dm_task_fail(const dm_task *task, const char *format, ...)
{
    running *r = (running *)(uintptr_t)task;
    if (task && !atomic_flag_test_and_set(&r->said)) { /* the first of several threads */
        va_list args;
        va_start(args, format);
        (void)vsnprintf(r->text, sizeof r->text, format, args);
        va_end(args);
    }
    return 1;
}

/* --- what a function asks of its GPU */

const dmi_task_map *dmi_task_map_of(const dmi_task_map *maps, int many, const void *from, int64_t bytes)
{
    const uintptr_t at = (uintptr_t)from;
    for (int i = 0; i < many; i++) {
        const uintptr_t begin = (uintptr_t)maps[i].at;
        if (at >= begin && bytes <= maps[i].bytes && at - begin <= (uintptr_t)(maps[i].bytes - bytes)) {
            return &maps[i];
        }
    }
    return NULL;
}

static dmi_task_asks *asks_of(const dm_task *task)
{
    return task ? ((const running *)(const void *)task)->asks : NULL;
}

int dm_task_map(const dm_task *task, const void *memory, int64_t bytes)
{
    dmi_task_asks *a = asks_of(task);
    if (!a || !memory || bytes <= 0) {
        return 0;
    }
    for (int i = 0; i < a->mappeds; i++) {
        if (a->mapped[i].at == memory && a->mapped[i].bytes == bytes) {
            return 2;
        }
    }
    pthread_mutex_lock(&a->lock);
    const bool room = a->mappeds + a->maps < DMI_TASK_MAPS;
    if (room) {
        a->map[a->maps++] = (dmi_task_map){memory, bytes};
    }
    pthread_mutex_unlock(&a->lock);
    return room;
}

int dm_task_unmap(const dm_task *task, const void *memory)
{
    dmi_task_asks *a = asks_of(task);
    int known = 0;
    if (!a) {
        return 0;
    }
    pthread_mutex_lock(&a->lock);
    for (int i = 0; i < a->mappeds && !known && a->unmaps < DMI_TASK_MAPS; i++) {
        known = a->mapped[i].at == memory;
    }
    if (known) {
        a->unmap[a->unmaps++] = memory;
    }
    pthread_mutex_unlock(&a->lock);
    return known;
}

static bool may_write(const dm_task *task, const char *to, int64_t bytes)
{
    const dmi_task_desc *desc = ((const running *)(const void *)task)->desc;
    for (int i = 0; i < task->count; i++) {
        for (int64_t k = 0; (desc->mode[i] & DM_WRITE) && k < task->operand_blocks[i]; k++) {
            const dm_block *b = &task->operand[i][k];
            const int64_t span = dmi_block_reach(b) * dmi_dtype_bytes(b->dtype),
                          at = (int64_t)((uintptr_t)to - (uintptr_t)b->data);
            if (at >= 0 && bytes <= span && at <= span - bytes) {
                return true;
            }
        }
    }
    return false;
}

static bool add_piece(dmi_task_asks *a, void *to, const void *from, int64_t bytes)
{
    if (a->pieces == a->room) {
        const int64_t room = 2 * a->room + 64;
        dmi_task_piece *more = realloc(a->piece, (size_t)room * sizeof *more);
        if (!more) {
            return false;
        }
        a->piece = more;
        a->room = room;
    }
    a->piece[a->pieces++] = (dmi_task_piece){to, from, bytes};
    return true;
}

int dm_task_fetch(const dm_task *task, void *to, const void *from, int64_t bytes)
{
    dmi_task_asks *a = asks_of(task);
    if (!a || !a->fetches || bytes <= 0 || !dmi_task_map_of(a->mapped, a->mappeds, from, bytes) ||
        !may_write(task, to, bytes)) {
        return 0;
    }
    pthread_mutex_lock(&a->lock);
    const bool added = add_piece(a, to, from, bytes);
    pthread_mutex_unlock(&a->lock);
    return added;
}

dm_status dmi_task_run(const dmi_task_desc *desc, int worker, int operands, void *const *base, const void *args,
                       int64_t args_bytes, dmi_task_asks *asks)
{
    const dm_block *given[DM_APPLY_OPERANDS] = {0};
    running r = {.said = ATOMIC_FLAG_INIT, .desc = desc, .asks = asks};
    r.task = (dm_task){.size = sizeof r.task,
                       .worker = worker,
                       .workers = desc->workers,
                       .args = args,
                       .args_bytes = args_bytes,
                       .count = operands,
                       .operand = given,
                       .operand_blocks = desc->blocks,
                       .gpu = desc->gpu};
    dm_block *blocks[DM_APPLY_OPERANDS] = {0};
    dm_status status = DM_OK;
    for (int i = 0; i < operands && status == DM_OK; i++) {
        size_t bytes = (size_t)desc->blocks[i] * sizeof(dm_block);
        blocks[i] = malloc(bytes + 1);
        if (!blocks[i]) {
            status = dmi_fail(DM_ERR_NOMEM, "no memory for the rectangles of %s", dmi_task_name(desc->number));
            break;
        }
        for (int64_t b = 0; b < desc->blocks[i]; b++) {
            blocks[i][b] = desc->block[i][b];
            blocks[i][b].data = (char *)base[i] + desc->offset[i][b] * dmi_dtype_bytes(blocks[i][b].dtype);
        }
        given[i] = blocks[i];
        if (i < DM_TASK_OPERANDS) {
            r.task.block[i] = blocks[i];
            r.task.blocks[i] = desc->blocks[i];
        }
    }
    inside = true;
    const known_task *known = task_of(desc->number);
    dm_task_function function = desc->number == DMI_TASK_FEED ? dmi_feed_read : known ? known->function : NULL;
    int result = status == DM_OK && function ? function(&r.task) : 0;
    inside = false;
    if (atomic_flag_test_and_set(&r.said)) {
        status = dmi_fail(DM_ERR_TASK, "%s: %s", dmi_task_name(desc->number), r.text);
    } else if (result != 0) {
        status = dmi_fail(DM_ERR_TASK, "%s returned %d", dmi_task_name(desc->number), result);
    }
    for (int i = 0; i < operands; i++) {
        free(blocks[i]);
    }
    return status;
}

dm_status dmi_task_cpu(const dmi_kernel_call *call)
{
    return dmi_task_run(call->desc, call->worker, call->refs, call->at, call->tail, call->tail_bytes, NULL);
}
