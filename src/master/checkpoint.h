/* Checkpoints: the copies of the arrays, which workers write in the background, and the thread that finishes
 * the folder. */
#ifndef DMI_CHECKPOINT_H
#define DMI_CHECKPOINT_H

#include "io/manifest.h"
#include "master/session.h"

typedef struct dmi_checkpoint_job {
    dmi_session *session;
    uint64_t number;      /* of this session, from 1 */
    uint64_t first, last; /* its commands */
    char *series, *folder;
    int keep;
    dmi_manifest manifest;
    dm_array *copy; /* [copies] of its arrays */
    int copies;
    pthread_t thread;
    atomic_int done, abandoned;
    dm_status status; /* when it is done */
    char text[DMI_ERROR_TEXT];
} dmi_checkpoint_job;

/* Has it been written, or failed? (one poll) */
bool dmi_checkpoint_done(dmi_session *s, uint64_t number);
DM_CHECKED dm_status dmi_checkpoint_wait(dmi_session *s, uint64_t number, int64_t until_ns);
/* If one is done: frees its copies and keeps its failure. */
void dmi_checkpoint_settle(dmi_session *s);
/* The session ends: waits for it, or gives it up where a worker is stuck. */
void dmi_checkpoint_end(dmi_session *s);
/* What calls that write one begin with: checks, the options (known), and the wait for the checkpoint before. */
DM_CHECKED dm_status dmi_checkpoint_enter(dm_session *session, const char *path,
                                          const dm_checkpoint_options *options, dmi_session **out,
                                          dm_checkpoint_options *known);
/* Writes items that have been checked; event as of dm_checkpoint_save. */
DM_CHECKED dm_status dmi_checkpoint_write(dmi_session *s, const char *path, int count,
                                          const dm_checkpoint_item *items, int keep, dm_event *event);
/* --- checkpoint_query.c */
typedef struct dmi_checkpoint_opened {
    dmi_session *s; /* NULL: no session is needed */
    char *folder;
    dmi_manifest manifest;
    uint64_t first; /* command that can read it */
} dmi_checkpoint_opened;
DM_CHECKED dm_status dmi_checkpoint_open(const char *path, dmi_checkpoint_opened *out);
void dmi_checkpoint_close(dmi_checkpoint_opened *o); /* also where opening has failed */
/* Is the checkpoint that a series' path led to not there any more? A saver with `keep` has removed it, and
 * there is a newer one: what has failed by that begins again. False after too many tries. */
bool dmi_checkpoint_lost(const char *path, const dmi_checkpoint_opened *o, int *tries);
/* What dm_checkpoint_query gives of an item. */
void dmi_checkpoint_describe(const char *folder, const dmi_manifest *m, const dmi_saved *saved,
                             dm_checkpoint_info *out);
/* --- checkpoint_load.c */
/* Waits for all commands. `before`, if that is an error: failures of those since it was opened are part of it,
 * and told with it. Else the first of these, or that of any before. */
DM_CHECKED dm_status dmi_checkpoint_filled(const dmi_checkpoint_opened *o, dm_status before);
/* What calls that fill arrays begin with. */
DM_CHECKED dm_status dmi_checkpoint_reading(dm_session *session, dmi_session **out);
/* All checks of an item that need no data, so that what fails by them has changed nothing. */
DM_CHECKED dm_status dmi_checkpoint_check(const dmi_checkpoint_opened *o, const dm_checkpoint_item *item);
/* target = the saved array. Does not wait. */
DM_CHECKED dm_status dmi_checkpoint_fill(const dmi_checkpoint_opened *o, const dmi_saved *saved,
                                         dm_array target);
/* A new array for a saved one. dtype 0, layout NULL: as of dm_checkpoint_array. */
DM_CHECKED dm_status dmi_checkpoint_make(const dmi_checkpoint_opened *o, const dmi_saved *saved, dm_dtype dtype,
                                         const dm_layout *layout, dm_array *out);
/* The same, filled. Waits. */
DM_CHECKED dm_status dmi_checkpoint_array(const dmi_checkpoint_opened *o, const dmi_saved *saved,
                                          dm_dtype dtype, const dm_layout *layout, dm_array *out);
/* --- checkpoint_finish.c: the thread. When all workers have written their parts: hashes, manifest, name. */
void *dmi_checkpoint_finish(void *job);
void dmi_checkpoint_free(dmi_checkpoint_job *job);
/* --- keep.c */
/* The items of a call, or what dm_keep has named (to be freed, in *owned), checked: names, values, and handles
 * where they are arrays. */
DM_CHECKED dm_status dmi_items_take(dmi_session *s, int count, const dm_checkpoint_item *items,
                                    const dm_checkpoint_item **out, int *items_out, dm_checkpoint_item **owned);
int64_t dmi_item_bytes(const dm_checkpoint_item *item); /* of a value */
/* The values that dm_keep has named, by number from 0 on; NULL: there are no more. */
const dm_checkpoint_item *dmi_kept_value(const dmi_session *s, int number);
void dmi_keep_forget(dmi_session *s, const char *name);
void dmi_keep_free(dmi_session *s);
/* --- checkpoint_copy.c */
/* An array of the session's own of which each worker has whole parts; number spreads arrays of one part over
 * the workers. */
DM_CHECKED dm_status dmi_parts_array(dmi_session *s, const dmi_parts *parts, int number, dm_array *out);
/* The layout of an array, as it is saved, and back; false: this session has not such workers. */
DM_CHECKED dm_status dmi_layout_saved(dmi_session *s, const dmi_desc *desc, dmi_saved_layout *out);
bool dmi_layout_restored(const dmi_session *s, const dmi_manifest *m, const dmi_saved *saved, dm_layout *out);

#endif
