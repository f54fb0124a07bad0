/* The report of a training: one HTML file that needs nothing else. */
#include "dmath_train_log.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 720, HEIGHT = 240, LEFT = 70, BOTTOM = 30, TOP = 10, RIGHT = 10 };

static void put_escaped(FILE *to, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '&':
            fputs("&amp;", to);
            break;
        default:
            fputc(*text, to);
        }
    }
}

/* --- curves */
typedef struct range {
    double least, most;
} range;

static range range_of(const double *v, int64_t count)
{
    range r = {INFINITY, -INFINITY};
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(v[i])) {
            r.least = fmin(r.least, v[i]);
            r.most = fmax(r.most, v[i]);
        }
    }
    if (!(r.least <= r.most)) {
        r = (range){0, 1};
    }
    if (r.least == r.most) {
        r.most = r.least + (r.least != 0 ? fabs(r.least) / 10 : 1);
    }
    return r;
}

static void put_axes(FILE *to, range x, range y)
{
    for (int i = 0; i <= 4; i++) {
        double v = y.least + (y.most - y.least) * i / 4,
               at = HEIGHT - BOTTOM - (double)(HEIGHT - BOTTOM - TOP) * i / 4;
        fprintf(to,
                "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' class='grid'/><text x='%d' y='%.1f' "
                "class='y'>%.4g</text>\n",
                LEFT, WIDTH - RIGHT, at, at, LEFT - 6, at + 4, v);
        v = x.least + (x.most - x.least) * i / 4;
        at = LEFT + (double)(WIDTH - LEFT - RIGHT) * i / 4;
        fprintf(to, "<text x='%.1f' y='%d' class='x'>%.6g</text>\n", at, HEIGHT - 8, v);
    }
}

static void put_curve(FILE *to, const tool_curve *c)
{
    range x = range_of(c->x, c->count), y = range_of(c->y, c->count);
    fputs("<figure><figcaption>", to);
    put_escaped(to, c->name);
    fprintf(to, " (last: %.6g)</figcaption><svg viewBox='0 0 %d %d'>\n", c->count ? c->y[c->count - 1] : 0,
            WIDTH, HEIGHT);
    put_axes(to, x, y);
    fputs("<path class='curve' d='", to);
    bool on = false;
    int64_t step = c->count / 2000 + 1;
    for (int64_t i = 0; i < c->count; i++) {
        if (i % step != 0 && i != c->count - 1) {
            continue;
        }
        if (!isfinite(c->y[i])) {
            on = false;
            continue;
        }
        fprintf(to, "%c%.1f %.1f", on ? 'L' : 'M',
                LEFT + (c->x[i] - x.least) / (x.most - x.least) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - (c->y[i] - y.least) / (y.most - y.least) * (HEIGHT - BOTTOM - TOP));
        on = true;
    }
    fputs("'/></svg></figure>\n", to);
}

/* Would further passes of the net add rows to the user's files? Says so then. */
static bool writes_rows(FILE *to, const dm_net *net, const char *heading)
{
    for (int i = 0; i < dm_net_layers(net); i++) {
        dm_layer_info info = {.size = sizeof info};
        if (dm_net_layer(net, i, &info) == DM_OK && strcmp(info.type, "HDF5Output") == 0) {
            fprintf(to,
                    "<h2>%s</h2><p>Left out: it takes passes of the net, which would add rows to the file of '",
                    heading);
            put_escaped(to, info.name);
            fputs("'.</p>\n", to);
            return true;
        }
    }
    return false;
}

/* --- time of each layer */
static dm_status put_times(FILE *to, dm_net *net)
{
    if (writes_rows(to, net, "Time of each layer")) {
        return DM_OK;
    }
    int n = dm_net_layers(net);
    double *forward = calloc((size_t)n + 1, sizeof *forward),
           *backward = calloc((size_t)n + 1, sizeof *backward), most = 1e-9;
    dm_status status = forward && backward
                           ? dm_net_measure(net, 3, forward, backward)
                           : dm_error_no_memory("the times of layers", 2 * ((size_t)n + 1) * sizeof *forward);
    for (int i = 0; i < n && status == DM_OK; i++) {
        most = fmax(most, forward[i] + backward[i]);
    }
    fputs("<h2>Time of each layer</h2><p>Milliseconds, of the workers, the shorter half of 3 passes.</p>\n"
          "<table><tr><th>layer<th>type<th>forward<th>backward<th></tr>\n",
          to);
    for (int i = 0; i < n && status == DM_OK; i++) {
        dm_layer_info info = {.size = sizeof info};
        status = dm_net_layer(net, i, &info);
        if (status == DM_OK) {
            fputs("<tr><td>", to);
            put_escaped(to, info.name);
            fprintf(to,
                    "<td>%s<td class='n'>%.3f<td class='n'>%.3f<td><span class='bar' "
                    "style='width:%.0fpx'></span></tr>\n",
                    info.type, forward[i], backward[i], 200 * (forward[i] + backward[i]) / most);
        }
    }
    fputs("</table>\n", to);
    free(forward);
    free(backward);
    return status;
}

/* --- memory and bytes of workers */
static dm_status put_workers(FILE *to, dm_session *s, const tool_train_log *log)
{
    dm_status status = DM_OK;
    fputs("<h2>Workers</h2><table><tr><th>worker<th>memory, peak MiB<th>arrays MiB<th>workspace, peak "
          "MiB<th>sent MiB<th>received MiB"
          "<th>sent an iteration KiB</tr>\n",
          to);
    for (int w = 0; w < dm_workers(s) && status == DM_OK; w++) {
        dm_memory m = {.size = sizeof m};
        dm_counters c = {.size = sizeof c};
        status = dm_memory_report(s, w, &m);
        status = status == DM_OK ? dm_counters_get(s, w, &c) : status;
        if (status == DM_OK) {
            const double mib = 1 << 20;
            fprintf(to,
                    "<tr><td class='n'>%d<td class='n'>%.1f<td class='n'>%.1f<td class='n'>%.1f<td "
                    "class='n'>%.1f<td class='n'>%.1f<td "
                    "class='n'>%.1f</tr>\n",
                    w, (double)m.peak / mib, (double)m.arrays / mib, (double)c.workspace_peak_bytes / mib,
                    (double)c.bytes_sent / mib, (double)c.bytes_received / mib,
                    (double)c.bytes_sent / 1024 / (double)DMI_MAX(log->iteration, 1));
        }
    }
    fputs("</table>\n", to);
    return status;
}

/* What workers have sent to one another, and what the plans of a step say. */
enum { MOST_LINKED = 64 };
static dm_status put_links(FILE *to, dm_session *s, dm_solver *solver, const tool_train_log *log)
{
    const int workers = dm_workers(s);
    if (workers == 1 || workers > MOST_LINKED) {
        fprintf(to, workers == 1 ? "" : "<p>Bytes from worker to worker: for up to %d workers.</p>\n",
                MOST_LINKED);
        return DM_OK;
    }
    int64_t *plan = calloc((size_t)workers * (size_t)(workers + 1), sizeof *plan);
    int64_t *sent = calloc((size_t)workers + 1, sizeof *sent);
    dm_status status = plan && sent ? dm_solver_links(solver, plan)
                                    : dm_error_no_memory("a matrix of workers", (size_t)workers * sizeof *plan);
    const bool planned = status != DM_ERR_STATE;
    status = planned ? status : DM_OK;
    fprintf(
        to,
        "<h2>Bytes from worker to worker</h2><p>KiB an iteration, from the worker of the row to that of the "
        "column: all that has been sent since the session began, tests and data with it, divided by the "
        "iterations%s.</p>\n<table class='matrix links'><tr><th>",
        planned ? "; behind the slash what the plans of a step say"
                : ". The step's calls go one by one: it has "
                  "no plan of its own");
    for (int w = 0; w < workers; w++) {
        fprintf(to, "<th>%d", w);
    }
    fputs("<th>master</tr>\n", to);
    for (int i = 0; i < workers && status == DM_OK; i++) {
        const double each = 1024 * (double)DMI_MAX(log->iteration, 1);
        status = dm_links_get(s, i, sent);
        fprintf(to, "<tr><th>%d", i);
        for (int k = 0; k <= workers && status == DM_OK; k++) {
            if (k == i) {
                fputs("<td>", to);
            } else if (planned && k < workers) {
                fprintf(to, "<td>%.1f / %.1f", (double)sent[k] / each, (double)plan[i * workers + k] / 1024);
            } else {
                fprintf(to, "<td>%.1f", (double)sent[k] / each);
            }
        }
        fputs("</tr>\n", to);
    }
    fputs("</table>\n", to);
    free(plan);
    free(sent);
    return status;
}

/* --- the confusion matrix of a test net: what its Accuracy layer compares */
typedef struct compared {
    const char *scores, *labels;
    int axis, ignored;
} compared;

static bool find_accuracy(const dm_net *net, compared *out)
{
    dm_layer_info info = {.size = sizeof info};
    for (int i = 0; i < dm_net_layers(net); i++) {
        if (dm_net_layer(net, i, &info) == DM_OK && strcmp(info.type, "Accuracy") == 0) {
            *out = (compared){dm_net_bottom(net, i, 0), dm_net_bottom(net, i, 1), info.axis, info.ignored};
            return true;
        }
    }
    return false;
}

/* All classes up to MOST_CLASSES; of more, the SHOWN that are confused most often, and the others together. */
enum { BATCHES = 20, MOST_CLASSES = 100, SHOWN = 20 };

typedef struct answer {
    int64_t label, best;
} answer;

/* What the net says of the samples of some batches. *count: of those whose label is a class that counts. */
static dm_status read_answers(dm_net *net, const compared *by, int64_t n, int64_t classes, answer *out,
                              int64_t *count)
{
    float *x = malloc((size_t)(n * classes) * sizeof *x), *y = malloc((size_t)n * sizeof *y);
    dm_status status =
        x && y ? DM_OK : dm_error_no_memory("the elements of two blobs", (size_t)(n * classes + n) * sizeof *x);
    for (int b = 0; status == DM_OK && b < BATCHES; b++) {
        status = dm_net_forward(net, NULL);
        status = status == DM_OK ? dm_net_read(net, by->scores, x) : status;
        status = status == DM_OK ? dm_net_read(net, by->labels, y) : status;
        for (int64_t i = 0; status == DM_OK && i < n; i++) {
            int64_t best = 0;
            for (int64_t c = 1; c < classes; c++) {
                best = x[i * classes + c] > x[i * classes + best] ? c : best;
            }
            if (y[i] >= 0 && y[i] < (float)classes && y[i] != (float)by->ignored) {
                out[(*count)++] = (answer){(int64_t)y[i], best};
            }
        }
    }
    free(x);
    free(y);
    return status;
}

/* Chooses the classes that the matrix shows: shown[i] is the class of row i, and row[c] the row of class c, for
 * those left out *rows, the row of the others. of[c] becomes how often c was confused: as label or as answer.
 */
static void choose_classes(const answer *a, int64_t count, int64_t classes, int64_t *of, int64_t *row,
                           int64_t *shown, int64_t *rows)
{
    for (int64_t i = 0; i < count; i++) {
        of[a[i].label] += a[i].label != a[i].best;
        of[a[i].best] += a[i].label != a[i].best;
    }
    for (int64_t c = 0; classes <= MOST_CLASSES && c < classes; c++) {
        shown[(*rows)++] = c;
    }
    while (classes > MOST_CLASSES && *rows < SHOWN) {
        int64_t most = -1;
        for (int64_t c = 0; c < classes; c++) {
            most = of[c] > 0 && row[c] == 0 && (most < 0 || of[c] > of[most]) ? c : most;
        }
        if (most < 0) {
            break;
        }
        row[most] = 1; /* taken */
        shown[(*rows)++] = most;
    }
    for (int64_t c = 0; c < classes; c++) {
        row[c] = *rows;
    }
    for (int64_t i = 0; i < *rows; i++) {
        row[shown[i]] = i;
    }
}

static void put_class(FILE *to, const int64_t *shown, int64_t rows, int64_t i)
{
    if (i < rows) {
        fprintf(to, "<th>%lld", (long long)shown[i]);
    } else {
        fputs("<th>others", to);
    }
}

/* side: rows, and one more for the others. */
static void put_matrix(FILE *to, const int64_t *shown, int64_t rows, int64_t side, const int64_t *counts)
{
    fputs("<table class='matrix'><tr><th>", to);
    for (int64_t c = 0; c < side; c++) {
        put_class(to, shown, rows, c);
    }
    fputs("</tr>\n", to);
    for (int64_t r = 0; r < side; r++) {
        int64_t sum = 0;
        fputs("<tr>", to);
        put_class(to, shown, rows, r);
        for (int64_t c = 0; c < side; c++) {
            sum += counts[r * side + c];
        }
        for (int64_t c = 0; c < side; c++) {
            int64_t n = counts[r * side + c];
            bool mixed = r == rows && c == rows; /* right and wrong together */
            double part = sum && !mixed ? (double)n / (double)sum : 0;
            fprintf(to, "<td class='n' style='background:rgba(%s,%.3f)'>%lld",
                    r == c ? "40,140,70" : "200,60,40", sqrt(part) * 0.8, (long long)n);
        }
        fputs("</tr>\n", to);
    }
    fputs("</table>\n", to);
}

static dm_status put_answers(FILE *to, const answer *a, int64_t count, int64_t classes)
{
    const int64_t most = DMI_MAX(MOST_CLASSES, SHOWN) + 1;
    int64_t *of = calloc((size_t)classes, sizeof *of), *row = calloc((size_t)classes, sizeof *row);
    int64_t *counts = calloc((size_t)(most * most), sizeof *counts);
    int64_t shown[DMI_MAX(MOST_CLASSES, SHOWN)], rows = 0, right = 0;
    bool well = of && row && counts;
    if (well) {
        choose_classes(a, count, classes, of, row, shown, &rows);
        const int64_t side = rows + (rows < classes);
        for (int64_t i = 0; i < count; i++) {
            right += a[i].label == a[i].best;
            counts[row[a[i].label] * side + row[a[i].best]]++;
        }
        fprintf(to, "<p>%lld of %lld right. Rows: labels; columns: the net's answers.", (long long)right,
                (long long)count);
        if (rows < classes) {
            fprintf(to,
                    " The net has %lld classes, too many for the whole matrix: these are the %lld that were "
                    "confused most often, as label or as answer. %lld are left out: the row and the column "
                    "&quot;others&quot;.",
                    (long long)classes, (long long)rows, (long long)(classes - rows));
        }
        fputs("</p>", to);
        put_matrix(to, shown, rows, side, counts);
    }
    free(of);
    free(row);
    free(counts);
    return well ? DM_OK
                : dm_error_no_memory("the counts of a confusion matrix",
                                     (size_t)(2 * classes + most * most) * sizeof *counts);
}

static dm_status put_confusion(FILE *to, dm_net *net)
{
    compared by;
    int ndim = 0, label_dims = 0;
    int64_t shape[DM_MAX_DIMS], rows[DM_MAX_DIMS], classes = 1, each = 1, count = 0;
    if (!net || !find_accuracy(net, &by) || writes_rows(to, net, "Confusion matrix")) {
        return DM_OK;
    }
    dm_status status = dm_net_shape(net, by.scores, &ndim, shape);
    status = status == DM_OK ? dm_net_shape(net, by.labels, &label_dims, rows) : status;
    for (int d = 1; status == DM_OK && d < ndim; d++) {
        classes *= shape[d];
    }
    for (int d = 1; status == DM_OK && d < label_dims; d++) {
        each *= rows[d];
    }
    if (status != DM_OK) {
        return status;
    }
    fputs("<h2>Confusion matrix</h2>", to);
    if (label_dims < 1 || each != 1 || rows[0] != shape[0] || by.axis == 0 || classes < 2) {
        fputs("<p>Left out: it is made of nets with one label a sample and two classes or more.</p>\n", to);
        return DM_OK;
    }
    answer *answers = malloc((size_t)(shape[0] * BATCHES) * sizeof *answers);
    status = answers
                 ? read_answers(net, &by, shape[0], classes, answers, &count)
                 : dm_error_no_memory("the answers of a net", (size_t)(shape[0] * BATCHES) * sizeof *answers);
    status = status == DM_OK ? put_answers(to, answers, count, classes) : status;
    free(answers);
    return status;
}

/* --- filters of the first convolution, as one picture each: a BMP inside the page */
static void put_base64(FILE *to, const unsigned char *bytes, size_t length)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < length; i += 3) {
        unsigned v = (unsigned)bytes[i] << 16 | (i + 1 < length ? (unsigned)bytes[i + 1] << 8 : 0) |
                     (i + 2 < length ? bytes[i + 2] : 0);
        fputc(digits[v >> 18], to);
        fputc(digits[v >> 12 & 63], to);
        fputc(i + 1 < length ? digits[v >> 6 & 63] : '=', to);
        fputc(i + 2 < length ? digits[v & 63] : '=', to);
    }
}

/* w: channels x rows x cols; three channels are blue, green, red. */
static void put_filter(FILE *to, const float *w, int64_t channels, int64_t rows, int64_t cols)
{
    enum { HEAD = 54, SIDE = 32 };
    unsigned char bmp[HEAD + SIDE * SIDE * 4] = {'B', 'M'};
    int64_t plane = rows * cols, used = channels == 3 ? 3 : 1;
    size_t pitch = ((size_t)cols * 3 + 3) / 4 * 4, length = HEAD + pitch * (size_t)rows;
    float least = w[0], most = w[0];
    for (int64_t k = 0; k < used * plane; k++) {
        least = w[k] < least ? w[k] : least;
        most = w[k] > most ? w[k] : most;
    }
    const struct {
        int at;
        uint32_t value;
    } head[] = {{2, (uint32_t)length}, {10, HEAD},           {14, 40},
                {18, (uint32_t)cols},  {22, (uint32_t)rows}, {26, 1 | 24 << 16}};
    for (int i = 0; i < DMI_COUNT(head); i++) {
        for (int k = 0; k < 4; k++) {
            bmp[head[i].at + k] = (unsigned char)(head[i].value >> 8 * k);
        }
    }
    for (int64_t y = 0; y < rows; y++) {
        for (int64_t x = 0; x < cols * 3; x++) {
            float v = w[(used == 3 ? x % 3 : 0) * plane + (rows - 1 - y) * cols + x / 3];
            bmp[HEAD + (size_t)y * pitch + (size_t)x] =
                (unsigned char)(most > least ? 255 * (v - least) / (most - least) : 128);
        }
    }
    fputs("<img src='data:image/bmp;base64,", to);
    put_base64(to, bmp, length);
    fputs("' alt=''>", to);
}

static dm_status put_filters(FILE *to, dm_net *net)
{
    enum { MOST = 256, MOST_SIDE = 32 };
    dm_layer_info info = {.size = sizeof info};
    int ndim = 0;
    int64_t shape[DM_MAX_DIMS];
    dm_status status = DM_OK;
    for (int i = 0; i < dm_net_layers(net); i++) {
        status = dm_net_layer(net, i, &info);
        if (status != DM_OK || strcmp(info.type, "Convolution") == 0) {
            break;
        }
        info.name = NULL;
    }
    if (status != DM_OK || !info.name) {
        return status;
    }
    status = dm_net_param_read(net, info.name, 0, &ndim, shape, NULL);
    if (status != DM_OK || ndim != 4 || shape[2] > MOST_SIDE || shape[3] > MOST_SIDE) {
        return status;
    }
    int64_t each = shape[1] * shape[2] * shape[3];
    float *w = malloc((size_t)(shape[0] * each) * sizeof *w);
    status = w ? dm_net_param_read(net, info.name, 0, &ndim, shape, w)
               : dm_error_no_memory("the elements of a parameter", (size_t)(shape[0] * each) * sizeof *w);
    if (status == DM_OK) {
        fputs("<h2>Filters of ", to);
        put_escaped(to, info.name);
        fprintf(to,
                "</h2><p>%lld filters of %lld x %lld x %lld, each from its least to its greatest "
                "weight%s.</p><div class='filters'>",
                (long long)shape[0], (long long)shape[1], (long long)shape[2], (long long)shape[3],
                shape[1] == 3 || shape[1] == 1 ? "" : "; the first channel of each");
        for (int64_t k = 0; k < shape[0] && k < MOST; k++) {
            put_filter(to, w + k * each, shape[1], shape[2], shape[3]);
        }
        fputs("</div>\n", to);
    }
    free(w);
    return status;
}

/* --- the file */
static const char head[] =
    "<!DOCTYPE html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
    "<title>dmath train</title><style>"
    "body{font:15px system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 "
    "1em;color:#222;background:#fff}"
    "figure{margin:1em 0}figcaption{font-weight:600}svg{width:100%;height:auto}"
    ".grid{stroke:#ddd}.curve{fill:none;stroke:#1565c0;stroke-width:1.6}"
    "text{font-size:11px;fill:#666}.y{text-anchor:end}.x{text-anchor:middle}"
    "table{border-collapse:collapse;margin:.5em 0}th,td{padding:.15em .6em;border-bottom:1px solid "
    "#eee;text-align:left}"
    ".n{text-align:right;font-variant-numeric:tabular-nums}.matrix td,.matrix th{padding:.15em "
    ".4em;text-align:right}"
    ".bar{display:inline-block;height:.8em;background:#1565c0}"
    ".filters img{width:48px;height:48px;margin:2px;image-rendering:pixelated}"
    "@media(prefers-color-scheme:dark){body{background:#181a1b;color:#ddd}.grid{stroke:#333}th,td{border-color:"
    "#333}text{fill:#999}"
    ".curve{stroke:#64b5f6}.bar{background:#64b5f6}}</style>\n";

static dm_status write_all(FILE *to, dm_session *s, dm_solver *solver, const tool_train_log *log)
{
    dm_net *net = dm_solver_net(solver);
    fputs(head, to);
    fputs("<h1>Training of ", to);
    put_escaped(to, log->title);
    fprintf(to, "</h1><p>%lld iterations in %.1f s on %d worker%s.</p>\n", (long long)log->iteration,
            log->seconds, dm_workers(s), dm_workers(s) == 1 ? "" : "s");
    for (int i = 0; i < log->curves; i++) {
        put_curve(to, &log->curve[i]);
    }
    dm_status status = put_workers(to, s, log); /* before the passes below add to it */
    status = status == DM_OK ? put_links(to, s, solver, log) : status;
    status = status == DM_OK ? put_confusion(to, dm_solver_test_net(solver, 0)) : status;
    status = status == DM_OK ? put_filters(to, net) : status;
    status = status == DM_OK ? put_times(to, net) : status;
    fputs("</html>\n", to);
    return status;
}

dm_status tool_report_try(const char *path)
{
    const bool there = access(path, F_OK) == 0;
    FILE *to = fopen(path, "ae");
    if (!to) {
        return dm_error_set(DM_ERR_IO, "%s: cannot be written", path);
    }
    fclose(to);
    if (!there) {
        unlink(path);
    }
    return DM_OK;
}

dm_status tool_report_write(const char *path, dm_session *s, dm_solver *solver, const tool_train_log *log)
{
    FILE *to = fopen(path, "we");
    if (!to) {
        return dm_error_set(DM_ERR_IO, "%s: cannot be written", path);
    }
    dm_status status = write_all(to, s, solver, log);
    bool failed = ferror(to) != 0;
    if ((fclose(to) != 0 || failed) && status == DM_OK) {
        status = dm_error_set(DM_ERR_IO, "%s: cannot be written", path);
    }
    return status;
}
