/* The parts of the simulator. */
#ifndef DMI_SIM_PARTS_H
#define DMI_SIM_PARTS_H

#include "sim/simulate.h"

/* Notes a finding: counted, and its line kept while there is room. */
void dmi_sim_note(dmi_sim_report *report, int finding, const char *format, ...) DMI_PRINTF(3, 4);

/* --- touch.c: the bytes a step reads and writes, exactly --- */
/* One for each reference of the step. */
void dmi_sim_touches(const dmi_step *step, const dmi_call *call, dmi_touch out[DMI_MAX_REFS]);
/* The ranges of bytes, in the row-major order of the dims, neighbours joined. */
void dmi_sim_walk(const dmi_touch *touch, void (*each)(void *context, int64_t from, int64_t to), void *context);
/* A hash of the order of bytes that a transfer writes: equal for a PUSH and an EXPECT with the same
 * destinations. */
uint64_t dmi_sim_landing_hash(const dmi_step *step);

/* --- race.c: one endpoint's steps ordered --- */
typedef struct dmi_race dmi_race;
dmi_race *dmi_race_new(int me, dmi_sim_report *report); /* NULL: no memory */
void dmi_race_free(dmi_race *race);
/* A step in plan order: its position in its lane from 1 on over all calls, and what it waits for. False: no
 * memory. */
DM_CHECKED bool dmi_race_step(dmi_race *race, int call, const dmi_step *step, const dmi_stamp *at,
                              const dmi_stamp *wait);
/* It touches bytes [from, to) of that reference's memory, which begins at address `base`. */
DM_CHECKED bool dmi_race_touch(dmi_race *race, int ref, const dmi_touch *touch, uint64_t base);
DM_CHECKED bool dmi_race_check(dmi_race *race);

/* --- pairs.c, run.c: all endpoints together --- */
typedef struct dmi_run_step {
    uint32_t wait[DMI_LANES];
    int32_t peer;
    uint32_t ordinal; /* transfers: how many before it with this peer */
    uint16_t call;
    uint8_t kind;
    int64_t bytes;
    uint64_t landing;
} dmi_run_step;

typedef struct dmi_run_end {
    dmi_run_step *step[DMI_LANES];
    uint32_t count[DMI_LANES], room[DMI_LANES];
    uint8_t *lanes; /* lane of each step in plan order */
    int64_t total, lanes_room;
} dmi_run_end;

DM_CHECKED bool dmi_run_add(dmi_run_end *end, int lane, const dmi_run_step *step);
/* Every k-th PUSH of a pair against its EXPECT. */
DM_CHECKED bool dmi_run_pairs(const dmi_run_end *end, int ends, dmi_sim_report *report);
DM_CHECKED bool dmi_run_all(const dmi_run_end *end, int ends, const dmi_sim_program *program,
                            dmi_sim_report *report);

/* --- endpoint.c --- */
/* Makes and checks all plans of endpoint `me`; run (may be NULL) receives its steps. */
DM_CHECKED dm_status dmi_sim_endpoint(const dmi_sim_program *program, int me, dmi_run_end *run,
                                      dmi_sim_report *report);

#endif
