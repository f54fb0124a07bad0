/* Sources of elementwise programs, and files of compiled ones: only what is whole comes back. */
#include "kernels/ewise/map_code.h"
#include "kernels/ewise/map_source.h"
#include "map_cases.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BYTES = 3000 };

typedef struct folder {
    char path[64], inner[96], file[400];
    unsigned char code[BYTES];
    dmi_code_key key;
} folder;

static int files_in(const char *path, char *last, size_t room)
{
    DIR *at = opendir(path);
    int n = 0;
    for (struct dirent *e = at ? readdir(at) : NULL; e; e = readdir(at)) {
        if (e->d_name[0] != '.') {
            snprintf(last, room, "%s/%s", path, e->d_name);
            n++;
        }
    }
    if (at) {
        closedir(at);
    }
    return n;
}

static void begin(folder *f)
{
    strcpy(f->path, "/tmp/dmath-code-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(f->inner, sizeof f->inner, "%s/a/b", f->path);
    for (int i = 0; i < BYTES; i++) {
        f->code[i] = (unsigned char)(i * 7 + i / 256);
    }
    f->key = dmi_code_key_of("source", "sm_90");
    assert_true(dmi_code_write(f->inner, f->key, f->code, BYTES));
    assert_int_equal(files_in(f->inner, f->file, sizeof f->file), 1);
}

static void end(folder *f)
{
    char path[128];
    unlink(f->file);
    rmdir(f->inner);
    snprintf(path, sizeof path, "%s/a", f->path);
    rmdir(path);
    assert_int_equal(rmdir(f->path), 0);
}

static bool reads(const folder *f)
{
    size_t bytes = 0;
    void *code = dmi_code_read(f->inner, f->key, &bytes);
    bool same = code && bytes == BYTES && memcmp(code, f->code, BYTES) == 0;
    assert_true(!code || same);
    free(code);
    return same;
}

static void test_whole(void **state)
{
    (void)state;
    folder f;
    size_t bytes;
    begin(&f);
    assert_true(reads(&f));
    assert_true(dmi_code_write(f.inner, f.key, f.code, BYTES)); /* once more, over it */
    assert_int_equal(files_in(f.inner, f.file, sizeof f.file), 1);
    assert_true(reads(&f));
    assert_null(dmi_code_read(f.inner, dmi_code_key_of("source", "sm_100"), &bytes));
    assert_null(dmi_code_read(f.inner, dmi_code_key_of("sourc", "esm_90x"), &bytes));
    assert_null(dmi_code_read("/tmp/there/is/none", f.key, &bytes));
    end(&f);
}

/* A file that ends early, has a byte more, or one changed anywhere; one of another key under this name. */
static void test_broken(void **state)
{
    (void)state;
    folder f;
    begin(&f);
    FILE *file = fopen(f.file, "rb");
    char whole[BYTES + 200];
    assert_non_null(file);
    size_t size = fread(whole, 1, sizeof whole, file);
    fclose(file);
    for (size_t i = 0; i <= size; i++) {
        char changed = (char)(i < size ? whole[i] ^ 0x10 : 0);
        for (int how = 0; how < 2; how++) {
            file = fopen(f.file, "wb");
            assert_non_null(file);
            fwrite(whole, 1, i, file);
            if (how == 1) {
                fwrite(&changed, 1, 1, file);
                fwrite(whole + i + 1, 1, i < size ? size - i - 1 : 0, file);
            }
            fclose(file);
            assert_int_equal(reads(&f), how == 0 && i == size);
        }
    }
    assert_true(dmi_code_write(f.inner, f.key, f.code, BYTES));
    assert_true(reads(&f));
    end(&f);
}

static void test_no_folder(void **state)
{
    (void)state;
    folder f;
    char out[100], small[10];
    begin(&f);
    assert_false(dmi_code_write(f.file, f.key, f.code, BYTES)); /* a file in its place */
    assert_true(dmi_code_folder("/given", out, sizeof out));
    assert_string_equal(out, "/given");
    assert_false(dmi_code_folder("/too/long/for/it", small, sizeof small));
    setenv("HOME", "/home/me", 1);
    setenv("XDG_CACHE_HOME", "/cache", 1);
    assert_true(dmi_code_folder("", out, sizeof out));
    assert_string_equal(out, "/cache/dmath");
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_true(dmi_code_folder("", out, sizeof out));
    assert_string_equal(out, "/home/me/.cache/dmath");
    unsetenv("HOME");
    assert_false(dmi_code_folder("", out, sizeof out));
    end(&f);
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* where(x > 0, a * x, y) with x in f16 and y in f64: its text line by line. */
static void test_source(void **state)
{
    (void)state;
    dmi_map d = {.ndim = 1, .extent = {8}, .dtype = {DM_F32, DM_F32, DM_F16}};
    dmi_map_builder m = {.numbers = 2, .number = {dmi_number_of(0), dmi_number_of(2)}};
    dmi_map_value value[3], x = dmi_map_input(&m, DM_F32), y = dmi_map_input(&m, DM_F32), out;
    value[0] = x;
    value[1] = dmi_map_constant(&m, 0, DM_F32);
    assert_int_equal(dmi_map_apply(&m, DMI_EW_greater, value, NULL, &value[0]), DM_OK);
    value[1] = x;
    assert_int_equal(dmi_map_apply(&m, DMI_EW_scale, &value[1], (int[]){1, 0}, &value[1]), DM_OK);
    value[2] = y;
    assert_int_equal(dmi_map_apply(&m, DMI_EW_where, value, NULL, &out), DM_OK);
    dmi_map_result(&m, out, DM_F16);
    d.program = m.program;
    assert_true(dmi_map_has_source(&d));
    assert_int_equal(dmi_map_group(&d), 4);
    char *text = dmi_map_source(&d);
    assert_non_null(text);
    assert_true(has(text, "typedef f16 out_type;"));
    assert_true(has(text, "const float c0 = number_in<float>(p.number[0]);"));
    assert_true(has(text, "const unsigned char v0 = row_greater<float>((float)(a0), (float)(c0), 0, "));
    assert_true(
        has(text, "const float v1 = row_scale<float>((float)(a0), 0, 0, number_in<float>(p.number[1]), "));
    assert_true(has(text, "const float v2 = row_where<float>((float)(v0 != 0), (float)(v1), (float)(a1), "));
    assert_true(has(text, "return result<out_type>(v2);"));
    assert_true(has(text, "DMI_EW(gelu, UNARY,")); /* the table itself is in it */
    assert_false(has(text, "#include"));
    free(text);
}

/* A real result of complex numbers, and a comparison of them. */
static void test_complex_source(void **state)
{
    (void)state;
    dmi_map_builder m = {.numbers = 1};
    dmi_map d = {.ndim = 0, .dtype = {DM_C64, DM_C128, DM_BOOL}};
    dmi_map_value v[2] = {dmi_map_input(&m, DM_C64), dmi_map_input(&m, DM_C128)}, size, same;
    assert_int_equal(dmi_map_apply(&m, DMI_EW_abs, v, NULL, &size), DM_OK);
    v[0] = size;
    assert_int_equal(dmi_map_apply(&m, DMI_EW_equal, v, NULL, &same), DM_OK);
    dmi_map_result(&m, same, DM_BOOL);
    d.program = m.program;
    assert_true(dmi_map_has_source(&d));
    assert_int_equal(dmi_map_group(&d), 1);
    char *text = dmi_map_source(&d);
    assert_non_null(text);
    assert_true(has(text, "typedef dm_c64 in_type_0;"));
    assert_true(has(text, "const float v0 = row_abs<c64>((c64)(a0), 0, 0, "));
    assert_true(has(text, ").re;\n"));
    assert_true(has(text, "row_equal<c128>("));
    assert_true(has(text, ").re != 0;\n"));
    free(text);
}

/* Numbers and places are no part of a source: a program is compiled once for all of them. */
static void test_one_source(void **state)
{
    (void)state;
    rng r = {5};
    for (int round = 0; round < 200; round++) {
        map_case c;
        map_case_random(&r, &c, 3, true);
        if (!dmi_map_has_source(&c.d)) {
            continue;
        }
        map_box(&r, &c, 3, 5, false);
        char *one = dmi_map_source(&c.d);
        map_box(&r, &c, 2, 9, false);
        char *two = dmi_map_source(&c.d);
        assert_non_null(one);
        assert_non_null(two);
        assert_string_equal(one, two);
        free(one);
        free(two);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),  cmocka_unit_test(test_broken),         cmocka_unit_test(test_no_folder),
        cmocka_unit_test(test_source), cmocka_unit_test(test_complex_source), cmocka_unit_test(test_one_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
