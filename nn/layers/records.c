/* Data, ImageData: layers that read records, ahead of the step (data/feed.h). */
#include "layers/layers.h"

#include "data/batch.h"

static const char D[] = "DataParameter", I[] = "ImageDataParameter";

/* Fields that old nets have in the layer's own message, and Caffe no longer reads there. */
static dm_status refuse_old(const nn_layer *l, const char *where)
{
    static const char *const old[] = {"scale", "mean_file", "crop_size", "mirror"};
    for (int i = 0; i < NN_COUNT(old); i++) {
        if (nn_has(l->own, old[i])) {
            return nn_layer_fail(l, old[i], DM_ERR_UNSUPPORTED, "has %s in %s; its place is transform_param",
                                 old[i], where);
        }
    }
    return DM_OK;
}

static dm_status open_records(nn_layer *l, nn_batch_setup *setup)
{
    nn_feed *f = NULL;
    setup->shuffle = setup->shuffle || (l->net->shuffle && l->net->phase == NN_TRAIN);
    dm_status status = nn_batch_open(l, setup, &f);
    if (status == DM_OK) {
        l->u.state = f;
    }
    return status;
}

/* --- Data: a database. */
dm_status nn_data_setup(nn_layer *l)
{
    nn_batch_setup setup = {.size = nn_int(l->own, D, "batch_size"), .skip = nn_int(l->own, D, "rand_skip")};
    nn_backend backend = nn_int(l->own, D, "backend") == NN_LMDB ? NN_LMDB : NN_LEVELDB;
    dm_status status = refuse_old(l, "data_param");
    if (status != DM_OK) {
        return status;
    }
    if (!nn_has(l->own, "source") || setup.size < 1) {
        return nn_layer_fail(l, "data_param", DM_ERR_FORMAT, "needs a source and a batch_size");
    }
    nn_use(l->own, "prefetch");
    setup.origin = (nn_origin){.path = nn_string(l->own, D, "source"), .backend = backend};
    status = nn_origin_open(&setup.origin, &setup.source);
    if (status != DM_OK) {
        return nn_layer_fail(l, "source", status, "cannot read its data: %s", dm_error_message());
    }
    if (nn_int(l->own, D, "force_encoded_color")) {
        if (nn_int(nn_sub(l->message, "transform_param"), "TransformationParameter", "force_gray")) {
            nn_source_close(setup.source);
            return nn_layer_fail(
                l, "force_encoded_color", DM_ERR_FORMAT,
                "has force_encoded_color, and force_gray in transform_param: only one of the two "
                "may be there");
        }
        setup.source->colour = NN_COLOUR;
    }
    return open_records(l, &setup);
}

dm_status nn_data_forward(nn_layer *l)
{
    return nn_feed_next(l->u.state);
}

void nn_data_drop(nn_layer *l)
{
    nn_feed_close(l->u.state);
}

/* --- ImageData: images that a file lists. */
dm_status nn_image_setup(nn_layer *l)
{
    nn_batch_setup setup = {.size = nn_int(l->own, I, "batch_size"),
                            .skip = nn_int(l->own, I, "rand_skip"),
                            .shuffle = nn_int(l->own, I, "shuffle") != 0};
    nn_list_setup list = {.folder = nn_string(l->own, I, "root_folder"),
                          .colour = nn_int(l->own, I, "is_color") != 0,
                          .height = nn_int(l->own, I, "new_height"),
                          .width = nn_int(l->own, I, "new_width")};
    dm_status status = refuse_old(l, "image_data_param");
    if (status != DM_OK) {
        return status;
    }
    if (!nn_has(l->own, "source") || setup.size < 1) {
        return nn_layer_fail(l, "image_data_param", DM_ERR_FORMAT, "needs a source and a batch_size");
    }
    if ((list.height > 0) != (list.width > 0)) {
        return nn_layer_fail(l, list.height ? "new_height" : "new_width", DM_ERR_FORMAT,
                             "has only one of new_height and new_width");
    }
    setup.origin = (nn_origin){.path = nn_string(l->own, I, "source"), .listed = true, .list = list};
    status = nn_origin_open(&setup.origin, &setup.source);
    if (status != DM_OK) {
        return nn_layer_fail(l, "source", status, "cannot read its list: %s", dm_error_message());
    }
    return open_records(l, &setup);
}

dm_status nn_image_forward(nn_layer *l)
{
    return nn_feed_next(l->u.state);
}

void nn_image_drop(nn_layer *l)
{
    nn_feed_close(l->u.state);
}
