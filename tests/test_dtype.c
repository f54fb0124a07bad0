/* Facts about the element types, and the type that two have together. */
#include "base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    dm_dtype dtype;
    const char *name;
    int bytes;
    enum dmi_kind kind;
    const char *carrier;
} dtypes[] = {
    {DM_F64, "f64", 8, DMI_KIND_FLOAT, "f64"},       {DM_F32, "f32", 4, DMI_KIND_FLOAT, "f32"},
    {DM_F16, "f16", 2, DMI_KIND_FLOAT, "f32"},       {DM_BF16, "bf16", 2, DMI_KIND_FLOAT, "f32"},
    {DM_I64, "i64", 8, DMI_KIND_INT, "i64"},         {DM_I32, "i32", 4, DMI_KIND_INT, "i32"},
    {DM_U8, "u8", 1, DMI_KIND_UINT, "i32"},          {DM_BOOL, "bool", 1, DMI_KIND_BOOL, "bool"},
    {DM_I8, "i8", 1, DMI_KIND_INT, "i32"},           {DM_I16, "i16", 2, DMI_KIND_INT, "i32"},
    {DM_U16, "u16", 2, DMI_KIND_UINT, "i32"},        {DM_U32, "u32", 4, DMI_KIND_UINT, "i64"},
    {DM_U64, "u64", 8, DMI_KIND_UINT, "u64"},        {DM_C64, "c64", 8, DMI_KIND_COMPLEX, "c64"},
    {DM_C128, "c128", 16, DMI_KIND_COMPLEX, "c128"}, {DM_F8E4M3, "f8e4m3", 1, DMI_KIND_FLOAT, "f32"},
    {DM_F8E5M2, "f8e5m2", 1, DMI_KIND_FLOAT, "f32"},
};

static void test_facts(void **state)
{
    (void)state;
    assert_int_equal(DMI_COUNT(dtypes) + 1, DMI_DTYPE_END);
    for (int i = 0; i < DMI_COUNT(dtypes); i++) {
        dm_dtype t = dtypes[i].dtype, parsed = 0;
        assert_int_equal(t, i + 1); /* the codes are in files and frames: they stay */
        assert_int_equal(dmi_dtype_bytes(t), dtypes[i].bytes);
        assert_string_equal(dmi_dtype_name(t), dtypes[i].name);
        assert_int_equal(dmi_dtype_kind(t), dtypes[i].kind);
        assert_string_equal(dmi_dtype_name(dmi_dtype_carrier(t)), dtypes[i].carrier);
        assert_int_equal(dmi_dtype_is_float(t), dtypes[i].name[0] == 'f' || dtypes[i].name[1] == 'f');
        assert_int_equal(dmi_dtype_is_complex(t), dtypes[i].name[0] == 'c');
        assert_int_equal(dmi_dtype_is_integer(t), dtypes[i].name[0] == 'i' || dtypes[i].name[0] == 'u');
        assert_true(dmi_dtype_parse(dtypes[i].name, &parsed));
        assert_int_equal(parsed, t);
    }
}

static void test_unknown(void **state)
{
    (void)state;
    static const int unknown[] = {0, -1, DMI_DTYPE_END, 99, INT32_MAX, INT32_MIN};
    dm_dtype untouched = DM_U8;
    assert_false(dmi_dtype_parse("f8", &untouched));
    assert_false(dmi_dtype_parse("", &untouched));
    assert_int_equal(untouched, DM_U8);
    for (int i = 0; i < DMI_COUNT(unknown); i++) {
        dm_dtype t = (dm_dtype)unknown[i];
        assert_int_equal(dmi_dtype_bytes(t), 0);
        assert_string_equal(dmi_dtype_name(t), "?");
        assert_int_equal(dmi_dtype_kind(t), DMI_KIND_NONE);
        assert_false(dmi_dtype_is_float(t) || dmi_dtype_is_complex(t) || dmi_dtype_is_integer(t));
    }
}

/* Row and column names, then row by row. */
static void check_table(const char *const *row, int rows, const char *columns, const char *const *wanted)
{
    for (int i = 0; i < rows; i++) {
        const char *column = columns, *cell = wanted[i];
        for (; *column; column += strspn(column, " "), cell += strspn(cell, " ")) {
            char a[8] = "", b[8] = "", both[8] = "";
            dm_dtype t = 0, u = 0;
            assert_true(sscanf(column, "%7s", b) == 1 && sscanf(cell, "%7s", both) == 1);
            memcpy(a, row[i], strlen(row[i]) + 1);
            column += strlen(b);
            cell += strlen(both);
            assert_true(dmi_dtype_parse(a, &t) && dmi_dtype_parse(b, &u));
            const char *got = dmi_dtype_name(dmi_dtype_promote(t, u));
            const char *turned = dmi_dtype_name(dmi_dtype_promote(u, t));
            if (strcmp(got, both) != 0 || strcmp(turned, both) != 0) {
                fail_msg("%s with %s: %s and %s, not %s", a, b, got, turned, both);
            }
        }
        assert_int_equal(*cell, 0);
    }
}

/* Printed by numpy.promote_types of NumPy 2.4. */
static void test_promote_as_numpy(void **state)
{
    (void)state;
    static const char *const row[] = {"bool", "i8",  "i16", "i32", "i64", "u8",  "u16",
                                      "u32",  "u64", "f16", "f32", "f64", "c64", "c128"};
    static const char *const wanted[] = {
        "bool i8   i16  i32  i64  u8   u16  u32  u64  f16  f32  f64  c64  c128",
        "i8   i8   i16  i32  i64  i16  i32  i64  f64  f16  f32  f64  c64  c128",
        "i16  i16  i16  i32  i64  i16  i32  i64  f64  f32  f32  f64  c64  c128",
        "i32  i32  i32  i32  i64  i32  i32  i64  f64  f64  f64  f64  c128 c128",
        "i64  i64  i64  i64  i64  i64  i64  i64  f64  f64  f64  f64  c128 c128",
        "u8   i16  i16  i32  i64  u8   u16  u32  u64  f16  f32  f64  c64  c128",
        "u16  i32  i32  i32  i64  u16  u16  u32  u64  f32  f32  f64  c64  c128",
        "u32  i64  i64  i64  i64  u32  u32  u32  u64  f64  f64  f64  c128 c128",
        "u64  f64  f64  f64  f64  u64  u64  u64  u64  f64  f64  f64  c128 c128",
        "f16  f16  f32  f64  f64  f16  f32  f64  f64  f16  f32  f64  c64  c128",
        "f32  f32  f32  f64  f64  f32  f32  f64  f64  f32  f32  f64  c64  c128",
        "f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  c128 c128",
        "c64  c64  c64  c128 c128 c64  c64  c128 c128 c64  c64  c128 c64  c128",
        "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    };
    check_table(row, DMI_COUNT(row), "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128", wanted);
}

static void test_promote_short_floats(void **state)
{
    (void)state;
    static const char *const row[] = {"bf16", "f8e4m3", "f8e5m2"};
    static const char *const wanted[] = {
        "bf16   f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128 bf16 bf16   bf16",
        "f8e4m3 f32 f32 f32 f32 f32 f32 f32 f32 f16 f32 f64 c64 c128 bf16 f8e4m3 f16",
        "f8e5m2 f32 f32 f32 f32 f32 f32 f32 f32 f16 f32 f64 c64 c128 bf16 f16    f8e5m2",
    };
    check_table(row, DMI_COUNT(row),
                "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128 bf16 f8e4m3 f8e5m2", wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_promote_as_numpy),
        cmocka_unit_test(test_promote_short_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
