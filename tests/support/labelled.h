/* Scores with labels. */
#ifndef DMT_LABELLED_H
#define DMT_LABELLED_H

#include "support/layers.h"

typedef struct dmt_labelled {
    dm_loss options;
    int ndim, label_dims;
    int64_t shape[4], label_shape[4], classes, count; /* count: of labels */
} dmt_labelled;

/* Shapes and options. */
void dmt_labelled_random(dmt_case *c, dmt_labelled *v);
/* Adds labels in the range, one or another ignored. */
dmt_host *dmt_labels_add(dmt_case *c, dmt_layer *l, const dmt_labelled *v);
bool dmt_ignored(const dmt_labelled *v, long double label);
/* What a loss is divided by. */
long double dmt_normaliser(const dmt_labelled *v, const dmt_host *labels);

#endif
