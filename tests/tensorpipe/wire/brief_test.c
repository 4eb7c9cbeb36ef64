/* SPDX-License-Identifier: Apache-2.0 */
/* brief_test.c - brief messages: there and back, and what of them is refused. */
#include "wire/brief.h"
#include "wire/descriptor.h"
#include "wire_test.h"

#include <tenrec/message.h>

#define LIST "list"
#define ROOM (BRIEF_HEAD + BRIEF_BODY_MAX)

static unsigned char buf[ROOM];

/* Two storages, of which the second has no bytes and no note, and a view of the first. */
static size_t write_tensors(void)
{
    static struct tenrec_tensor_desc desc[3] = { { .bytes = 48 },
                                                 { .bytes = 48, .same_storage = 1 },
                                                 { .bytes = 0 } };
    static const struct descriptor_note notes[3] = { { 4, "note" } };
    const struct tenrec_msg msg = { .size = sizeof msg,
                                    .type = TENREC_MSG_CALL,
                                    .id = 7,
                                    .payload = (void *)(uintptr_t) "pay",
                                    .payload_len = 3,
                                    .tensors = desc,
                                    .n_tensors = 3,
                                    .tensor_size = sizeof desc[0] };

    return brief_write_tensors(buf, &msg, notes, LIST, sizeof LIST - 1);
}

TEST(brief_reads_its_own_bytes)
{
    const size_t len = brief_write(buf, TENREC_MSG_RET, INT64_MIN, "payload", 7);
    struct brief b;

    assert_int_equal(len, BRIEF_HEAD + 7);
    assert_true(brief_is(buf));
    assert_int_equal(brief_length(buf), len);
    assert_true(brief_read(buf, len, &b));
    assert_int_equal(b.plain.type, TENREC_MSG_RET);
    assert_true(b.plain.id == INT64_MIN);
    assert_int_equal(b.plain.len, len);
    assert_int_equal(b.plain.payload_len, 7);
    assert_memory_equal(b.plain.payload, "payload", 7);
    assert_int_equal(b.n, 0);
}

TEST(brief_is_no_frame)
{
    plain_write(buf, TENREC_MSG_CALL, 7, "payload", 7);
    assert_false(brief_is(buf));
}

TEST(brief_reads_its_own_tensors)
{
    const size_t len = write_tensors();
    struct brief b;

    assert_true(len > 0);
    assert_int_equal(brief_length(buf), len);
    assert_true(brief_read(buf, len, &b));
    assert_int_equal(b.plain.payload_len, 3);
    assert_memory_equal(b.plain.payload, "pay", 3);
    assert_int_equal(b.n, 2);
    assert_int_equal(b.storage[0].bytes, 48);
    assert_int_equal(b.storage[0].note.len, 4);
    assert_memory_equal(b.storage[0].note.data, "note", 4);
    assert_int_equal(b.storage[1].bytes, 0);
    assert_int_equal(b.storage[1].note.len, 0);
    assert_int_equal(b.list_len, sizeof LIST - 1);
    assert_memory_equal(b.list, LIST, sizeof LIST - 1);
}

/* The list is the last of it, and is checked by its own reader. */
TEST(brief_refuses_storages_that_are_cut)
{
    const size_t len = write_tensors() - (sizeof LIST - 1);
    struct brief b;

    for (size_t n = BRIEF_HEAD; n < len; n++)
        assert_false(brief_read(buf, n, &b));
    assert_true(brief_read(buf, len, &b));
    assert_int_equal(b.list_len, 0);
}

TEST(brief_refuses_malformed_heads)
{
    static const struct {
        unsigned at, byte;
    } change[] = { { 5, 0xff }, { 6, BRIEF_STORAGES_MAX + 1 }, { 7, BRIEF_MARK | 1 } };

    for (size_t i = 0; i < sizeof change / sizeof change[0]; i++) {
        brief_write(buf, TENREC_MSG_CALL, 7, "payload", 7);
        buf[change[i].at] = (unsigned char)change[i].byte;
        assert_true(brief_is(buf));
        assert_int_equal(brief_length(buf), 0);
    }
}

TEST(brief_refuses_a_storage_that_no_memory_holds)
{
    const size_t len = write_tensors();
    struct brief b;

    buf[BRIEF_HEAD + 2 + 3 + 7] = 0x20;
    assert_false(brief_read(buf, len, &b));
}

int main(void)
{
    return testing_run(NULL, NULL);
}
