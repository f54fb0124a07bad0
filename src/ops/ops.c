#include "ops/ops.h"

#include <assert.h>
#include <string.h>

const dmi_opdef dmi_ops[DMI_OPS] = {
#define DMI_OP(name, attributes, ...) {#name, attributes, dmi_##name##_check, dmi_##name##_plan, {__VA_ARGS__}},
#include "ops/ops.def"
#undef DMI_OP
};

dm_status dmi_plan_make(const dmi_call *call, const dmi_profile *profile, int me, dmi_plan **out)
{
    assert(call->op >= 0 && call->op < DMI_OPS);
    return dmi_plan_make_by(dmi_ops[call->op].plan, dmi_call_name(call), call, profile, me, out);
}

const char *dmi_operand_name(const dmi_call *call, int i)
{
    return call->names ? call->names[i] : dmi_op_operand_name(call->op, call->noperand, i);
}

const char *dmi_op_operand_name(int op, int noperand, int i)
{
    const dmi_operand_rule *rule = dmi_ops[op].operand, *last = rule;
    for (int k = 1; k < DMI_MAX_OPERANDS && rule[k].name; k++) {
        last = &rule[k];
    }
    if (i == noperand - 1 && last->name && strcmp(last->name, "out") == 0) {
        return last->name;
    }
    return i < DMI_MAX_OPERANDS && rule[i].name ? rule[i].name : rule->name;
}

const char *dmi_command_name(uint16_t called, int op)
{
    const char *name = dmi_api_name(called);
    return name ? name : dmi_ops[op].name;
}

const char *dmi_call_name(const dmi_call *call)
{
    return dmi_command_name(call->called ? call->called : dmi_api_number(), call->op); /* 0 while it is made */
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ p[i]) * UINT64_C(1099511628211);
    }
    return hash;
}

uint64_t dmi_ops_fingerprint(void)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int op = 0; op < DMI_OPS; op++) {
        hash = mix(hash, dmi_ops[op].name, strlen(dmi_ops[op].name) + 1);
        hash = mix(hash, &dmi_ops[op].attributes, sizeof(unsigned));
        for (int i = 0; i < DMI_MAX_OPERANDS; i++) {
            hash = mix(hash, &dmi_ops[op].operand[i].mode, sizeof(int));
            hash = mix(hash, &dmi_ops[op].operand[i].dtypes, sizeof(unsigned));
            hash = mix(hash, &dmi_ops[op].operand[i].replica, sizeof(bool));
        }
    }
    for (int i = 1; dmi_api_name(i); i++) {
        hash = mix(hash, dmi_api_name(i), strlen(dmi_api_name(i)) + 1);
    }
    size_t sizes[] = {sizeof(dmi_call), sizeof(dmi_desc), sizeof(void *)};
    return mix(hash, sizes, sizeof sizes);
}
