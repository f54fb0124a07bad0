/* Files of nets and weights: from one form to another, old ones to today's, and as pictures. No session is
 * needed. */
#include "net/net.h"

#include "proto/scan.h"
#include "proto/text.h"
#include "proto/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char N[] = "NetParameter", S[] = "SolverParameter";

enum { MAX_TEXT_BYTES = 1 << 30 };

static bool ends_with(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n >= m && strcmp(path + n - m, end) == 0;
}

dm_status nn_net_read(const char *path, nn_document **out)
{
    bool binary = ends_with(path, ".caffemodel") || ends_with(path, ".binaryproto");
    return binary ? nn_wire_read(path, N, out) : nn_text_read(path, N, out);
}

bool nn_is_text(const char *path)
{
    return ends_with(path, ".prototxt") || ends_with(path, ".txt");
}

/* Does a text hold a solver's settings? Its first field that only one of the two kinds has tells. What cannot
 * be read is a net, whose error the parser finds. */
static bool is_solver(const char *text, size_t length, const char *path)
{
    nn_scan s = {.file = path, .at = text, .end = text + length, .line = 1};
    int depth = 0;
    char name[64];
    bool before = false; /* a colon: what comes is a value */
    while (nn_scan_next(&s) == DM_OK && s.kind != NN_TOKEN_END) {
        depth += s.kind == '{' || s.kind == '<' || s.kind == '[';
        depth -= s.kind == '}' || s.kind == '>' || s.kind == ']';
        if (s.kind == NN_TOKEN_NAME && depth == 0 && !before && s.length < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)s.length, s.text);
            bool net = nn_schema_by_name(N, name), solver = nn_schema_by_name(S, name);
            if (net != solver) {
                return solver;
            }
        }
        before = s.kind == ':';
    }
    return false;
}

static dm_status read_text(const char *path, nn_document **out)
{
    char *text = NULL;
    size_t length = 0;
    dm_status status = nn_file_read(path, MAX_TEXT_BYTES, &text, &length);
    if (status == DM_OK) {
        status = nn_text_parse(text, length, path, is_solver(text, length, path) ? S : N, out);
    }
    free(text);
    return status;
}

static bool holds_solver(const nn_document *d)
{
    return strcmp(d->root->type, S) == 0;
}

/* A net, or a solver's settings. */
static dm_status read_old(const char *path, nn_document **out)
{
    if (nn_is_hdf5(path)) {
        return dm_error_set(DM_ERR_UNSUPPORTED, "%s: HDF5 files hold no nets, only weights", path);
    }
    dm_status status = nn_is_text(path) ? read_text(path, out) : nn_wire_read(path, N, out);
    if (status != DM_OK) {
        return status;
    }
    if (holds_solver(*out)) {
        status = nn_solver_upgrade((*out)->root);
    } else {
        status = nn_net_upgrade((*out)->root);
        status = status == DM_OK ? nn_net_upgrade_inputs((*out)->root) : status;
    }
    if (status != DM_OK) {
        nn_document_free(*out);
        *out = NULL;
    }
    return status;
}

dm_status dm_net_convert(const char *from, const char *to)
{
    nn_document *d = NULL;
    if (!from || !to) {
        return dm_error_set(DM_ERR_ARG, "dm_net_convert: an argument is NULL");
    }
    dm_status status = nn_is_hdf5(from) ? nn_weights_from_hdf5(from, &d) : read_old(from, &d);
    if (status == DM_OK && holds_solver(d) && !nn_is_text(to)) {
        status =
            dm_error_set(DM_ERR_UNSUPPORTED,
                         "%s: a solver's settings are written as text (.prototxt, .txt), not to %s", from, to);
    }
    if (status == DM_OK) {
        status = nn_is_hdf5(to)   ? nn_weights_to_hdf5(d->root, to)
                 : nn_is_text(to) ? nn_text_write(d->root, to)
                                  : nn_wire_write(d->root, to);
    }
    nn_document_free(d);
    return status;
}

/* --- a picture for Graphviz */
static void put_quoted(FILE *to, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', to);
        }
        fputc(*text == '\n' ? ' ' : *text, to);
    }
}

static void put_edge(FILE *to, int64_t layer, const char *blob, bool up)
{
    fputs("  ", to);
    if (up) {
        fprintf(to, "layer%lld -> ", (long long)layer);
    }
    fputs("\"blob ", to);
    put_quoted(to, blob);
    fputc('"', to);
    if (!up) {
        fprintf(to, " -> layer%lld", (long long)layer);
    }
    fputs(";\n", to);
}

static void put_layer(FILE *to, const nn_message *layer, int64_t i)
{
    fprintf(to, "  layer%lld [shape=box, style=filled, fillcolor=lightsteelblue, label=\"", (long long)i);
    put_quoted(to, nn_string(layer, "LayerParameter", "name"));
    fputs("\\n", to);
    put_quoted(to, nn_string(layer, "LayerParameter", "type"));
    for (int64_t k = 0; k < nn_count(layer, "include"); k++) {
        const nn_message *rule = nn_sub_at(layer, "include", k);
        if (nn_has(rule, "phase")) {
            fputs(nn_int(rule, "NetStateRule", "phase") == NN_TRAIN ? "\\n(TRAIN)" : "\\n(TEST)", to);
        }
    }
    fputs("\"];\n", to);
    for (int64_t k = 0; k < nn_count(layer, "bottom"); k++) {
        put_edge(to, i, nn_string_at(layer, "bottom", k), false);
    }
    for (int64_t k = 0; k < nn_count(layer, "top"); k++) {
        const char *name = nn_string_at(layer, "top", k);
        fputs("  \"blob ", to);
        put_quoted(to, name);
        fputs("\" [label=\"", to);
        put_quoted(to, name);
        fputs("\"];\n", to);
        put_edge(to, i, name, true);
    }
}

dm_status dm_net_draw(const char *path, char **text)
{
    nn_document *d = NULL;
    size_t length = 0;
    dm_status status =
        path && text ? read_old(path, &d) : dm_error_set(DM_ERR_ARG, "dm_net_draw: an argument is NULL");
    if (status == DM_OK && holds_solver(d)) {
        status = dm_error_set(DM_ERR_FORMAT, "%s: holds a solver's settings, not a net", path);
    }
    if (status != DM_OK) {
        nn_document_free(d);
        return status;
    }
    FILE *to = open_memstream(text, &length);
    if (!to) {
        nn_document_free(d);
        return dm_error_no_memory("a text", BUFSIZ);
    }
    fputs("digraph \"", to);
    put_quoted(to, nn_string(d->root, N, "name"));
    fputs("\" {\n", to);
    for (int64_t i = 0; i < nn_count(d->root, "layer"); i++) {
        put_layer(to, nn_sub_at(d->root, "layer", i), i);
    }
    fputs("}\n", to);
    nn_document_free(d);
    return fclose(to) == 0 ? DM_OK : dm_error_no_memory("a text", length);
}
