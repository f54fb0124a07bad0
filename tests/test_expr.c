/* Expressions: what is refused and where the message points, which steps come of a text, and texts that make no
 * sense. */
#include "expr/expr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const dmi_expr_variable names[] = {
    {.name = "x", .dtype = DM_F32},
    {.name = "y", .dtype = DM_F32},
    {.name = "d", .dtype = DM_F64},
    {.name = "i", .dtype = DM_I32},
    {.name = "u", .dtype = DM_U8},
    {.name = "h", .dtype = DM_F16},
    {.name = "c", .dtype = DM_C64},
    {.name = "a", .kind = DMI_EXPR_NUMBER, .number = 2.5},
    {.name = "n", .kind = DMI_EXPR_INTEGER, .integer = 3},
};
enum { NAMES = sizeof names / sizeof names[0] };

/* Compiles a text with those of the names that are in it as words. */
static dm_status compile(const char *text, dmi_expr *out)
{
    dmi_expr_variable given[NAMES];
    int count = 0;
    for (int i = 0; i < NAMES; i++) {
        for (const char *at = text; *at; at++) {
            bool begins = at == text || !strchr("abcdefghijklmnopqrstuvwxyz_0123456789", at[-1]);
            if (begins && *at == names[i].name[0] &&
                !strchr("abcdefghijklmnopqrstuvwxyz_0123456789(", at[1] ? at[1] : '(') && at[1]) {
                given[count++] = names[i];
                break;
            }
            if (begins && *at == names[i].name[0] && !at[1]) {
                given[count++] = names[i];
                break;
            }
        }
    }
    return dmi_expr_compile(text, count, given, DM_F64, out);
}

/* --- refusals */
static const struct {
    const char *text;
    dm_status status;
    int column; /* 0: the message has none */
    const char *word;
} bad[] = {
    {"", DM_ERR_ARG, 1, "expected a value"},
    {"where(x > 0, 2 * x + 3 0)", DM_ERR_ARG, 24, "expected , or )"},
    {"x +", DM_ERR_ARG, 4, "expected a value"},
    {"(x", DM_ERR_ARG, 3, "expected an operator or )"},
    {"x)", DM_ERR_ARG, 2, "no ) is open"},
    {"x y", DM_ERR_ARG, 3, "expected an operator or the end"},
    {"2x", DM_ERR_ARG, 2, "operator is missing"},
    {"1.2.3", DM_ERR_ARG, 4, "operator is missing"},
    {"x + 3j", DM_ERR_ARG, 6, "imaginary"},
    {"0x + x", DM_ERR_ARG, 1, "without digits"},
    {"x + 18446744073709551616", DM_ERR_ARG, 5, "2^64 - 1"},
    {"x $ y", DM_ERR_ARG, 3, "means nothing"},
    {"\xc3\xa4 + x", DM_ERR_ARG, 1, "means nothing"},
    {"x < y < 3", DM_ERR_ARG, 7, "not chained"},
    {"x == y != 3", DM_ERR_ARG, 8, "not chained"},
    {"x and y", DM_ERR_ARG, 3, "write & | ~"},
    {"not x", DM_ERR_ARG, 1, "write & | ~"},
    {"x && y", DM_ERR_ARG, 3, "write &"},
    {"x = y = 3", DM_ERR_ARG, 7, "at the beginning only"},
    {"x + (y = 3)", DM_ERR_ARG, 8, "expected an operator or )"},
    {"pi = x", DM_ERR_ARG, 1, "constant"},
    {"sine(x)", DM_ERR_ARG, 1, "did you mean sin?"},
    {"arcsine(x)", DM_ERR_ARG, 1, "did you mean arcsin?"},
    {"zebra + x", DM_ERR_ARG, 1, "zebra is not given"},
    {"x(2)", DM_ERR_ARG, 1, "no function x"},
    {"scale(x)", DM_ERR_ARG, 1, "no function scale"},
    {"sin + x", DM_ERR_ARG, 1, "is a function"},
    {"maximum(x)", DM_ERR_ARG, 1, "two operands, not 1"},
    {"sin()", DM_ERR_ARG, 1, "one operand, not 0"},
    {"2 + where(x, y, 1, 2, 3)", DM_ERR_ARG, 5, "three operands, not 5"},
    {"f32(x, y)", DM_ERR_ARG, 1, "one operand, not 2"},
    {"sum(x) + 1", DM_ERR_UNSUPPORTED, 1, "sum reduces its operand, which only the outermost function does"},
    {"out = argmax(x) ** 2", DM_ERR_UNSUPPORTED, 7, "argmax reduces"},
    {"sum(x) == 3", DM_ERR_UNSUPPORTED, 1, "sum reduces"},
    {"-sum(x)", DM_ERR_UNSUPPORTED, 2, "sum reduces"},
    {"(sum(x))", DM_ERR_UNSUPPORTED, 2, "sum reduces"},
    {"mean(x - mean(x))", DM_ERR_UNSUPPORTED, 10, "mean reduces"},
    {"x + max(x)", DM_ERR_UNSUPPORTED, 5, "maximum"},
    {"where(x > 0, min(x, y), 0)", DM_ERR_UNSUPPORTED, 14, "minimum"},
    {"max(x, y)", DM_ERR_ARG, 8, "takes dims (of two operands: maximum)"},
    {"min(x, 0.5)", DM_ERR_ARG, 8, "takes dims (of two operands: minimum)"},
    {"sum(x, n)", DM_ERR_ARG, 8, "expected a whole number"},
    {"sum(x, 0,)", DM_ERR_ARG, 10, "expected a whole number"},
    {"sum(x, - -1)", DM_ERR_ARG, 8, "expected a whole number"},
    {"sum(x, 1 + 1)", DM_ERR_ARG, 10, "expected , or )"},
    {"sum(x y)", DM_ERR_ARG, 7, "expected an operator, or , or )"},
    {"sum(x", DM_ERR_ARG, 6, "expected an operator, or , or )"},
    {"sum(x))", DM_ERR_ARG, 7, "no ) is open"},
    {"sum(x) y", DM_ERR_ARG, 8, "expected an operator or the end"},
    {"sum(x) = y", DM_ERR_ARG, 8, "at the beginning only"},
    {"sum()", DM_ERR_ARG, 1, "one operand, not 0"},
    {"sum + x", DM_ERR_ARG, 1, "is a function"},
    {"summ(x)", DM_ERR_ARG, 1, "did you mean sum?"},
    {"sum(x, 0, 0, 0, 0, 0, 0, 0, 0, 0)", DM_ERR_ARG, 32, "more than 8 dims"},
    {"norm(x)", DM_ERR_UNSUPPORTED, 1, "dm_norm"},
    {"dot(x, y)", DM_ERR_UNSUPPORTED, 1, "sum(x * y)"},
    {"uniform(0, 1) + x", DM_ERR_ARG, 1, "uniform takes one operand, not 2"},
    {"x + normal()", DM_ERR_ARG, 5, "normal takes one operand, not 0"},
    {"x + normal(x)", DM_ERR_ARG, 12, "a seed is a whole number"},
    {"x + normal(1.5)", DM_ERR_ARG, 12, "a seed is a whole number"},
    {"uniform(-1)", DM_ERR_ARG, 9, "a seed is a whole number"},
    {"uniform(a)", DM_ERR_ARG, 9, "a seed is a whole number"},
    {"uniform + x", DM_ERR_ARG, 1, "is a function"},
    {"uniforms(1)", DM_ERR_ARG, 1, "did you mean uniform?"},
    {"rand(1)", DM_ERR_UNSUPPORTED, 1, "uniform(seed)"},
    {"i & x", DM_ERR_DTYPE, 3, "bitwise_and does not take i32, f32"},
    {"~x", DM_ERR_DTYPE, 1, "bitwise_invert does not take f32"},
    {"1.5 << 2", DM_ERR_DTYPE, 5, "bitwise_left_shift"},
    {"c64(x)", DM_ERR_DTYPE, 1, "complex"},
    {"u + 256", DM_ERR_ARG, 5, "256 does not fit u8"},
    {"u * -1", DM_ERR_ARG, 5, "-1 does not fit u8"},
    {"i + (2 ** 31 - 1 + 1)", DM_ERR_ARG, 18, "2147483648 does not fit i32"},
    {"x + 1 // 0", DM_ERR_ARG, 7, "divided by zero"},
    {"x + 2 ** 64", DM_ERR_ARG, 7, "too large"},
    {"x + (1 << 63)", DM_ERR_ARG, 8, "too large"},
    {"x + 18446744073709551615 * 2", DM_ERR_ARG, 26, "too large"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        dmi_expr e;
        char column[32];
        snprintf(column, sizeof column, "(column %d)\n", bad[k].column);
        dm_status status = compile(bad[k].text, &e);
        const char *text = status == DM_OK ? "-" : dmi_error_text();
        if (status != bad[k].status || !strstr(text, bad[k].word) || !strstr(text, column)) {
            fail_msg("\"%s\": %s, without `%s` %s%s", bad[k].text, dmi_status_name(status), bad[k].word, column,
                     text);
        }
        const char *caret = strrchr(text, '\n');
        assert_int_equal((int)strlen(caret + 1), 2 + bad[k].column); /* the caret is last, under the column */
    }
}

static void expect_refused(int count, const dmi_expr_variable *v, const char *text, const char *word)
{
    dmi_expr e;
    assert_int_equal(dmi_expr_compile(text, count, v, DM_F64, &e), DM_ERR_ARG);
    if (!strstr(dmi_error_text(), word)) {
        fail_msg("\"%.40s\": without `%s`: %s", text, word, dmi_error_text());
    }
}

static void test_names_and_limits(void **state)
{
    (void)state;
    dmi_expr_variable many[12];
    char text[9000], name[12][16];
    const dmi_expr_variable twice[] = {names[0], names[0]}, wrong[] = {{.name = "2x"}},
                            nothing[] = {{.name = NULL}}, constant[] = {{.name = "pi"}};
    expect_refused(2, names, "x", "y is given, but");
    expect_refused(2, twice, "x", "given twice");
    expect_refused(1, wrong, "x", "`2x`");
    expect_refused(1, nothing, "x", "NULL");
    expect_refused(1, constant, "pi", "`pi`");
    for (int i = 0; i < 12; i++) {
        snprintf(name[i], sizeof name[i], "v%d", i);
        many[i] = (dmi_expr_variable){.name = name[i], .dtype = DM_F32};
    }
    expect_refused(12, many, "v0+v1+v2+v3+v4+v5+v6+v7+v8+v9+v10+v11", "11 operands");
    strcpy(text, "x");
    for (int i = 0; i < 17; i++) {
        sprintf(text + strlen(text), "+x/%d", i + 10);
    }
    expect_refused(1, names, text, "16 numbers");
    strcpy(text, "x");
    for (int i = 0; i < 65; i++) {
        strcat(text, "-x");
    }
    expect_refused(1, names, text, "64 steps");
    memset(text, '(', 300);
    strcpy(text + 300, "x");
    expect_refused(1, names, text, "nested more than 200 deep");
    memset(text, '-', 300);
    expect_refused(1, names, text, "nested more than 200 deep");
    strcpy(text, "x");
    for (int i = 0; i < 300; i++) {
        strcat(text, "-x");
    }
    expect_refused(1, names, text, "256 operands");
    memset(text, ' ', sizeof text);
    strcpy(text + 8200, "x");
    expect_refused(1, names, text, "8192 characters");
}

/* --- the steps that come of a text */
static void rows_of(const char *text, char out[400])
{
    dmi_expr e;
    out[0] = 0;
    if (compile(text, &e) != DM_OK) {
        fail_msg("\"%s\": %s", text, dmi_error_text());
    }
    for (int i = 0; i < e.map.program.steps; i++) {
        int row = e.map.program.step[i].row;
        strcat(strcat(out, i ? " " : ""), row == DMI_EW_CAST ? "cast" : dmi_ew_rows[row].name);
    }
    strcat(strcat(out, ": "), dmi_dtype_name(e.value.dtype));
}

static const struct {
    const char *text, *rows;
} programs[] = {
    {"x + y", "add: f32"},
    {"2 * x + 3", "affine: f32"},
    {"3 + x * a", "affine: f32"},
    {"2 * x + y * 3", "linear: f32"},
    {"a * x + y", "linear: f32"},
    {"y + a * x", "linear: f32"},
    {"2 * c + 3 * c", "linear: c64"},
    {"2 * c + c", "multiply_add: c64"}, /* 1 (inf + 0i) has a NaN */
    {"c + 2 * c", "multiply_add: c64"},
    {"x * y + d", "multiply cast add: f64"}, /* the product is an f32 */
    {"d * x + y", "cast cast multiply_add: f64"},
    {"x * y + 2", "multiply_add: f32"},
    {"a * x * y", "product: f32"},
    {"x * (2 * y)", "product: f32"},
    {"2 * x", "scale: f32"},
    {"x / 2", "divide: f32"},
    {"x ** 2", "square: f32"},
    {"x ** 0.5", "sqrt: f32"},
    {"pow(x, 2)", "pow: f32"},
    {"x ** n", "pow: f32"}, /* the program does not depend on numbers that are given */
    {"i ** 2", "square: i32"},
    {"-x ** 2", "square negative: f32"},
    {"2 ** -x", "negative pow: f32"},
    {"u + 1", "add cast: u8"},
    {"2 * u + 1", "affine cast: u8"},
    {"u + 1.5", "cast add: f64"},
    {"i / 2", "cast divide: f64"},
    {"i // n", "floor_divide: i32"},
    {"x > 0", "greater: bool"},
    {"where(x > 0, x, 0)", "greater where: f32"},
    {"where(x > 0, 1, 0)", "greater where: i64"},
    {"where(x > 0, 1, 0.5)", "greater where: f64"},
    {"where(x > 0, h, 1)", "greater where: f16"},
    {"h + 1", "add: f16"},
    {"h * x", "multiply: f32"},
    {"f32(i)", "cast: f32"},
    {"f16(x) + h", "cast add: f16"},
    {"f16(h + h)", "add cast: f16"},
    {"i32(2.7) + i", "add: i32"},
    {"(1 + 2) * x", "scale: f32"},
    {"x * sqrt(2)", "scale: f32"}, /* a function of constants is a constant */
    {"arctan2(x, y)", "atan2: f32"},
    {"mod(x, 2)", "remainder: f32"},
    {"x % 2 == 1", "remainder equal: bool"},
    {"x - 2 - y", "subtract subtract: f32"},
    {"(x < y) & (y < 3) | (x == 0)", "less less bitwise_and equal bitwise_or: bool"},
    {"1 << 2 + 1 == 8", ": bool"},
    {"5", ": i64"},
    {"2 / 4", ": f64"},
    {"True + 1", ": i64"},
    {"uniform(7)", ": f64"},
    {"x + uniform(n) * normal(18446744073709551615)", "cast multiply_add: f64"},
    {"2 * normal(n + 1) + 1", "affine: f64"},
};

static void test_programs(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof programs / sizeof programs[0]; k++) {
        char rows[400];
        rows_of(programs[k].text, rows);
        if (strcmp(rows, programs[k].rows) != 0) {
            fail_msg("\"%s\": %s, not %s", programs[k].text, rows, programs[k].rows);
        }
    }
}

static const struct {
    const char *text;
    double value;
} constants[] = {
    {"1 + 2 * 3", 7},
    {"(1 + 2) * 3", 9},
    {"2 ** 3 ** 2", 512},
    {"-2 ** 2", -4},
    {"7 // 2", 3},
    {"-7 // 2", -4},
    {"-7 % 3", 2},
    {"7 / 2", 3.5},
    {"2 ** -1", 0.5},
    {"1 << 4 | 1", 17},
    {"~0", -1},
    {"0x1F", 31},
    {"1e3", 1000},
    {".5", 0.5},
    {"5.", 5},
    {"1e-3", 1e-3},
    {"pi", 3.14159265358979323846},
    {"maximum(2, 3)", 3},
    {"sqrt(4)", 2},
    {"3 > 2", 1},
    {"2 - 3 - 4", -5},
    {"16 / 4 / 2", 2},
    {"where(1 > 2, 3, 4)", 4},
    {"6 & 3 ^ 1", 3},
    {"1.5 * 2", 3},
    {"- - 3", 3},
    {"+3", 3},
    {"abs(-9223372036854775808)", 9223372036854775808.0},
    {"18446744073709551615", 18446744073709551615.0},
    {"u8(300)", 44},
    {"u8(-1.5)", 0},
    {"i32(1e12)", 2147483647},
    {"f16(0.1)", 0.0999755859375},
    {"bool(3)", 1},
    {"True", 1},
    {"4 | 1 + 2 & 6 ^ 1 << 2", 6},
    {"1 + 2 & 3 * 5", 3},
    {"7 - 1 << 1 | 3", 15},
    {"5 ^ 3 & 6 | 8 >> 1", 7},
    {"1 | 2 == 3", 1},
    {"10 - 4 * 2 // 3 % 2", 10},
    {"2 * 3 ** 2 - -1", 19},
    {"~1 & 7 + 8", 14},
    {"- 2 ** 2 ** 0", -2},
    {"100 // 7 // 2 * 3", 21},
    {"logical_and(3, 0)", 0},
    {"12 & 5 + 3", 8},
    {"6 & 1 << 1", 2},
    {"7 ^ 3 & 5", 6},
    {"1 | 6 ^ 7", 1},
    {"1 << 3 - 1", 4},
    {"9 - 2 * 3", 3},
    {"3 == 1 | 2", 1},
    {"2 * -3 ** 2", -18},
};

static void test_constants(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof constants / sizeof constants[0]; k++) {
        dmi_expr e;
        if (compile(constants[k].text, &e) != DM_OK) {
            fail_msg("\"%s\": %s", constants[k].text, dmi_error_text());
        }
        double value = e.map.number[0].re;
        if (e.map.program.steps != 0 || e.map.numbers != 1 || value != constants[k].value) {
            fail_msg("\"%s\" is %.17g, not %.17g", constants[k].text, value, constants[k].value);
        }
    }
}

/* Other numbers make no other program. */
static void test_numbers_apart(void **state)
{
    (void)state;
    dmi_expr first, other;
    for (int i = 0; i < 3; i++) {
        static const double a[] = {2.5, 1, 0}, b[] = {2.5, 7, 1};
        dmi_expr_variable v[] = {names[0],
                                 {.name = "a", .kind = DMI_EXPR_NUMBER, .number = a[i]},
                                 {.name = "b", .kind = DMI_EXPR_NUMBER, .number = b[i]}};
        const char *text = "where(x > a, a * x + b, x ** b) - 2.5 * (a + b)";
        assert_int_equal(dmi_expr_compile(text, 3, v, DM_F64, i == 0 ? &first : &other), DM_OK);
        if (i > 0) {
            assert_memory_equal(&first.map.program, &other.map.program, sizeof first.map.program);
            assert_int_equal(first.map.numbers, other.map.numbers);
        }
    }
}

/* --- reductions around the whole: their rows and types, as NumPy has them */
static const struct {
    const char *text, *rows, *reduced;
} reductions[] = {
    {"sum(x * y)", "multiply: f32", "sum f32"},
    {"out = sum ( x * y , 0 , -1 )", "multiply: f32", "sum f32 0 -1"},
    {"sum(x, 7)", ": f32", "sum f32 7"},
    {"sum(u)", ": u8", "sum u64"},
    {"sum(i + 1)", "add: i32", "sum i64"},
    {"sum(x > 0)", "greater: bool", "sum i64"},
    {"prod(u)", ": u8", "prod u64"},
    {"prod(h)", ": f16", "prod f16"},
    {"mean(i)", ": i32", "sum f64 scaled"},
    {"mean(h * 2)", "scale: f16", "sum f16 scaled"},
    {"var(x > 1)", "greater: bool", "var f64 scaled"},
    {"std(x, -2)", ": f32", "std f32 scaled -2"},
    {"logsumexp(u)", ": u8", "logsumexp f64"},
    {"logsumexp(x)", ": f32", "logsumexp f32"},
    {"min(u * 2, 0)", "scale cast: u8", "min u8 0"},
    {"max(x < y)", "less: bool", "max bool"},
    {"argmin(x)", ": f32", "argmin i64"},
    {"argmax(x, 1)", ": f32", "argmax i64 1"},
    {"any(d)", ": f64", "any bool"},
    {"all(i)", ": i32", "all bool"},
    {"count_nonzero(h)", ": f16", "count_nonzero i64"},
    {"sum(3)", ": i64", "sum i64"},
};

static void test_reductions(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof reductions / sizeof reductions[0]; k++) {
        char rows[400], reduced[200];
        dmi_expr e;
        rows_of(reductions[k].text, rows);
        assert_int_equal(compile(reductions[k].text, &e), DM_OK);
        assert_non_null(e.reduction);
        sprintf(reduced, "%s %s%s", dmi_reductions[e.reduction->row].name, dmi_dtype_name(e.dtype),
                e.reduction->scaled ? " scaled" : "");
        for (int i = 0; i < e.dims; i++) {
            sprintf(reduced + strlen(reduced), " %d", e.dim[i]);
        }
        if (strcmp(rows, reductions[k].rows) != 0 || strcmp(reduced, reductions[k].reduced) != 0) {
            fail_msg("\"%s\": %s; %s, not %s; %s", reductions[k].text, rows, reduced, reductions[k].rows,
                     reductions[k].reduced);
        }
    }
}

static void test_dims(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int ndim, reduced; /* -2: refused */
        const char *word;
    } dims[] = {
        {"sum(x)", 3, -1, ""},
        {"sum(x)", 0, -1, ""},
        {"sum(x, 0)", 3, 1, ""},
        {"sum(x, 2, 0)", 3, 5, ""},
        {"sum(x, -1)", 3, 4, ""},
        {"sum(x, -3, 1)", 3, 3, ""},
        {"sum(x, 3)", 3, -2, "the elements have 3 dims (column 8)"},
        {"sum(x, -4)", 3, -2, "the elements have 3 dims (column 8)"},
        {"sum(x, 0)", 0, -2, "the elements have 0 dims (column 8)"},
        {"max(x, 5)", 2, -2, "(of two operands: maximum) (column 8)"},
        {"sum(x, 1, 0, -2)", 3, -2, "dim 1 is named twice (column 14)"},
        {"sum(x, 18446744073709551615)", 8, -2, "no such dim"},
        {"sum(x, -9)", 8, -2, "no such dim"},
    };
    for (size_t k = 0; k < sizeof dims / sizeof dims[0]; k++) {
        dmi_expr e;
        int32_t reduced = -2;
        assert_int_equal(compile(dims[k].text, &e), DM_OK);
        dm_status status = dmi_expr_reduced(&e, dims[k].text, dims[k].ndim, &reduced);
        assert_int_equal(status, dims[k].reduced == -2 ? DM_ERR_ARG : DM_OK);
        assert_int_equal(reduced, dims[k].reduced);
        if (status != DM_OK && !strstr(dmi_error_text(), dims[k].word)) {
            fail_msg("\"%s\": without `%s`: %s", dims[k].text, dims[k].word, dmi_error_text());
        }
    }
}

/* --- texts that make no sense */
static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(*seed >> 8) * below >> 24);
}

static void test_nonsense(void **state)
{
    (void)state;
    static const char *const words[] = {"x",        "y",    "d",
                                        "i",        "u",    "h",
                                        "a",        "n",    "(",
                                        ")",        ",",    "+",
                                        "-",        "*",    "/",
                                        "%",        "**",   "//",
                                        "<<",       "==",   "<",
                                        "&",        "~",    "where(",
                                        "=",        "1",    "0",
                                        ".5",       "1e9",  "0xff",
                                        "sin(",     "f16(", "pow(",
                                        "sum(",     "min(", "-1",
                                        "maximum(", "out",  "99999999999999999999",
                                        "e",        ".",    "#",
                                        "\x80",     "True", "inf",
                                        "1e",       "u64("};
    uint32_t seed = 7, fine = 0;
    for (int round = 0; round < 20000; round++) {
        char text[400] = "";
        int length = 1 + (int)draw(&seed, 12);
        if (round % 2) { /* a text that made sense, with some bytes changed */
            strcpy(text, programs[draw(&seed, sizeof programs / sizeof programs[0])].text);
            for (int k = 1 + (int)draw(&seed, 3); k > 0; k--) {
                text[draw(&seed, (uint32_t)strlen(text))] =
                    (char)(draw(&seed, 3) ? 33 + draw(&seed, 94) : 1 + draw(&seed, 255));
            }
        } else {
            for (int k = 0; k < length; k++) {
                strcat(strcat(text, words[draw(&seed, sizeof words / sizeof words[0])]),
                       draw(&seed, 2) ? " " : "");
            }
        }
        dmi_expr e;
        dm_status status = compile(text, &e);
        fine += status == DM_OK;
        assert_true(status == DM_OK || strncmp(dmi_error_text(), "map: ", 5) == 0);
        assert_true(status != DM_ERR_INTERNAL);
    }
    assert_true(fine > 500); /* some do make sense */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_names_and_limits),
        cmocka_unit_test(test_programs),      cmocka_unit_test(test_constants),
        cmocka_unit_test(test_numbers_apart), cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_dims),          cmocka_unit_test(test_nonsense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
