/* Plans of programs that run on their devices alone (adr/0050): transfers are steps of the compute lane, so
 * that a GPU can run the whole plan as one graph, without a host between two steps.
 *
 * Such a plan is made of an ordinary one. Its steps stand in the same order, all on the compute lane. A step
 * EXCHANGE has the pushes that stood there, and the arrivals that the next step needs. A payload goes to a
 * *place* at the receiver; an arrival copies it to where the EXPECT wanted it. Payloads of a pair are numbered
 * in each run from 0, those of channel 0 first.
 *
 * Payloads may have the same place where the sender of the second knows that the first has been taken: by
 * what has come to it, over however many workers. Where nothing of the receiver has come in this run, it knows
 * that the run before has ended there. By the same rule places and workspaces share memory. A *notice* is a
 * payload without bytes: by it a sender knows more. */
#ifndef DMI_ON_DEVICE_H
#define DMI_ON_DEVICE_H

#include "plan/plan.h"

enum {
    DMI_EXCHANGE_MOST = 32,     /* payloads of a step */
    DMI_ON_DEVICE_WORKERS = 16, /* of a session with such plans */
    DMI_PLACE_ALIGN = 256,
    DMI_LANDING_ALIGN = 16,           /* of a place in a workspace: an exchange moves so much at once */
    DMI_ON_DEVICE_PAYLOAD = 8 << 20,  /* most bytes of a payload: larger ones are better beside the kernels */
    DMI_ON_DEVICE_PLACES = 512 << 20, /* most bytes of a worker's places */
    DMI_ON_DEVICE_STEPS =
        1000 /* most steps between the first transfer and the last: all are on a stream at once */
};
/* Most bytes of a worker's places and workspaces in one memory. */
#define DMI_ON_DEVICE_TOGETHER (INT64_C(4) << 30)

/* A payload: rows of this worker's memory, and a place at the receiver where they lie one behind the other. */
typedef struct dmi_exchange_part {
    int peer;
    uint32_t number; /* among those of its pair */
    int64_t place;   /* bytes from the receiver's first place */
    bool lands;      /* of an arrival: its place is where the elements are wanted */
    int64_t offset, width, height,
        pitch;  /* bytes from the reference to the first row, of a row, from row to row */
    bool first; /* of a push: the first of the run to this peer, of which nothing is known yet: it waits until
                   the peer has ended the run before */
} dmi_exchange_part;

/* Descriptor of a step EXCHANGE. Its pushes come first; then it waits for its arrivals. */
typedef struct dmi_exchange {
    int pushes, arrivals;    /* part i is reference i of the step */
    dmi_exchange_part *part; /* none: the step that ends the run, no work of the device */
    bool last;               /* of the device's work of this kind in a run */
    bool end;                /* ends the run: the first of the steps without parts */
} dmi_exchange;

/* A workspace as it was before several were given one. */
typedef struct dmi_work_unit {
    int64_t from, bytes; /* in that */
} dmi_work_unit;

typedef struct dmi_on_device {
    int workers;
    uint64_t members; /* bits of those that take part; the others have no steps */
    /* The *section*: steps (ordinals) from the first exchange to the last, which are put on the stream
     * together, and have no work of the host. Without exchanges: the step that ends the run. */
    uint32_t first, last;
    int64_t places; /* bytes */
    bool together;  /* they and all workspaces are one memory, workspace 0, which lasts as long as the plan */
    dmi_allocation memory; /* then; made by the executor */
    dmi_work_unit *unit;   /* [units] by dmi_ref.number */
    uint32_t units;
    uint32_t to[DMI_ON_DEVICE_WORKERS], from[DMI_ON_DEVICE_WORKERS]; /* payloads in a run */
    void *state;                                                     /* the executor's */
    void (*free)(struct dmi_on_device *d);                           /* frees it; NULL: there is none */
} dmi_on_device;

/* The plan of a program of these members as one that runs on its device alone, but for the places of payloads.
 * *out is NULL where it cannot: then `why` says why. The new plan keeps a reference to the old one.
 * DM_ERR_NOMEM. */
enum { DMI_ON_DEVICE_WHY = 96 };
DM_CHECKED dm_status dmi_plan_on_device(dmi_plan *plan, int workers, uint64_t members, dmi_plan **out,
                                        char why[DMI_ON_DEVICE_WHY]);
static inline bool dmi_on_device_member(uint64_t members, int worker)
{
    return members >> worker & 1;
}
/* How many of that many workers they are. */
static inline int dmi_on_device_members(uint64_t members, int workers)
{
    int count = 0;
    for (int w = 0; w < workers; w++) {
        count += w >= 64 || dmi_on_device_member(members, w);
    }
    return count;
}
/* on_device_places.c: sets the places in the plans of all workers, which depend on one another: every worker makes
 * them all, and finds the same. together: workspaces may lie beside places. *fits: false where a worker's would
 * take too much; then `why` says so. DM_ERR_NOMEM. */
DM_CHECKED dm_status dmi_on_device_places(dmi_plan *const *plan, int workers, bool together, bool *fits,
                                          char why[DMI_ON_DEVICE_WHY]);

#endif
