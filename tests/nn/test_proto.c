/* Prototxt files and binary files: what is read, what is refused and where the message points, and random
 * changes. */
#include "proto/text.h"
#include "proto/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

static nn_document *parsed(const char *type, const char *text)
{
    nn_document *d = NULL;
    if (nn_text_parse(text, strlen(text), "net.prototxt", type, &d) != DM_OK) {
        fail_msg("%s", dm_error_message());
    }
    return d;
}

static void test_values(void **state)
{
    (void)state;
    nn_document *d =
        parsed("NetParameter", "# a net\nname: 'a' \"b\\n\\x41\\101\\\"\" ;\n"
                               "layer { name: \"x\" bottom: [\"p\", 'q'] bottom: 'r', loss_weight: -1.5e-3f\n"
                               "  convolution_param: < num_output: 0x10 kernel_size: [3, 010] engine: 2 >\n"
                               "  include: [{ phase: TRAIN }, { phase: TEST not_stage: \"s\" }] }\n"
                               "force_backward: t");
    assert_string_equal(nn_string(d->root, d->root->type, "name"), "ab\nAA\"");
    assert_int_equal(nn_int(d->root, d->root->type, "force_backward"), 1);
    assert_int_equal(nn_int(d->root, d->root->type, "debug_info"), 0);
    nn_message *layer = nn_sub_at(d->root, "layer", 0);
    assert_int_equal(nn_count(layer, "bottom"), 3);
    assert_string_equal(nn_string_at(layer, "bottom", 1), "q");
    assert_true(nn_real_at(layer, "loss_weight", 0) == (double)-1.5e-3F);
    nn_message *conv = nn_sub(layer, "convolution_param");
    assert_int_equal(nn_int(conv, conv->type, "num_output"), 16);
    assert_int_equal(nn_int_at(conv, "kernel_size", 1), 8);
    assert_int_equal(nn_int(conv, conv->type, "engine"), 2);
    assert_int_equal(nn_int(conv, conv->type, "group"), 1);
    assert_int_equal(nn_count(layer, "include"), 2);
    assert_int_equal(nn_line(conv, "engine"), 4);
    assert_int_equal(nn_line(nn_sub_at(layer, "include", 1), "not_stage"), 5);
    assert_int_equal(nn_unused(d->root), DM_ERR_UNSUPPORTED); /* the layer's name */
    assert_non_null(strstr(dm_error_message(), "net.prototxt:3: field 'name' of LayerParameter"));
    nn_use_all(d->root);
    assert_int_equal(nn_unused(d->root), DM_OK);
    nn_document_free(d);
}

static void test_defaults(void **state)
{
    (void)state;
    assert_true(nn_real(NULL, "SolverParameter", "delta") == (double)1e-8F);
    assert_true(nn_real(NULL, "SolverParameter", "clip_gradients") == -1);
    assert_true(nn_real(NULL, "SolverParameter", "rms_decay") == (double)0.99F);
    assert_true(nn_real(NULL, "BatchNormParameter", "moving_average_fraction") == (double).999F);
    assert_true(nn_real(NULL, "LRNParameter", "k") == 1);
    assert_int_equal(nn_int(NULL, "SolverParameter", "snapshot_format"), 1);
    assert_int_equal(nn_int(NULL, "ConvolutionParameter", "bias_term"), 1);
    assert_int_equal(nn_int(NULL, "FillerParameter", "sparse"), -1);
    assert_string_equal(nn_string(NULL, "FillerParameter", "type"), "constant");
    int count = 0;
    const nn_field *all = nn_schema_all(&count);
    for (int i = 0; i < count; i++) { /* what a row names is there, and every number once */
        int n = 0;
        const nn_field *same = nn_schema_by_number(all[i].message, all[i].number);
        assert_ptr_equal(same, &all[i]);
        assert_ptr_equal(nn_schema_by_name(all[i].message, all[i].name), &all[i]);
        assert_true(all[i].type != NN_MESSAGE || nn_schema_fields(all[i].of, &n));
        assert_true(all[i].type != NN_ENUM || !*all[i].value || nn_enum_by_name(all[i].of, all[i].value));
    }
}

static const struct {
    const char *text, *message;
} bad[] = {
    {"name: 'a'\nname: 'b'", "net.prototxt:2: NetParameter.name has a value already, in line 1"},
    {"\n\nfoo: 1", "net.prototxt:3: NetParameter has no field 'foo'"},
    {"layer {\n convolution_param {\n  kernel: 3 } }",
     "net.prototxt:3: ConvolutionParameter has no field 'kernel'"},
    {"layer {\n name: 'x'\n", "net.prototxt:1: the LayerParameter that begins here has no '}'"},
    {"layer {\n name: 'x' >", "net.prototxt:2: expected the name of a field, found '>'"},
    {"name 'a'", "net.prototxt:1: expected ':', found ''a''"},
    {"name: a", "net.prototxt:1: expected a value of type string for NetParameter.name, found 'a'"},
    {"name: 'a", "net.prototxt:1: a string has no end on its line"},
    {"name: 'a\\q'", "net.prototxt:1: a string has an escape that is not C's: '\\q'"},
    {"name: 'a\\0b'", "net.prototxt:1: the string of NetParameter.name has a zero byte"},
    {"input_dim: 3000000000",
     "net.prototxt:1: 3000000000 does not fit the type int32 of NetParameter.input_dim"},
    {"input_dim: 1.5",
     "net.prototxt:1: expected a value of type int32 for NetParameter.input_dim, found '1.5'"},
    {"input_dim:\n",
     "net.prototxt:2: expected a value of type int32 for NetParameter.input_dim, found the end"},
    {"force_backward: yes", "net.prototxt:1: expected a value of type bool"},
    {"state { phase: LEARN }",
     "net.prototxt:1: expected a name of the enum Phase for NetState.phase, found 'LEARN'"},
    {"state { phase: 7 }", "net.prototxt:1: expected a name of the enum Phase for NetState.phase, found '7'"},
    {"state: TRAIN", "net.prototxt:1: expected '{', found 'TRAIN'"},
    {"layer { loss_weight: 1e99 }",
     "net.prototxt:1: 1e99 does not fit the type float of LayerParameter.loss_weight"},
    {"layer { loss_weight: 1x }",
     "net.prototxt:1: expected a value of type float for LayerParameter.loss_weight, found '1x'"},
    {"layer { convolution_param { group: -1 } }", "net.prototxt:1: -1 does not fit the type uint32"},
    {"layer { bottom: ['a' 'b', ] }", "net.prototxt:1: expected a value of type string"},
    {"layer { clip_param {\n min: 0 } }", "net.prototxt:1: ClipParameter lacks the field 'max'"},
    {"name: 'a' $", "net.prototxt:1: the character 0x24 has no meaning here"},
    {"}", "net.prototxt:1: expected the name of a field, found '}'"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT(bad); i++) {
        nn_document *d = NULL;
        assert_int_equal(nn_text_parse(bad[i].text, strlen(bad[i].text), "net.prototxt", "NetParameter", &d),
                         DM_ERR_FORMAT);
        if (!strstr(dm_error_message(), bad[i].message)) {
            fail_msg("'%s'\n  says    %s\n  and not %s", bad[i].text, dm_error_message(), bad[i].message);
        }
    }
    nn_document *d = NULL;
    assert_int_equal(nn_text_read("no/such/file", "NetParameter", &d), DM_ERR_IO);
    assert_int_equal(nn_text_read("/", "NetParameter", &d), DM_ERR_IO);
}

/* Text to message to text, and through bytes: the same. */
static void round_trip(nn_document *d)
{
    char *first = NULL, *second = NULL, *third = NULL, *bytes = NULL;
    size_t length = 0;
    nn_document *again = NULL, *wired = NULL;
    assert_int_equal(nn_text_print(d->root, &first), DM_OK);
    assert_int_equal(nn_text_parse(first, strlen(first), "again", d->root->type, &again), DM_OK);
    assert_int_equal(nn_text_print(again->root, &second), DM_OK);
    assert_string_equal(first, second);
    assert_int_equal(nn_wire_bytes(d->root, &bytes, &length), DM_OK);
    assert_int_equal(nn_wire_parse(bytes, length, "wired", d->root->type, &wired), DM_OK);
    assert_int_equal(nn_text_print(wired->root, &third), DM_OK);
    assert_string_equal(first, third);
    free(first);
    free(second);
    free(third);
    free(bytes);
    nn_document_free(again);
    nn_document_free(wired);
}

static const char all_kinds[] = "layer { name: 'a' phase: TEST propagate_down: [true, false] loss_weight: 0.1\n"
                                " loss_weight: -3.4028235e38 loss_weight: inf loss_weight: 1e-45 blobs { shape "
                                "{ dim: [1, -9223372036854775808] }\n"
                                " data: [1, 2.5, -3e-8] double_data: 0.1 double_data: 1e300 num: -5 } "
                                "transform_param { crop_size: 4294967295 } }";

static void test_round_trips(void **state)
{
    (void)state;
    const char *files[] = {NN_EXAMPLES "/lenet/lenet_train_test.prototxt",
                           NN_EXAMPLES "/lenet/lenet_solver.prototxt"};
    const char *types[] = {"NetParameter", "SolverParameter"};
    for (int i = 0; i < 2; i++) {
        nn_document *d = NULL;
        assert_int_equal(nn_text_read(files[i], types[i], &d), DM_OK);
        round_trip(d);
        nn_document_free(d);
    }
    nn_document *d = parsed("NetParameter", all_kinds);
    round_trip(d);
    nn_document_free(d);
    d = parsed("Datum", "channels: 1 data: \"\\000\\377abc\" encoded: true float_data: 1 float_data: 2");
    round_trip(d);
    nn_document_free(d);
}

/* Bytes that Google's library writes for: Datum {channels: 3 data: "\0a" label: -1 float_data: 1 float_data:
 * 2}, and BlobProto {shape {dim: 300} data: [1, 0.5]}. */
static void test_bytes(void **state)
{
    (void)state;
    static const char datum[] =
        "\x08\x03\x22\x02\x00\x61\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x35\x00\x00\x80\x3f\x35"
        "\x00\x00\x00\x40";
    static const char blob[] = "\x2a\x08\x00\x00\x80\x3f\x00\x00\x00\x3f\x3a\x04\x0a\x02\xac\x02";
    static const struct {
        const char *type, *text, *bytes;
        size_t length;
    } cases[] = {
        {"Datum", "channels: 3 data: \"\\000a\" label: -1 float_data: [1, 2]", datum, sizeof datum - 1},
        {"BlobProto", "shape { dim: 300 } data: [1, 0.5]", blob, sizeof blob - 1}};
    for (int i = 0; i < COUNT(cases); i++) {
        char *bytes = NULL;
        size_t length = 0;
        nn_document *d = parsed(cases[i].type, cases[i].text);
        assert_int_equal(nn_wire_bytes(d->root, &bytes, &length), DM_OK);
        assert_int_equal(length, cases[i].length);
        assert_memory_equal(bytes, cases[i].bytes, length);
        free(bytes);
        nn_document_free(d);
    }
    /* Packed where it need not be, and not packed where it may be. */
    nn_document *d = NULL;
    assert_int_equal(nn_wire_parse("\x32\x08\0\0\x80\x3f\0\0\0\x40\x35\0\0\0\x40", 15, "f", "Datum", &d),
                     DM_OK);
    assert_int_equal(nn_count(d->root, "float_data"), 3);
    nn_document_free(d);
    assert_int_equal(nn_wire_parse("\x2d\0\0\x80\x3f", 5, "f", "BlobProto", &d), DM_OK);
    assert_true(nn_real_at(d->root, "data", 0) == 1);
    nn_document_free(d);
    assert_int_equal(nn_wire_parse("\x08\x01\x98\x06\x01", 5, "f.bin", "Datum", &d), DM_ERR_FORMAT);
    assert_string_equal(dm_error_message(), "f.bin: byte 2: Datum has no field of number 99");
    assert_int_equal(nn_wire_parse("\x22\x09", 2, "f.bin", "Datum", &d), DM_ERR_FORMAT);
    assert_string_equal(dm_error_message(), "f.bin: byte 2, in Datum: a length goes beyond the end");
}

static uint64_t next_random(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % below;
}

/* A text or a binary file with some bytes changed: an error with its place, or a message that prints back. */
static void mutate(uint64_t *random, const char *seed, size_t length, const char *type, bool text)
{
    static const char pieces[] = "{}<>[]:;,-#'\"\\0179eEx.naT \n\377\0";
    size_t room = length + 8, n = length;
    char *copy = malloc(room);
    memcpy(copy, seed, length);
    for (int edits = 1 + (int)next_random(random, 3); edits > 0 && n > 0; edits--) {
        size_t at = next_random(random, n), cut = next_random(random, 4) ? 1 : next_random(random, n - at) + 1;
        switch (next_random(random, 4)) {
        case 0:
            copy[at] = (char)next_random(random, 256);
            break;
        case 1:
            copy[at] = pieces[next_random(random, sizeof pieces - 1)];
            break;
        case 2:
            memmove(copy + at, copy + at + cut, n - at - cut);
            n -= cut;
            break;
        default:
            if (n < room) {
                memmove(copy + at + 1, copy + at, n - at);
                copy[at] = pieces[next_random(random, sizeof pieces - 1)];
                n++;
            }
        }
    }
    char *exact = malloc(n ? n : 1); /* no byte behind it, for the sanitizer */
    memcpy(exact, copy, n);
    nn_document *d = NULL;
    dm_status status =
        text ? nn_text_parse(exact, n, "mutant", type, &d) : nn_wire_parse(exact, n, "mutant", type, &d);
    if (status == DM_OK) {
        round_trip(d);
        nn_document_free(d);
    } else {
        assert_int_equal(status, DM_ERR_FORMAT);
        const char *message = dm_error_message();
        assert_true(strncmp(message, "mutant:", 7) == 0);
        assert_true(text ? message[7] >= '1' && message[7] <= '9' : strstr(message, "byte ") != NULL);
    }
    free(exact);
    free(copy);
}

static void test_mutations(void **state)
{
    (void)state;
    const char *count = getenv("DMATH_TEST_CASES");
    int cases = (int)(2000 * (count ? atof(count) : 1)) + 500;
    uint64_t random = 7;
    char *text = NULL, *bytes = NULL;
    size_t length = 0;
    nn_document *d = NULL;
    assert_int_equal(nn_text_read(NN_EXAMPLES "/lenet/lenet_train_test.prototxt", "NetParameter", &d), DM_OK);
    assert_int_equal(nn_text_print(d->root, &text), DM_OK);
    assert_int_equal(nn_wire_bytes(d->root, &bytes, &length), DM_OK);
    for (int i = 0; i < cases; i++) {
        mutate(&random, text, strlen(text), "NetParameter", true);
        mutate(&random, all_kinds, strlen(all_kinds), "NetParameter", true);
        mutate(&random, bytes, length, "NetParameter", false);
    }
    free(text);
    free(bytes);
    nn_document_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),      cmocka_unit_test(test_defaults), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_bytes),    cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
