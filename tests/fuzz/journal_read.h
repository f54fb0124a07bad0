/* Reading a journal without making its calls: journal_read.c. */
#ifndef JOURNAL_READ_H
#define JOURNAL_READ_H

#include "api/replay_parts.h"

enum { JOURNAL_ARRAYS = 3 };
typedef struct journal_shelf { /* what handles in journals stand for */
    dm_array array[JOURNAL_ARRAYS];
    dm_program program;
    dm_group group;
} journal_shelf;
extern const journal_shelf *journal_shelf_now;

extern const dmi_replay_call journal_read_calls[];
extern const int journal_read_call_count;
DM_CHECKED dm_status journal_read_from(dm_session *session, FILE *from, const char *path, FILE *to);
DM_CHECKED dm_status journal_read_run(dm_session *session, const char *path, FILE *to);

#endif
