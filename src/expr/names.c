/* Names in expressions beyond those of the rows: NumPy's other names, constants, and what is refused. */
#include "expr/parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int row;
} aliases[] = {
    {"absolute", DMI_EW_abs},
    {"power", DMI_EW_pow},
    {"mod", DMI_EW_remainder},
    {"true_divide", DMI_EW_divide},
    {"conjugate", DMI_EW_conj},
    {"arcsin", DMI_EW_asin},
    {"arccos", DMI_EW_acos},
    {"arctan", DMI_EW_atan},
    {"arctan2", DMI_EW_atan2},
    {"arcsinh", DMI_EW_asinh},
    {"arccosh", DMI_EW_acosh},
    {"arctanh", DMI_EW_atanh},
    {"left_shift", DMI_EW_bitwise_left_shift},
    {"right_shift", DMI_EW_bitwise_right_shift},
    {"invert", DMI_EW_bitwise_invert},
    {"bitwise_not", DMI_EW_bitwise_invert},
};

static const struct {
    const char *name;
    enum expr_weak weak;
    double value;
} constants[] = {
    {"pi", WEAK_FLOAT, 3.14159265358979323846},
    {"inf", WEAK_FLOAT, INFINITY},
    {"nan", WEAK_FLOAT, NAN},
    {"True", WEAK_BOOL, 1},
    {"False", WEAK_BOOL, 0},
};

#define RANDOM "is not there: uniform(seed) and normal(seed) make random numbers"
static const char *const mades[] = {
    [DMI_MADE_INDEX] = "index", [DMI_MADE_UNIFORM] = "uniform", [DMI_MADE_NORMAL] = "normal"};
#define WORD "is no operator here: write & | ~ and put comparisons in parentheses"
static const struct {
    const char *name, *why;
} refused[] = {
    {"norm", "takes an order, which expressions do not (dm_norm)"},
    {"dot", "multiplies and sums: write sum(x * y) (dm_matmul multiplies matrices)"},
    {"cumsum", "adds up elements one after another, which expressions do not"},
    {"random", RANDOM},
    {"rand", RANDOM},
    {"and", WORD},
    {"or", WORD},
    {"not", WORD},
    {"if", "is no operator here: where(condition, a, b) chooses"},
};

static bool same(const char *name, int length, const char *other)
{
    return (int)strlen(other) == length && memcmp(name, other, (size_t)length) == 0;
}

int dmi_expr_row(const char *name, int length)
{
    for (int i = 0; i < DMI_COUNT(aliases); i++) {
        if (same(name, length, aliases[i].name)) {
            return aliases[i].row;
        }
    }
    return dmi_ew_find(name, (size_t)length);
}

bool dmi_expr_constant_named(const char *name, int length, enum expr_weak *weak, double *value)
{
    for (int i = 0; i < DMI_COUNT(constants); i++) {
        if (same(name, length, constants[i].name)) {
            *weak = constants[i].weak;
            *value = constants[i].value;
            return true;
        }
    }
    return false;
}

int dmi_expr_made_named(const char *name, int length)
{
    for (int i = DMI_MADE_NOT + 1; i < DMI_COUNT(mades); i++) {
        if (same(name, length, mades[i])) {
            return i;
        }
    }
    return DMI_MADE_NOT;
}

const char *dmi_expr_refused(const char *name, int length)
{
    for (int i = 0; i < DMI_COUNT(refused); i++) {
        if (same(name, length, refused[i].name)) {
            return refused[i].why;
        }
    }
    return NULL;
}

/* Letters to insert, delete or change between two names. */
static int distance(const char *a, int n, const char *b)
{
    int m = (int)strlen(b), row[DMI_EXPR_NAME + 1];
    if (m > DMI_EXPR_NAME) {
        return m;
    }
    for (int j = 0; j <= m; j++) {
        row[j] = j;
    }
    for (int i = 1; i <= n; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int change = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            row[j] = DMI_MIN(change, DMI_MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[m];
}

static void consider(const char *name, int length, const char *other, const char **best, int *least)
{
    int d = distance(name, length, other);
    if (d < *least) {
        *least = d;
        *best = other;
    }
}

void dmi_expr_suggest(const expr_parser *p, bool function, const char *name, int length, char out[96])
{
    const char *best = NULL;
    int least = (DMI_MIN(length, 8) + 1) / 3 + 1; /* a short name is near to every other */
    out[0] = 0;
    if (length >= DMI_EXPR_NAME) {
        return;
    }
    for (int i = 0; i < DMI_EW_ROWS && function; i++) {
        if (!dmi_ew_rows[i].inner) {
            consider(name, length, dmi_ew_rows[i].name, &best, &least);
        }
    }
    for (int i = 0; i < DMI_COUNT(aliases) && function; i++) {
        consider(name, length, aliases[i].name, &best, &least);
    }
    for (int i = DMI_MADE_NOT + 1; i < DMI_COUNT(mades) && function; i++) {
        consider(name, length, mades[i], &best, &least);
    }
    for (int i = 0; i < dmi_expr_reduction_count && function; i++) {
        consider(name, length, dmi_expr_reductions[i].name, &best, &least);
    }
    for (int i = 0; i < p->count && !function; i++) {
        consider(name, length, p->variable[i].name, &best, &least);
    }
    for (int i = 0; i < DMI_COUNT(constants) && !function; i++) {
        consider(name, length, constants[i].name, &best, &least);
    }
    if (best) {
        snprintf(out, 96, ", did you mean %s?", best);
    }
}
