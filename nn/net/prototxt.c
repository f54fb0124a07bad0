/* Nets and settings that a program makes by calls: a message of Caffe's schema, and text when it is used. */
#include "net/net.h"

#include "proto/edit.h"
#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

static const char N[] = "NetParameter", S[] = "SolverParameter";

struct dm_prototxt {
    nn_document *document;
};

dm_status dm_prototxt_create(const char *type, dm_prototxt **out)
{
    if (!type || !out || (strcmp(type, N) != 0 && strcmp(type, S) != 0)) {
        return dm_error_set(DM_ERR_ARG, "dm_prototxt_create: type must be \"%s\" or \"%s\", and out be there",
                            N, S);
    }
    dm_prototxt *p = calloc(1, sizeof *p);
    dm_status status = p ? nn_document_new(strcmp(type, N) == 0 ? N : S, type, &p->document)
                         : dm_error_no_memory("a message", sizeof *p);
    if (status != DM_OK) {
        free(p);
        return status;
    }
    *out = p;
    return DM_OK;
}

dm_status dm_prototxt_destroy(dm_prototxt *p)
{
    if (p) {
        nn_document_free(p->document);
        free(p);
    }
    return DM_OK;
}

static bool is_net(const dm_prototxt *p)
{
    return strcmp(p->document->root->type, N) == 0;
}

/* Adds the names that a list has, with commas between them. */
static dm_status add_names(nn_message *layer, const char *field, const char *names)
{
    dm_status status = DM_OK;
    while (status == DM_OK && names && *names) {
        size_t n = strcspn(names, ",");
        status = nn_set_text(layer, field, names, n);
        names += n + (names[n] == ',');
    }
    return status;
}

static bool well_listed(const char *names)
{
    size_t n = names ? strlen(names) : 0;
    return n == 0 || (names[0] != ',' && names[n - 1] != ',' && !strstr(names, ",,"));
}

dm_status dm_prototxt_layer(dm_prototxt *p, const char *type, const char *name, const char *bottoms,
                            const char *tops)
{
    nn_message *layer = NULL;
    if (!p || !type || !*type || !name) {
        return dm_error_set(DM_ERR_ARG,
                            "dm_prototxt_layer: prototxt, type and name of the layer must be there");
    }
    if (!is_net(p)) {
        return dm_error_set(DM_ERR_ARG, "dm_prototxt_layer: layer '%s': a %s has no layers", name, S);
    }
    if (!well_listed(bottoms) || !well_listed(tops)) {
        return dm_error_set(DM_ERR_ARG, "dm_prototxt_layer: layer '%s': a name is empty in the %s '%s'", name,
                            well_listed(bottoms) ? "tops" : "bottoms", well_listed(bottoms) ? tops : bottoms);
    }
    dm_status status = nn_set_message(p->document->root, "layer", &layer);
    if (status != DM_OK) {
        return status;
    }
    status = nn_set_string(layer, "name", name);
    status = status == DM_OK ? nn_set_string(layer, "type", type) : status;
    status = status == DM_OK ? add_names(layer, "bottom", bottoms) : status;
    status = status == DM_OK ? add_names(layer, "top", tops) : status;
    if (status != DM_OK) { /* no half a layer */
        nn_entry *layers = nn_entry_of(p->document->root, "layer");
        nn_message_free(layers->at.message[--layers->count]);
    }
    return status;
}

static dm_status set(const char *call, dm_prototxt *p, const char *layer, const char *field,
                     const nn_given *given)
{
    if (!p || !field || (!given->text && !given->numbers && given->count > 0) || given->count < 0) {
        return dm_error_set(DM_ERR_ARG, "%s: prototxt, field and value must be there, a count not be negative",
                            call);
    }
    nn_message *m = layer ? NULL : p->document->root;
    for (int64_t i = layer && is_net(p) ? nn_count(p->document->root, "layer") - 1 : -1; !m && i >= 0; i--) {
        nn_message *one = nn_sub_at(p->document->root, "layer", i);
        m = strcmp(nn_string(one, "LayerParameter", "name"), layer) == 0 ? one : NULL;
    }
    if (!m) {
        return dm_error_set(DM_ERR_ARG, "%s: field '%s': there is no layer '%s'", call, field, layer);
    }
    return nn_edit_set(&(nn_edit){call, layer, field}, m, given);
}

dm_status dm_prototxt_number(dm_prototxt *p, const char *layer, const char *field, double value)
{
    return set("dm_prototxt_number", p, layer, field, &(nn_given){.numbers = &value, .count = 1});
}

dm_status dm_prototxt_text(dm_prototxt *p, const char *layer, const char *field, const char *value)
{
    return set("dm_prototxt_text", p, layer, field, &(nn_given){.text = value, .count = 1});
}

dm_status dm_prototxt_list(dm_prototxt *p, const char *layer, const char *field, int64_t count,
                           const double *values)
{
    return set("dm_prototxt_list", p, layer, field,
               &(nn_given){.numbers = values, .count = count, .list = true});
}

dm_status dm_prototxt_show(const dm_prototxt *p, char **text)
{
    return p && text ? nn_text_print(p->document->root, text)
                     : dm_error_set(DM_ERR_ARG, "dm_prototxt_show: an argument is NULL");
}

dm_status nn_prototxt_document(const dm_prototxt *p, nn_document **out)
{
    const nn_message *root = p->document->root;
    const char *name = is_net(p) ? nn_string(root, N, "name") : "";
    char *text = NULL;
    dm_status status = nn_text_print(root, &text);
    if (status == DM_OK) {
        const char *file = *name ? name : is_net(p) ? "net" : "solver";
        status = nn_text_parse(text, strlen(text), file, root->type, out);
    }
    free(text);
    return status;
}

bool nn_prototxt_is(const dm_prototxt *p, const char *type)
{
    return p && strcmp(p->document->root->type, type) == 0;
}
