/* What the makers of places share: on_device_known.c, on_device_lives.c, on_device_notices.c,
 * on_device_places.c. */
#ifndef DMI_ON_DEVICE_PARTS_H
#define DMI_ON_DEVICE_PARTS_H

#include "plan/on_device.h"
#include "plan/places.h"

/* A worker's exchanges, from 1 on; known: [exchanges + 1][workers] how many exchanges of each worker are
 * complete when this one is. */
typedef struct dmi_ordered {
    const dmi_exchange **exchange;
    int *step; /* where they are in the plan */
    int count, complete;
    int *known;
} dmi_ordered;

typedef struct dmi_payload {
    dmi_exchange_part *push, *arrival;
    const dmi_ref *wanted; /* where the arrival copies it to */
    int pushed, taken;     /* in which exchanges */
    int used;  /* the last step that uses the workspace where it is wanted before it is taken; -1: none */
    int known; /* exchanges of the receiver that its sender knows to be complete when it pushes; 0: none of this
                  run */
} dmi_payload;

typedef struct dmi_finder {
    int workers;
    dmi_plan *const *plan;
    dmi_ordered of[DMI_ON_DEVICE_WORKERS];
    dmi_payload *payload[DMI_ON_DEVICE_WORKERS][DMI_ON_DEVICE_WORKERS]; /* [sender][receiver] by number */
} dmi_finder;

/* on_device_known.c: what is pushed and taken where, and known then. DM_ERR_NOMEM; DM_ERR_INTERNAL: payloads do
 * not pair off. dmi_finder_end frees it, also after a failure. */
DM_CHECKED dm_status dmi_finder_begin(dmi_finder *f);
void dmi_finder_end(dmi_finder *f);
dmi_payload *dmi_finder_payload(const dmi_finder *f, int me, const dmi_exchange_part *part, bool push);
const int *dmi_finder_known(const dmi_finder *f, int worker, int exchange);

/* on_device_lives.c: what lives in the memory of a worker, and when: the payloads that come, and its
 * workspaces. */
typedef struct dmi_contents {
    dmi_workspace *item; /* [payloads + units], the payloads first, by their senders */
    int64_t *bytes;      /* [payloads + units] room for places */
    int payloads, units;
    bool turned;     /* the order of steps */
    int *first;      /* [units] the step that uses it first */
    bool *tail;      /* [units] it is used behind the last exchange */
    int64_t *change; /* [steps + 2] scratch */
} dmi_contents;
bool dmi_contents_begin(const dmi_finder *f, int worker, dmi_contents *c); /* false: no memory */
void dmi_contents_end(dmi_contents *c);
void dmi_contents_payloads(const dmi_finder *f, int worker, dmi_contents *c);
/* With the workspaces, in which payloads may land; in the order of steps in which less lives at once. Returns
 * the most that does, *at: in which step of that order. */
int64_t dmi_contents_all(const dmi_finder *f, int worker, dmi_contents *c, int *at);
/* The place of a step in the order that c->turned says. */
int dmi_contents_order(const dmi_finder *f, int worker, const dmi_contents *c, int step);
/* Bytes from the beginning of a workspace to where a payload is wanted. */
int64_t dmi_wanted_at(const dmi_on_device *d, const dmi_payload *p);
/* A payload lands if it comes behind the step p->used. False: it never does. */
bool dmi_may_land(const dmi_finder *f, int to, const dmi_payload *p);

/* on_device_notices.c: adds a notice for what comes to a worker; *added: so what is known is to be found anew.
 * DM_ERR_NOMEM. */
DM_CHECKED dm_status dmi_on_device_notice(const dmi_finder *f, int to, bool *added);

#endif
