/* The table of ops and the type of its rows. */
#ifndef DMI_OPS_H
#define DMI_OPS_H

#include "plan/plan.h"

enum {
    DMI_DT_FLOAT = 1 << DM_F64 | 1 << DM_F32 | 1 << DM_F16 | 1 << DM_BF16,
    DMI_DT_INT = 1 << DM_I64 | 1 << DM_I32 | 1 << DM_I16 | 1 << DM_I8 | 1 << DM_U64 | 1 << DM_U32 |
                 1 << DM_U16 | 1 << DM_U8,
    DMI_DT_COMPLEX = 1 << DM_C64 | 1 << DM_C128,
    DMI_DT_SOLVE = 1 << DM_F64 | 1 << DM_F32 | DMI_DT_COMPLEX,
    DMI_DT_LABELS = DMI_DT_FLOAT | DMI_DT_INT,
    DMI_DT_INDEX = 1 << DM_I32 | 1 << DM_I64,
    DMI_DT_PLACES = DMI_DT_INDEX | 1 << DM_U8, /* of elements that pooling took */
    DMI_DT_WIDE = 1 << DM_F64 | 1 << DM_F32,
    DMI_DT_HALF = 1 << DM_F16 | 1 << DM_BF16,
    DMI_DT_TAPS = 1 << DM_U8,
    DMI_DT_POOLED = DMI_DT_FLOAT | 1 << DM_U8,
    DMI_DT_PRODUCT = DMI_DT_FLOAT | DMI_DT_COMPLEX,
    DMI_DT_REAL = DMI_DT_FLOAT | 1 << DM_F8E4M3 | 1 << DM_F8E5M2 | DMI_DT_INT | 1 << DM_BOOL,
    DMI_DT_FACTOR = DMI_DT_PRODUCT | 1 << DM_F8E4M3 | 1 << DM_F8E5M2, /* of a product */
    DMI_DT_ALL = DMI_DT_FLOAT | 1 << DM_F8E4M3 | 1 << DM_F8E5M2 | DMI_DT_INT | 1 << DM_BOOL | DMI_DT_COMPLEX
};

typedef struct dmi_operand_rule {
    const char *name;
    int mode;
    unsigned dtypes; /* bit 1 << dtype */
    bool replica;    /* it receives a cached replica of the moving operand */
} dmi_operand_rule;

/* See ops.def. */
enum dmi_op_attribute { DMI_LIMITED = 1, DMI_FORCIBLE = 2, DMI_ALONE = 4, DMI_STEPS = 8, DMI_DECIDES = 16, DMI_MEMBERS = 32, DMI_TAIL = 64 };

/* check: shapes, overlap and arguments beyond what the rules say; runs on the master; may lower an operand's mode
 *        (beta == 0 makes y write-only). DM_OK or a status with a text.
 * plan:  emits the steps of builder->me. Pure: depends on what is in the plan key (cache.c) and on the profile. */
typedef struct dmi_opdef {
    const char *name;
    unsigned attributes; /* enum dmi_op_attribute */
    dm_status (*check)(dmi_call *call);
    dmi_planner *plan;
    dmi_operand_rule operand[DMI_MAX_OPERANDS];
} dmi_opdef;

#define OPERAND(name, mode, dtypes) {#name, DMI_##mode, DMI_DT_##dtypes, false}
#define REPLICA(dtypes) {"replica", DMI_WRITE, DMI_DT_##dtypes, true}
enum dmi_op {
#define DMI_OP(name, ...) DMI_OP_##name,
#include "ops/ops.def"
#undef DMI_OP
    DMI_OPS
};
#define DMI_OP(name, ...)                                                                                  \
    dm_status dmi_##name##_check(dmi_call *call);                                                          \
    dm_status dmi_##name##_plan(dmi_builder *b, const dmi_call *call);
#include "ops/ops.def"
#undef DMI_OP

extern const dmi_opdef dmi_ops[DMI_OPS];
/* Plans `call` for worker `me`. On failure: the op's status and text. */
DM_CHECKED dm_status dmi_plan_make(const dmi_call *call, const dmi_profile *profile, int me, dmi_plan **out);
/* The name of operand i in messages: the call's if known, as on the master. An op that takes only some of its
 * operands has its output last: ewise. */
const char *dmi_operand_name(const dmi_call *call, int i);
/* The same where only the op and how many operands it takes are known. A program's arrays have one name. */
const char *dmi_op_operand_name(int op, int noperand, int i);
/* The operand that receives a cached replica; -1: the op has none. */
static inline int dmi_op_replica(int op)
{
    const dmi_operand_rule *rule = dmi_ops[op].operand;
    for (int i = 0; i < DMI_MAX_OPERANDS && rule[i].name; i++) {
        if (rule[i].replica) {
            return i;
        }
    }
    return -1;
}
/* The name of a command in messages: the public call with that number without "dm_", if it is known; else the op. */
const char *dmi_command_name(uint16_t called, int op);
const char *dmi_call_name(const dmi_call *call);
/* One number for the table (names, operands, protocol) and the public calls: ranks compare it when they meet. */
uint64_t dmi_ops_fingerprint(void);

#endif
