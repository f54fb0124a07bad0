/* The master's side of chains: texts become programs. */
#include "ops/chain.h"
#include "ops/common.h"
#include "ops/reduce.h"

#include <assert.h>
#include <string.h>

enum { MOST = DMI_CHAIN_NAMES + DMI_CHAIN_LINKS };
typedef struct request {
    dmi_chain_made *made;
    dmi_call *call; /* made->call */
    dmi_chain chain;
    dmi_expr_variable value[MOST]; /* inputs, then results of links */
    int values;
} request;

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Does the text use this name? */
static bool uses(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) {
        if ((at == text || !is_name(at[-1])) && !is_name(at[length])) {
            return true;
        }
    }
    return false;
}

static void take_names(request *q, const dmi_chain_call *chain, const dm_dtype *dtypes)
{
    for (int i = 0; i < chain->names; i++) {
        const dmi_chain_name *n = &chain->name[i];
        if (n->kind == DMI_CHAIN_NUMBER) {
            continue;
        }
        bool index = n->kind == DMI_CHAIN_INDEX;
        q->chain.kind[q->values] = (uint8_t)n->kind;
        q->chain.at[q->values] = (uint8_t)(index ? n->dim : q->call->noperand);
        q->value[q->values++] =
            (dmi_expr_variable){.name = n->name, .kind = DMI_EXPR_ARRAY, .dtype = index ? DM_I64 : dtypes[i]};
        if (!index) {
            q->made->names[q->call->noperand] = n->name;
            q->made->array[q->call->noperand++] = n->array;
        }
    }
    q->chain.inputs = (uint8_t)q->values;
}

/* The call's numbers are those of all programs; a program's are from `base` on. */
static void move_numbers(request *q, dmi_map_builder *map)
{
    uint8_t base = (uint8_t)q->call->numbers;
    for (int i = 0; i < map->program.constants; i++) {
        map->program.constant_number[i] = (uint8_t)(map->program.constant_number[i] + base);
    }
    for (int i = 0; i < map->program.steps; i++) {
        map->program.step[i].number[0] = (uint8_t)(map->program.step[i].number[0] + base);
        map->program.step[i].number[1] = (uint8_t)(map->program.step[i].number[1] + base);
    }
    assert(base + map->numbers < DMI_CALL_NUMBERS);
    memcpy(&q->call->number[base], map->number, (size_t)map->numbers * sizeof *map->number);
    q->call->numbers += map->numbers;
}

static void put(request *q, const void *bytes, size_t count)
{
    assert(q->call->tail_bytes + (int64_t)count <= (int64_t)sizeof q->made->tail);
    memcpy(q->made->tail + q->call->tail_bytes, bytes, count);
    q->call->tail_bytes += (int64_t)count;
}

/* last: the type of out; 0: a later text uses the result. */
static dm_status add_link(request *q, const dmi_chain_call *chain, const char *text, dm_dtype last,
                          dm_dtype *type)
{
    dmi_expr_variable used[MOST];
    dmi_chain_link link = {.row = DMI_CHAIN_MAP};
    dmi_expr e;
    int count = 0;
    for (int i = 0; i < q->values; i++) {
        if (uses(text, q->value[i].name)) {
            link.in[link.inputs++] = (uint8_t)i;
            used[count++] = q->value[i];
        }
    }
    for (int i = 0; i < chain->names; i++) {
        const dmi_chain_name *n = &chain->name[i];
        if (n->kind == DMI_CHAIN_NUMBER && uses(text, n->name)) {
            used[count++] = (dmi_expr_variable){.name = n->name, .kind = DMI_EXPR_NUMBER, .number = n->number};
        }
    }
    dm_status status = dmi_expr_compile(text, count, used, DM_F64, &e);
    if (status != DM_OK) {
        return status;
    }
    *type = last ? last : dmi_dtype_promote(e.dtype, DM_F32); /* differences of whole numbers must not wrap */
    link.type = (uint8_t)*type;
    if (e.reduction) {
        link.row = (uint8_t)e.reduction->row;
        if (dmi_reduce_in_floats(link.row, e.reduction->scaled, e.value.dtype)) {
            e.value = dmi_map_cast(&e.map, e.value, DM_F64);
        }
        if ((e.value.at & DMI_AT_KIND) != DMI_AT_INPUT) {
            link.made = (uint8_t)dmi_dtype_carrier(e.value.dtype);
        }
    }
    if (link.row == DMI_CHAIN_MAP || link.made) {
        dmi_map_result(&e.map, e.value, link.made ? (dm_dtype)link.made : *type);
        move_numbers(q, &e.map);
    }
    if (e.reduction && e.reduction->scaled) {
        q->call->number[q->call->numbers++] =
            dmi_number_of(link.row == DMI_REDUCTION_sum ? 0 : chain->correction);
        link.scale = (uint8_t)q->call->numbers;
    }
    put(q, &link, sizeof link);
    if (link.row == DMI_CHAIN_MAP || link.made) {
        put(q, &e.map.program, dmi_map_program_bytes(&e.map.program));
    }
    return DM_OK;
}

dm_status dmi_chain_make(const dmi_chain_call *chain, const dm_dtype *dtypes, dm_dtype out,
                         dmi_chain_made *made)
{
    *made = (dmi_chain_made){.call = {.op = DMI_OP_chain}};
    request q = {.made = made, .call = &made->call, .chain = {.links = (uint8_t)chain->texts}};
    dm_status status = dmi_call_dims(&made->call, chain->dims, chain->ndims);
    take_names(&q, chain, dtypes);
    made->call.numbers = 3; /* of the fills of indices: first, step, seed */
    made->call.number[0] = dmi_number_of(0);
    made->call.number[1] = dmi_number_of(1);
    put(&q, &q.chain, sizeof q.chain);
    for (int i = 0; i < chain->texts && status == DM_OK; i++) {
        bool last = i == chain->texts - 1;
        dm_dtype type = 0;
        status = add_link(&q, chain, chain->text[i].text, last ? out : 0, &type);
        q.value[q.values++] =
            (dmi_expr_variable){.name = last ? "" : chain->text[i].to, .kind = DMI_EXPR_ARRAY, .dtype = type};
    }
    made->names[made->call.noperand++] = chain->out ? chain->out : "out";
    made->call.names = made->names;
    made->call.tail = made->tail;
    made->call.tail_key = made->call.tail_bytes;
    return status;
}

dm_status dmi_chain_submit(dm_session *session, const dmi_chain_call *chain, dm_array out)
{
    dmi_chain_made made;
    dm_dtype dtypes[DMI_CHAIN_NAMES] = {0};
    dmi_session *s;
    dmi_handle *h;
    dm_status status = dmi_enter(session, &s);
    for (int i = 0; i < chain->names && status == DM_OK; i++) {
        const dmi_chain_name *n = &chain->name[i];
        if (n->kind != DMI_CHAIN_NUMBER && n->kind != DMI_CHAIN_INDEX) {
            status = dmi_handle_find(s, n->array, n->name, &h);
            dtypes[i] = status == DM_OK ? h->desc.dtype : 0;
        }
    }
    if (status != DM_OK || (status = dmi_handle_find(s, out, chain->out ? chain->out : "out", &h)) != DM_OK ||
        (status = dmi_chain_make(chain, dtypes, h->desc.dtype, &made)) != DM_OK) {
        return status;
    }
    made.array[made.call.noperand - 1] = out;
    return dmi_call_submit(session, &made.call, made.array);
}
