/* The workers that take part in a call of an op of DMI_MEMBERS. Its temporaries lie on them and on no others.
 */
#ifndef DMI_OPS_COMMON_TEAM_H
#define DMI_OPS_COMMON_TEAM_H

#include "plan/plan.h"

typedef struct dmi_team {
    int count;
    const int *worker; /* [count] those that may hold a part of an operand, in increasing order */
    int session;       /* how many workers the session has */
} dmi_team;

/* false: out of memory, and b has failed. */
bool dmi_build_team(dmi_builder *b, const dmi_call *call, dmi_team *out);
bool dmi_team_has(const dmi_team *team, int worker);
/* A grid layout of x's shape on the team: split among all of them along dim `split` (as many as there are
 * indices, at least one), or (-1) a replica on each. */
void dmi_team_layout(const dmi_team *team, const dmi_desc *x, int split, dmi_layout_spec *out);

#endif
