/* SPDX-License-Identifier: Apache-2.0 */
/* unpickle_test.c - the pickles of torch's RPC are read, and all others are refused with the place.
 */
#include "../testing.h"
#include "captured.h"
#include "show.h"

#include "torch/member/pyobject.h"

#define DATA_MAX 4096

struct pickle_bytes {
    uint8_t data[DATA_MAX];
    size_t len;
};

static struct pickle_bytes from_hex(const char *hex)
{
    struct pickle_bytes b = { .len = strlen(hex) / 2 };

    assert_true(b.len <= sizeof b.data);
    for (size_t i = 0; i < b.len; i++)
        b.data[i] = (uint8_t)strtoul((const char[]){ hex[2 * i], hex[2 * i + 1], '\0' }, NULL, 16);
    return b;
}

/* The text of the pickle, which the caller frees; or NULL and *err. */
static char *read_text(const struct pickle_bytes *b, tenrec_error *err)
{
    struct arena arena = { NULL };
    const struct pyobject *o;
    char *text = NULL;
    size_t len;
    FILE *to;

    if (unpickle(b->data, b->len, &arena, &o, err) == TENREC_OK) {
        to = open_memstream(&text, &len);
        assert_non_null(to);
        show(o, to);
        fclose(to);
    }
    arena_finish(&arena);
    return text;
}

static void refuses(const char *hex, tenrec_status code, const char *part)
{
    const struct pickle_bytes b = from_hex(hex);
    tenrec_error err;

    assert_null(read_text(&b, &err));
    assert_int_equal(err.code, code);
    assert_text_has(err.text, part);
}

/* A pickle of protocol 4 that is written piece by piece. */
static void put(struct bytes *b, const char *ops, size_t times)
{
    while (times-- > 0)
        bytes_add(b, ops, strlen(ops));
}

static void put_text(struct bytes *b, size_t len)
{
    static const char letters[16] = "abcdefghijklmnop";

    bytes_add_u8(b, 'X');
    bytes_add_u32(b, (uint32_t)len);
    for (size_t i = 0; i < len; i += sizeof letters)
        bytes_add(b, letters, len - i < sizeof letters ? len - i : sizeof letters);
}

/* Returns the status of unpickle, or of the value; *ret: the bytes that they took. Frees `b`. */
static tenrec_status made_of(struct bytes *b, size_t *ret, tenrec_error *err)
{
    const struct pyobject_source from = { .bytes = b->len };
    struct arena arena = { NULL };
    const struct pyobject *o;
    struct tenrec_value v;
    tenrec_status st = unpickle(b->data, b->len, &arena, &o, err);

    if (st == TENREC_OK)
        st = pyobject_value(o, &arena, &from, &v, err);
    *ret = arena.bytes;
    arena_finish(&arena);
    bytes_free(b);
    return st;
}

TEST(unpickle_reads_what_torch_writes)
{
    for (size_t i = 0; i < sizeof captured / sizeof *captured; i++) {
        const struct pickle_bytes b = from_hex(captured[i].hex);
        tenrec_error err;
        char *text = read_text(&b, &err);

        if (!text)
            fail_msg("%s: %s", captured[i].name, err.text);
        assert_string_equal(text, captured[i].text);
        free(text);
    }
}

TEST(unpickle_refuses_each_prefix_of_what_torch_writes)
{
    for (size_t i = 0; i < sizeof captured / sizeof *captured; i++) {
        struct pickle_bytes b = from_hex(captured[i].hex);
        tenrec_error err;

        while (b.len-- > 0) {
            assert_null(read_text(&b, &err));
            assert_text_has(err.text, "pickle at byte ");
        }
    }
}

TEST(unpickle_calls_nothing)
{
    /* os.system("x"), as protocol 2 and as 4; and by NEWOBJ. */
    refuses("8002636f730a73797374656d0a58010000007885", TENREC_EPROTOCOL, "pickle at byte ");
    refuses("8002636f730a73797374656d0a58010000007885522e", TENREC_EUNSUPPORTED,
            "pickle at byte 20: it calls 'os.system'");
    refuses("80048c026f738c0673797374656d938c017885522e", TENREC_EUNSUPPORTED,
            "it calls 'os.system'");
    refuses("8002636f730a73797374656d0a29812e", TENREC_EUNSUPPORTED, "it calls 'os.system'");
    /* getattr(os, "system") */
    refuses("8002636275696c74696e730a676574617474720a636f730a706174680a58010000007886522e",
            TENREC_EUNSUPPORTED, "it calls 'builtins.getattr'");
}

/* The callables that trainers need, with other arguments, and a state that is none of theirs. */
TEST(unpickle_refuses_known_classes_in_other_shapes)
{
    static const struct {
        const char *ops, *part;
    } row[] = {
        { "ccollections\nOrderedDict\n](NNe\x85\x85R.", "it calls 'collections.OrderedDict'" },
        { "ctorch._utils\n_rebuild_parameter\n(N\x88NtR.", "_rebuild_parameter'" },
        { "ctorch\nSize\n(K\2tR.", "it calls 'torch.Size'" },
        { "}}b.", "it sets the state" },
        { "ccollections\nOrderedDict\n)R}\x8c\1aNsb.", "it sets the state" },
        { "ccollections\nOrderedDict\n)R}(\x8c\x09_metadataN\x8c\1aNub.", "it sets the state" },
        { "]}\x8c\x09_metadataNsb.", "it sets the state" },
    };
    tenrec_error err;
    size_t bytes;

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct bytes b = { .len = 0 };

        put(&b, "\x80\x04", 1);
        put(&b, row[i].ops, 1);
        assert_int_equal(made_of(&b, &bytes, &err), TENREC_EUNSUPPORTED);
        assert_text_has(err.text, row[i].part);
    }
}

TEST(unpickle_refuses_malformed_pickles_with_the_place)
{
    refuses("", TENREC_EPROTOCOL, "pickle at byte 0");
    refuses("80014e2e", TENREC_EPROTOCOL, "expected protocol 2 to 5");
    refuses("80022e", TENREC_EPROTOCOL, "lacks its operand");
    refuses("80024e4e2e", TENREC_EPROTOCOL, "more than one value");
    refuses("8002284e2e", TENREC_EPROTOCOL, "more than one value");
    refuses("8002742e", TENREC_EPROTOCOL, "byte 2: an operation lacks its mark");
    refuses("80024e28522e", TENREC_EPROTOCOL, "lacks its operand");
    refuses("800258ffffffff412e", TENREC_EPROTOCOL, "byte 2: it ends inside an operation");
    refuses("800458ff0000", TENREC_EPROTOCOL, "it ends inside an operation");
    refuses("80048dffffffffffffffff2e", TENREC_EPROTOCOL, "it ends inside an operation");
    refuses("80045801000000ff2e", TENREC_EPROTOCOL, "no UTF-8");
    refuses("80045801000000002e", TENREC_EPROTOCOL, "has a NUL");
    refuses("800468052e", TENREC_EPROTOCOL, "recalls memo 5");
    refuses("80044e72ffffffff2e", TENREC_EPROTOCOL, "it sets memo 4294967295, and 0 is next");
    refuses("80048a090000000000000000002e", TENREC_EUNSUPPORTED, "more than 64 bits");
    refuses("80045d4e4e752e", TENREC_EPROTOCOL, "lacks its mark");
    refuses("80047d284e752e", TENREC_EPROTOCOL, "a list or a dict");
    refuses("80044e4e612e", TENREC_EPROTOCOL, "a list or a dict");
    refuses("80044e510a2e", TENREC_EUNSUPPORTED, "byte 3: operation 0x51");
}

TEST(unpickle_limits_the_number_of_objects)
{
    const size_t len = PYOBJECT_MAX + 16;
    uint8_t *data = malloc(len);
    struct arena arena = { NULL };
    const struct pyobject *o;
    tenrec_error err;

    assert_non_null(data);
    memset(data, 'N', len);
    data[0] = 0x80;
    data[1] = 2;
    assert_int_equal(unpickle(data, len, &arena, &o, &err), TENREC_ETOOBIG);
    arena_finish(&arena);
    free(data);
}

/* ---- values --------------------------------------------------------------------------- */

static tenrec_status to_value(const char *hex, size_t n_tensors, tenrec_error *err)
{
    static struct tenrec_tensor *const none[1] = { NULL };
    const struct pickle_bytes b = from_hex(hex);
    const struct pyobject_source from = { none, n_tensors, NULL, b.len };
    struct arena arena = { NULL };
    const struct pyobject *o;
    struct tenrec_value v;
    tenrec_status st = unpickle(b.data, b.len, &arena, &o, err);

    assert_int_equal(st, TENREC_OK);
    st = pyobject_value(o, &arena, &from, &v, err);
    arena_finish(&arena);
    return st;
}

TEST(value_refuses_what_is_no_plain_value)
{
    tenrec_error err;

    assert_int_equal(to_value("8002636f730a73797374656d0a2e", 0, &err), TENREC_EUNSUPPORTED);
    assert_int_equal(to_value("80027d284b014b02752e", 0, &err), TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "a key that is no text");
    /* build_tensor_from_id(1) of a message with one tensor */
    assert_int_equal(to_value("800263746f7263682e6a69742e5f7069636b6c650a6275696c645f74656e736f72"
                              "5f66726f6d5f69640a4b0185522e",
                              1, &err),
                     TENREC_EPROTOCOL);
}

TEST(value_refuses_a_list_in_itself)
{
    tenrec_error err;

    assert_int_equal(to_value("80025d71006800612e", 0, &err), TENREC_ETOOBIG);
}

TEST(value_limits_what_a_pickle_expands_to)
{
    /* A tuple of thirty lists, each with the former one twice. */
    char hex[1024] = "8002285d7100";
    tenrec_error err;

    for (unsigned i = 1; i < 30; i++)
        snprintf(hex + strlen(hex), sizeof hex - strlen(hex), "5d71%02x2868%02x68%02x65", i, i - 1,
                 i - 1);
    strcat(hex, "742e");
    assert_int_equal(to_value(hex, 0, &err), TENREC_ETOOBIG);
    assert_text_has(err.text, "take more than");
}

/* Of 2 GiB, the length would be negative as an int. */
TEST(unpickle_cuts_a_name_that_it_refuses)
{
    struct bytes b = { .len = 0 };
    tenrec_error err;
    size_t bytes;

    put(&b,
        "\x80\x04"
        "c",
        1);
    put(&b, "m", 300);
    put(&b, "\nname\n)R.", 1);
    assert_int_equal(made_of(&b, &bytes, &err), TENREC_EUNSUPPORTED);
    assert_text_has(err.text, "mmm.name': plain values and tensors only are read");
}

TEST(value_with_a_text_at_many_places_has_one_copy_of_it)
{
    struct bytes b = { .len = 0 };
    tenrec_error err;
    size_t bytes;

    put(&b, "\x80\x04](", 1);
    put_text(&b, 256 << 10);
    put(&b, "\x94", 1);
    bytes_add(&b, "h\0", 2);
    bytes_add(&b, "h\0", 2);
    put(&b, "e.", 1);
    assert_status(made_of(&b, &bytes, &err), &err);
    assert_in_range(bytes, 256 << 10, 300 << 10);
}

TEST(value_with_a_text_at_many_places_counts_it_there)
{
    struct bytes b = { .len = 0 };
    tenrec_error err;
    size_t bytes;

    put(&b, "\x80\x04](", 1);
    put_text(&b, 256 << 10);
    put(&b, "\x94", 1);
    for (int i = 0; i < 20000; i++)
        bytes_add(&b, "h\0", 2);
    put(&b, "e.", 1);
    assert_int_equal(made_of(&b, &bytes, &err), TENREC_ETOOBIG);
    assert_text_has(err.text, "take more than");
    assert_in_range(bytes, 0, 4 << 20);
}

/* torch.device(*args), with the same 1000 arguments each time. */
TEST(unpickle_limits_the_bytes_of_objects_with_common_items)
{
    struct bytes b = { .len = 0 };
    tenrec_error err;
    size_t bytes;

    put(&b, "\x80\x04(ctorch\ndevice\n\x94(", 1);
    put(&b, "N", 1000);
    put(&b, "t\x94", 1);
    for (int i = 0; i < 1000; i++)
        bytes_add(&b, "h\0h\1R", 5);
    put(&b, "t.", 1);
    assert_int_equal(made_of(&b, &bytes, &err), TENREC_ETOOBIG);
    assert_text_has(err.text, "its objects take more than");
    assert_in_range(bytes, 0, 3 << 20);
}

TEST(value_of_any_pickle_without_common_parts_is_within_its_bytes)
{
    static const char *const item[] = { "N",    ")",    "]",   "}",      "N\x85",
                                        "](Ne", "}X\1", "K\1", "\x8c\1a" };
    tenrec_error err;
    size_t bytes;

    for (size_t i = 0; i < sizeof item / sizeof *item; i++) {
        struct bytes b = { .len = 0 };

        put(&b, "\x80\x04](", 1);
        for (int k = 0; k < 100000; k++) {
            put(&b, item[i], 1);
            if (item[i][0] == '}' && item[i][1])
                bytes_add(&b, "\0\0\0aNs", 6);
        }
        put(&b, "e.", 1);
        assert_status(made_of(&b, &bytes, &err), &err);
    }
}
