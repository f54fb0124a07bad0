/* .npy headers that are refused, and with which words. */
#include "npy_cases.h"

#define HEAD "{'fortran_order': False, 'descr': '<f4', 'shape': "
static const struct {
    const char *dict, *words;
} bad_dicts[] = {
    {"", "ends where a dictionary"},
    {"[1, 2]", "a dictionary should be"},
    {"('descr', '<f4')", "a dictionary"},
    {"{", "a key"},
    {"{}", "lacks the key 'descr'"},
    {"{'descr': '<f4', 'shape': (0,)}", "lacks the key 'fortran_order'"},
    {"{'descr': '<f4', 'fortran_order': False}", "lacks the key 'shape'"},
    {HEAD "(0,), 'shape': (0,)}", "'shape' twice"},
    {HEAD "(0,), 'extra': 1}", "unknown key 'extra'"},
    {HEAD "(0,), 'ex\033\377': 1}", "unknown key 'ex\\x1b\\xff'"},
    {"{descr: '<f4'}", "a key in quotes"},
    {"{'descr' '<f4'}", "a colon"},
    {"{'descr': '<f4' 'shape': ()}", "a comma"},
    {"{'descr': '<f4',, 'shape': ()}", "a key"},
    {"{,'descr': '<f4'}", "a key"},
    {"{'descr': '<f4", "descr '<f4 is not supported"},
    {"{'descr': ", "ends where descr"},
    {"{'descr': '<c4'}", "'<c4' is not supported"},
    {"{'descr': '<i3'}", "'<i3' is not supported"},
    {"{'descr': '<u3'}", "'<u3' is not supported"},
    {"{'descr': '|b2'}", "'|b2' is not supported"},
    {"{'descr': '|O'}", "'|O' is not supported"},
    {"{'descr': '<U5'}", "'<U5' is not supported"},
    {"{'descr': '|V4'}", "'|V4' is not supported"},
    {"{'descr': ''}", "'' is not supported"},
    {"{'descr': '<<f8'}", "'<<f8' is not supported"},
    {"{'descr': '!f8'}", "'!f8' is not supported"},
    {"{'descr': [('x', '<f4')]}", "[('x', '<f4')]} is not supported"},
    {"{'descr': 8}", "8} is not supported"},
    {"{'fortran_order': 1}", "fortran_order, True or False"},
    {"{'fortran_order': 'True'}", "fortran_order, True or False"},
    {"{'fortran_order': true}", "fortran_order, True or False"},
    {"{'fortran_order': Falsely}", "fortran_order, True or False"},
    {HEAD "(1)}", "not a tuple"},
    {HEAD "[1, 2]}", "a tuple"},
    {HEAD "3}", "a tuple"},
    {HEAD "None}", "a tuple"},
    {HEAD "(,)}", "a whole number"},
    {HEAD "(1,,2)}", "a whole number"},
    {HEAD "(1 2)}", "a comma"},
    {HEAD "(1, 2}", "a comma"},
    {HEAD "(1, 2", "a comma"},
    {HEAD "(1, ", "a whole number"},
    {HEAD "(1.0,)}", "a whole number"},
    {HEAD "(1e3,)}", "a whole number"},
    {HEAD "(07,)}", "a whole number"},
    {HEAD "(1__0,)}", "a whole number"},
    {HEAD "(1_,)}", "a whole number"},
    {HEAD "(_1,)}", "a whole number"},
    {HEAD "(0x,)}", "a whole number"},
    {HEAD "(0b2,)}", "a whole number"},
    {HEAD "(True,)}", "a whole number"},
    {HEAD "('1',)}", "a whole number"},
    {HEAD "(--1,)}", "a whole number"},
    {HEAD "(0, -1)}", "extent 1 of the shape is negative: -1"},
    {HEAD "(-99999999999999999999,)}", "extent 0 of the shape is negative"},
    {HEAD "(9223372036854775808,)}", "extent 0 of the shape is over 2^63 - 1"},
    {HEAD "(0xffffffffffffffff,)}", "over 2^63 - 1"},
    {HEAD "(184467440737095516160,)}", "over 2^63 - 1"}, /* 10 * 2^64 */
    {HEAD "(9223372036854775807,)}", "more than 2^63 - 1 bytes"},
    {HEAD "(4294967296, 536870912)}", "more than 2^63 - 1 bytes"},
    {HEAD "(4294967296, 4294967296, 0)}", "more than 2^63 - 1 bytes"},
    {HEAD "(1, 1, 1, 1, 1, 1, 1, 1, 1)}", "more than 8 dimensions"},
    {HEAD "(5, 7)}", "35 elements of f32 take 140 bytes, 0 follow"},
    {HEAD "(2305843009213693951,)}", "take 9223372036854775804 bytes, 0 follow"},
    {HEAD "(0,)} x", "the end of the header"},
    {HEAD "(0,)}}", "the end of the header"},
    {HEAD "(0,)};", "the end of the header"},
};

static void expect_words(dm_status status, const char *what, const char *words)
{
    if (status != DM_ERR_FORMAT || !strstr(dmi_error_text(), words)) {
        fail_msg("%s gives %s: %s (wanted: %s)", what, dmi_status_name(status), dmi_error_text(), words);
    }
}

static void test_bad_dicts(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(bad_dicts); i++) {
        dmi_npy_info info = {.ndim = 77};
        for (int version = 1; version <= 3; version++) {
            dmi_fail(DM_OK, "%s", "");
            expect_words(parse_dict(version, bad_dicts[i].dict, 0, &info), bad_dicts[i].dict,
                         bad_dicts[i].words);
            assert_int_equal(info.ndim, 77);
        }
    }
}

static dm_status parse_raw(const char *bytes, int64_t count, int64_t file_bytes)
{
    dmi_npy_info info;
    int64_t need = 0;
    char *copy = malloc((size_t)count + 1);
    memcpy(copy + 1, bytes, (size_t)count);
    dm_status status = dmi_npy_parse(copy + 1, count, file_bytes, &info, &need);
    free(copy);
    return status;
}

static void test_bad_framing(void **state)
{
    (void)state;
    expect_words(parse_raw("PK\003\004zip file", 12, 12), "zip", "does not begin");
    expect_words(parse_raw("x", 1, 1), "one byte", "does not begin");
    expect_words(parse_raw("", 0, 0), "nothing", "cut short");
    expect_words(parse_raw("\223NUMPY", 6, 6), "magic alone", "cut short");
    expect_words(parse_raw("\223NUMPZ\001\000v\000", 10, 500), "magic", "does not begin");
    expect_words(parse_raw("\223NUMPY\004\000v\000\000\000", 12, 500), "version", "4.0 is unknown");
    expect_words(parse_raw("\223NUMPY\000\000v\000\000\000", 12, 500), "version", "0.0 is unknown");
    expect_words(parse_raw("\223NUMPY\001\001v\000\000\000", 12, 500), "version", "1.1 is unknown");
    expect_words(parse_raw("\223NUMPY\001\000v\000", 10, 127), "length",
                 "takes 128 bytes, the file has only 127");
    expect_words(parse_raw("\223NUMPY\002\000\001\000\020\000", 12, 1 << 22), "size", "1048577 bytes, at most");
    expect_words(parse_raw("\223NUMPY\003\000\377\377\377\377", 12, INT64_MAX), "size", "4294967295 bytes");

    dmi_npy_info info;
    int64_t need = 0; /* the largest header is asked for */
    assert_int_equal(dmi_npy_parse("\223NUMPY\002\000\000\000\020\000", 12, 1 << 22, &info, &need), DM_OK);
    assert_true(need == HEADER_MOST && info.data_offset == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_dicts),
        cmocka_unit_test(test_bad_framing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
