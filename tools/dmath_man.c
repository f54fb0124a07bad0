/* dmath man: manual pages, from the help of the subcommands. */
#include "dmath_help.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static error_t parse(int key, char *arg, struct argp_state *state)
{
    const char **folder = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        if (*folder) {
            argp_error(state, "`%s' is one argument too many", arg);
            return EINVAL;
        }
        *folder = arg;
        return 0;
    case ARGP_KEY_END:
        if (!*folder) {
            argp_error(state, "which folder?");
            return EINVAL;
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    NULL,
    parse,
    "FOLDER",
    "Writes the manual pages of dmath and its subcommands to a folder: dmath.1, dmath-bench-gemm.1, and so on.",
    NULL,
    NULL,
    NULL};

/* Text as roff takes it: no requests, no escapes. */
static void put_text(FILE *to, const char *text)
{
    if (*text == '.' || *text == '\'') {
        fputs("\\&", to);
    }
    for (const char *c = text; *c; c++) {
        if (*c == '\\') {
            fputs("\\e", to);
        } else if (*c == '-') {
            fputs("\\-", to);
        } else if (*c == '`') {
            fputs("\\(oq", to);
        } else if (*c == '\'') {
            fputs("\\(cq", to);
        } else {
            fputc(*c, to);
        }
    }
}

static void name_of(const help_page *page, const char *between, char *out, size_t room)
{
    size_t used = (size_t)snprintf(out, room, "dmath");
    for (int i = 0; i < HELP_DEPTH && page->path[i]; i++) {
        used += (size_t)snprintf(out + used, room - used, "%s%s", between, page->path[i]);
    }
}

static void put_options(FILE *to, const help_page *page)
{
    if (page->options > 0) {
        fputs(".SH OPTIONS\n", to);
    }
    for (int i = 0; i < page->options; i++) {
        const help_option *o = &page->option[i];
        fputs(".TP\n", to);
        if (o->key) {
            fprintf(to, "\\fB\\-%c\\fR, ", o->key);
        }
        fputs("\\fB\\-\\-", to);
        put_text(to, o->name);
        fputs("\\fR", to);
        if (o->value) {
            fputs("=\\fI", to);
            put_text(to, o->value);
            fputs("\\fR", to);
        }
        fputc('\n', to);
        put_text(to, o->text);
        fputc('\n', to);
    }
}

static void put_commands(FILE *to, const help_page *page)
{
    if (page->commands > 0) {
        fputs(".SH COMMANDS\n", to);
    }
    for (int i = 0; i < page->commands; i++) {
        char name[128];
        name_of(page->command[i], "-", name, sizeof name);
        fputs(".TP\n\\fB", to);
        put_text(to, name);
        fputs("\\fR(1)\n", to);
        put_text(to, page->command[i]->doc);
        fputc('\n', to);
    }
}

/* The settings of a session, with their values as the defaults are. */
static void put_settings(FILE *to)
{
    char *text = NULL;
    size_t bytes = 0;
    dmi_config config;
    FILE *lines = open_memstream(&text, &bytes);
    if (lines && dmi_config_load(&config, NULL) == DM_OK) {
        dmi_config_print(&config, lines);
    }
    if (lines && fclose(lines) == 0) {
        fputs(".SH ENVIRONMENT\nEach setting can be given as DMATH_ and its name in capitals, and over that "
              "with \\fB\\-O\\fR.\n.nf\n",
              to);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
            put_text(to, line);
            fputc('\n', to);
        }
        fputs(".fi\n", to);
    }
    free(text);
}

static void put_page(FILE *to, const help_page *page)
{
    char name[128], words[128];
    name_of(page, "-", name, sizeof name);
    name_of(page, " ", words, sizeof words);
    fprintf(to, ".TH \"%s\" 1 \"\" \"dmath %s\" \"dmath\"\n.SH NAME\n", name, dm_version());
    put_text(to, name);
    fputs(" \\- ", to);
    put_text(to, page->doc);
    fputs("\n.SH SYNOPSIS\n\\fB", to);
    put_text(to, words);
    fputs("\\fR ", to);
    put_text(to, strncmp(page->usage, words, strlen(words)) == 0
                     ? page->usage + strlen(words) + strspn(page->usage + strlen(words), " ")
                     : page->usage);
    fputc('\n', to);
    if (*page->text) {
        fputs(".SH DESCRIPTION\n", to);
        put_text(to, page->text);
        fputc('\n', to);
    }
    put_commands(to, page);
    put_options(to, page);
    if (!page->path[0]) {
        put_settings(to);
    }
    fputs(".SH EXIT STATUS\n0: success; 1: something failed; 2: the command line is not valid.\n"
          ".SH SEE ALSO\n\\fBdmath\\fR(1), and docs/tool.md in the documentation of dmath\n",
          to);
}

static bool write_pages(const char *folder, const help_page *page)
{
    char path[4096], name[128];
    name_of(page, "-", name, sizeof name);
    int n = snprintf(path, sizeof path, "%s/%s.1", folder, name);
    FILE *to = n > 0 && n < (int)sizeof path ? fopen(path, "we") : NULL;
    if (!to) {
        fprintf(stderr, "dmath man: %s: %s\n", path, strerror(errno));
        return false;
    }
    put_page(to, page);
    bool ok = !ferror(to);
    ok = fclose(to) == 0 && ok;
    for (int i = 0; i < page->commands && ok; i++) {
        ok = write_pages(folder, page->command[i]);
    }
    return ok;
}

int tool_man(int argc, char **argv)
{
    const char *folder = NULL;
    if (argp_parse(&argp, argc, argv, 0, NULL, &folder) != 0) {
        return TOOL_USAGE;
    }
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "dmath man: %s: %s\n", folder, strerror(errno));
        return TOOL_FAILED;
    }
    help_page *page = help_read();
    bool ok = page && write_pages(folder, page);
    help_free(page);
    return ok ? 0 : TOOL_FAILED;
}
