/* Times of layers as a table, beside what the machine's rates allow. */
#include "net/net.h"

#include <stdio.h>

double nn_layer_bytes(const nn_layer *l, bool back)
{
    const bool lrn = l->pooled && l->top[0]->between; /* the pooling behind it does its work */
    if (lrn || (back ? !l->need_backward || l->merged_back : l->merged)) {
        return 0;
    }
    const double each = l->net->type == DM_F32 ? 4 : 2;
    double bytes = 0;
    for (int i = 0; i < l->bottoms && !(back && nn_fused_follows(l)); i++) {
        bytes += (double)l->bottom[i]->count * each * (1 + (back && l->down[i]));
    }
    for (int i = 0; i < l->tops; i++) {
        bytes += (double)l->top[i]->count * each;
    }
    for (int i = 0; i < l->params; i++) { /* each worker has its own */
        bytes += (double)l->param[i]->count * (back ? each + 4 : each) *
                 (l->ranges ? l->split.parts[0] : dm_workers(l->net->session));
    }
    return bytes;
}

dm_status nn_times_print(const nn_net *net, int passes, const nn_rates *r, const double *forward,
                         const double *backward, double pass, char **text)
{
    size_t length = 0;
    const nn_widths w = nn_widths_of(net);
    double sum_of[3] = {0, 0, 0};
    FILE *to = open_memstream(text, &length);
    if (!to) {
        return dm_error_no_memory("a text", BUFSIZ);
    }
    fprintf(to, "%-*s %-*s %10s %10s %10s %10s %10s %7s   ms, the shorter half of %d passes\n", w.name, "layer",
            w.type, "type", "forward", "backward", "GFLOP", "MiB", "limit ms", "part", passes);
    for (int i = 0; i < net->layer_count; i++) {
        const nn_layer *l = &net->layers[i];
        double flops =
            nn_layer_flops(l) * (net->phase == NN_TRAIN && l->need_backward ? 1 + 1 + l->down[0] : 1);
        double bytes = nn_layer_bytes(l, false) + nn_layer_bytes(l, true), ms = forward[i] + backward[i];
        double limit = 1e3 * (flops / r->flops > bytes / r->bytes ? flops / r->flops : bytes / r->bytes);
        fprintf(to, "%-*s %-*s %10.3f %10.3f %10.4g %10.2f %10.3f ", w.name, l->name, w.type, l->type->name,
                forward[i], backward[i], flops * 1e-9, bytes / (1 << 20), limit);
        if (limit > 0 && ms > 0) {
            fprintf(to, "%6.0f%%\n", 100 * limit / ms);
        } else {
            fprintf(to, "%7s\n", "-");
        }
        sum_of[0] += forward[i];
        sum_of[1] += backward[i];
        sum_of[2] += limit;
    }
    double all = sum_of[0] + sum_of[1];
    fprintf(to, "%-*s %-*s %10.3f %10.3f %10s %10s %10.3f %6.0f%%   together %.3f\n", w.name, "all", w.type, "",
            sum_of[0], sum_of[1], "", "", sum_of[2], all > 0 ? 100 * sum_of[2] / all : 0, all);
    fprintf(to, "a pass without notes of time: %.3f ms; the sum is %.0f%% of it\n", pass,
            pass > 0 ? 100 * all / pass : 0);
    fprintf(to,
            "limit: the larger of GFLOP / %.4g a second and MiB / %.4g a second, the rates of a product and a "
            "sum on these "
            "workers just now; part: of the time\n",
            r->flops * 1e-9, r->bytes / (1 << 20));
    return fclose(to) == 0 ? DM_OK : dm_error_no_memory("a text", length);
}
