/* SPDX-License-Identifier: Apache-2.0 */
/* nop_test.c - the encoding, by vectors of the real libnop. */
#include "wire_test.h"

static const struct {
    uint64_t value;
    const char *hex;
} uints[] = {
    { 0, "00" },
    { 1, "01" },
    { 127, "7f" },
    { 128, "80 80" },
    { 200, "80 c8" },
    { 255, "80 ff" },
    { 256, "81 00 01" },
    { 300, "81 2c 01" },
    { 65535, "81 ff ff" },
    { 65536, "82 00 00 01 00" },
    { 70000, "82 70 11 01 00" },
    { UINT32_MAX, "82 ff ff ff ff" },
    { (uint64_t)UINT32_MAX + 1, "83 00 00 00 00 01 00 00 00" },
    { UINT64_MAX, "83 ff ff ff ff ff ff ff ff" },
};

static const struct {
    int32_t value;
    const char *hex;
} ints[] = {
    { 0, "00" },
    { 1, "01" },
    { 127, "7f" },
    { 128, "85 80 00" },
    { 255, "85 ff 00" },
    { 256, "85 00 01" },
    { 32767, "85 ff 7f" },
    { 32768, "86 00 80 00 00" },
    { INT32_MAX, "86 ff ff ff 7f" },
    { -1, "ff" },
    { -64, "c0" },
    { -65, "84 bf" },
    { -128, "84 80" },
    { -129, "85 7f ff" },
    { -32768, "85 00 80" },
    { -32769, "86 ff 7f ff ff" },
    { INT32_MIN, "86 00 00 00 80" },
};

static void check_written(const struct nop_writer *w, const char *expected)
{
    struct hex h = hex(expected);

    assert_int_equal(w->len, h.len);
    assert_memory_equal(w->buf, h.data, h.len);
}

TEST(nop_writes_the_smallest_form_of_unsigned)
{
    for (size_t i = 0; i < sizeof uints / sizeof uints[0]; i++) {
        unsigned char buf[16];
        struct nop_writer w;

        nop_writer_init(&w, buf, sizeof buf);
        nop_write_uint(&w, uints[i].value);
        check_written(&w, uints[i].hex);
    }
}

TEST(nop_writes_the_smallest_form_of_signed)
{
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        unsigned char buf[16];
        struct nop_writer w;

        nop_writer_init(&w, buf, sizeof buf);
        nop_write_int(&w, ints[i].value);
        check_written(&w, ints[i].hex);
    }
}

/* Every reader below gets a heap copy, so that one byte too far is seen. */
struct read {
    void *frame;
    struct nop_reader r;
    tenrec_error err;
};

static void open_read(struct read *t, const char *text)
{
    struct hex h = hex(text);

    t->frame = hex_exact(h.data, h.len);
    memset(&t->err, 0, sizeof t->err);
    nop_reader_init(&t->r, "object", t->frame, h.len, &t->err);
}

static void close_read(struct read *t)
{
    free(t->frame);
}

TEST(nop_reads_its_own_bytes)
{
    struct read t;

    for (size_t i = 0; i < sizeof uints / sizeof uints[0]; i++) {
        open_read(&t, uints[i].hex);
        assert_true(nop_read_uint(&t.r, UINT64_MAX, "n") == uints[i].value);
        assert_int_equal(t.r.status, TENREC_OK);
        assert_ptr_equal(t.r.pos, t.r.end);
        close_read(&t);
    }
    for (size_t i = 0; i < sizeof ints / sizeof ints[0]; i++) {
        open_read(&t, ints[i].hex);
        assert_int_equal(nop_read_int(&t.r, "n"), ints[i].value);
        assert_int_equal(t.r.status, TENREC_OK);
        assert_ptr_equal(t.r.pos, t.r.end);
        close_read(&t);
    }
}

TEST(nop_reads_any_width_of_its_signedness)
{
    static const char *const wide_uint[] = { "05", "80 05", "81 05 00", "82 05 00 00 00",
                                             "83 05 00 00 00 00 00 00 00" };
    static const char *const wide_int[] = { "fe", "84 fe", "85 fe ff", "86 fe ff ff ff" };
    struct read t;

    for (size_t i = 0; i < 5; i++) {
        open_read(&t, wide_uint[i]);
        assert_int_equal(nop_read_uint(&t.r, UINT64_MAX, "n"), 5);
        assert_int_equal(t.r.status, TENREC_OK);
        close_read(&t);
    }
    for (size_t i = 0; i < 4; i++) {
        open_read(&t, wide_int[i]);
        assert_int_equal(nop_read_int(&t.r, "n"), -2);
        assert_int_equal(t.r.status, TENREC_OK);
        close_read(&t);
    }
}

TEST(nop_refuses_the_other_signedness)
{
    static const char *const no_uint[] = {
        "84 05", "85 05 00", "86 05 00 00 00", "87 05 00 00 00 00 00 00 00", "ff", "c0", "bd", "88"
    };
    static const char *const no_int[] = { "80 05",
                                          "81 05 00",
                                          "82 05 00 00 00",
                                          "83 05 00 00 00 00 00 00 00",
                                          "87 05 00 00 00 00 00 00 00",
                                          "bd",
                                          "b4" };
    struct read t;

    for (size_t i = 0; i < sizeof no_uint / sizeof no_uint[0]; i++) {
        open_read(&t, no_uint[i]);
        nop_read_uint(&t.r, UINT64_MAX, "n");
        assert_int_equal(t.r.status, TENREC_EPROTOCOL);
        assert_text_has(t.err.text, "object.n at byte 0: expected an unsigned number");
        close_read(&t);
    }
    for (size_t i = 0; i < sizeof no_int / sizeof no_int[0]; i++) {
        open_read(&t, no_int[i]);
        nop_read_int(&t.r, "n");
        assert_int_equal(t.r.status, TENREC_EPROTOCOL);
        assert_text_has(t.err.text, "object.n at byte 0: expected a signed number");
        close_read(&t);
    }
}

TEST(nop_refuses_values_that_a_field_cannot_hold)
{
    struct read t;

    open_read(&t, "83 05 00 00 00 00 00 00 00");
    nop_read_uint(&t.r, UINT32_MAX, "n");
    assert_text_has(t.err.text, "8 bytes in a field of 4");
    close_read(&t);

    open_read(&t, "81 01 01");
    nop_read_uint(&t.r, 256, "n");
    assert_text_has(t.err.text, "object.n at byte 0: 257 is more than 256");
    close_read(&t);
}

TEST(nop_refuses_every_cut_of_a_number)
{
    static const char *const cut[] = { "", "80", "81 00", "82 00 00 00",
                                       "83 00 00 00 00 00 00 00" };
    struct read t;

    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        open_read(&t, cut[i]);
        nop_read_uint(&t.r, UINT64_MAX, "n");
        assert_int_equal(t.r.status, TENREC_EPROTOCOL);
        assert_text_has(t.err.text, "the frame ends");
        close_read(&t);
    }
}

TEST(nop_writes_composite_forms)
{
    static const uint64_t one[1] = { 1 };
    const struct nop_device cpu = { nop_text("cpu"), 0 };
    const struct nop_device any_gpu = { nop_text("cuda"), -1 };
    unsigned char buf[64];
    struct nop_writer w;

#define WRITES(call, text)                                                                         \
    do {                                                                                           \
        nop_writer_init(&w, buf, sizeof buf);                                                      \
        call;                                                                                      \
        check_written(&w, text);                                                                   \
    } while (0)
    WRITES(nop_write_string(&w, nop_text("")), "bd 00");
    WRITES(nop_write_string(&w, nop_text("cpu")), "bd 03 63 70 75");
    WRITES(nop_write_struct(&w, 2), "b9 02");
    WRITES(nop_write_array(&w, 0), "ba 00");
    WRITES(nop_write_array(&w, 200), "ba 80 c8");
    WRITES(nop_write_map(&w, 1), "bb 01");
    WRITES(nop_write_uint64s(&w, NULL, 0), "bc 00");
    WRITES(nop_write_uint64s(&w, one, 1), "bc 08 01 00 00 00 00 00 00 00");
    WRITES(nop_write_byte(&w, NOP_NIL), "be");
    WRITES(nop_write_variant(&w, 1), "b8 01");
    WRITES((nop_write_variant(&w, -1), nop_write_byte(&w, NOP_NIL)), "b8 ff be");
    WRITES(nop_write_device(&w, &cpu), "b9 02 bd 03 63 70 75 00");
    WRITES(nop_write_device(&w, &any_gpu), "b9 02 bd 04 63 75 64 61 ff");
#undef WRITES
}

TEST(nop_writes_wide_lengths_of_strings)
{
    unsigned char text[300], buf[400];
    struct nop_writer w;

    memset(text, 'x', sizeof text);
    nop_writer_init(&w, buf, sizeof buf);
    nop_write_string(&w, (struct nop_bytes){ text, 200 });
    assert_int_equal(w.len, 203);
    assert_memory_equal(buf, hex("bd 80 c8 78").data, 4);
    nop_writer_init(&w, buf, sizeof buf);
    nop_write_string(&w, (struct nop_bytes){ text, 300 });
    assert_int_equal(w.len, 304);
    assert_memory_equal(buf, hex("bd 81 2c 01 78").data, 5);
}

TEST(nop_writer_returns_the_needed_size_when_the_buffer_is_short)
{
    unsigned char buf[8] = { 0 };
    struct nop_writer w;

    nop_writer_init(&w, buf, 4);
    nop_write_string(&w, nop_text("hello"));
    nop_write_uint(&w, 70000);
    assert_int_equal(w.len, 7 + 5);
    assert_int_equal(buf[4], 0);
    nop_writer_init(&w, NULL, 0);
    nop_write_string(&w, nop_text("hello"));
    assert_int_equal(w.len, 7);
}

TEST(nop_reads_composite_forms)
{
    struct nop_bytes numbers, text;
    struct nop_device device;
    struct read t;

    open_read(&t,
              "b9 02 bd 04 63 75 64 61 ff bc 10 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 80 "
              "be bd 83 02 00 00 00 00 00 00 00 68 69 b8 01 b8 ff be");
    device = nop_read_device(&t.r, "device");
    assert_bytes_are(device.type, "cuda");
    assert_int_equal(device.index, -1);
    numbers = nop_read_uint64s(&t.r, "numbers");
    assert_int_equal(nop_uint64_count(numbers), 2);
    assert_int_equal(nop_uint64_at(numbers, 0), 1);
    assert_true(nop_uint64_at(numbers, 1) == 0x8000000000000002u);
    assert_true(nop_read_nil(&t.r));
    assert_false(nop_read_nil(&t.r));
    text = nop_read_string(&t.r, "text");
    assert_bytes_are(text, "hi");
    assert_int_equal(nop_read_variant(&t.r, 2, "variant"), 1);
    assert_int_equal(nop_read_variant(&t.r, 2, "variant"), -1);
    assert_int_equal(t.r.status, TENREC_OK);
    assert_ptr_equal(t.r.pos, t.r.end);
    close_read(&t);
}

TEST(nop_refuses_a_wrong_member_count)
{
    struct read t;

    open_read(&t, "b9 03 00 00 00");
    nop_read_struct(&t.r, 2, "structure");
    assert_text_has(t.err.text, "expected 2 members, got 3");
    close_read(&t);
}

TEST(nop_refuses_counts_that_do_not_fit)
{
    struct read t;

    open_read(&t, "bd 83 ff ff ff ff ff ff ff ff 61");
    assert_int_equal(nop_read_string(&t.r, "text").len, 0);
    assert_text_has(t.err.text, "18446744073709551615 bytes do not fit in the 1 bytes left");
    close_read(&t);

    open_read(&t, "ba 03 00 00 00 00 00 00 00 00");
    assert_int_equal(nop_read_array(&t.r, 4, "array"), 0);
    assert_text_has(t.err.text, "3 elements do not fit in the 8 bytes left");
    close_read(&t);

    open_read(&t, "bc 07 00 00 00 00 00 00 00");
    assert_int_equal(nop_read_uint64s(&t.r, "numbers").len, 0);
    assert_text_has(t.err.text, "7 bytes are no vector");
    close_read(&t);

    open_read(&t, "bb 03 00 00 00 00 00 00");
    assert_int_equal(nop_read_map(&t.r, 2, 2, "map"), 0);
    assert_int_equal(t.r.status, TENREC_ETOOBIG);
    close_read(&t);
}

TEST(nop_refuses_variants_out_of_range)
{
    static const char *const bad[] = { "b8 02", "b8 fe", "b8 ff 00", "b8 ff", "b8 80 01", "00" };
    struct read t;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        open_read(&t, bad[i]);
        assert_int_equal(nop_read_variant(&t.r, 2, "variant"), -1);
        assert_int_equal(t.r.status, TENREC_EPROTOCOL);
        close_read(&t);
    }
}

TEST(nop_reader_keeps_its_first_failure)
{
    struct read t;

    open_read(&t, "01 bd 01 61");
    nop_read_struct(&t.r, 1, "first");
    nop_read_string(&t.r, "second");
    assert_int_equal(nop_read_uint(&t.r, UINT64_MAX, "third"), 0);
    assert_text_has(t.err.text, "object.first at byte 0");
    close_read(&t);
}
