/* SPDX-License-Identifier: Apache-2.0 */
/* codec_error_test.c - errors as payloads and back; messages. */
#include "../support/payload.h"
#include "core/tensor/tensor.h"

#include <stdlib.h>

static tenrec_error some_error(void)
{
    tenrec_error why;

    tenrec_fail(&why, TENREC_ETOOBIG, "too big: %d", 7);
    why.os_errno = 12;
    why.worker = 3;
    memcpy(why.worker_name, "worker3", 8);
    return why;
}

TEST(codec_error_comes_back_when_written_for_tenrec)
{
    const tenrec_error why = some_error();
    struct tenrec_msg *msg = NULL;
    tenrec_error got;

    assert_int_equal(codec_write_error(&why, true, &msg, NULL), TENREC_OK);
    assert_int_equal(msg->type, TENREC_MSG_EXCEPTION);
    codec_read_error(msg, &got);
    assert_int_equal(got.code, TENREC_ETOOBIG);
    assert_int_equal(got.os_errno, 12);
    assert_int_equal(got.worker, 3);
    assert_string_equal(got.worker_name, "worker3");
    assert_string_equal(got.text, "too big: 7");
    msg->release(msg);
}

TEST(codec_error_is_plain_text_for_foreign_peers)
{
    const tenrec_error why = some_error();
    struct tenrec_msg *msg = NULL;
    tenrec_error got;

    assert_int_equal(codec_write_error(&why, false, &msg, NULL), TENREC_OK);
    assert_int_equal(msg->payload_len, strlen("too big: 7"));
    assert_memory_equal(msg->payload, "too big: 7", strlen("too big: 7"));
    codec_read_error(msg, &got);
    assert_int_equal(got.code, TENREC_EREMOTE);
    assert_int_equal(got.worker, -1);
    assert_string_equal(got.text, "too big: 7");
    msg->release(msg);
}

TEST(codec_error_stays_utf8_when_a_character_was_cut)
{
    tenrec_error why = some_error(), got;
    struct tenrec_msg *msg = NULL;

    memcpy(why.text, "caf\xc3", 5);
    assert_int_equal(codec_write_error(&why, true, &msg, NULL), TENREC_OK);
    codec_read_error(msg, &got);
    assert_string_equal(got.text, "caf?");
    msg->release(msg);
}

TEST(codec_error_is_cut_at_a_character_when_text_is_long)
{
    char text[1001] = "";
    struct tenrec_msg *msg;
    tenrec_error got;

    text[0] = 'a'; /* so that the limit falls into a character */
    for (size_t i = 1; i < 1000; i++)
        text[i] = "\xe6\xb0\xb4"[(i - 1) % 3];
    msg = payload_message(text, 1000, 0);
    codec_read_error(msg, &got);
    assert_int_equal(strlen(got.text) % 3, 1);
    assert_in_range(strlen(got.text), sizeof got.text - 3, sizeof got.text - 1);
    msg->release(msg);
}

TEST(codec_error_has_no_control_characters_when_a_peer_sent_some)
{
    struct tenrec_msg *msg = MESSAGE("a\x1b[31m\nb\x7f", 0);
    tenrec_error got;

    codec_read_error(msg, &got);
    assert_string_equal(got.text, "a?[31m\nb?");
    msg->release(msg);
}

TEST(codec_error_is_remote_when_its_status_is_unknown_or_ok)
{
    struct tenrec_msg *ok = MESSAGE(HEAD "\x85\x00\x20\x60\x00\x61x", 0);
    struct tenrec_msg *unknown = MESSAGE(HEAD "\x85\x39\x03\xe7\x20\x60\x00\x61x", 0);
    tenrec_error got;

    codec_read_error(ok, &got);
    assert_int_equal(got.code, TENREC_EREMOTE);
    codec_read_error(unknown, &got);
    assert_int_equal(got.code, TENREC_EREMOTE);
    assert_string_equal(got.text, "x");
    ok->release(ok);
    unknown->release(unknown);
}

TEST(codec_error_keeps_the_callees_mark_when_written_for_tenrec)
{
    struct tenrec_msg *marked = NULL, *old = MESSAGE(HEAD "\x85\x22\x20\x60\x00\x61x", 0);
    tenrec_error why = some_error(), got;

    codec_mark_callee(&why);
    assert_int_equal(codec_write_error(&why, true, &marked, NULL), TENREC_OK);
    codec_read_error(marked, &got);
    assert_int_equal(got.code, TENREC_ETOOBIG);
    assert_int_equal(got.flags, TENREC_ERROR_CALLEE);
    codec_read_error(old, &got);
    assert_int_equal(got.code, TENREC_ETIMEDOUT);
    assert_int_equal(got.flags, 0);
    marked->release(marked);
    old->release(old);
}

TEST(codec_error_is_remote_when_a_function_returns_no_status)
{
    tenrec_error why = some_error();

    why.code = (tenrec_status)-9999;
    codec_mark_callee(&why);
    assert_int_equal(why.code, TENREC_EREMOTE);
    why.code = (tenrec_status)7;
    codec_mark_callee(&why);
    assert_int_equal(why.code, TENREC_EREMOTE);
}

TEST(codec_error_reports_an_unreadable_payload)
{
    struct tenrec_msg *msg = MESSAGE(HEAD "\x85\x20\x20\x60\x00\x01", 0);
    tenrec_error got;

    codec_read_error(msg, &got);
    assert_int_equal(got.code, TENREC_EPROTOCOL);
    assert_non_null(strstr(got.text, "unreadable error from the peer"));
    assert_non_null(strstr(got.text, "at byte 8"));
    msg->release(msg);
}

/* ---- messages -------------------------------------------------------------------------- */

TEST(message_has_zeroed_descriptors_when_recycled)
{
    for (int round = 0; round < 3; round++) {
        struct tenrec_msg *msg = rpc_message_new(16, 1);
        const struct tenrec_tensor_desc zero = { 0 };

        assert_int_equal(msg->payload_len, 16);
        assert_memory_equal(tenrec_msg_tensor(msg, 0), &zero, sizeof zero);
        assert_null(rpc_message_owner(msg, 0));
        memset(msg->payload, 0xff, 16);
        rpc_message_set_tensor(msg, 0, tensor_of(2, 0));
        msg->release(msg);
    }
}

TEST(message_has_no_owner_when_made_elsewhere)
{
    struct tenrec_msg *msg = rpc_message_new(16, 0);

    assert_null(rpc_message_owner(msg, 0));
    msg->release(msg);
    assert_null(rpc_message_new(UINT64_MAX, 1));
}
