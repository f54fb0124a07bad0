/* Simulates the plans of all endpoints without data. Checks that every push meets its expect, that all steps
 * finish in any order of the endpoints, and that steps which touch the same bytes are ordered.
 *
 * The rules are those of plan.h and of the executor: lanes take their steps in order; a step starts when its
 * waits are met and, for each memory it touches, the steps of earlier calls that the hazards name; grants run
 * ahead of arrivals; workspace comes from a real pool (over addresses without memory), so that a call may be
 * given the bytes of the one before. What is not modelled: failed commands, and arrays made or destroyed
 * between the calls. */
#ifndef DMI_SIMULATE_H
#define DMI_SIMULATE_H

#include "plan/plan.h"

enum dmi_sim_finding {
    DMI_SIM_TOTALS, /* the plan's counts are not the sums over its steps */
    DMI_SIM_ORDER,  /* a step in a wrong lane, or that waits for one made later */
    DMI_SIM_MODE,   /* a kernel reads or writes what its reference, or the call, does not say */
    DMI_SIM_BOUNDS, /* bytes outside the memory */
    DMI_SIM_UNSET,  /* reads workspace that no step of the call has written */
    DMI_SIM_RACE,   /* two steps touch the same bytes, one writes, nothing orders them */
    DMI_SIM_PAIR,   /* a PUSH and its EXPECT do not fit, or one lacks the other */
    DMI_SIM_STUCK,  /* no endpoint can go on */
    DMI_SIM_FINDINGS
};
extern const char *const dmi_sim_names[DMI_SIM_FINDINGS];

/* How strictly transfers are scheduled. */
typedef struct dmi_sim_rule {
    const char *name;
    int pushes;     /* pushes of an endpoint that may be in flight at once */
    int slots;      /* grants that may be outstanding between a pair */
    int grants;     /* grants that may be outstanding at an endpoint; 0: any number */
    bool one_queue; /* an endpoint has one queue: it takes its steps in plan order, granting without waiting */
} dmi_sim_rule;
/* One for each transport and stricter. */
enum {
    DMI_SIM_MESSAGES,
    DMI_SIM_DIRECT,     /* direct pushes */
    DMI_SIM_ONE_SLOT,   /* direct pushes with one grant per pair */
    DMI_SIM_RENDEZVOUS, /* one transfer per endpoint at a time */
    DMI_SIM_ONE_QUEUE,  /* an executor with a single queue */
    DMI_SIM_RULES
};
extern const dmi_sim_rule dmi_sim_rules[DMI_SIM_RULES];

/* In which order endpoints get to run. Everything a step waits for is a counter that only grows, so what can
 * start stays able to, and all orders must end alike: the orders test that as well as the plans. */
enum {
    DMI_SIM_GREEDY = 1, /* each goes as far as it can */
    DMI_SIM_ROUND = 2,  /* a step of each lane, in turn */
    DMI_SIM_RANDOM = 4, /* `seeds` random orders */
    DMI_SIM_LAST = 8    /* one endpoint runs only when no other can: each in turn, at most `seeds` of them */
};

typedef struct dmi_sim_program {
    const dmi_profile *profile;
    const dmi_call *call; /* operands with the same memory number share their memory */
    int calls;
    unsigned orders, rules; /* bits; 0: no run, only what can be seen endpoint by endpoint */
    int seeds;
    int64_t room;    /* steps that a lane holds at once, filled in plan order as they finish; 0: any number */
    int only;        /* < 0: all; else the local checks of this endpoint alone */
    bool no_hazards; /* plants a fault: calls do not wait for one another */
    /* Plants faults: may change a plan after it was made; may be NULL. */
    void (*change)(void *context, int me, int call, dmi_plan *plan);
    void *context;
    bool together;        /* on the devices alone: workspaces may lie beside payloads */
    dmi_plan_maker *make; /* NULL: dmi_plan_make. Else it plans all calls: of planners that are no op by themselves */
} dmi_sim_program;

typedef struct dmi_sim_report {
    int64_t found[DMI_SIM_FINDINGS];
    int64_t findings; /* in all */
    int64_t steps, bytes, messages;
    int workers, members; /* of dmi_simulate_alone; members: those that have steps */
    int64_t workspace; /* of the endpoint and call that needs most */
    uint64_t closure;  /* of everything that is known to be done when each step starts */
    double plan_s, local_s, run_s;
    char text[4096]; /* the first findings, a line each */
} dmi_sim_report;

/* Makes the plans of endpoints 0 .. workers (the last is the master) and checks them. The status is that of
 * making the plans; what is wrong with them is in the report. Time and memory grow with the steps of all
 * endpoints. */
DM_CHECKED dm_status dmi_simulate(const dmi_sim_program *program, dmi_sim_report *report);

/* The first call, of the op `program`, as its workers run it on their devices alone (plan/on_device.h), so many
 * times in a row: is each step behind what it waits for, is every payload taken before something else comes to
 * its place, and no workspace overwritten, and do all runs end in every order of the workers? In order on each
 * worker, as a device with one queue takes its steps. *fits: the program can run so. `change` changes the plans
 * that run. */
DM_CHECKED dm_status dmi_simulate_alone(const dmi_sim_program *program, int runs, bool *fits,
                                        dmi_sim_report *report);

#endif
