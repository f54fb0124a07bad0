/* What the calls of ops see of a session: arrays, facts, and the way of a call to the workers. src/master has the code. */
#ifndef DMI_OPS_SESSION_H
#define DMI_OPS_SESSION_H

#include "base/config.h"
#include "ops/ops.h"

#include <dmath/dmath.h>

typedef struct dmi_session dmi_session;

typedef struct dmi_storage { /* memory behind handles, by its number */
    int handles, alive;      /* alive: those of the caller */
    uint32_t number;
    const dmi_layout *layout; /* of the array it was made for */
    dm_dtype dtype;
    uint64_t base;    /* id of that array */
    int visible;      /* at the end of a recording: handles that the program still has */
    int part;         /* made while recording: in which part of the program (dmi_record_part) */
    bool unsent;      /* made while recording: the workers do not know it */
    bool uncounted;   /* its bytes are not in live_bytes: a program's workspace has it */
    bool passing;     /* made and destroyed in a recording: each run of the program finds nothing in it */
    int replicas;     /* kept of it */
    bool replica;     /* is one itself: nobody's handle */
} dmi_storage;

typedef struct dmi_handle {
    uint32_t generation;
    bool live, view;
    bool kept;   /* by the dm_scope_end that runs */
    bool hidden; /* destroyed while recording: it lives on for the program */
    dmi_desc desc;
    dmi_storage *storage;
    uint32_t next_free;
    uint32_t scope, scope_next, scope_prev; /* scope: 0 none, else from 1; its handles are a list of slots */
} dmi_handle;

/* --- the session */
DM_CHECKED dm_status dmi_enter(const dm_session *session, dmi_session **out);
/* Is any session of this process open? */
bool dmi_session_any(void);
/* What a call may depend on. */
typedef struct dmi_facts {
    int workers;
    const dmi_config *config;
    const dmi_profile *profile;
    bool explaining, recording; /* calls do not run, and cannot wait for workers */
    bool grouped;               /* a group has begun, whose workers layouts count */
    uint64_t command;           /* the last one given */
    bool limited;               /* calls that wait may return DM_ERR_PENDING: dm_session_limit */
    int64_t tail_room;          /* bytes that the tail of a command may have without filling the command ring */
} dmi_facts;
dmi_facts dmi_session_facts(const dmi_session *s);

/* --- arrays */
/* what: the argument, for the message. */
DM_CHECKED dm_status dmi_handle_find(dmi_session *s, dm_array a, const char *what, dmi_handle **out);
/* The array as an operand, for checks before anything is sent. */
DM_CHECKED dm_status dmi_operand_find(dmi_session *s, dm_array a, const char *what, dmi_operand *out);
const dmi_desc *dmi_array_desc(const dmi_session *s, dm_array a); /* of a live one */
DM_CHECKED dm_status dmi_layout_intern(dmi_session *s, const dmi_layout_spec *spec, const dmi_layout **out, uint32_t *id);
/* Spec from the public struct (NULL: default) for an array. */
DM_CHECKED dm_status dmi_layout_spec_from(dmi_session *s, const dm_layout *layout, dm_dtype dtype, int ndim,
                                          const int64_t *shape, dmi_layout_spec *out);
/* The layout of an array; of a rectangle, a layout that deals it out as the whole array is. */
DM_CHECKED dm_status dmi_layout_like(dmi_session *s, const dmi_desc *desc, const dmi_layout **out, uint32_t *id);
/* An array with a layout that the workers know. replica: it is the session's own. */
DM_CHECKED dm_status dmi_array_make(dmi_session *s, dm_dtype dtype, const dmi_layout *layout, uint32_t layout_id,
                                    bool replica, dm_array *out);
void dmi_array_drop(dmi_session *s, dm_array a); /* a live one */
/* Destroys what a call has made for itself and returns the call's status; the text of a failure stays. */
DM_CHECKED dm_status dmi_array_release(dm_session *session, dm_array a, dm_status status);

/* --- calls */
/* What every public op call does: session and handles, the table's rules, the op's check, admission, frame.
 * arrays[i] with id 0 is allowed where the call's operand mode is preset to 0 (operand not used). */
DM_CHECKED dm_status dmi_call_submit(dm_session *session, dmi_call *call, const dm_array *arrays);
/* The same and waits; the master takes part with `user` memory (data to or from the caller), or NULL. */
DM_CHECKED dm_status dmi_call_wait(dm_session *session, dmi_call *call, const dm_array *arrays, void *user);
/* The same until a time of dmi_now_ns. DM_ERR_PENDING: it was over; the command goes on, and uses `user`. */
DM_CHECKED dm_status dmi_call_wait_until(dm_session *session, dmi_call *call, const dm_array *arrays, void *user, int64_t until_ns);
/* What a call leaves to do when its last command is done, because its time is over (dm_session_limit). */
typedef struct dmi_rest {
    struct dmi_rest *next;
    uint64_t first, command; /* its commands; the last is set by dmi_rest_keep */
    uint16_t called;         /* public call (dmi_api_name), set by that too */
    /* Ends it and frees it: DM_OK: the command is done; else it has failed, or the session ends. The failure
     * that it returns is one of the command's. */
    dm_status (*end)(struct dmi_rest *rest, dm_status status);
} dmi_rest;
void dmi_rest_keep(dmi_session *s, dmi_rest *rest);
int64_t dmi_deadline(double seconds); /* from now; 0 where there is no limit (negative) */

#endif
