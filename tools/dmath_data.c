/* dmath data: databases for nets. */
#include "dmath.h"

#include <dmath/nn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct data_command {
    dm_data_options data;
    const char *arguments[1001];
    int count;
    int64_t first, records;
} data_command;

enum { KEY_GRAY = 256, KEY_LEVELDB, KEY_ROOT, KEY_RESIZE, KEY_DAMAGED, KEY_ENCODED };

static const struct argp_option convert_options[] = {
    {"from", 'f', "FORM", 0, "idx (default), cifar10, cifar100, images, lmdb, leveldb, hdf5", 0},
    {"root", KEY_ROOT, "FOLDER", 0, "of images: put before each path of the list", 0},
    {"resize", KEY_RESIZE, "HxW", 0, "of images: bring all to this height and width", 0},
    {"gray", KEY_GRAY, NULL, 0, "of images: one channel instead of blue, green, red", 0},
    {"encoded", KEY_ENCODED, NULL, 0, "of images: keep the files as they are; data layers decode them", 0},
    {"damaged", KEY_DAMAGED, "WHAT", 0,
     "of images, lmdb and leveldb, those that cannot be read: refuse (default) or skip", 0},
    {"leveldb", KEY_LEVELDB, NULL, 0, "make a LevelDB instead of an LMDB", 0},
    {0},
};
static const struct argp_option show_options[] = {
    {"first", 'f', "N", 0, "the first record that the table has (default 0)", 0},
    {"records", 'n', "N", 0, "how many it has (default 10)", 0},
    {0},
};

static bool parse_size(const char *text, dm_data_options *out)
{
    char rows[24];
    const char *x = strchr(text, 'x');
    if (!x || (size_t)(x - text) >= sizeof rows) {
        return false;
    }
    memcpy(rows, text, (size_t)(x - text));
    rows[x - text] = 0;
    return tool_int_parse(rows, 1, 1 << 20, &out->height) && tool_int_parse(x + 1, 1, 1 << 20, &out->width);
}

static error_t parse_argument(data_command *o, char *arg, struct argp_state *state)
{
    if (o->count == DMI_COUNT(o->arguments)) {
        argp_error(state, "there are more than %d arguments", DMI_COUNT(o->arguments));
    }
    o->arguments[o->count++] = arg;
    return 0;
}

static error_t parse_convert(int key, char *arg, struct argp_state *state)
{
    data_command *o = state->input;
    switch (key) {
    case 'f':
        o->data.from = arg;
        return 0;
    case KEY_ROOT:
        o->data.root = arg;
        return 0;
    case KEY_GRAY:
        o->data.gray = 1;
        return 0;
    case KEY_ENCODED:
        o->data.encoded = 1;
        return 0;
    case KEY_LEVELDB:
        o->data.leveldb = 1;
        return 0;
    case KEY_DAMAGED:
        o->data.skip_damaged = strcmp(arg, "skip") == 0;
        if (!o->data.skip_damaged && strcmp(arg, "refuse") != 0) {
            tool_refuse(state, key, arg, "is not understood");
        }
        return 0;
    case KEY_RESIZE:
        if (!parse_size(arg, &o->data)) {
            argp_error(state, "--resize takes a height and a width, as 256x256, not `%s'", arg);
        }
        return 0;
    case ARGP_KEY_ARG:
        return parse_argument(o, arg, state);
    case ARGP_KEY_END:
        if (o->count < 2) {
            argp_usage(state);
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_show(int key, char *arg, struct argp_state *state)
{
    data_command *o = state->input;
    switch (key) {
    case 'f':
    case 'n':
        if (!tool_int_parse(arg, 0, INT64_MAX, key == 'f' ? &o->first : &o->records)) {
            tool_refuse(state, key, arg, "is not understood");
        }
        return 0;
    case ARGP_KEY_ARG:
        return parse_argument(o, arg, state);
    case ARGP_KEY_END:
        if (o->count != 1) {
            argp_usage(state);
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Of the images that a list names, each behind root. */
static int64_t listed_bytes(const char *list, const char *root)
{
    char *line = NULL, path[4096];
    size_t room = 0;
    int64_t bytes = 0;
    FILE *f = fopen(list, "re");
    while (f && getline(&line, &room, f) > 0) {
        char *space = strrchr(line, ' '); /* the label is behind the last */
        line[space ? space - line : 0] = 0;
        snprintf(path, sizeof path, "%s%s", root ? root : "", line);
        bytes += tool_bytes_below(path);
    }
    if (f) {
        fclose(f);
    }
    free(line);
    return bytes;
}

static int64_t input_bytes(const dm_data_options *o)
{
    const bool images = strcmp(o->from, "images") == 0;
    int64_t bytes = 0;
    for (int i = 0; i < o->input_count; i++) {
        struct stat s;
        const bool list = images && stat(o->inputs[i], &s) == 0 && S_ISREG(s.st_mode);
        bytes += list ? listed_bytes(o->inputs[i], o->root) : tool_bytes_below(o->inputs[i]);
    }
    return bytes;
}

/* A line of the library; one of a record that is left out begins so. */
static void tell(void *context, const char *line)
{
    static const char skipped[] = "skipped: ";
    int64_t *count = context;
    fprintf(stderr, "%s\n", line);
    *count += strncmp(line, skipped, strlen(skipped)) == 0;
}

static int data_convert(int argc, char **argv)
{
    static const struct argp argp = {convert_options,
                                     parse_convert,
                                     "IMAGES LABELS DATABASE\n--from=cifar10 FILE... DATABASE\n--from=images "
                                     "LIST|FOLDER DATABASE\n--from=leveldb "
                                     "DATABASE DATABASE\n--from=hdf5 FILE... DATABASE",
                                     "Makes a database for Data layers: of idx files (plain or compressed by "
                                     "gzip), of CIFAR's binary files, of JPEG and "
                                     "PNG images that a list names with their labels or that lie in a folder "
                                     "for each class, of another database, or of HDF5 files with the arrays "
                                     "`data' and `label'. Where DATABASE ends with .h5, an HDF5 file for "
                                     "HDF5Data layers.",
                                     NULL,
                                     NULL,
                                     NULL};
    data_command o = {.data = DM_DATA_OPTIONS_INIT};
    int64_t count = 0, left_out = 0;
    o.data.from = "idx";
    o.data.log = tell;
    o.data.log_context = &left_out;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    o.data.inputs = o.arguments;
    o.data.input_count = o.count - 1;
    o.data.database = o.arguments[o.count - 1];
    tool_watch watch;
    tool_watch_begin(&watch, o.data.database, input_bytes(&o.data));
    dm_status status = dm_data_convert(&o.data, &count);
    tool_watch_end(&watch);
    tool_complain(status);
    if (status == DM_OK) {
        printf("%s: %lld records", o.data.database, (long long)count);
        printf(left_out ? ", %lld damaged ones left out\n" : "\n", (long long)left_out);
    }
    return status == DM_OK ? 0 : TOOL_FAILED;
}

static int data_mean(int argc, char **argv)
{
    double means[DM_MAX_CHANNEL_MEANS];
    int64_t channels = 0;
    if (argc != 3 || argv[1][0] == '-') {
        fprintf(stderr, "Usage: %s DATABASE FILE\nWrites the mean image of a database, for mean_file.\n",
                argv[0]);
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : TOOL_USAGE;
    }
    dm_status status = dm_data_mean(argv[1], argv[2], means, &channels);
    tool_complain(status);
    for (int64_t c = 0; status == DM_OK && c < channels; c++) {
        printf("mean_value: %.9g\n", means[c]);
    }
    return status == DM_OK ? 0 : TOOL_FAILED;
}

static int data_show(int argc, char **argv)
{
    static const struct argp argp = {
        show_options,
        parse_show,
        "DATABASE",
        "Reads all records of a database, or of an HDF5 file (.h5): a table of some, of the damaged ones, and "
        "how many have each label.",
        NULL,
        NULL,
        NULL};
    data_command o = {.records = 10};
    char *text = NULL;
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    dm_status status = dm_data_show(o.arguments[0], o.first, o.records, &text);
    tool_complain(status);
    if (status == DM_OK) {
        fputs(text, stdout);
        free(text);
    }
    return status == DM_OK ? 0 : TOOL_FAILED;
}

int tool_data(int argc, char **argv)
{
    static const tool_command commands[] = {{"convert", data_convert, "data sets to databases"},
                                            {"mean", data_mean, "the mean image of a database"},
                                            {"show", data_show, "what is in a database"},
                                            {NULL, NULL, NULL}};
    return tool_dispatch("dmath data", commands, argc, argv);
}
