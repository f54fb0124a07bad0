/* A program while it is recorded, and the master's part of one that is complete. */
#ifndef DMI_RECORDING_H
#define DMI_RECORDING_H

#include "master/session.h"
#include "plan/program.h"

typedef struct dmi_recording {
    dmi_program p;
    int array_room, call_room, number_room;
    uint32_t scopes; /* open at the begin */
    bool advance;    /* seeds of calls from now on advance */
    uint32_t *hidden; /* [hiddens] slots of handles that were destroyed meanwhile */
    int hiddens, hidden_room;
    bool lost; /* an array was destroyed that the program may need: there was no memory to keep it */
} dmi_recording;

typedef struct dmi_recorded {
    dmi_program p;
    uint32_t *hidden; /* [hiddens] slots of views that only the program still has */
    int hiddens;
    int64_t next;       /* number of the next run, for those who do not count as it was set; -1: it was not */
    int64_t *workspace; /* [workers] rounded bytes; NULL: there is no memory limit */
} dmi_recorded;

void dmi_program_free(dmi_program *p);

#endif
