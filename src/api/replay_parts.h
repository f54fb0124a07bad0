/* What the files of a replay share: its state, and the words of a line. */
#ifndef DMI_REPLAY_PARTS_H
#define DMI_REPLAY_PARTS_H

#include "api/replay.h"
#include "master/session.h"

typedef struct dmi_replay_known {
    uint64_t old, now; /* handles: in the journal and here */
    char kind;
    int workers; /* of a group, in the journal */
} dmi_replay_known;

typedef struct dmi_replay_output { /* handles that a call makes */
    uint64_t *made;
    int64_t count;
    char kind;
} dmi_replay_output;
enum { DMI_REPLAY_OUTPUTS = 4 };

typedef struct dmi_replay_block { /* memory of a line, as long as was asked for */
    struct dmi_replay_block *next;
    _Alignas(16) char memory[];
} dmi_replay_block;

typedef struct dmi_replay_kept { /* a value that dm_keep has named */
    struct dmi_replay_kept *next;
    int64_t bytes;
    char *name;
    _Alignas(16) char memory[];
} dmi_replay_kept;

struct dmi_replay {
    dm_session *session;
    const char *path;
    FILE *to;
    int line, workers;                /* workers: when it was kept */
    int here;                         /* now */
    int open[DMI_OPEN_GROUPS], opens; /* workers, when it was kept, of the groups that have begun */
    int group_old, group_now;         /* of the group that a call makes or names */
    dmi_replay_kept *values;
    char *at;        /* the next argument */
    const char *bad; /* what is wrong with the line */
    int64_t length;  /* of the list or the bytes that were read last; -1: there were none */
    int64_t longest; /* that this line can hold */
    dmi_replay_block *blocks;
    dmi_replay_known *known;
    int64_t count, room;
    void *read; /* memory that the call fills */
    int64_t read_bytes;
    dmi_replay_output output[DMI_REPLAY_OUTPUTS];
    int outputs;
};

/* What is wrong with the line; the first stays. */
static inline void dmi_replay_bad(dmi_replay *r, const char *what)
{
    r->bad = r->bad ? r->bad : what;
}
const char *dmi_replay_next(dmi_replay *r); /* the next word; "" where there is none */
/* Memory of this line, zeros; NULL: there is none. */
void *dmi_replay_room(dmi_replay *r, int64_t count, size_t each);
void dmi_replay_end_line(dmi_replay *r); /* frees it */
uint64_t dmi_replay_number(dmi_replay *r, const char *text, int base);
int64_t dmi_replay_list(dmi_replay *r); /* the count of a list; -1: it was NULL */
/* NULL where it was NULL; with a zero behind it. */
const char *dmi_replay_bytes(dmi_replay *r, const char *word, int64_t *count);
/* Numbers in place of those that were not kept: small whole ones, which every type has. */
void *dmi_replay_made_up(dmi_replay *r, int64_t bytes, dm_dtype type, uint32_t seed);
int64_t dmi_replay_bytes_of(const dmi_replay *r, dm_array a, const int64_t *extent, int dtype, dm_dtype *type);
/* --- replay_items.c */
void dmi_replay_free_values(dmi_replay *r);

#endif
