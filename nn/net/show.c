/* Nets as tables: their layers, and how long those take. */
#include "net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void print_shape(FILE *to, int ndim, const int64_t *shape)
{
    for (int d = 0; d < ndim; d++) {
        fprintf(to, "%s%lld", d ? " x " : "", (long long)shape[d]);
    }
    if (ndim == 0) {
        fputs("a number", to);
    }
}

static void show_layer(FILE *to, const nn_layer *l)
{
    fprintf(to, "%-20s %-16s", l->name, l->type->name);
    for (int i = 0; i < l->bottoms; i++) {
        fprintf(to, "%s%s", i ? ", " : " ", l->bottom[i]->name);
    }
    fputs(" ->", to);
    for (int i = 0; i < l->tops; i++) {
        fprintf(to, "%s%s (", i ? ", " : " ", l->top[i]->name);
        print_shape(to, l->top[i]->ndim, l->top[i]->shape);
        fputc(')', to);
    }
    for (int i = 0; i < l->params; i++) {
        fputs(i ? ", " : "; parameters ", to);
        print_shape(to, l->param[i]->ndim, l->param[i]->shape);
    }
    fputc('\n', to);
}

dm_status dm_net_show(const dm_net *net, char **text)
{
    size_t length = 0;
    int64_t elements = 0;
    FILE *to = net && text ? open_memstream(text, &length) : NULL;
    if (!to) {
        return net && text ? nn_no_memory() : dm_error_set(DM_ERR_ARG, "dm_net_show: an argument is NULL");
    }
    for (int i = 0; i < net->layer_count; i++) {
        show_layer(to, &net->layers[i]);
    }
    for (int i = 0; i < net->param_count; i++) {
        elements += net->params[i]->count;
    }
    fprintf(to, "%s: %d layers, %lld numbers in %d parameters; outputs:", *net->name ? net->name : "the net",
            net->layer_count, (long long)elements, net->param_count);
    for (int i = 0; i < net->output_count; i++) {
        fprintf(to, " %s", net->blobs[net->output[i]]->name);
    }
    fputc('\n', to);
    return fclose(to) == 0 ? DM_OK : nn_no_memory();
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* One function of a layer, alone: all that was queued before is done. */
static dm_status time_one(nn_layer *l, dm_status (*function)(nn_layer *), double *ms)
{
    dm_status status = dm_sync(l->net->session);
    double start = now_ms();
    status = status == DM_OK ? function(l) : status;
    status = status == DM_OK ? dm_sync(l->net->session) : status;
    *ms += now_ms() - start;
    return status;
}

static dm_status time_pass(nn_net *net, double *forward, double *backward)
{
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i < net->layer_count; i++) {
        status = time_one(&net->layers[i], net->layers[i].type->forward, &forward[i]);
    }
    net->pass++;
    for (int i = 0; i < net->blob_count; i++) {
        net->blobs[i]->gradients = 0;
    }
    for (int i = 0; i < net->param_count; i++) {
        net->params[i]->gradients = 0;
    }
    for (int i = net->layer_count - 1; status == DM_OK && net->phase == NN_TRAIN && i >= 0; i--) {
        if (net->layers[i].need_backward) {
            status = time_one(&net->layers[i], net->layers[i].type->backward, &backward[i]);
        }
    }
    return status;
}

static dm_status print_times(const nn_net *net, int passes, const double *forward, const double *backward,
                             char **text)
{
    size_t length = 0;
    double sum[2] = {0, 0};
    FILE *to = open_memstream(text, &length);
    if (!to) {
        return nn_no_memory();
    }
    fprintf(to, "%-20s %-16s %12s %12s   ms, mean of %d passes\n", "layer", "type", "forward", "backward",
            passes);
    for (int i = 0; i < net->layer_count; i++) {
        fprintf(to, "%-20s %-16s %12.3f %12.3f\n", net->layers[i].name, net->layers[i].type->name, forward[i],
                backward[i]);
        sum[0] += forward[i];
        sum[1] += backward[i];
    }
    fprintf(to, "%-20s %-16s %12.3f %12.3f   together %.3f\n", "all", "", sum[0], sum[1], sum[0] + sum[1]);
    return fclose(to) == 0 ? DM_OK : nn_no_memory();
}

dm_status dm_net_measure(dm_net *net, int passes, double *forward, double *backward)
{
    if (!net || !forward || !backward || passes < 1) {
        return dm_error_set(DM_ERR_ARG, "dm_net_measure: net and arrays must be there, passes at least 1");
    }
    size_t bytes = (size_t)net->layer_count * sizeof(double);
    dm_status status = DM_OK;
    for (int i = 0; status == DM_OK && i <= passes; i++) { /* the first is a warm-up */
        if (i <= 1) {
            memset(forward, 0, bytes);
            memset(backward, 0, bytes);
        }
        status = time_pass(net, forward, backward);
    }
    for (int i = 0; i < net->layer_count; i++) {
        forward[i] /= passes;
        backward[i] /= passes;
    }
    return status;
}

dm_status dm_net_time(dm_net *net, int passes, char **text)
{
    if (!net || !text || passes < 1) {
        return dm_error_set(DM_ERR_ARG, "dm_net_time: net and text must be there, passes at least 1");
    }
    size_t bytes = (size_t)(net->layer_count + 1) * sizeof(double);
    double *forward = malloc(bytes), *backward = malloc(bytes);
    dm_status status = forward && backward ? dm_net_measure(net, passes, forward, backward) : nn_no_memory();
    status = status == DM_OK ? print_times(net, passes, forward, backward, text) : status;
    free(forward);
    free(backward);
    return status;
}
