/* User functions: their names, and the call of one by a step. */
#ifndef DMI_OPS_COMMON_TASK_H
#define DMI_OPS_COMMON_TASK_H

#include "kernels/host/task.h"
#include "plan/plan.h"

#include <pthread.h>

/* Numbers of functions of dmath's own libraries, which a worker may lack; then it does nothing. */
enum { DMI_TASK_OWN = 1 << 24 };

/* Is this thread inside a user function? It may not call dmath there. */
bool dmi_task_inside(void);
int dmi_task_find(const char *name); /* its number, or -1 */
const char *dmi_task_name(int number);
/* For the handshake: equal only where the same names were registered in the same order. */
uint64_t dmi_task_fingerprint(void);
/* All names in their order, each with a 0 behind it. Returns the bytes; text may be NULL. */
int dmi_task_names(char *text);
/* --- common_load.c: loads each of "a.so:b.so" that this process does not have yet and calls its dmath_ops() */
DM_CHECKED dm_status dmi_load_operations(const char *list);
/* Calls a loaded object's function that registers user functions, once per process; returns its first
 * failure. */
DM_CHECKED dm_status dmi_task_load(void (*ops)(void));

/* What a function asks of its worker's GPU. */
enum { DMI_TASK_MAPS = 32 };
typedef struct dmi_task_map {
    const char *at;
    int64_t bytes;
} dmi_task_map;
typedef struct dmi_task_piece {
    char *to; /* in the memory of an operand on the host */
    const char *from;
    int64_t bytes;
} dmi_task_piece;
typedef struct dmi_task_asks {
    pthread_mutex_t lock;               /* of what follows while the function runs */
    dmi_task_map mapped[DMI_TASK_MAPS]; /* what the GPU may read, */
    dmi_task_map map[DMI_TASK_MAPS];    /* is to read then, */
    const void *unmap[DMI_TASK_MAPS];   /* and no more */
    int mappeds, maps, unmaps;
    bool fetches;          /* pieces may be asked for */
    dmi_task_piece *piece; /* what it fetches; owned by who made this */
    int64_t pieces, room;
} dmi_task_asks;
/* The map that has all of these bytes; NULL: none has. */
const dmi_task_map *dmi_task_map_of(const dmi_task_map *maps, int many, const void *from, int64_t bytes);

/* Calls function `number`; base[i]: address of operand i's memory. asks: NULL where no GPU can fetch. */
DM_CHECKED dm_status dmi_task_run(const dmi_task_desc *desc, int worker, int count, void *const *base,
                                  const void *args, int64_t args_bytes, dmi_task_asks *asks);

#endif
