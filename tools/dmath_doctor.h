/* What `dmath doctor` looks at. A check finds things that are well, worth knowing, or wrong; for the last two
 * it says what to do. */
#ifndef DMATH_TOOL_DOCTOR_H
#define DMATH_TOOL_DOCTOR_H

#include "dmath.h"

enum doctor_level { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_PROBLEM };

typedef struct doctor {
    const dmi_config *config;
    bool json, verbose;
    int found[3]; /* findings by level */
} doctor;

/* Says a finding. remedy: what to do; NULL where nothing is. */
void doctor_say(doctor *d, enum doctor_level level, const char *what, const char *remedy, const char *format,
                ...) DMI_PRINTF(5, 6);

/* --- dmath_doctor_host.c: cores, memory, limits, rates */
void doctor_cores(doctor *d);
void doctor_memory(doctor *d);
void doctor_limits(doctor *d);
void doctor_sharing(doctor *d);
void doctor_rates(doctor *d);
/* --- dmath_doctor_mpi.c: versions, launcher, GPUs */
void doctor_versions(doctor *d);
void doctor_launcher(doctor *d);
void doctor_gpus(doctor *d);

#endif
