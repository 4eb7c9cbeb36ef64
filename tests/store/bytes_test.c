/* SPDX-License-Identifier: Apache-2.0 */
/* bytes_test.c - the cursor that reads records and requests from outside. */
#include "../testing.h"

#include "group/store/bytes.h"

static struct bytes written;

static struct bytes_reader reader(void)
{
    return (struct bytes_reader){ .data = written.data, .len = written.len };
}

static void teardown(void)
{
    bytes_free(&written);
}

TEST_WITH(bytes_reader_reads_written_bytes, NULL, teardown)
{
    struct bytes_reader r;
    const uint8_t *blob;
    char text[4];
    size_t len;

    bytes_add_u32(&written, 0xfedcba98u);
    bytes_add_u64(&written, UINT64_MAX - 1);
    bytes_add_text(&written, "abc");
    bytes_add_blob(&written, "a\0b", 3);
    r = reader();
    assert_int_equal(bytes_read_u32(&r), 0xfedcba98u);
    assert_true(bytes_read_u64(&r) == UINT64_MAX - 1);
    bytes_read_text(&r, text, sizeof text);
    assert_string_equal(text, "abc");
    blob = bytes_read_blob(&r, 3, &len);
    assert_int_equal(len, 3);
    assert_memory_equal(blob, "a\0b", 3);
    assert_false(r.bad);
    assert_int_equal(r.at, r.len);
}

TEST_WITH(bytes_reader_says_how_many_bytes_a_read_needs, NULL, teardown)
{
    struct bytes_reader r;

    bytes_add_u32(&written, 1);
    r = reader();
    assert_non_null(bytes_read(&r, 2));
    assert_null(bytes_read(&r, 5));
    assert_true(r.bad);
    assert_int_equal(r.need, 7);
    r = reader();
    assert_non_null(bytes_read(&r, 1));
    assert_null(bytes_read(&r, SIZE_MAX));
    assert_true(r.need == SIZE_MAX);
}

TEST_WITH(bytes_reader_reads_nothing_after_a_failure, NULL, teardown)
{
    struct bytes_reader r;
    char text[8] = "old";
    size_t len;

    bytes_add_u64(&written, 0);
    r = reader();
    assert_null(bytes_read(&r, 9));
    assert_null(bytes_read(&r, 0));
    assert_int_equal(bytes_read_u32(&r), 0);
    assert_null(bytes_read_blob(&r, 8, &len));
    assert_int_equal(len, 0);
    bytes_read_text(&r, text, sizeof text);
    assert_string_equal(text, "");
    assert_int_equal(r.at, 0);
}

TEST_WITH(bytes_reader_refuses_counts_that_cannot_be, NULL, teardown)
{
    static const struct {
        uint64_t n;
        size_t most, size;
        bool bad;
    } rows[] = { { 2, 2, 8, false },         { 3, 2, 1, true },
                 { 2, 2, 9, true },          { UINT64_MAX, SIZE_MAX, 1, true },
                 { 16, SIZE_MAX, 1, false }, { 17, SIZE_MAX, 1, true } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bytes_reader r;

        bytes_free(&written);
        bytes_add_u64(&written, rows[i].n);
        bytes_add_u64(&written, 0);
        bytes_add_u64(&written, 0);
        r = reader();
        assert_int_equal(bytes_read_count(&r, rows[i].most, rows[i].size),
                         rows[i].bad ? 0 : rows[i].n);
        assert_int_equal(r.bad, rows[i].bad);
    }
}

TEST_WITH(bytes_reader_refuses_texts_that_are_long_or_have_a_nul, NULL, teardown)
{
    static const struct {
        const char *data;
        size_t len;
    } rows[] = { { "abcd", 4 }, { "a\0b", 3 }, { "\0", 1 } };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bytes_reader r;
        char text[4];

        bytes_free(&written);
        bytes_add_blob(&written, rows[i].data, rows[i].len);
        r = reader();
        bytes_read_text(&r, text, sizeof text);
        assert_true(r.bad);
        assert_string_equal(text, "");
    }
}
