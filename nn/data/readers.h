/* Workers that read the records of their own samples: each opens the source itself, and on a CPU keeps pages
 * of its rows ready (data/ring.h), with a GPU makes them when asked (data/team.h). The program's process sends
 * them numbers of batches, and no records. */
#ifndef NN_READERS_H
#define NN_READERS_H

#include "data/ring.h"

/* All types of feeds that there are; NULL at the end. (layers/feeds.c) */
extern const nn_feed_type *const nn_feed_types[];

enum { NN_READERS_ARRAYS = DM_APPLY_OPERANDS - 2 };

typedef struct nn_readers nn_readers;

/* May the workers read? force: they must, else the error says why not; without it *out is NULL where the
 * program's process is to read for them, and `why` says why, or is "" where they are CPUs and its threads,
 * which share one reader. Waits. Errors: DM_ERR_UNSUPPORTED, those of opening the source, with the worker and
 * its host. */
dm_status nn_readers_open(dm_session *session, const nn_feed_type *type, const void *state, const nn_rows *rows,
                          bool force, nn_readers **out, char *why, size_t room);
void nn_readers_close(nn_readers *readers); /* accepts NULL */
/* Do GPUs fetch whole records from where the source has them? Then the first array that nn_readers_take is
 * given is to have room for them, in this shape (nn_transform_whole). why: why they do not; "": it makes no
 * sense. */
bool nn_readers_whole(const nn_readers *readers, int64_t record[3], const char **why);
/* The arrays (f32; with images the windows and places first) get the batch, at each worker when its rows are
 * there. Does not wait. What a worker cannot read fails the command there, as any user function that fails. */
dm_status nn_readers_take(nn_readers *readers, int64_t batch, int count, const dm_array *arrays);
/* What the last take has told, or the one before, when all workers have done it: records that each left out,
 * and why, as nn_page has it. Waits. */
typedef void (*nn_tell_damage)(void *context, int64_t damaged, const char *why);
dm_status nn_readers_report(nn_readers *readers, bool last, nn_tell_damage tell, void *context);
/* Seconds that the worker that waited most has waited for records (with a GPU: has read them without a pause),
 * by the last report. */
double nn_readers_waited(const nn_readers *readers);

#endif
