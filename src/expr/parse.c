/* The grammar, with Python's precedence:
 *   expression := [NAME '='] (binary | reduction)
 *   binary     := unary (OPERATOR unary)*    < <= > >= == != | ^ & << >> + - * / // %, the first bind loosest
 *   unary      := ('+' | '-' | '~') unary | power
 *   power      := primary ['**' unary]
 *   primary    := NUMBER | NAME | NAME '(' binary (',' binary)* ')' | '(' binary ')'
 *   reduction  := REDUCTION '(' binary (',' ['-'] NUMBER)* ')' */
#include "expr/parts.h"

#include <string.h>

static const struct {
    const char *sign;
    int row, level;
} operators[] = {
    {"<", DMI_EW_less, 0},
    {"<=", DMI_EW_less_equal, 0},
    {">", DMI_EW_greater, 0},
    {">=", DMI_EW_greater_equal, 0},
    {"==", DMI_EW_equal, 0},
    {"!=", DMI_EW_not_equal, 0},
    {"|", DMI_EW_bitwise_or, 1},
    {"^", DMI_EW_bitwise_xor, 2},
    {"&", DMI_EW_bitwise_and, 3},
    {"<<", DMI_EW_bitwise_left_shift, 4},
    {">>", DMI_EW_bitwise_right_shift, 4},
    {"+", DMI_EW_add, 5},
    {"-", DMI_EW_subtract, 5},
    {"*", DMI_EW_multiply, 6},
    {"/", DMI_EW_divide, 6},
    {"//", DMI_EW_floor_divide, 6},
    {"%", DMI_EW_remainder, 6},
};

static int parse_binary(expr_parser *p, int level);

static int operator_at(const expr_parser *p)
{
    for (int i = 0; i < DMI_COUNT(operators); i++) {
        if (dmi_expr_is(p, operators[i].sign)) {
            return i;
        }
    }
    return -1;
}

int dmi_expr_unexpected(expr_parser *p, const char *expected)
{
    const expr_token *t = &p->token;
    const char *why = t->kind == TOKEN_NAME ? dmi_expr_refused(p->text + t->at, t->length) : NULL;
    if (why) {
        return dmi_expr_fail(p, DM_ERR_ARG, t->at, "`%.*s` %s", t->length, p->text + t->at, why);
    }
    if (dmi_expr_is(p, "&&") || dmi_expr_is(p, "||")) {
        return dmi_expr_fail(p, DM_ERR_ARG, t->at,
                             "`%.2s` is no operator here: write %.1s and put comparisons in parentheses",
                             p->text + t->at, p->text + t->at);
    }
    return dmi_expr_fail(p, DM_ERR_ARG, t->at, "expected %s", expected);
}

static bool enter(expr_parser *p)
{
    if (p->depth == EXPR_DEPTH) {
        dmi_expr_fail(p, DM_ERR_ARG, p->token.at, "too long: nested more than %d deep", EXPR_DEPTH);
        return false;
    }
    p->depth++;
    return true;
}

/* The operands of a call up to the ')'. */
static int parse_operands(expr_parser *p, int child[3])
{
    int n = 0;
    if (dmi_expr_take(p, ")")) {
        return 0;
    }
    for (;;) {
        int c = parse_binary(p, 0);
        if (n < 3) {
            child[n] = c;
        }
        n++;
        if (p->status != DM_OK || dmi_expr_take(p, ")")) {
            return n;
        }
        if (!dmi_expr_take(p, ",")) {
            dmi_expr_unexpected(p, ", or )");
            return n;
        }
    }
}

static int wrong_count(expr_parser *p, const expr_token *name, int wanted, int given)
{
    static const char *const words[] = {"no operands", "one operand", "two operands", "three operands"};
    return dmi_expr_fail(p, DM_ERR_ARG, name->at, "%.*s takes %s, not %d", name->length, p->text + name->at,
                         words[wanted], given);
}

/* ['-'] NUMBER ')' behind "index(" */
static int parse_index(expr_parser *p, int at)
{
    bool minus = dmi_expr_take(p, "-");
    if (p->status != DM_OK || p->token.kind != TOKEN_NUMBER || !p->token.whole) {
        return dmi_expr_unexpected(p, "a whole number: the dim whose index is meant");
    }
    int value = p->token.integer > DM_MAX_DIMS ? DM_MAX_DIMS + 1 : (int)p->token.integer; /* none has so many */
    dmi_expr_next(p);
    return p->status == DM_OK && !dmi_expr_take(p, ")") ? dmi_expr_unexpected(p, ")")
                                                        : dmi_expr_index(p, at, minus ? -value : value);
}

static int parse_call(expr_parser *p, expr_token name)
{
    int child[3] = {-1, -1, -1}, row = dmi_expr_row(p->text + name.at, name.length);
    char text[DMI_EXPR_NAME] = "", hint[96];
    dm_dtype dtype;
    if (name.length < DMI_EXPR_NAME) {
        memcpy(text, p->text + name.at, (size_t)name.length);
    }
    const dmi_expr_reduction *reduction =
        row < 0 ? dmi_expr_reduction_named(p->text + name.at, name.length) : NULL;
    int made = row < 0 ? dmi_expr_made_named(p->text + name.at, name.length) : DMI_MADE_NOT;
    bool cast = row < 0 && dmi_dtype_parse(text, &dtype);
    if (reduction) {
        return dmi_expr_inside(p, name.at, reduction);
    }
    if (made == DMI_MADE_INDEX) {
        return parse_index(p, name.at);
    }
    if (row < 0 && !cast && !made) {
        const char *why = dmi_expr_refused(p->text + name.at, name.length);
        if (why) {
            return dmi_expr_fail(p, DM_ERR_UNSUPPORTED, name.at, "%s %s", text, why);
        }
        dmi_expr_suggest(p, true, p->text + name.at, name.length, hint);
        return dmi_expr_fail(p, DM_ERR_ARG, name.at, "there is no function %.*s%s", name.length,
                             p->text + name.at, hint);
    }
    int given = parse_operands(p, child);
    if (p->status != DM_OK) {
        return -1;
    }
    int wanted = row < 0 ? 1 : dmi_ew_rows[row].operands;
    if (given != wanted) {
        return wrong_count(p, &name, wanted, given);
    }
    return made   ? dmi_expr_random(p, name.at, made, child[0])
           : cast ? dmi_expr_cast(p, name.at, dtype, child[0])
                  : dmi_expr_apply(p, name.at, row, child);
}

static int parse_name(expr_parser *p, expr_token name)
{
    const char *text = p->text + name.at;
    enum expr_weak weak;
    double value;
    char hint[96];
    for (int i = 0; i < p->count; i++) {
        if ((int)strlen(p->variable[i].name) == name.length &&
            memcmp(p->variable[i].name, text, (size_t)name.length) == 0) {
            return dmi_expr_input(p, name.at, i);
        }
    }
    if (dmi_expr_constant_named(text, name.length, &weak, &value)) {
        return dmi_expr_constant(p, name.at, weak, dmi_expr_real(value, ORIGIN_TEXT));
    }
    if (dmi_expr_refused(text, name.length)) {
        p->token = name;
        return dmi_expr_unexpected(p, "a value");
    }
    if (dmi_expr_row(text, name.length) >= 0 || dmi_expr_made_named(text, name.length) ||
        dmi_expr_reduction_named(text, name.length)) {
        return dmi_expr_fail(p, DM_ERR_ARG, name.at, "%.*s is a function: expected ( behind it", name.length,
                             text);
    }
    dmi_expr_suggest(p, false, text, name.length, hint);
    return dmi_expr_fail(p, DM_ERR_ARG, name.at, "%.*s is not given%s", name.length, text, hint);
}

static int parse_primary(expr_parser *p)
{
    expr_token t = p->token;
    if (t.kind == TOKEN_NUMBER) {
        dmi_expr_next(p);
        return dmi_expr_constant(p, t.at, t.whole ? WEAK_INT : WEAK_FLOAT,
                                 t.whole ? dmi_expr_whole(t.integer, ORIGIN_TEXT)
                                         : dmi_expr_real(t.real, ORIGIN_TEXT));
    }
    if (t.kind == TOKEN_NAME) {
        dmi_expr_next(p);
        return dmi_expr_take(p, "(") ? parse_call(p, t) : parse_name(p, t);
    }
    if (dmi_expr_take(p, "(")) {
        int node = parse_binary(p, 0);
        if (p->status == DM_OK && !dmi_expr_take(p, ")")) {
            return dmi_expr_unexpected(p, "an operator or )");
        }
        return node;
    }
    return dmi_expr_unexpected(p, "a value");
}

static int parse_unary(expr_parser *p)
{
    int at = p->token.at, node = -1;
    int row = dmi_expr_is(p, "-")   ? DMI_EW_negative
              : dmi_expr_is(p, "+") ? DMI_EW_positive
              : dmi_expr_is(p, "~") ? DMI_EW_bitwise_invert
                                    : -1;
    if (!enter(p)) {
        return -1;
    }
    if (row >= 0) {
        dmi_expr_next(p);
        int child[3] = {parse_unary(p), -1, -1};
        node = p->status == DM_OK ? dmi_expr_apply(p, at, row, child) : -1;
    } else {
        node = parse_primary(p);
        at = p->token.at;
        if (p->status == DM_OK && dmi_expr_take(p, "**")) {
            int child[3] = {node, parse_unary(p), -1};
            node = p->status == DM_OK ? dmi_expr_apply(p, at, DMI_EW_pow, child) : -1;
            if (p->status == DM_OK) {
                p->node[node].raised = true;
            }
        }
    }
    p->depth--;
    return node;
}

static int parse_binary(expr_parser *p, int level)
{
    if (!enter(p)) {
        return -1;
    }
    int left = parse_unary(p);
    bool compared = false;
    for (int op; p->status == DM_OK && (op = operator_at(p)) >= 0 && operators[op].level >= level;) {
        int at = p->token.at;
        if (operators[op].level == 0 && compared) {
            return dmi_expr_fail(p, DM_ERR_ARG, at, "comparisons are not chained: write (a < b) & (b < c)");
        }
        compared = compared || operators[op].level == 0;
        dmi_expr_next(p);
        int child[3] = {left, parse_binary(p, operators[op].level + 1), -1};
        left = p->status == DM_OK ? dmi_expr_apply(p, at, operators[op].row, child) : -1;
    }
    p->depth--;
    return p->status == DM_OK ? left : -1;
}

int dmi_expr_elements(expr_parser *p)
{
    return parse_binary(p, 0);
}

static bool reduction_begins(const expr_parser *p)
{
    const char *behind = p->text + p->at + strspn(p->text + p->at, " \t\r\n");
    return p->token.kind == TOKEN_NAME && behind[0] == '(' &&
           dmi_expr_reduction_named(p->text + p->token.at, p->token.length);
}

/* NAME '=' at the beginning. */
static void parse_target(expr_parser *p, char target[DMI_EXPR_NAME])
{
    const char *behind = p->text + p->at + strspn(p->text + p->at, " \t\r\n");
    strcpy(target, "out");
    if (p->token.kind != TOKEN_NAME || behind[0] != '=' || behind[1] == '=') {
        return;
    }
    if (p->token.length >= DMI_EXPR_NAME) {
        dmi_expr_fail(p, DM_ERR_ARG, p->token.at, "a name has at most %d characters", DMI_EXPR_NAME - 1);
        return;
    }
    memcpy(target, p->text + p->token.at, (size_t)p->token.length);
    target[p->token.length] = 0;
    if (!dmi_expr_name_ok(target)) {
        dmi_expr_fail(p, DM_ERR_ARG, p->token.at, "%s is a constant", target);
        return;
    }
    dmi_expr_next(p);
    dmi_expr_next(p);
}

bool dmi_expr_reduces(const char *text)
{
    expr_parser p = {.text = text};
    char target[DMI_EXPR_NAME];
    dmi_expr_next(&p);
    if (p.status == DM_OK) {
        parse_target(&p, target);
    }
    return p.status == DM_OK && reduction_begins(&p);
}

int dmi_expr_parse(expr_parser *p, dmi_expr *out)
{
    dmi_expr_next(p);
    if (p->status == DM_OK) {
        parse_target(p, out->target);
    }
    int root = p->status != DM_OK    ? -1
               : reduction_begins(p) ? dmi_expr_parse_reduction(p, out)
                                     : parse_binary(p, 0);
    if (p->status == DM_OK && dmi_expr_is(p, "=")) {
        return dmi_expr_fail(p, DM_ERR_ARG, p->token.at,
                             "= stands behind one name at the beginning only (equal: ==)");
    }
    if (p->status == DM_OK && p->token.kind != TOKEN_END) {
        return dmi_expr_unexpected(p, dmi_expr_is(p, ")") ? "an operator or the end, no ) is open"
                                                          : "an operator or the end");
    }
    return p->status == DM_OK ? root : -1;
}
