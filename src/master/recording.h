/* A program while it is recorded, and the master's part of one that is complete. */
#ifndef DMI_RECORDING_H
#define DMI_RECORDING_H

#include "master/session.h"
#include "plan/program.h"

/* A number of a program that the caller may give anew. */
typedef struct dmi_named {
    char name[64];
    int call;   /* which fills its array with it */
    int at;     /* place of the number among those of all calls */
    bool given; /* anew, since the last run */
} dmi_named;

typedef struct dmi_recording {
    dmi_program p;
    int array_room, call_room, number_room;
    uint32_t scopes;  /* open at the begin */
    bool advance;     /* seeds of calls from now on advance */
    uint32_t *hidden; /* [hiddens] slots of handles that were destroyed meanwhile */
    int hiddens, hidden_room;
    dmi_named *named;   /* [nameds] */
    uint64_t *named_id; /* [nameds] their arrays, which end with the recording */
    int nameds, named_room, named_id_room;
    bool lost; /* an array was destroyed that the program may need: there was no memory to keep it */
} dmi_recording;

typedef struct dmi_recorded {
    dmi_program p;
    uint32_t *hidden; /* [hiddens] slots of views that only the program still has */
    int hiddens;
    dmi_named *named;   /* [nameds] */
    int nameds, given;  /* given: how many were given anew since the last run */
    int64_t next;       /* number of the next run, for those who do not count as it was set; -1: it was not */
    int64_t *workspace; /* [workers] rounded bytes; NULL: there is no memory limit */
} dmi_recorded;

void dmi_program_free(dmi_program *p);
/* Room for `more` elements behind `count`; *table is a pointer to elements of this size. */
bool dmi_record_room(void *table, int *room, int count, int more, size_t size);
/* Alive, or kept for the calls of a program (dmi_array_drop). */
static inline bool dmi_handle_there(const dmi_handle *h)
{
    return h->live || h->hidden;
}
/* --- programs.c: who takes part in a run of it */
uint64_t dmi_program_members(const dmi_program *p);
/* --- program_runs.c: the program's place in the table of the session; call: for messages */
DM_CHECKED dm_status dmi_program_find(dmi_session *s, dm_program program, const char *call, uint32_t *out);
/* --- program_numbers.c */
/* The recording ends: destroys the arrays of its numbers. */
void dmi_numbers_end(dmi_session *s, dmi_recording *r);
/* Checks a number of the program, and keeps it for the next run. */
DM_CHECKED dm_status dmi_number_set(dmi_recorded *r, const char *name, double value);
/* Writes the numbers that were given anew, of which r->given says how many, and forgets that they were. */
void dmi_numbers_put(dmi_recorded *r, dmi_given_number *to);

#endif
