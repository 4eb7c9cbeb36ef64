/* SPDX-License-Identifier: Apache-2.0 */
/* codec_error.c - errors as payloads, and back. */
#include "rpc/value/codec_walk.h"

#include <string.h>

#include "core/backend/backend.h"
#include "core/base/text.h"
#include "core/tensor/tensor.h"
#include "rpc/value/cbor_writer.h"

#define ERROR_ITEMS 6 /* the last item, the flags, is left out when it is 0 */

/* The message is from the reserve when memory has run out. */
static tenrec_status error_message(const void *payload, size_t n, struct tenrec_msg **ret,
                                   tenrec_error *err)
{
    struct tenrec_msg *msg = message_new(n, 0);

    if (msg)
        memcpy(msg->payload, payload, n);
    else
        msg = reserve_message(payload, n);
    if (!msg)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for an error message");
    msg->type = TENREC_MSG_EXCEPTION;
    *ret = msg;
    return TENREC_OK;
}

tenrec_status codec_write_error(const tenrec_error *why, bool as_cbor, struct tenrec_msg **ret,
                                tenrec_error *err)
{
    char name[sizeof why->worker_name], text[sizeof why->text];
    unsigned char payload[RESERVE_BYTES];
    struct cbor_writer w = { payload, payload + sizeof payload };

    _Static_assert(sizeof name + sizeof text + 64 <= sizeof payload, "an error fits");
    /* Both texts may have been cut in the middle of a character. */
    utf8_clean(why->worker_name, strnlen(why->worker_name, sizeof name), name, sizeof name);
    utf8_clean(why->text, strnlen(why->text, sizeof text), text, sizeof text);
    if (!as_cbor)
        return error_message(text, strlen(text), ret, err);
    cbor_write_tag(&w, CBOR_SELF_DESCRIBED);
    cbor_write_array(&w, ERROR_ITEMS - (why->flags == 0));
    cbor_write_int(&w, why->code);
    cbor_write_int(&w, why->worker);
    cbor_write_text(&w, name, strlen(name));
    cbor_write_int(&w, why->os_errno);
    cbor_write_text(&w, text, strlen(text));
    if (why->flags != 0)
        cbor_write_int(&w, why->flags);
    return error_message(payload, (size_t)(w.at - payload), ret, err);
}

/* ---- errors -------------------------------------------------------------------- */

static bool is_failure(int64_t code)
{
    return code < 0 && code >= INT32_MIN &&
           strcmp(tenrec_status_name((tenrec_status)code), "?") != 0;
}

static int32_t error_number(int64_t i, int32_t otherwise)
{
    return i >= INT32_MIN && i <= INT32_MAX ? (int32_t)i : otherwise;
}

/* An error is one line, whatever the peer sent, but for the text of an exception. */
static void error_text(const void *from, size_t n, char *to, size_t room, const char *keep)
{
    char clean[sizeof((tenrec_error *)0)->text];

    utf8_clean(from, n, clean, sizeof clean);
    tenrec_text_escape(to, room, clean, keep);
}

static tenrec_status read_error(const struct tenrec_msg *msg, tenrec_error *ret, tenrec_error *err)
{
    static const enum cbor_kind kinds[ERROR_ITEMS] = { CBOR_KIND_INT,  CBOR_KIND_INT,
                                                       CBOR_KIND_TEXT, CBOR_KIND_INT,
                                                       CBOR_KIND_TEXT, CBOR_KIND_INT };
    static const char *const labels[ERROR_ITEMS] = { "status", "worker's id",      "worker's name",
                                                     "errno",  "text of an error", "flags" };
    struct checking c;
    struct cbor_item it, field[ERROR_ITEMS];
    tenrec_status status = codec_check_begin(&c, msg, err);

    if (!status)
        status = codec_expect(&c.r, CBOR_KIND_ARRAY, "error", &it, err);
    if (status)
        return status;
    if (it.n != ERROR_ITEMS && it.n != ERROR_ITEMS - 1)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "error at byte %zu has %llu items, expected %d or %d", it.at,
                           (unsigned long long)it.n, ERROR_ITEMS - 1, ERROR_ITEMS);
    for (size_t i = 0; i < it.n && !status; i++)
        status = codec_expect(&c.r, kinds[i], labels[i], &field[i], err);
    if (!status)
        status = codec_check_end(&c.r, err);
    if (status)
        return status;
    ret->code = is_failure(field[0].integer) ? (tenrec_status)field[0].integer : TENREC_EREMOTE;
    if ((it.n == ERROR_ITEMS && (field[5].integer & TENREC_ERROR_CALLEE)) ||
        ret->code == TENREC_EREMOTE)
        ret->flags = TENREC_ERROR_CALLEE;
    ret->worker = error_number(field[1].integer, -1);
    ret->os_errno = error_number(field[3].integer, 0);
    error_text(field[2].data, (size_t)field[2].n, ret->worker_name, sizeof ret->worker_name, "");
    error_text(field[4].data, (size_t)field[4].n, ret->text, sizeof ret->text,
               tenrec_text_kept(ret->code));
    return TENREC_OK;
}

void codec_mark_callee(tenrec_error *why)
{
    if (!is_failure(why->code))
        why->code = TENREC_EREMOTE;
    why->flags |= TENREC_ERROR_CALLEE;
}

void codec_read_error(const struct tenrec_msg *msg, tenrec_error *ret)
{
    tenrec_error why;

    tenrec_fail(ret, TENREC_EREMOTE, "%s", "");
    if (!codec_is_cbor(msg))
        ret->flags = TENREC_ERROR_CALLEE;
    if (!codec_is_cbor(msg)) {
        error_text(msg->payload, (size_t)msg->payload_len, ret->text, sizeof ret->text,
                   tenrec_text_kept(ret->code));
        return;
    }
    if (read_error(msg, ret, &why)) {
        *ret = why;
        tenrec_error_prefix(ret, "unreadable error from the peer");
    }
}
