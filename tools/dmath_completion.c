/* dmath completion: what a shell offers behind `dmath', from the help of the subcommands. */
#include "dmath_help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct completion_options {
    const char *shell, *output;
} completion_options;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "where it goes (default: stdout)", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    completion_options *o = state->input;
    switch (key) {
    case 'o':
        o->output = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (o->shell || (strcmp(arg, "bash") != 0 && strcmp(arg, "zsh") != 0)) {
            argp_error(state, "`%s' is not bash or zsh", arg);
            return EINVAL;
        }
        o->shell = arg;
        return 0;
    case ARGP_KEY_END:
        if (!o->shell) {
            argp_error(state, "for which shell: bash or zsh?");
            return EINVAL;
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    options,
    parse,
    "bash|zsh",
    "Prints what completes dmath's commands and options in a shell: eval \"$(dmath completion bash)\". It "
    "is installed where shells look for it.",
    NULL,
    NULL,
    NULL};

/* Values that an option takes, by the name of its argument; NULL: files. */
static const char *values_of(const help_option *o)
{
    static const struct {
        const char *option, *values;
    } known[] = {{"layout", "rows cols split: cyclic: grid grid: replicated single: default"},
                 {"a-layout", "rows cols grid replicated single:"},
                 {"b-layout", "rows cols grid replicated single:"},
                 {"c-layout", "rows cols grid replicated single:"},
                 {"dtype", "f64 f32 f16 bf16 f8e4m3 f8e5m2 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128"},
                 {"transport", "auto direct mpi cuda_mpi staged"}};
    for (int i = 0; i < DMI_COUNT(known); i++) {
        if (strcmp(o->name, known[i].option) == 0) {
            return known[i].values;
        }
    }
    return NULL;
}

/* The names of settings, for -O. */
static void put_settings(void)
{
#define NAMED(key, ...) printf("%s= ", #key);
    DMI_CONFIG_MAP(NAMED, NAMED, NAMED, NAMED, NAMED, NAMED)
#undef NAMED
}

static void path_of(const help_page *page, char *out, size_t room)
{
    out[0] = 0;
    for (int i = 0; i < HELP_DEPTH && page->path[i]; i++) {
        size_t used = strlen(out);
        snprintf(out + used, room - used, "%s%s", i ? " " : "", page->path[i]);
    }
}

/* --- bash --- */

static void put_bash_options(const help_page *page)
{
    for (int i = 0; i < page->options; i++) {
        printf("--%s%s ", page->option[i].name, page->option[i].value ? "=" : "");
    }
}

static void put_bash_page(const help_page *page)
{
    char path[128];
    path_of(page, path, sizeof path);
    printf("    '%s') words='", path);
    for (int i = 0; i < page->commands; i++) {
        printf("%s ", page->command[i]->path[page->path[0] ? 1 : 0]);
    }
    if (strcmp(path, "bench") == 0 || strcmp(path, "bench op") == 0) {
        printf("$(dmath bench --list 2>/dev/null | cut -d\\  -f1) ");
    }
    put_bash_options(page);
    for (int i = 0; i < page->commands; i++) { /* `op' may be left out */
        if (strcmp(path, "bench") == 0 && strcmp(page->command[i]->path[1], "op") == 0) {
            put_bash_options(page->command[i]);
        }
    }
    printf("--help';;\n");
    for (int i = 0; i < page->commands; i++) {
        put_bash_page(page->command[i]);
    }
}

static void put_bash_values(void)
{
    static const char *const names[] = {"layout", "dtype", "transport"};
    for (int i = 0; i < DMI_COUNT(names); i++) {
        printf("    --%s) words='%s';;\n", names[i], values_of(&(help_option){.name = names[i]}));
    }
    printf("    --option | -O) words='");
    put_settings();
    printf("';;\n");
}

static void put_bash(const help_page *page)
{
    fputs("# Completion of dmath for bash, made by `dmath completion bash'.\n"
          "_dmath() {\n"
          "  local here=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= words= option= i\n"
          "  COMPREPLY=()\n"
          "  for ((i = 1; i < COMP_CWORD && i < 3; i++)); do\n"
          "    [[ ${COMP_WORDS[i]} == -* ]] && break\n"
          "    path=\"$path${path:+ }${COMP_WORDS[i]}\"\n"
          "  done\n"
          "  # --option=value comes as three words\n"
          "  if [[ $here == = ]]; then option=$before; here=; elif [[ $before == = ]]; then "
          "option=${COMP_WORDS[COMP_CWORD-2]};\n"
          "  elif [[ $before == -O ]]; then option=-O; fi\n"
          "  if [[ $option ]]; then\n"
          "    case $option in\n",
          stdout);
    put_bash_values();
    fputs("    *) COMPREPLY=($(compgen -f -- \"$here\")); return;;\n"
          "    esac\n"
          "  fi\n"
          "  while [[ ! $option ]]; do\n"
          "    case $path in\n",
          stdout);
    put_bash_page(page);
    fputs("    *) if [[ $path == *' '* ]]; then path=${path%% *}; continue; fi;;\n"
          "    esac\n"
          "    break\n"
          "  done\n"
          "  [[ $words == *'$('* ]] && words=$(eval \"echo \\\"$words\\\"\")\n"
          "  COMPREPLY=($(compgen -W \"$words\" -- \"$here\"))\n"
          "  [[ $path && $here != -* && ! $option ]] && COMPREPLY+=($(compgen -f -- \"$here\"))\n"
          "  [[ ${COMPREPLY[0]-} == *[=:] ]] && compopt -o nospace 2>/dev/null\n"
          "  return 0\n"
          "}\n"
          "complete -o filenames -F _dmath dmath\n",
          stdout);
}

/* --- zsh --- */

/* In single quotes; [ ] : are for _arguments and _describe. */
static void put_zsh_text(const char *text)
{
    for (const char *c = text; *c; c++) {
        if (*c == '\'') {
            fputs("'\\''", stdout);
        } else if (strchr("[]:\\", *c)) {
            printf("\\%c", *c);
        } else {
            putchar(*c);
        }
    }
}

static void put_zsh_value(const help_option *o)
{
    const char *values = values_of(o);
    printf(":");
    put_zsh_text(o->value);
    if (strcmp(o->name, "option") == 0) {
        printf(":(");
        put_settings();
        printf(")");
    } else if (values) {
        printf(":(");
        put_zsh_text(values);
        printf(")");
    } else {
        printf(":_files");
    }
}

static void put_zsh_options(const help_page *page, const char *path)
{
    printf("      depth=${(w)#path_here}; shift $depth words; ((CURRENT -= depth))\n      _arguments -S");
    for (int i = 0; i < page->options; i++) {
        const help_option *o = &page->option[i];
        printf(" \\\n        '--%s%s[", o->name, o->value ? "=" : "");
        put_zsh_text(o->text);
        printf("]");
        if (o->value) {
            put_zsh_value(o);
        }
        printf("'");
    }
    if (strcmp(path, "bench op") == 0) {
        printf(" \\\n        \"*:operation:($(dmath bench --list 2>/dev/null | sed 's/ .*//' | tr '\\n' ' "
               "'))\" && return\n");
    } else {
        printf(" \\\n        '*:file:_files' && return\n");
    }
}

static void put_zsh_page(const help_page *page)
{
    char path[128];
    path_of(page, path, sizeof path);
    printf("    '%s')\n", path);
    if (page->commands > 0) {
        printf("      words_here=(");
        for (int i = 0; i < page->commands; i++) {
            printf("\n        '%s:", page->command[i]->path[page->path[0] ? 1 : 0]);
            put_zsh_text(page->command[i]->doc);
            printf("'");
        }
        printf(")\n");
        if (strcmp(path, "bench") == 0) {
            printf("      words_here+=($(dmath bench --list 2>/dev/null | sed 's/ .*//'))\n");
        }
        printf("      _describe command words_here && return\n");
    } else {
        put_zsh_options(page, path);
    }
    printf("      ;;\n");
    for (int i = 0; i < page->commands; i++) {
        put_zsh_page(page->command[i]);
    }
}

static void put_zsh(const help_page *page)
{
    fputs("#compdef dmath\n"
          "# Completion of dmath for zsh, made by `dmath completion zsh'.\n"
          "_dmath() {\n"
          "  local path_here= i depth\n"
          "  local -a words_here\n"
          "  for ((i = 2; i < CURRENT && i < 4; i++)); do\n"
          "    [[ ${words[i]} == -* ]] && break\n"
          "    path_here=\"$path_here${path_here:+ }${words[i]}\"\n"
          "  done\n"
          "  while true; do\n"
          "    case $path_here in\n",
          stdout);
    put_zsh_page(page);
    fputs("    'bench '*) path_here='bench op'; continue;;\n"
          "    *' '*) path_here=${path_here%% *}; continue;;\n"
          "    esac\n"
          "    break\n"
          "  done\n"
          "  _files\n"
          "}\n"
          "_dmath \"$@\"\n",
          stdout);
}

int tool_completion(int argc, char **argv)
{
    completion_options o = {0};
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    help_page *page = help_read();
    if (!page || (o.output && !freopen(o.output, "w", stdout))) {
        fprintf(stderr, "dmath completion: %s cannot be made\n", page ? o.output : "it");
        help_free(page);
        return TOOL_FAILED;
    }
    (strcmp(o.shell, "bash") == 0 ? put_bash : put_zsh)(page);
    help_free(page);
    return 0;
}
