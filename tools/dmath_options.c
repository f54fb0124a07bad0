/* Options and values that several subcommands understand. */
#include "dmath.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int first_number(const char *const *names, int count, int otherwise)
{
    for (int i = 0; i < count; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) {
            return atoi(value);
        }
    }
    return otherwise;
}

int tool_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK"};
    return first_number(names, DMI_COUNT(names), 0);
}

int tool_ranks(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS",
                                        "MV2_COMM_WORLD_SIZE"};
    return first_number(names, DMI_COUNT(names), 0);
}

/* --- values
 * --------------------------------------------------------------------------------------------------- */

bool tool_int_parse(const char *text, int64_t least, int64_t most, int64_t *out)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit) {
        if (!dmi_mul_fits(value, INT64_C(1) << (10 * (unit - units + 1)), &value)) {
            return false;
        }
        end++;
    }
    if (errno || *end || value < least || value > most) {
        return false;
    }
    *out = value;
    return true;
}

bool tool_double_parse(const char *text, double *out)
{
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

/* The long name of the option of this key: the command's own before those that it has in common with others. */
static const char *option_name(const struct argp *argp, int key)
{
    const char *name = NULL;
    for (const struct argp_option *o = argp->options; o && !name && (o->name || o->key || o->doc || o->group);
         o++) {
        name = o->key == key ? o->name : NULL;
    }
    for (const struct argp_child *c = argp->children; c && c->argp && !name; c++) {
        name = option_name(c->argp, key);
    }
    return name;
}

void tool_refuse(struct argp_state *state, int key, const char *value, const char *why)
{
    const char *name = key == ARGP_KEY_ARG ? NULL : option_name(state->root_argp, key);
    argp_error(state, "%s%s%s`%s' %s", name ? "--" : "", name ? name : "", name ? ": " : "", value, why);
}

bool tool_list_parse(const char *text, bool (*one)(const char *entry, int at, void *into), void *into,
                     int *count)
{
    int n = 0;
    for (const char *at = text; at; n++) {
        char entry[160];
        const char *comma = strchr(at, ',');
        size_t bytes = comma ? (size_t)(comma - at) : strlen(at);
        if (bytes == 0 || bytes >= sizeof entry || n == TOOL_LIST) {
            return false;
        }
        memcpy(entry, at, bytes);
        entry[bytes] = 0;
        if (!one(entry, n, into)) {
            return false;
        }
        at = comma ? comma + 1 : NULL;
    }
    *count = n;
    return true;
}

bool tool_int_entry(const char *entry, int at, void *into)
{
    return tool_int_parse(entry, 1, INT32_MAX, (int64_t *)into + at);
}

bool tool_dtype_entry(const char *entry, int at, void *into)
{
    return dmi_dtype_parse(entry, (dm_dtype *)into + at);
}

bool tool_layout_entry(const char *entry, int at, void *into)
{
    return tool_layout_parse(entry, (tool_layout *)into + at);
}

/* --- layouts
 * -------------------------------------------------------------------------------------------------- */

/* The text behind `name` and a colon, or NULL. */
static const char *behind(const char *text, const char *name)
{
    size_t n = strlen(name);
    return strncmp(text, name, n) == 0 && text[n] == ':' ? text + n + 1 : NULL;
}

/* Whole numbers with these separators between them; those from `needed` on may be missing at the end. */
static bool numbers(const char *text, const char *separators, int needed, int64_t *out)
{
    for (int i = 0;; i++) {
        char *end = NULL;
        if (!isdigit((unsigned char)*text)) {
            return false;
        }
        out[i] = strtoll(text, &end, 10);
        if (out[i] > INT32_MAX) {
            return false;
        }
        if (*end == 0) {
            return i + 1 >= needed;
        }
        if (*end != separators[i]) {
            return false;
        }
        text = end + 1;
    }
}

bool tool_layout_parse(const char *text, tool_layout *out)
{
    static const struct {
        const char *name;
        int kind, dim;
    } plain[] = {{"default", TOOL_DEFAULT, 0},
                 {"rows", TOOL_SPLIT, 0},
                 {"cols", TOOL_SPLIT, 1},
                 {"grid", TOOL_GRID, 0},
                 {"replicated", TOOL_REPLICATED, 0}};
    tool_layout l = {.kind = TOOL_DEFAULT};
    int64_t n[3] = {0};
    const char *rest;
    if (strlen(text) >= sizeof l.text) {
        return false;
    }
    strcpy(l.text, text);
    bool found = false;
    for (int i = 0; i < DMI_COUNT(plain); i++) {
        if (strcmp(text, plain[i].name) == 0) {
            l.kind = plain[i].kind;
            l.dim = plain[i].dim;
            found = true;
        }
    }
    if ((rest = behind(text, "split")) && numbers(rest, "", 1, n) && n[0] < DM_MAX_DIMS) {
        l.kind = TOOL_SPLIT;
        l.dim = (int)n[0];
        found = true;
    } else if ((rest = behind(text, "cyclic")) && numbers(rest, ":", 1, n) && n[0] < DM_MAX_DIMS) {
        l.kind = TOOL_CYCLIC;
        l.dim = (int)n[0];
        l.block = n[1];
        found = true;
    } else if ((rest = behind(text, "grid")) && numbers(rest, "x:", 2, n) && n[0] > 0 && n[1] > 0) {
        l.kind = TOOL_GRID;
        l.rows = (int)n[0];
        l.cols = (int)n[1];
        l.block = n[2];
        found = true;
    } else if ((rest = behind(text, "single")) && numbers(rest, "", 1, n)) {
        l.kind = TOOL_SINGLE;
        l.worker = (int)n[0];
        found = true;
    }
    if (found) {
        *out = l;
    }
    return found;
}

dm_layout tool_layout_make(const tool_layout *l, int workers)
{
    dm_layout out = {.size = sizeof out, .kind = 0};
    int rows = l->rows, cols = l->cols;
    switch (l->kind) {
    case TOOL_SPLIT:
    case TOOL_CYCLIC:
        out.grid[l->dim] = workers;
        out.order[l->dim] = l->kind == TOOL_CYCLIC ? DM_CYCLIC : DM_CONTIGUOUS;
        out.block[l->dim] = l->block;
        return out;
    case TOOL_GRID:
        for (int r = 1; l->rows == 0 && r * r <= workers; r++) {
            if (workers % r == 0) {
                rows = r;
                cols = workers / r;
            }
        }
        return dm_layout_grid(rows, cols, l->block, l->block);
    case TOOL_REPLICATED:
        out.replicas = workers;
        return out;
    case TOOL_SINGLE:
        return dm_layout_single(l->worker);
    default:
        return dm_layout_default();
    }
}

dm_layout tool_layout_for(const tool_layout *l, int workers, int ndim)
{
    bool splits = l->kind == TOOL_SPLIT || l->kind == TOOL_CYCLIC;
    tool_layout own = *l;
    if (ndim == 0 && (splits || l->kind == TOOL_GRID)) {
        return dm_layout_default();
    }
    if (splits && own.dim >= ndim) {
        own.dim = ndim - 1;
    }
    dm_layout out = tool_layout_make(&own, workers);
    if (l->kind == TOOL_GRID && ndim == 1) {
        out.replicas = out.grid[0];
        out.grid[0] = out.grid[1];
        out.block[0] = out.block[1];
        out.grid[1] = 0;
        out.block[1] = 0;
        out.order[1] = DM_CONTIGUOUS;
    }
    return out;
}

/* --- the common parser
 * ---------------------------------------------------------------------------------------- */

static const struct argp_option common_options[] = {
    {"workers", 'w', "N", 0, "workers, as threads of this process (a measurement takes a list: 1,2,4)", 10},
    {"transport", 't', "NAME", 0, "how bytes move between workers: auto, direct, mpi, cuda_mpi, staged", 10},
    {"option", 'O', "KEY=VALUE", 0, "any setting that `dmath info' lists; may be repeated", 10},
    {"json", 'j', NULL, 0, "a JSON object a line", 10},
    {"verbose", 'v', NULL, 0, "say more", 10},
    {0},
};

static bool add_option(tool_common *c, const char *key, const char *value)
{
    size_t n = strlen(c->options), room = sizeof c->options - n;
    return snprintf(c->options + n, room, "%s%s%s%s", n ? "," : "", key, *key ? "=" : "", value) < (int)room;
}

void tool_default_option(tool_common *common, const char *key, const char *value)
{
    char variable[64] = "DMATH_";
    size_t prefix = strlen(variable), n = strlen(key);
    bool given = false;
    for (size_t i = 0; i <= n && prefix + i < sizeof variable; i++) {
        variable[prefix + i] = (char)toupper((unsigned char)key[i]);
    }
    for (const char *at = common->options; at && !given; at = strchr(at, ',')) {
        at += *at == ',';
        given = strncmp(at, key, n) == 0 && at[n] == '=';
    }
    if (!given && !getenv(variable)) {
        (void)add_option(common, key, value); /* no room: as without it */
    }
}

static bool has_long_option(const struct argp *argp, const char *name, size_t length)
{
    bool found = false;
    for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc || o->group); o++) {
        found = found || (o->name && strlen(o->name) == length && strncmp(o->name, name, length) == 0);
    }
    for (const struct argp_child *c = argp->children; c && c->argp; c++) {
        found = found || has_long_option(c->argp, name, length);
    }
    return found;
}

/* Caffe's options have one dash, behind which one letter would be taken for the option here. */
static void refuse_one_dash(struct argp_state *state)
{
    for (int i = 1; i < state->argc && strcmp(state->argv[i], "--") != 0; i++) {
        const char *word = state->argv[i];
        const size_t n = strcspn(word, "=");
        if (word[0] == '-' && word[1] != '-' && n > 2 && has_long_option(state->root_argp, word + 1, n - 1)) {
            argp_error(state, "%.*s: options have two dashes: --%.*s", (int)n, word, (int)n - 1, word + 1);
        }
        if (strncmp(word, "-gpu", n) == 0 && n == strlen("-gpu")) {
            argp_error(state,
                       "-gpu: there is no such option; workers take the GPUs that there are, and -w says how "
                       "many workers");
        }
    }
}

static error_t parse_common(int key, char *arg, struct argp_state *state)
{
    tool_common *c = state->input;
    dmi_config config;
    switch (key) {
    case ARGP_KEY_INIT:
        refuse_one_dash(state);
        return 0;
    case 'w':
        if (!tool_list_parse(arg, tool_int_entry, c->workers, &c->nworkers)) {
            argp_error(state, "--workers: `%s' is not a number of workers", arg);
            return EINVAL;
        }
        return 0;
    case 't':
    case 'O':
        if (!add_option(c, key == 't' ? "transport" : "", arg)) {
            argp_error(state, "the options are too long");
            return EINVAL;
        }
        return 0;
    case 'j':
        c->json = true;
        return 0;
    case 'v':
        c->verbose = true;
        return 0;
    case ARGP_KEY_END:
        if (dmi_config_load(&config, c->options) != DM_OK) {
            argp_error(state, "%s", dmi_error_text());
            return EINVAL;
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp tool_common_argp = {common_options, parse_common, NULL, NULL, NULL, NULL, NULL};
