/* dmath: checkpoints: named arrays and values in a folder, whole or not at all.  BSD-3-Clause, see LICENSE.
 * <dmath/dmath.h> includes it.
 *
 *     int64_t step = 0;
 *     dm_checkpoint_item items[] = {DM_KEEP_ARRAY("weights", w), DM_KEEP_VALUE("step", &step)};
 *     if (dm_checkpoint_exists("run1")) { dm_checkpoint_load(s, "run1", 2, items); }
 *     for (; step < steps; step++) {
 *         ...
 *         if (step % 100 == 99) { dm_checkpoint_save(s, "run1", 2, items, NULL, &saved); }  -- the loop goes on
 *     }
 *
 * A path names a *series*: a folder with one folder for each checkpoint, by number: run1/00000001,
 * run1/00000002. A checkpoint has a .npy file for each array, the whole array in C order, which numpy.load
 * reads, and manifest.json: names, types, shapes, layouts, values, and an XXH3-64 hash of each part (2 MiB, of
 * large ones more) of each file and of itself. Whatever byte changes, loading says so, with the file and the
 * part. A checkpoint appears under its number only when all of it is on the disk; programs that die while they
 * write one leave the ones before as they are. Calls that read take a series, and then its newest checkpoint,
 * or the folder of one checkpoint.
 *
 * A checkpoint of a series is a folder, not a link to one, with such a number for a name (eight digits or more)
 * and a manifest.json that dmath has written. All else in the series is passed over and never removed, and so
 * is a number that is taken. Calls that load from a series whose saver removes the checkpoint meanwhile (keep)
 * begin again with the newest.
 *
 * Every worker writes and reads its share, so the path must name the same folder on all hosts; a relative one
 * means the program's folder at the call. It needs not be the same number of workers that loads, nor the same
 * layout or type. In a build without Jansson or xxHash what writes or reads a checkpoint is DM_ERR_UNSUPPORTED.
 */
#ifndef DMATH_CHECKPOINT_H
#define DMATH_CHECKPOINT_H

#include <dmath/dmath.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A named array, or a named value of the program: `count` numbers of `dtype`, or with dtype 0 so many bytes. */
typedef struct dm_checkpoint_item {
    const char *name; /* 1 to 200 bytes, UTF-8, no two alike */
    dm_array array;   /* zero: a value */
    void *value;      /* read when it is saved, written when it is loaded */
    dm_dtype dtype;
    int64_t count; /* a value has at most 1 MiB; what is larger should be an array */
} dm_checkpoint_item;
#define DM_KEEP_ARRAY(name, array) {(name), (array), NULL, (dm_dtype)0, 0}
/* The number that a pointer of a known type leads to; and any memory. */
#define DM_KEEP_VALUE(name, pointer) {(name), {0}, (pointer), DM_NUMBER_OF(pointer), 1}
#define DM_KEEP_BYTES(name, pointer, bytes) {(name), {0}, (pointer), (dm_dtype)0, (bytes)}

/* Make one with DM_CHECKPOINT_OPTIONS_INIT, then set fields. */
typedef struct dm_checkpoint_options {
    size_t size; /* sizeof(dm_checkpoint_options): set by DM_CHECKPOINT_OPTIONS_INIT */
    int keep; /* so many of the series stay, the older ones are removed when the new one is there; 0: all. One
              with files that are not its own stays too */
    int named;   /* of dm_session_save: 1: arrays without a name are left out */
} dm_checkpoint_options;
#define DM_CHECKPOINT_OPTIONS_INIT                                                                             \
    {                                                                                                          \
        sizeof(dm_checkpoint_options), 0, 0                                                                    \
    }

/* Saves the items as the next checkpoint of the series. path is made if it is not there (its parent must be).
 * count 0 with items NULL: what dm_keep has named. options NULL: none. What dead programs of this host have
 * left half-written in the series is removed. event NULL: blocks until the checkpoint is on the disk. Else it
 * does not wait for the files: each array is copied first, on the workers, and what follows may change it at
 * once; the event is done when the checkpoint is there, and has the failure if it is not. The copies' memory is
 * free again when a call has found the event done. If the checkpoint before is still being written, the call
 * waits for it; dm_finalize waits for the last. Values are read during the call. Errors: DM_ERR_ARG (path, also
 * one that has a manifest.json, and so is no series; event, names, values, options); DM_ERR_IO, DM_ERR_POISONED
 * (an array is), of the event where there is one; DM_ERR_LIMIT, DM_ERR_NOMEM (for the copies); DM_ERR_LIMIT too
 * where manifest.json would have more than 1 GiB (values of 512 MiB in all). Costs: a copy of all arrays in the
 * workers' memory, of which the elements move that do not lie in their part's worker; every byte is written
 * once, the workers' files at the same time. */
DM_API DM_CHECKED dm_status dm_checkpoint_save(dm_session *session, const char *path, int count,
                                               const dm_checkpoint_item *items,
                                               const dm_checkpoint_options *options, dm_event *event);

/* Fills the items' arrays and values with those of the checkpoint by their names. Items of the checkpoint that are not
 * asked for are not read. count 0 with items NULL: what dm_keep has named. An array may have any layout and dtype
 * (converted as dm_copy does); its shape must be the saved one, a value's type and count too. Blocks. Values are
 * written when everything else has succeeded; arrays may have been written when the call fails. Errors: DM_ERR_FORMAT
 * (a byte has changed: the message names the file and the part; an unknown version); DM_ERR_IO (no checkpoint; a file
 * is missing); DM_ERR_ARG (path, names; a name that the checkpoint has not, or as another kind); DM_ERR_SHAPE;
 * DM_ERR_DTYPE (a value of another dtype); DM_ERR_LIMIT, DM_ERR_NOMEM. Costs: every byte is read once; one array at a
 * time is in memory twice. */
DM_API DM_CHECKED dm_status dm_checkpoint_load(dm_session *session, const char *path, int count,
                                               const dm_checkpoint_item *items);

/* *out = a new array with the contents of one that was saved. dtype 0: as saved. layout NULL: as saved, if this session
 * has as many workers, else the default. Blocks. The caller destroys the array. Errors: as dm_checkpoint_load, and
 * dm_array_create. Cost: as dm_checkpoint_load. */
DM_API DM_CHECKED dm_status dm_checkpoint_array(dm_session *session, const char *path, const char *name,
                                                dm_dtype dtype, const dm_layout *layout, dm_array *out);

/* Names an array, or a value, for checkpoints with items NULL and of whole sessions; of the same name it
 * replaces the one before. An item with no array and value NULL removes the name. The name is copied; the
 * value's memory must last as long as the session. Does not block. Errors: DM_ERR_ARG (item), DM_ERR_HANDLE
 * (the array). */
DM_API DM_CHECKED dm_status dm_keep(dm_session *session, const dm_checkpoint_item *item);

/* *out = the array to which dm_keep, or dm_session_load, has given this name; DM_NO_ARRAY: none. Does not
 * block. Errors: DM_ERR_ARG (name, out), DM_ERR_HANDLE (it has been destroyed). Cost: nothing is sent. */
DM_API DM_CHECKED dm_status dm_kept_array(dm_session *session, const char *name, dm_array *out);

/* Saves the whole session as the next checkpoint of the series: what dm_keep has named; every other array that
 * is alive, under the names "array/1", "array/2" and so on, in the order in which they were made
 * (options->named 1: not these); and the session's generator (dm_random_next), as the value
 * "session/generator". Layouts are saved too. Not saved are views without a name (one with a name is saved as
 * an array), programs, groups and feeds. It is a checkpoint as any other for the calls of this header and for
 * `dmath ckpt`. path, options, event, blocking and errors: as dm_checkpoint_save; DM_ERR_HANDLE (an array that
 * has a name has been destroyed). Cost: as dm_checkpoint_save. */
DM_API DM_CHECKED dm_status dm_session_save(dm_session *session, const char *path,
                                            const dm_checkpoint_options *options, dm_event *event);

/* Brings back what dm_session_save, or dm_checkpoint_save, has saved. Arrays and values that have a name here
 * are filled, as by dm_checkpoint_load. Every other array of the checkpoint is made, with the saved type, and
 * the saved layout if this session has as many workers, else the default; its name is kept, so that
 * dm_kept_array finds it. The caller destroys it, or the scope that is open, or dm_finalize. Values that have
 * no name here are left out (dm_checkpoint_load reads them). The generator goes on where it was. What has a
 * name here and is not in the checkpoint, and arrays without a name here, stay as they are. Blocks. Errors: as
 * dm_checkpoint_load, and dm_array_create; arrays that had a name before may then have been written, those that
 * were made are gone. Cost: as dm_checkpoint_load. */
DM_API DM_CHECKED dm_status dm_session_load(dm_session *session, const char *path);

/* For the place in a program's loop where all that dm_keep has named belongs together: if a signal has come that the
 * option catch_signals catches (<dmath/control.h>), saves it as the next checkpoint of the series, and *leave = 1. Else
 * *leave = 0, at once. A program that is to leave calls dm_finalize and exits with DM_EXIT_REQUEUE, by which batch
 * systems know that the job is to run again (EX_TEMPFAIL). Blocks where it saves, until the checkpoint is on the disk.
 * Errors: as dm_checkpoint_save; DM_ERR_ARG (leave). */
#define DM_EXIT_REQUEUE 75
DM_API DM_CHECKED dm_status dm_checkpoint_boundary(dm_session *session, const char *path, const dm_checkpoint_options *options,
                                                   int *leave);

/* 1 if the path is, or holds, a whole checkpoint (its manifest is read and right), else 0. No session is needed. */
DM_API int dm_checkpoint_exists(const char *path);

/* What a checkpoint has. */
typedef struct dm_checkpoint_info {
    size_t size;               /* set by the caller: sizeof(dm_checkpoint_info) */
    char name[208], file[256]; /* file: in the folder; "": a value, which is in the manifest */
    dm_dtype dtype;            /* 0: bytes */
    int ndim;
    int64_t shape[DM_MAX_DIMS]; /* of a value: its count */
    int64_t bytes, parts;       /* bytes of the file, or of the value */
    char layout[64];            /* the array's, in a few words */
    char folder[512];           /* of the checkpoint that was found */
    int workers, version;       /* that saved it; of the format */
} dm_checkpoint_info;

/* *out = item number `index`, from 0 on, of a checkpoint. No session is needed. Errors: DM_ERR_ARG (path, out; index:
 * there are no more), DM_ERR_IO, DM_ERR_FORMAT (as dm_checkpoint_load). Cost: the manifest is read. */
DM_API DM_CHECKED dm_status dm_checkpoint_query(const char *path, int index, dm_checkpoint_info *out);

/* Reads every file of a checkpoint and compares it with the manifest. damaged (NULL: none) is called for each file or
 * part that is not as it was, with a text that names it, which is not the callee's to keep. No session is needed.
 * Blocks: all in the calling thread. Errors: DM_ERR_FORMAT (the first of them), DM_ERR_IO, DM_ERR_ARG (path). Cost:
 * every byte is read once. */
typedef void (*dm_checkpoint_damaged)(void *context, const char *text);
DM_API DM_CHECKED dm_status dm_checkpoint_verify(const char *path, dm_checkpoint_damaged damaged,
                                                 void *context);

#ifdef __cplusplus
}
#endif
#endif
