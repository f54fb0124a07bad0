/* .npy headers: what NumPy wrote, and every way to write what is accepted. */
#include "npy_cases.h"

/* Files as NumPy 1.24 wrote them. */
#define RAW(text) text, sizeof(text) - 1
static const struct {
    const char *bytes;
    int64_t count;
    dmi_npy_info info;
} written[] = {
    {RAW("\223NUMPY\001\000v\000{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }   "
         "                                                       \012\000\000\000\000\001\000\000"
         "\000\002\000\000\000\003\000\000\000\004\000\000\000\005\000\000\000"),
     {DM_I32, false, false, 2, {2, 3}, 6, 128}},
    {RAW("\223NUMPY\002\000t\000\000\000{'descr': '>f2', 'fortran_order': True, 'shape': (2, 3"
         "), }                                                         \012\000\000B\000<\000D"
         "\000@\000E\000"),
     {DM_F16, true, true, 2, {2, 3}, 6, 128}},
    {RAW("\223NUMPY\003\000t\000\000\000{'descr': '<f8', 'fortran_order': False, 'shape': (), "
         "}                                                            \012\000\000\000\000\000"
         "\000\370\077"),
     {DM_F64, false, false, 0, {0}, 1, 128}},
    {RAW("\223NUMPY\001\000v\000{'descr': '|u1', 'fortran_order': False, 'shape': (0, 5), }   "
         "                                                       \012"),
     {DM_U8, false, false, 2, {0, 5}, 0, 128}},
};

/* Whole, and fed in pieces of every length: what is asked for is always more and in the end enough. */
static void test_literal_files(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(written); i++) {
        for (int64_t first = 0; first <= written[i].count; first++) {
            dmi_npy_info info;
            int64_t have = first, need = 0;
            for (int steps = 0;; steps++) {
                assert_true(steps < 4);
                char *copy = malloc((size_t)have + 1); /* its end is watched by the sanitizer */
                memcpy(copy + 1, written[i].bytes, (size_t)have);
                assert_int_equal(dmi_npy_parse(copy + 1, have, written[i].count, &info, &need), DM_OK);
                free(copy);
                if (need == 0) {
                    break;
                }
                assert_true(need > have && need <= 128 && info.data_offset == 0);
                have = need;
            }
            assert_same(&info, &written[i].info);
        }
        /* cut anywhere it is an error, never a read beyond the end */
        for (int64_t left = 0; left < written[i].count; left++) {
            dmi_npy_info info;
            int64_t need = 0;
            assert_int_equal(dmi_npy_parse(written[i].bytes, left, left, &info, &need), DM_ERR_FORMAT);
        }
    }
}

static const struct {
    const char *descr;
    dm_dtype dtype;
    bool big;
} descrs[] = {{"<f8", DM_F64, 0},    {">f8", DM_F64, 1},
              {"=f8", DM_F64, 0},    {"f8", DM_F64, 0},
              {"|f8", DM_F64, 0},    {"<f4", DM_F32, 0},
              {">f4", DM_F32, 1},    {"=f4", DM_F32, 0},
              {"<f2", DM_F16, 0},    {">f2", DM_F16, 1},
              {"<i8", DM_I64, 0},    {">i8", DM_I64, 1},
              {"<i4", DM_I32, 0},    {">i4", DM_I32, 1},
              {"|u1", DM_U8, 0},     {">u1", DM_U8, 0},
              {"<u1", DM_U8, 0},     {"u1", DM_U8, 0},
              {"<V2", DM_BF16, 0},   {"|V2", DM_BF16, 0},
              {">V2", DM_BF16, 1},   {"=V2", DM_BF16, 0},
              {"V2", DM_BF16, 0},    {"bfloat16", DM_BF16, 0},
              {"|b1", DM_BOOL, 0},   {"b1", DM_BOOL, 0},
              {"|i1", DM_I8, 0},     {">i1", DM_I8, 0},
              {"<i2", DM_I16, 0},    {">i2", DM_I16, 1},
              {"<u2", DM_U16, 0},    {">u2", DM_U16, 1},
              {"<u4", DM_U32, 0},    {">u4", DM_U32, 1},
              {"<u8", DM_U64, 0},    {">u8", DM_U64, 1},
              {"<c8", DM_C64, 0},    {">c8", DM_C64, 1},
              {"<c16", DM_C128, 0},  {">c16", DM_C128, 1},
              {"<V1", DM_F8E4M3, 0}, {"float8_e4m3fn", DM_F8E4M3, 0},
              {"<f1", DM_F8E5M2, 0}, {"float8_e5m2", DM_F8E5M2, 0}};

static void test_descrs(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(descrs); i++) {
        for (int version = 1; version <= 3; version++) {
            char dict[200];
            dmi_npy_info info;
            snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': True, 'shape': (7,), }\n",
                     descrs[i].descr);
            assert_int_equal(parse_dict(version, dict, 7 * dmi_dtype_bytes(descrs[i].dtype), &info), DM_OK);
            assert_int_equal(info.dtype, descrs[i].dtype);
            assert_int_equal(info.big_endian, descrs[i].big);
            assert_true(info.fortran_order && info.ndim == 1 && info.shape[0] == 7 && info.count == 7);
        }
    }
}

static const struct {
    const char *dict;
    int ndim;
    int64_t count;
} styles[] = {
    {"{'shape':(2,3),'fortran_order':False,'descr':'|u1'}", 2, 6},
    {"{\"shape\": (2, 3,), \"fortran_order\": False, \"descr\": \"|u1\"}", 2, 6},
    {"  {  'descr'  :  '|u1'  ,'shape' : ( 2 , 3 ) , 'fortran_order' :\tTrue\t}  \n\n", 2, 6},
    {"\n{'descr':\n'|u1',\r\n'shape':(\n2,\n),\f'fortran_order':True,}", 1, 2},
    {"{'descr': '''|u1''', 'shape': (), 'fortran_order': \"\"\"no\"\"\"}", -1, 0},
    {"{'''descr''': \"\"\"|u1\"\"\", 'shape': (), 'fortran_order': False}", 0, 1},
    {"{u'descr': u'|u1', r'shape': (0x10, 0o17, 0b11, 1_000), 'fortran_order': False}", 4, 720000},
    {"{'descr': '|u1', 'shape': (+3, 00, -0), 'fortran_order': False}", 3, 0},
    {"{'descr': '|u1', # type\n 'shape': (3,), # }\n 'fortran_order': False} # end", 1, 3},
    {"{'descr': '|u1', 'shape': (1, 1, 1, 1, 1, 1, 1, 2), 'fortran_order': False}", 8, 2},
    {"{'descr': '|u1', 'shape': (0, 9223372036854775807), 'fortran_order': False}", 2, 0},
};

static void test_styles(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(styles); i++) {
        dmi_npy_info info;
        dm_status status = parse_dict(2, styles[i].dict, styles[i].count, &info);
        if (styles[i].ndim < 0) {
            assert_int_equal(status, DM_ERR_FORMAT);
            continue;
        }
        if (status != DM_OK) {
            fail_msg("%s: %s", styles[i].dict, dmi_error_text());
        }
        assert_int_equal(info.ndim, styles[i].ndim);
        assert_true(info.count == styles[i].count);
    }
    dmi_npy_info info; /* the L of Python 2, in the versions it wrote */
    assert_int_equal(parse_dict(1, "{'descr':'|u1','shape':(2L,3L),'fortran_order':False}", 6, &info), DM_OK);
    assert_int_equal(parse_dict(3, "{'descr':'|u1','shape':(2L,3L),'fortran_order':False}", 6, &info),
                     DM_ERR_FORMAT);
}

static void expect_file(const char *path, dm_status wanted, const char *words)
{
    dmi_npy_info info = {.ndim = 55};
    dm_status status = dmi_npy_read_header(path, &info);
    if (status != wanted || !strstr(dmi_error_text(), words) || !strstr(dmi_error_text(), path)) {
        fail_msg("%s gives %s: %s", path, dmi_status_name(status), dmi_error_text());
    }
    assert_int_equal(info.ndim, 55);
}

static void test_read_header(void **state)
{
    (void)state;
    for (int i = 0; i < DMI_COUNT(written); i++) {
        dmi_npy_info info;
        write_file("one.npy", written[i].bytes, (size_t)written[i].count);
        assert_int_equal(dmi_npy_read_header(in_folder("one.npy"), &info), DM_OK);
        assert_same(&info, &written[i].info);
    }
    /* a header longer than the first piece that is read */
    static char dict[1 << 20];
    memset(dict, ' ', sizeof dict);
    const char *text = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}";
    memcpy(dict + sizeof dict - 100, text, strlen(text));
    sample made = sample_of(2, dict, sizeof dict, 32);
    dmi_npy_info info;
    write_file("long.npy", made.bytes, (size_t)made.count);
    assert_int_equal(dmi_npy_read_header(in_folder("long.npy"), &info), DM_OK);
    assert_true(info.data_offset == HEADER_MOST && info.count == 4);
    write_file("long.npy", made.bytes, (size_t)made.count - 33);
    expect_file(in_folder("long.npy"), DM_ERR_FORMAT, "cut short");
    free(made.bytes);

    write_file("short.npy", written[0].bytes, (size_t)written[0].count - 1);
    expect_file(in_folder("short.npy"), DM_ERR_FORMAT, "6 elements of i32 take 24 bytes, 23 follow");
    write_file("empty.npy", "", 0);
    expect_file(in_folder("empty.npy"), DM_ERR_FORMAT, "cut short");
    expect_file(in_folder("nowhere.npy"), DM_ERR_IO, "No such file");
    expect_file(folder, DM_ERR_IO, "not a regular file");
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    expect_file(in_folder("pipe"), DM_ERR_IO, "not a regular file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_literal_files),
        cmocka_unit_test(test_descrs),
        cmocka_unit_test(test_styles),
        cmocka_unit_test(test_read_header),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
