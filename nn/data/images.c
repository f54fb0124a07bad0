#include "data/images.h"

#include <stdlib.h>
#include <string.h>

struct nn_images {
    const nn_transform *transform;
    int64_t size, shape[3]; /* shape: of what comes */
    dm_array windows[2], places[2], mean;
    bool made; /* all of them */
    int next;  /* which of the two the last batch has */
};

dm_status nn_images_open(const nn_transform *transform, int64_t size, const int64_t shape[3], nn_images **out)
{
    nn_images *m = calloc(1, sizeof *m);
    if (!m) {
        return dm_error_no_memory("the arrays of images", sizeof *m);
    }
    m->transform = transform;
    m->size = size;
    for (int d = 0; d < 3; d++) {
        m->shape[d] = shape[d];
    }
    *out = m;
    return DM_OK;
}

void nn_images_whole(nn_images *m, const int64_t record[3])
{
    memcpy(m->shape, record, sizeof m->shape);
}

void nn_images_close(nn_images *m)
{
    if (!m) {
        return;
    }
    dm_session *s = m->transform->layer->net->session;
    const dm_array all[] = {m->windows[0], m->windows[1], m->places[0], m->places[1], m->mean};
    for (int i = 0; i < NN_COUNT(all); i++) {
        if (all[i].id && dm_array_destroy(s, all[i]) != DM_OK) {
            break; /* the session has ended, and they with it */
        }
    }
    free(m);
}

/* On all workers: an element for each channel, or for each of a whole image. */
static dm_status make_mean(nn_images *m)
{
    const nn_transform *t = m->transform;
    dm_session *s = t->layer->net->session;
    const dm_layout all = dm_layout_replicated(s);
    const bool plane = t->mean_height * t->mean_width > 1;
    const int64_t shape[3] = {m->shape[0], t->mean_height, t->mean_width};
    dm_status status = m->mean.id ? DM_OK : dm_array_create(s, DM_F32, plane ? 3 : 1, shape, &all, &m->mean);
    if (status == DM_OK && t->mean_channels == 1 && shape[0] > 1) {
        return dm_fill(s, m->mean, t->mean[0]);
    }
    return status == DM_OK ? dm_write(s, m->mean, t->mean) : status;
}

/* Those that are not there yet. */
static dm_status make(nn_images *m)
{
    const nn_net *net = m->transform->layer->net;
    const dm_layout layout = dm_layout_batch(net->session, m->size, net->slices);
    const int64_t windows[4] = {m->size, m->shape[0], m->shape[1], m->shape[2]}, places[2] = {m->size, 3};
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < 2; i++) {
        if (!m->windows[i].id) {
            status = dm_array_create(net->session, DM_U8, 4, windows, &layout, &m->windows[i]);
        }
        if (status == DM_OK && !m->places[i].id) {
            status = dm_array_create(net->session, DM_I32, 2, places, &layout, &m->places[i]);
        }
    }
    return status == DM_OK && m->transform->mean ? make_mean(m) : status;
}

dm_status nn_images_next(nn_images *m, dm_array *windows, dm_array *places)
{
    dm_status status = m->made ? DM_OK : make(m);
    m->made = status == DM_OK;
    m->next = 1 - m->next;
    *windows = m->windows[m->next];
    *places = m->places[m->next];
    return status;
}

dm_status nn_images_forward(const nn_images *m, dm_array top)
{
    const nn_net *net = m->transform->layer->net;
    dm_images images = DM_IMAGES_INIT;
    images.scale = m->transform->scale;
    images.slices = net->slices;
    return dm_images_forward(net->session, &images, m->windows[m->next], m->places[m->next], m->mean, top);
}
