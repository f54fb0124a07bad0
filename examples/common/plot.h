/* A scatter plot as an SVG file. */
#ifndef PLOT_H
#define PLOT_H

#include <stdint.h>

typedef struct plot {
    const char *title, *x_label, *y_label;
    int64_t count;
    const double *points;  /* count pairs x, y */
    const uint8_t *labels; /* class of each point, or NULL: one class and no legend */
} plot;

/* Returns 0, or -1 with errno set. */
int plot_save(const plot *p, const char *path);

#endif
