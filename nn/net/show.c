/* Nets as tables: their layers. */
#include "net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_shape(FILE *to, int ndim, const int64_t *shape)
{
    for (int d = 0; d < ndim; d++) {
        fprintf(to, "%s%lld", d ? " x " : "", (long long)shape[d]);
    }
    if (ndim == 0) {
        fputs("a number", to);
    }
}

nn_widths nn_widths_of(const nn_net *net)
{
    enum { LONGEST = 48 }; /* longer names move what is behind them */
    nn_widths w = {20, 16};
    for (int i = 0; i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        const int name = (int)strlen(l->name), type = (int)strlen(l->type->name);
        w.name = name > w.name && name <= LONGEST ? name : w.name;
        w.type = type > w.type && type <= LONGEST ? type : w.type;
    }
    return w;
}

static void show_layer(FILE *to, const nn_layer *l)
{
    const nn_widths w = nn_widths_of(l->net);
    fprintf(to, "%-*s %-*s", w.name, l->name, w.type, l->type->name);
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
        return net && text ? dm_error_no_memory("a text", BUFSIZ)
                           : dm_error_set(DM_ERR_ARG, "dm_net_show: an argument is NULL");
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
    return fclose(to) == 0 ? DM_OK : dm_error_no_memory("a text", length);
}
