/* Driving the simulator: endpoint after endpoint, then all together. */
#include "sim/parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const dmi_sim_names[DMI_SIM_FINDINGS] = {"totals", "order", "mode", "bounds",
                                                     "unset",  "race",  "pair", "stuck"};

void dmi_sim_note(dmi_sim_report *report, int finding, const char *format, ...)
{
    size_t used = strlen(report->text);
    report->found[finding]++;
    report->findings++;
    if (used + 256 > sizeof report->text) {
        return;
    }
    int n = snprintf(report->text + used, sizeof report->text - used, "%s: ", dmi_sim_names[finding]);
    va_list args;
    va_start(args, format);
    n += vsnprintf(report->text + used + n, 240, format, args);
    va_end(args);
    n = DMI_MIN(n, 254);
    memcpy(report->text + used + n, "\n", 2);
}

dm_status dmi_simulate(const dmi_sim_program *program, dmi_sim_report *report)
{
    int ends = program->profile->workers + 1;
    dm_status status = DM_OK;
    memset(report, 0, sizeof *report);
    if (program->only >= 0) {
        return dmi_sim_endpoint(program, program->only, NULL, report);
    }
    dmi_run_end *run = calloc((size_t)ends, sizeof *run);
    if (!run) {
        return dmi_fail(DM_ERR_NOMEM, "no memory to simulate %d endpoints", ends);
    }
    double begin = (double)dmi_now_ns();
    for (int e = 0; e < ends && status == DM_OK; e++) {
        status = dmi_sim_endpoint(program, e, &run[e], report);
    }
    report->local_s = ((double)dmi_now_ns() - begin) / 1e9 - report->plan_s;
    begin = (double)dmi_now_ns();
    if (status == DM_OK && (!dmi_run_pairs(run, ends, report) || !dmi_run_all(run, ends, program, report))) {
        status = dmi_fail(DM_ERR_NOMEM, "no memory to simulate %d endpoints", ends);
    }
    report->run_s = ((double)dmi_now_ns() - begin) / 1e9;
    for (int e = 0; e < ends; e++) {
        for (int l = 0; l < DMI_LANES; l++) {
            free(run[e].step[l]);
        }
        free(run[e].lanes);
    }
    free(run);
    return status;
}
