/* Window files: "# number", path, channels, height, width, count, and a line for each window: class overlap x1
 * y1 x2 y2. */
#include "data/window.h"

#include "data/list.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const char *path;
    char **lines;
    int64_t count, at;
} reader;

static dm_status wrong(const reader *r, const char *what)
{
    return dm_error_set(DM_ERR_FORMAT, "%s:%lld: %s", r->path, (long long)(r->at + 1), what);
}

/* With a point, whatever the program's locale. */
static double real(const char *text, char **end)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
    double value = strtod(text, end);
    uselocale(before);
    if (plain) {
        freelocale(plain);
    }
    return value;
}

/* Numbers of a line, no more and no fewer. */
static bool numbers(const char *line, int count, double *out)
{
    for (int i = 0; i < count; i++) {
        char *end = NULL;
        out[i] = real(line, &end);
        if (end == line || !(fabs(out[i]) < 1e9)) {
            return false;
        }
        line = end;
    }
    return line[strspn(line, " \t")] == 0;
}

static dm_status add(nn_windows *w, int kind, nn_window window)
{
    if ((w->count[kind] & (w->count[kind] - 1)) == 0) { /* room doubles at powers of two */
        size_t room = w->count[kind] ? 2 * (size_t)w->count[kind] : 1;
        nn_window *more = realloc(w->all[kind], room * sizeof *more);
        if (!more) {
            return dm_error_no_memory("a list of windows", room * sizeof *more);
        }
        w->all[kind] = more;
    }
    w->all[kind][w->count[kind]++] = window;
    return DM_OK;
}

static dm_status read_windows(reader *r, int64_t count, double foreground, double background, nn_windows *w)
{
    for (int64_t i = 0; i < count; i++, r->at++) {
        double v[6];
        if (r->at >= r->count || !numbers(r->lines[r->at], 6, v) || v[0] != floor(v[0]) || v[4] < v[2] ||
            v[5] < v[3]) {
            return wrong(r, "a window has a class, an overlap, and x1 y1 x2 y2");
        }
        nn_window window = {w->images, (int64_t)v[0], {v[2], v[3], v[4], v[5]}};
        dm_status status = DM_OK;
        if (v[1] >= foreground) {
            status = window.label > 0 ? add(w, 1, window)
                                      : wrong(r, "a window of the foreground has a class above 0");
        } else if (v[1] < background) {
            window.label = 0;
            status = add(w, 0, window);
        }
        if (status != DM_OK) {
            return status;
        }
    }
    return DM_OK;
}

static dm_status read_image(reader *r, double foreground, double background, nn_windows *w)
{
    double v[4];
    char **lines = r->lines + r->at;
    if (r->count - r->at < 6 || lines[0][0] != '#') {
        return wrong(
            r, "an image begins with '# number', then path, channels, height, width and the number of windows");
    }
    for (int i = 0; i < 4; i++) {
        if (!numbers(lines[2 + i], 1, &v[i]) || v[i] < (i == 3 ? 0 : 1) || v[i] != floor(v[i])) {
            r->at += 2 + i;
            return wrong(r, "channels, height, width and the number of windows must be numbers");
        }
    }
    w->image[w->images] = lines[1];
    w->line[w->images] = r->at + 2;
    r->at += 6;
    dm_status status = read_windows(r, (int64_t)v[3], foreground, background, w);
    w->images++;
    return status;
}

void nn_windows_drop(nn_windows *w)
{
    free(w->text);
    free(w->image);
    free(w->line);
    free(w->all[0]);
    free(w->all[1]);
    memset(w, 0, sizeof *w);
}

dm_status nn_windows_read(const char *path, double foreground, double background, nn_windows *out)
{
    reader r = {.path = path};
    *out = (nn_windows){0};
    dm_status status = nn_lines_read(path, &out->text, &r.lines, &r.count);
    if (status != DM_OK) {
        return status;
    }
    out->image = malloc((size_t)(r.count + 1) * sizeof *out->image);
    out->line = malloc((size_t)(r.count + 1) * sizeof *out->line);
    status = out->image && out->line
                 ? DM_OK
                 : dm_error_no_memory("a list of images",
                                      (size_t)(r.count + 1) * (sizeof *out->image + sizeof *out->line));
    while (status == DM_OK && r.at < r.count) {
        if (*r.lines[r.at]) {
            status = read_image(&r, foreground, background, out);
        } else {
            r.at++;
        }
    }
    free(r.lines);
    if (status != DM_OK) {
        nn_windows_drop(out);
    }
    return status;
}

/* Ends of the window along one dim, grown about its middle; and what of it lies in the image. */
typedef struct span {
    int64_t first, last, before, behind; /* before, behind: parts outside of the image */
} span;

static span grow(double first, double half, double scale, int64_t extent)
{
    double middle = first + half;
    span s = {(int64_t)round(middle - half * scale), (int64_t)round(middle + half * scale), 0, 0};
    s.before = s.first < 0 ? -s.first : 0;
    s.behind = s.last - extent + 1 > 0 ? s.last - extent + 1 : 0;
    return s;
}

dm_status nn_window_place(const double box[4], int64_t image_rows, int64_t image_cols, int64_t crop,
                          int64_t pad, bool square, bool mirrored, nn_placed *out)
{
    double half_x = (box[2] - box[0] + 1) / 2, half_y = (box[3] - box[1] + 1) / 2;
    double scale = (double)crop / (double)(crop - 2 * pad);
    span x = {(int64_t)box[0], (int64_t)box[2], 0, 0}, y = {(int64_t)box[1], (int64_t)box[3], 0, 0};
    nn_placed p = {.height = crop, .width = crop};
    if (pad > 0 || square) {
        double larger = fmax(half_x, half_y);
        /* The middle is that of the window; the square has the larger side. */
        x = grow(box[0] + half_x - (square ? larger : half_x), square ? larger : half_x, scale, image_cols);
        y = grow(box[1] + half_y - (square ? larger : half_y), square ? larger : half_y, scale, image_rows);
        double scale_x = (double)crop / (double)(x.last - x.first + 1),
               scale_y = (double)crop / (double)(y.last - y.first + 1);
        p.width = (int64_t)round((double)(x.last - x.behind - x.first - x.before + 1) * scale_x);
        p.height = (int64_t)round((double)(y.last - y.behind - y.first - y.before + 1) * scale_y);
        p.right = (int64_t)round((double)(mirrored ? x.behind : x.before) * scale_x);
        p.down = (int64_t)round((double)y.before * scale_y);
        p.width = p.right + p.width > crop ? crop - p.right : p.width;
        p.height = p.down + p.height > crop ? crop - p.down : p.height;
    }
    p.left = x.first + x.before;
    p.top = y.first + y.before;
    p.cols = x.last - x.behind - p.left + 1;
    p.rows = y.last - y.behind - p.top + 1;
    if (p.top < 0 || p.left < 0 || p.rows < 1 || p.cols < 1 || p.top + p.rows > image_rows ||
        p.left + p.cols > image_cols || p.height < 1 || p.width < 1) {
        return dm_error_set(DM_ERR_FORMAT, "a window lies outside of its image");
    }
    *out = p;
    return DM_OK;
}
