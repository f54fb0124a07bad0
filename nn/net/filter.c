/* Which layers a net has: its state (phase, level, stages) against the rules of each layer. */
#include "net/net.h"

#include <stdlib.h>
#include <string.h>

static bool has_stage(const nn_message *state, const char *stage)
{
    for (int64_t i = 0; i < nn_count(state, "stage"); i++) {
        if (strcmp(nn_string_at(state, "stage", i), stage) == 0) {
            return true;
        }
    }
    return false;
}

static bool meets(const nn_message *state, const nn_message *rule)
{
    const char *S = "NetState", *R = "NetStateRule";
    int64_t level = nn_int(state, S, "level");
    bool well = !nn_has(rule, "phase") || nn_int(rule, R, "phase") == nn_int(state, S, "phase");
    well = well && (!nn_has(rule, "min_level") || level >= nn_int(rule, R, "min_level"));
    well = well && (!nn_has(rule, "max_level") || level <= nn_int(rule, R, "max_level"));
    for (int64_t i = 0; i < nn_count(rule, "stage"); i++) {
        well = well && has_stage(state, nn_string_at(rule, "stage", i));
    }
    for (int64_t i = 0; i < nn_count(rule, "not_stage"); i++) {
        well = well && !has_stage(state, nn_string_at(rule, "not_stage", i));
    }
    return well;
}

static bool included(const nn_message *state, const nn_message *layer)
{
    int64_t include = nn_count(layer, "include"), exclude = nn_count(layer, "exclude");
    for (int64_t i = 0; i < exclude; i++) {
        if (meets(state, nn_sub_at(layer, "exclude", i))) {
            return false;
        }
    }
    for (int64_t i = 0; i < include; i++) {
        if (meets(state, nn_sub_at(layer, "include", i))) {
            return true;
        }
    }
    return include == 0;
}

dm_status nn_net_filter(nn_message *net, nn_message ***left, int *left_count)
{
    const nn_message *state = nn_sub(net, "state");
    nn_entry *layers = nn_entry_of(net, "layer");
    const int64_t count = layers ? layers->count : 0;
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++) {
        const nn_message *layer = layers->at.message[i];
        if (nn_count(layer, "include") && nn_count(layer, "exclude")) {
            return nn_fail_at(layer, nn_line(layer, "exclude"), DM_ERR_FORMAT,
                              "layer '%s' has include and exclude rules; only one of the two may be there",
                              nn_string(layer, "LayerParameter", "name"));
        }
    }
    *left = calloc((size_t)count + 1, sizeof **left);
    if (!*left) {
        return dm_error_no_memory("the layers that a net leaves out", ((size_t)count + 1) * sizeof **left);
    }
    for (int64_t i = 0; i < count; i++) {
        nn_message *layer = layers->at.message[i];
        if (included(state, layer)) {
            nn_entry *rules = nn_entry_of(layer, "include");
            rules = rules ? rules : nn_entry_of(layer, "exclude");
            for (int64_t k = 0; rules && k < rules->count; k++) { /* what no rule before it needed to ask */
                nn_use_all(rules->at.message[k]);
            }
            layers->at.message[kept++] = layer;
        } else {
            (*left)[(*left_count)++] = layer;
        }
    }
    if (layers) {
        layers->count = kept;
    }
    return DM_OK;
}

dm_status nn_net_state(nn_message *net, int phase, const nn_message *state)
{
    nn_message *own = nn_has(net, "state") ? nn_sub(net, "state") : NULL;
    dm_status status = own ? DM_OK : nn_set_message(net, "state", &own);
    if (status == DM_OK && !nn_has(own, "phase")) {
        status = nn_set_int(own, "phase", phase);
    }
    if (status == DM_OK && state) {
        status = nn_message_merge(own, state);
    }
    nn_use_all(own);
    return status;
}
