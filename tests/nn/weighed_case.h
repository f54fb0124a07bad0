/* What tests of layers over many shapes share beside shape_case.h: nets of one input x whose output y has the
 * gradient w. */
#ifndef WEIGHED_CASE_H
#define WEIGHED_CASE_H

#include "shape_case.h"

/* loss = the sum of y times w: w is the gradient of y. */
#define WEIGHED(y)                                                                                             \
    "layer { name: 'weighed' type: 'Eltwise' bottom: ['" y                                                     \
    "', 'w'] top: 'weighed' eltwise_param { operation: "                                                       \
    "PROD } propagate_down: [true, false] }\n" SUM_OF("weighed")

static float x[MOST], w[MOST];
static double y[MOST], dx[MOST];

/* A net of x, w of y's shape, more inputs and the layers; w and x are written. */
static inline dm_net *open_net(const char *more, const char *layers, const shape *sx, const shape *sw,
                               int phase)
{
    char text[4096] = FORCED;
    input(text, sizeof text, "x", sx);
    input(text, sizeof text, "w", sw);
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "%s%s", more, layers);
    dm_net *net = open_text(text, phase);
    fill(x, elements(sx));
    fill(w, elements(sw));
    CHECK(dm_net_write(net, "x", x));
    CHECK(dm_net_write(net, "w", w));
    return net;
}

static inline void run(dm_net *net)
{
    CHECK(dm_net_forward(net, NULL));
    CHECK(dm_net_backward(net));
}

#endif
