/* SPDX-License-Identifier: Apache-2.0 */
/* tensorlist_hostile_test.c - lists of tensors that torch's pickler does not write. */
#include "pickled.h"

#define ONE(count, rest) BEGIN TENSOR0 CLASS_FLOAT KEY0_CPU count "74517106" rest HOOKS

TEST(tensorlist_refuses_a_view_that_leaves_its_storage)
{
    check_refused(FLOAT2, 7, 1, TENREC_EPROTOCOL, "tensor 0: 2 elements of 4 bytes");
    check_refused(ONE("4b02", "4b01 284b0274 284b0174 89"), 8, 1, TENREC_EPROTOCOL,
                  "its view ends at byte 12 of a storage of 8");
    check_refused(ONE("4b02", "4b00 284b0274 284b0274 89"), 8, 1, TENREC_EPROTOCOL, "ends at byte");
    check_refused(ONE("4affffffff", "4b00 284b0274 284b0174 89"), 8, 1, TENREC_EPROTOCOL,
                  "-1 elements");
    check_refused(ONE("4b02", "4affffffff 284b0274 284b0174 89"), 8, 1, TENREC_EPROTOCOL,
                  "offset -1");
    check_refused(ONE("4b02", "8a08ffffffffffffff7f 284b0274 284b0174 89"), 8, 1, TENREC_EPROTOCOL,
                  "offset");
    check_refused(ONE("4b02", "4b00 284affffffff74 284b0174 89"), 8, 1, TENREC_EPROTOCOL,
                  "dimension 0 has size -1");
    check_refused(ONE("4b02", "4b00 284b0274 284affffffff74 89"), 8, 1, TENREC_EPROTOCOL,
                  "stride -1");
    check_refused(ONE("4b02", "4b00 28 8a08ffffffffffffff7f 74 28 8a08ffffffffffffff7f 74 89"), 8,
                  1, TENREC_EPROTOCOL, "cannot be counted");
    check_refused(ONE("4b02", "4b00 284b0274 2874 89"), 8, 1, TENREC_EPROTOCOL,
                  "as many strides as sizes");
}

TEST(tensorlist_refuses_too_many_dimensions)
{
    check_refused(
        ONE("4b02", "4b00 28 4b014b014b014b014b014b014b014b014b014b014b014b014b014b014b014b014b01"
                    "74 28 4b014b014b014b014b014b014b014b014b014b014b014b014b014b014b014b014b0174 "
                    "89"),
        8, 1, TENREC_ETOOBIG, "17 dimensions; the limit is 16");
}

TEST(tensorlist_refuses_another_number_of_tensors)
{
    check_refused(FLOAT2, 8, 0, TENREC_EPROTOCOL, "more storages than the 0");
    check_refused(FLOAT2, 8, 2, TENREC_EPROTOCOL, "expected the 2 storages");
    check_refused(EMPTY, 8, 1, TENREC_EPROTOCOL, "expected the 1 storages");
    check_refused(LONG_AND_DOUBLE, 16, 1, TENREC_EPROTOCOL, "more storages than the 1");
}

TEST(tensorlist_refuses_bytes_that_torch_does_not_write)
{
    static const struct {
        const char *hex;
        tenrec_status status;
        const char *says;
    } bad[] = {
        { "", TENREC_EPROTOCOL, "ends inside" },
        { "80", TENREC_EPROTOCOL, "ends inside" },
        { "8003", TENREC_EPROTOCOL, "expected protocol 2" },
        { "80022e", TENREC_EPROTOCOL, "lacks its operand" },
        { "80024b012e", TENREC_EPROTOCOL, "expected a tensor list" },
        { "80024b014b012e", TENREC_EPROTOCOL, "more than one value" },
        { "8002284b012e", TENREC_EPROTOCOL, "more than one value" },
        { "8002282e", TENREC_EPROTOCOL, "lacks its operand" },
        { "800263", TENREC_EPROTOCOL, "a name has no end" },
        { "8002636f730a73797374656d0a", TENREC_EUNSUPPORTED, "\"os.system\"" },
        { "800263746f7263682e5f7574696c730a5f72656275696c645f71745f76320a", TENREC_EUNSUPPORTED,
          "only dense tensors" },
        { "800263746f7263680a51496e743853746f726167650a", TENREC_EUNSUPPORTED, "QInt8Storage" },
        { "800263 74656e7265630a 302e382e310a 2e", TENREC_EPROTOCOL, "expected a tensor list" },
        { "800263 74656e7265630a 302e372e310a 2e", TENREC_EUNSUPPORTED, "tenrec.0.7.1" },
        { "8002 74", TENREC_EPROTOCOL, "lacks its mark" },
        { "8002 65", TENREC_EPROTOCOL, "lacks its mark" },
        { "8002 2865", TENREC_EPROTOCOL, "no list" },
        { "8002 5d284b0165", TENREC_EPROTOCOL, "something else than tensors" },
        { "8002 7100", TENREC_EPROTOCOL, "memoizes nothing" },
        { "8002 6805", TENREC_EPROTOCOL, "recalls memo 5" },
        { "8002 4b01 7100 6800", TENREC_EPROTOCOL, "recalls memo 0" },
        { "8002 4b01 4b01 52", TENREC_EPROTOCOL, "a call needs" },
        { "8002 4b01 51", TENREC_EPROTOCOL, "no tuple" },
        { "8002 29 51", TENREC_EPROTOCOL, "a storage of 5 parts" },
        { "8002 58ffffffff61", TENREC_EPROTOCOL, "ends inside" },
        { "8002 8a0401000000", TENREC_EPROTOCOL, "other than 8 bytes" },
        { "8002 4e", TENREC_EPROTOCOL, "operation 0x4e" },
        { "8002 63636f6c6c656374696f6e730a4f726465726564446963740a 4b01 85 52", TENREC_EUNSUPPORTED,
          "hooks" },
        { "8002 63746f7263682e6a69742e5f7069636b6c650a6275696c645f74656e736f726c6973740a 29 52",
          TENREC_EPROTOCOL, "other arguments than torch's" },
        { "8002 63746f7263680a466c6f617453746f726167650a 29 52", TENREC_EPROTOCOL,
          "other arguments than torch's" },
        { "8002 63746f7263682e5f7574696c730a5f72656275696c645f74656e736f725f76320a 29 52",
          TENREC_EPROTOCOL, "expected storage, offset" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_refused(bad[i].hex, 8, 1, bad[i].status, bad[i].says);
    check_refused(BEGIN TENSOR0 CLASS_FLOAT "5801000000317104 5803000000637075 4b02 74 51", 8, 1,
                  TENREC_EPROTOCOL, "expected storage 0, the next one, as key, got \"1\"");
}

TEST(tensorlist_refuses_every_cut)
{
    struct hex h = hex(LONG_AND_DOUBLE);
    tenrec_error err;

    for (size_t len = 0; len < h.len; len++) {
        struct tenrec_tensor_desc tensors[2] = { { .bytes = 16 }, { .bytes = 16 } };
        void *frame = hex_exact(h.data, len);
        assert_int_equal(read_exactly(tensorlist_read, frame, len, tensors, 2, &err),
                         TENREC_EPROTOCOL);
        free(frame);
    }
}

TEST(tensorlist_bounds_the_stack_and_the_items)
{
    static unsigned char frame[4096];
    tenrec_error err;

    memset(frame, '(', sizeof frame);
    frame[0] = 0x80;
    frame[1] = 2;
    assert_int_equal(read_exactly(tensorlist_read, frame, sizeof frame, NULL, 0, &err),
                     TENREC_ETOOBIG);
    assert_text_has(err.text, "on its stack");
    /* Tuples of tuples: ) and then TUPLE1 without end. */
    memset(frame, 0x85, sizeof frame);
    frame[0] = 0x80;
    frame[1] = 2;
    frame[2] = ')';
    assert_int_equal(read_exactly(tensorlist_read, frame, sizeof frame, NULL, 0, &err),
                     TENREC_ETOOBIG);
    assert_text_has(err.text, "in its tuples");
}
