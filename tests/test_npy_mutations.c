/* Headers of .npy files with random changes: refused or understood, as NumPy understands them. */
#include "npy_cases.h"

static const char *const seeds[] = {
    "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }      \n",
    "{'descr': '>f2', 'fortran_order': True, 'shape': (0x10, 1_0, 0), }\n",
    "{\"shape\": (), \"descr\": \"\"\"|u1\"\"\", # c\n \"fortran_order\": False}",
    "{'descr': '<V2', 'fortran_order': True, 'shape': (1,2,3,4,5,6,7,8)}",
    "{'shape': (9223372036854775807, -1), 'fortran_order': False, 'descr': 'bfloat16'}",
};
static const char *const pieces[] = {"'",  "\"", "'''", "(",  ")",  "{",     "}",       ",",    ":",    "-",
                                     "0x", "1_", "99",  "\\", "\n", "#",     "True",    "L",    " ",    "\t",
                                     "V2", "|",  "<i4", ">",  "=",  "shape", "'descr'", "(0,)", "\377", "e3"};

static int64_t mutate(uint64_t *random, char *text, int64_t length, int64_t room)
{
    for (int64_t edits = 1 + (int64_t)next(random, 4); edits > 0; edits--) {
        int64_t at = (int64_t)next(random, (uint64_t)length + 1);
        const char *piece = pieces[next(random, DMI_COUNT(pieces))];
        int64_t add = (int64_t)strlen(piece), cut = (int64_t)next(random, 4);
        switch (next(random, 4)) {
        case 0: /* another byte */
            if (at < length) {
                text[at] = (char)next(random, next(random, 3) ? 128 : 256);
            }
            break;
        case 1: /* a piece put in */
            if (length + add <= room) {
                memmove(text + at + add, text + at, (size_t)(length - at));
                memcpy(text + at, piece, (size_t)add);
                length += add;
            }
            break;
        case 2: /* a few bytes out */
            cut = DMI_MIN(cut, length - at);
            memmove(text + at, text + at + cut, (size_t)(length - at - cut));
            length -= cut;
            break;
        default: /* the end off, seldom */
            length = next(random, 4) ? length : at;
        }
    }
    return length;
}

static void check_accepted(const dmi_npy_info *info, int64_t have, int64_t file_bytes, int64_t need)
{
    if (need != 0) {
        assert_true(info->data_offset == 0 && need > have && need <= HEADER_MOST && need <= file_bytes);
        return;
    }
    assert_true(dmi_dtype_bytes(info->dtype) > 0);
    assert_in_range(info->ndim, 0, DM_MAX_DIMS);
    __extension__ __int128 bytes = dmi_dtype_bytes(info->dtype);
    for (int d = 0; d < DM_MAX_DIMS; d++) {
        assert_true(d < info->ndim ? info->shape[d] >= 0 : info->shape[d] == 0);
        bytes = d < info->ndim ? bytes * info->shape[d] : bytes;
        assert_true(bytes <= INT64_MAX);
    }
    assert_true(bytes == info->count * dmi_dtype_bytes(info->dtype));
    assert_true(info->data_offset >= 10 && info->data_offset <= have);
    assert_true(info->data_offset + bytes <= file_bytes);
}

/* What we make of it beside it, for NumPy to judge: whatever we accept it reads the same way
 * (but for blanks after the dictionary, which Python minds at the start of a line). */
static void record(FILE *file, const char *bytes, int64_t count, const dmi_npy_info *info)
{
    uint32_t length = (uint32_t)count;
    fwrite(&length, 4, 1, file);
    fwrite(bytes, 1, length, file);
    int64_t meaning[12] = {info->ndim, info->fortran_order, info->big_endian, info->dtype};
    memcpy(meaning + 4, info->shape, sizeof info->shape);
    fwrite(meaning, 8, 12, file);
}

static const char *const judge =
    "import numpy as np, io, struct, warnings\n"
    "warnings.simplefilter('ignore')\n"
    "codes = dict(enumerate('f8 f4 f2 V2 i8 i4 u1 b1 i1 i2 u2 u4 u8 c8 c16 V1'.split(), 1))\n"
    "data, at, n = open('accepted', 'rb').read(), 0, 0\n"
    "read = getattr(np.lib.format, '_read_array_header', None)\n"
    "while read and at < len(data):\n"
    "    count, = struct.unpack_from('<I', data, at)\n"
    "    header, at = data[at + 4:at + 4 + count], at + 4 + count\n"
    "    ndim, fortran, big, dtype, *shape = struct.unpack_from('<12q', data, at)\n"
    "    at += 96\n"
    "    if dtype not in codes:\n" /* f8e5m2, which NumPy has not under any code */
    "        continue\n"
    "    header = header.rstrip(b' \\t\\n\\r\\f').ljust(count)\n"
    "    f = io.BytesIO(header.replace(b\"bfloat16'\", b\"V2'      \").replace(b'bfloat16\"', b'V2\"      "
    "'))\n"
    "    try:\n"
    "        got = read(f, np.lib.format.read_magic(f))\n"
    "    except Exception as e:\n"
    "        got = repr(e)\n"
    "    want = (tuple(shape[:ndim]), bool(fortran), np.dtype('<>'[big] + codes[dtype]))\n"
    "    if got != want:\n"
    "        print(header, got, want)\n";

static void test_mutations(void **state)
{
    (void)state;
    uint64_t random = 2024;
    int64_t accepted = 0;
    FILE *file = fopen(in_folder("accepted"), "wb");
    assert_non_null(file);
    for (int i = 0; i < 200000; i++) {
        char text[600];
        const char *seed = seeds[next(&random, DMI_COUNT(seeds))];
        memcpy(text, seed, strlen(seed));
        int64_t length = mutate(&random, text, (int64_t)strlen(seed), sizeof text);
        sample made = sample_of(1 + (int)next(&random, 3), text, length, 0);
        while (next(&random, 8) == 0) { /* the framing too */
            made.bytes[next(&random, 10)] = (char)next(&random, 256);
        }
        int64_t have = next(&random, 8) ? made.count : (int64_t)next(&random, (uint64_t)made.count + 1);
        int64_t beyond = (int64_t)next(&random, 400000), need = 0;
        char *exact = malloc((size_t)DMI_MAX(have, 1));
        memcpy(exact, made.bytes, (size_t)have);
        dmi_npy_info info;
        dm_status status = dmi_npy_parse(exact, have, made.count + beyond, &info, &need);
        assert_true(status == DM_OK || (status == DM_ERR_FORMAT && dmi_error_text()[0]));
        if (status == DM_OK) {
            check_accepted(&info, have, made.count + beyond, need);
            accepted += need == 0;
        }
        if (status == DM_OK && need == 0 && accepted < 20000) {
            record(file, exact, have, &info);
        }
        free(exact);
        free(made.bytes);
    }
    assert_int_equal(fclose(file), 0);
    assert_true(accepted > 5000); /* else the mutations are too wild to mean much */
    if (numpy_there()) {
        python_agrees(judge);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
