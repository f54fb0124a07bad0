/* Runs this program with --help, for each subcommand, and takes the text apart. */
#include "dmath_help.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 1 << 16, SECONDS = 20, OPTION_COLUMN = 10 /* doc begins behind this column */ };

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* "  -d, --dtype=TYPE           text": false if the line is none of an option. */
static bool take_option(help_page *page, char *line)
{
    char *at = line + strspn(line, " ");
    if (at - line < 2 || at - line > 8 || *at != '-' || page->options == HELP_OPTIONS) {
        return false;
    }
    help_option *o = &page->option[page->options];
    *o = (help_option){.key = at[1] == '-' ? '\0' : at[1]};
    char *name = strstr(at, "--");
    if (!name) {
        return false;
    }
    name += 2;
    char *end = name + strcspn(name, " ");
    char *text = end + strspn(end, " ");
    *end = 0;
    char *value = strchr(name, '=');
    if (value) {
        *value++ = 0;
    }
    o->name = name;
    o->value = value;
    snprintf(o->text, sizeof o->text, "%s", text);
    page->options++;
    return true;
}

/* "  gemm       text", of a list of commands. */
static bool take_command(help_page *page, char *line)
{
    if (!begins(line, "  ") || !islower((unsigned char)line[2]) || page->commands == HELP_COMMANDS) {
        return false;
    }
    char *name = line + 2, *end = name + strcspn(name, " ");
    help_page *c = calloc(1, sizeof *c);
    if (!c) {
        return false;
    }
    c->doc = *end ? end + strspn(end, " ") : end;
    *end = 0;
    int depth = 0;
    while (depth < HELP_DEPTH && page->path[depth]) {
        c->path[depth] = page->path[depth];
        depth++;
    }
    if (depth == HELP_DEPTH) {
        free(c);
        return false;
    }
    c->path[depth] = name;
    page->command[page->commands++] = c;
    return true;
}

static void append(char *text, size_t room, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s", used ? " " : "", more);
}

static void take_line(help_page *page, char *line, bool list, bool *in_text)
{
    if (begins(line, "Usage: ")) {
        snprintf(page->usage, sizeof page->usage, "%s", line + strlen("Usage: "));
        *in_text = true;
    } else if (!*line) {
        *in_text = false;
    } else if (begins(line, "Mandatory or optional") || begins(line, "for any corresponding") || *line == '`') {
        *in_text = false;
    } else if (*in_text) {
        append(page->text, sizeof page->text, line + strspn(line, " "));
    } else if (list ? take_command(page, line) : take_option(page, line)) {
        return;
    } else if (*line == ' ' && page->options > 0 && !list) { /* more of the text of an option */
        append(page->option[page->options - 1].text, sizeof page->option[0].text, line + strspn(line, " "));
    } else if (*line != ' ') {
        append(page->text, sizeof page->text, line);
    }
}

static bool read_page(help_page *page)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    const char *argv[HELP_DEPTH + 3] = {self};
    int argc = 1;
    if (n <= 0 || !(page->read = malloc(ROOM))) {
        return false;
    }
    self[n] = 0;
    for (int i = 0; i < HELP_DEPTH && page->path[i]; i++) {
        argv[argc++] = page->path[i];
    }
    argv[argc] = "--help";
    if (tool_run_program(argv, SECONDS, page->read, ROOM) != 0) {
        fprintf(stderr, "dmath: `dmath %s --help' failed: %s\n", page->path[0] ? page->path[0] : "",
                page->read);
        return false;
    }
    bool in_text = false, list = strstr(page->read, " COMMAND [OPTION...]") != NULL;
    for (char *line = page->read, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) {
            *next++ = 0;
        }
        take_line(page, line, list, &in_text);
    }
    bool ok = true;
    for (int i = 0; i < page->commands; i++) {
        ok = ok && read_page(page->command[i]);
    }
    return ok;
}

void help_free(help_page *page)
{
    for (int i = 0; page && i < page->commands; i++) {
        help_free(page->command[i]);
    }
    if (page) {
        free(page->read);
    }
    free(page);
}

help_page *help_read(void)
{
    help_page *page = calloc(1, sizeof *page);
    (void)setenv("ARGP_HELP_FMT", "rmargin=2000", 1); /* one line for each thing */
    if (page && !read_page(page)) {
        help_free(page);
        page = NULL;
    }
    if (page) {
        page->doc = "mathematics on matrices spread over many workers";
    }
    return page;
}
