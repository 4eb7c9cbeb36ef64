/* SPDX-License-Identifier: Apache-2.0 */
/* shortlist_test.c - the short list of tensors: there and back, and what of it
 * is refused. */
#include "wire/tensorlist.h"
#include "wire_test.h"

#include "listed.h"

#define MAX SHORTLIST_MAX(2)

/* A 3 x 4 of floats, and a view of it: every second row, transposed. */
static const struct tenrec_tensor_desc sent[2] = {
    { .bytes = 48,
      .dtype = { TENREC_DTYPE_FLOAT, 32, 1 },
      .ndim = 2,
      .device = { TENREC_CPU, 0 },
      .shape = { 3, 4 },
      .strides = { 4, 1 } },
    { .bytes = 48,
      .byte_offset = 4,
      .dtype = { TENREC_DTYPE_FLOAT, 32, 1 },
      .ndim = 2,
      .device = { TENREC_CPU, 0 },
      .flags = TENREC_TENSOR_REQUIRES_GRAD,
      .shape = { 3, 2 },
      .strides = { 1, 8 } },
};

static size_t write_both(unsigned char buf[MAX])
{
    tenrec_error err;
    size_t len = 0;

    if (shortlist_write(buf, sent, 2, sizeof sent[0], &len, &err))
        fail_msg("%s", err.text);
    return len;
}

/* As two storages, with room for more tensors than that. */
static tenrec_status read_both(const unsigned char *buf, size_t len, tenrec_error *err)
{
    struct tenrec_tensor_desc got[4] = { 0 };
    struct carried carried[2] = { { .bytes = 48 }, { .bytes = 48 } };
    uint32_t n;

    return shortlist_is(buf, len)
               ? read_views(shortlist_read, buf, len, carried, 2, got, 4, &n, err)
               : TENREC_EPROTOCOL;
}

TEST(shortlist_reads_its_own_bytes)
{
    struct tenrec_tensor_desc got[2] = { { .bytes = 48 }, { .bytes = 48 } };
    unsigned char buf[MAX];
    size_t len = write_both(buf);
    tenrec_error err;

    assert_true(shortlist_is(buf, len));
    assert_int_equal(len, 8 + 16 + 16 + 16 + 32); /* strides of the second only */
    assert_int_equal(read_exactly(shortlist_read, buf, len, got, 2, &err), TENREC_OK);
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(&got[i].dtype, &sent[i].dtype, sizeof sent[i].dtype);
        assert_int_equal(got[i].ndim, 2);
        assert_int_equal(got[i].byte_offset, sent[i].byte_offset);
        assert_int_equal(got[i].flags, sent[i].flags);
        assert_memory_equal(got[i].shape, sent[i].shape, sizeof sent[i].shape);
        assert_memory_equal(got[i].strides, sent[i].strides, 2 * sizeof sent[i].strides[0]);
    }
}

TEST(shortlist_refuses_truncated_or_too_long_bytes)
{
    unsigned char buf[MAX + 1] = { 0 };
    size_t len = write_both(buf);
    tenrec_error err;

    for (size_t n = 0; n < len; n++)
        assert_int_equal(read_both(buf, n, &err), TENREC_EPROTOCOL);
    assert_int_equal(read_both(buf, len + 1, &err), TENREC_EPROTOCOL);
    assert_int_equal(read_both(buf, len, &err), TENREC_OK);
}

TEST(shortlist_refuses_views_that_leave_their_storage)
{
    static const struct {
        size_t at;
        unsigned char byte;
        tenrec_status status;
    } change[] = {
        { 4, 3, TENREC_EPROTOCOL },     /* three tensors */
        { 8 + 1, 3, TENREC_EPROTOCOL }, /* 3 bits */
        { 8 + 4, 17, TENREC_ETOOBIG },  /* dimensions */
        { 8 + 4, 1, TENREC_EPROTOCOL }, /* fewer: the rest is malformed */
        { 8 + 8, 4, TENREC_EPROTOCOL }, /* offset */
        { 8 + 15, 255, TENREC_EPROTOCOL },  { 8 + 16, 4, TENREC_EPROTOCOL }, /* 4 x 4 */
        { 8 + 23, 128, TENREC_EPROTOCOL },                                   /* a negative size */
        { 8 + 23, 127, TENREC_EPROTOCOL },                                   /* a huge one */
        { 40 + 32, 9, TENREC_EPROTOCOL },                                    /* stride */
        { 40 + 39, 128, TENREC_EPROTOCOL },
    };
    tenrec_error err;

    for (size_t i = 0; i < sizeof change / sizeof change[0]; i++) {
        unsigned char buf[MAX];
        size_t len = write_both(buf);

        buf[change[i].at] = change[i].byte;
        if (read_both(buf, len, &err) != change[i].status)
            fail_msg("byte %zu as %d is taken", change[i].at, change[i].byte);
    }
}

/* The second as a view of the storage of the first. */
static size_t write_views(unsigned char buf[MAX])
{
    struct tenrec_tensor_desc views[2] = { sent[0], sent[1] };
    tenrec_error err;
    size_t len = 0;

    views[1].same_storage = 1;
    if (shortlist_write(buf, views, 2, sizeof views[0], &len, &err))
        fail_msg("%s", err.text);
    return len;
}

TEST(shortlist_carries_two_views_of_one_storage)
{
    struct tenrec_tensor_desc got[2] = { 0 };
    struct carried carried = { .bytes = 48 };
    unsigned char buf[MAX];
    size_t len = write_views(buf);
    tenrec_error err;
    uint32_t n;

    assert_int_equal(read_views(shortlist_read, buf, len, &carried, 1, got, 1, &n, &err),
                     TENREC_OK);
    assert_int_equal(n, 2); /* no room for them: once more */
    assert_int_equal(read_views(shortlist_read, buf, len, &carried, 1, got, 2, &n, &err),
                     TENREC_OK);
    assert_int_equal(got[0].same_storage, 0);
    assert_int_equal(got[1].same_storage, 1);
    assert_int_equal(got[1].bytes, 48);
    assert_int_equal(got[1].byte_offset, 4);
    assert_int_equal(got[1].strides[1], 8);
}

TEST(shortlist_refuses_storages_that_no_earlier_tensor_has)
{
    unsigned char buf[MAX];
    size_t len = write_views(buf);
    struct tenrec_tensor_desc got[2] = { 0 };
    struct carried carried[2] = { { .bytes = 48 }, { .bytes = 48 } };
    tenrec_error err;
    uint32_t n;

    assert_int_equal(read_views(shortlist_read, buf, len, carried, 2, got, 2, &n, &err),
                     TENREC_EPROTOCOL); /* one of them is unused */
    buf[40 + 16] = 1;                   /* its own */
    assert_int_equal(read_views(shortlist_read, buf, len, carried, 1, got, 2, &n, &err),
                     TENREC_EPROTOCOL);
    assert_text_has(err.text, "tensor 1 has no storage to share");
    buf[4] = 255; /* more than there are bytes for */
    assert_int_equal(read_views(shortlist_read, buf, len, carried, 1, got, 2, &n, &err),
                     TENREC_EPROTOCOL);
    buf[6] = 255;
    assert_int_equal(read_views(shortlist_read, buf, len, carried, 1, got, 2, &n, &err),
                     TENREC_ETOOBIG);
}

TEST(shortlist_writes_only_readable_lists)
{
    struct tenrec_tensor_desc bad = sent[0];
    unsigned char buf[MAX];
    tenrec_error err;
    size_t len;

    bad.bytes = 47;
    assert_int_equal(shortlist_write(buf, &bad, 1, sizeof bad, &len, &err), TENREC_EINVAL);
    bad = sent[0];
    bad.ndim = TENREC_MAX_DIMS + 1;
    assert_int_equal(shortlist_write(buf, &bad, 1, sizeof bad, &len, &err), TENREC_EINVAL);
    bad = sent[0];
    bad.dtype.bits = 4;
    assert_int_equal(shortlist_write(buf, &bad, 1, sizeof bad, &len, &err), TENREC_EUNSUPPORTED);
}
