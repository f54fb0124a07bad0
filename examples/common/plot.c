#include "common/plot.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { WIDTH = 820, HEIGHT = 640, LEFT = 70, RIGHT = 110, TOP = 50, BOTTOM = 60, COLOURS = 10 };

/* Ten colours that stay apart in print and for most colour-blind readers. */
static const char *const colours[COLOURS] = {"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee",
                                             "#aa3377", "#888888", "#ee8866", "#332288", "#000000"};

typedef struct axis {
    double lo, hi;   /* of the data, widened a little */
    double from, to; /* where they lie in the picture */
    double tick;     /* distance between ticks: 1, 2 or 5 times a power of ten */
} axis;

static axis make_axis(const plot *p, int which, double from, double to)
{
    double lo = INFINITY, hi = -INFINITY;
    for (int64_t i = 0; i < p->count; i++) {
        double v = p->points[2 * i + which];
        if (isfinite(v)) {
            lo = fmin(lo, v);
            hi = fmax(hi, v);
        }
    }
    if (!(lo < hi)) {
        double centre = isfinite(lo) ? lo : 0;
        lo = centre - 1;
        hi = centre + 1;
    }
    double margin = 0.04 * (hi - lo);
    axis a = {lo - margin, hi + margin, from, to, 0};
    double about = (a.hi - a.lo) / 6, power = pow(10, floor(log10(about)));
    double leading = about / power;
    a.tick = power * (leading < 1.5 ? 1 : leading < 3.5 ? 2 : leading < 7.5 ? 5 : 10);
    return a;
}

static double place(const axis *a, double v)
{
    return a->from + (v - a->lo) / (a->hi - a->lo) * (a->to - a->from);
}

static void text(FILE *out, double x, double y, const char *how, const char *words)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, how);
    for (const char *c = words; *c; c++) {
        switch (*c) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        default:
            fputc(*c, out);
        }
    }
    fputs("</text>\n", out);
}

static void draw_axes(FILE *out, const plot *p, const axis *x, const axis *y)
{
    char number[32];
    fprintf(out, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"#444444\"/>\n",
            x->from, y->to, x->to - x->from, y->from - y->to);
    for (long k = lround(ceil(x->lo / x->tick)); (double)k * x->tick <= x->hi; k++) {
        double at = place(x, (double)k * x->tick);
        fprintf(out, "<path d=\"M%.1f %g v5\" stroke=\"#444444\"/>\n", at, y->from);
        snprintf(number, sizeof number, "%g", (double)k * x->tick);
        text(out, at, y->from + 20, "text-anchor=\"middle\"", number);
    }
    for (long k = lround(ceil(y->lo / y->tick)); (double)k * y->tick <= y->hi; k++) {
        double at = place(y, (double)k * y->tick);
        fprintf(out, "<path d=\"M%g %.1f h-5\" stroke=\"#444444\"/>\n", x->from, at);
        snprintf(number, sizeof number, "%g", (double)k * y->tick);
        text(out, x->from - 9, at + 4, "text-anchor=\"end\"", number);
    }
    double middle = (y->from + y->to) / 2;
    char turned[96];
    snprintf(turned, sizeof turned, "text-anchor=\"middle\" transform=\"rotate(-90 20 %g)\"", middle);
    text(out, (x->from + x->to) / 2, HEIGHT - 15, "text-anchor=\"middle\"", p->x_label);
    text(out, 20, middle, turned, p->y_label);
    text(out, (x->from + x->to) / 2, 30, "text-anchor=\"middle\" font-size=\"17\"", p->title);
}

static void draw_legend(FILE *out, const plot *p)
{
    bool present[256] = {false};
    for (int64_t i = 0; i < p->count; i++) {
        present[p->labels[i]] = true;
    }
    double y = TOP + 15;
    for (int label = 0; label < 256; label++) {
        if (present[label] && y < HEIGHT - BOTTOM) {
            char number[16];
            snprintf(number, sizeof number, "%d", label);
            fprintf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
                    WIDTH - RIGHT + 25, y - 10, colours[label % COLOURS]);
            text(out, WIDTH - RIGHT + 45, y, "", number);
            y += 22;
        }
    }
}

int plot_save(const plot *p, const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out) {
        return -1;
    }
    axis x = make_axis(p, 0, LEFT, WIDTH - RIGHT), y = make_axis(p, 1, HEIGHT - BOTTOM, TOP);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
            "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"white\"/>\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    draw_axes(out, p, &x, &y);
    for (int64_t i = 0; i < p->count; i++) {
        double px = place(&x, p->points[2 * i]), py = place(&y, p->points[2 * i + 1]);
        if (isfinite(px) && isfinite(py)) {
            fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\" fill-opacity=\"0.7\"/>\n", px, py,
                    colours[p->labels ? p->labels[i] % COLOURS : 0]);
        }
    }
    if (p->labels) {
        draw_legend(out, p);
    }
    fputs("</svg>\n", out);
    int failed = ferror(out);
    return fclose(out) != 0 || failed ? -1 : 0;
}
