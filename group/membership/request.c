/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - the bytes of a request, and of the answer to a joiner. */
#include "group/membership/membership.h"
#include "group/store/bytes.h"

#include <inttypes.h>
#include <string.h>

#define MAGIC 0x31515254u /* "TRQ1" */

void request_pack(const struct request *q, struct store_value *ret)
{
    struct bytes b = { 0 };

    bytes_add_u32(&b, MAGIC);
    bytes_add_u64(&b, q->kind);
    bytes_add_u64(&b, (uint64_t)(int64_t)q->id);
    bytes_add_u64(&b, (uint64_t)q->incarnation);
    bytes_add_u64(&b, q->died);
    bytes_add_u64(&b, (uint64_t)(int64_t)q->by);
    bytes_add_u64(&b, (uint64_t)q->by_incarnation);
    bytes_add_text(&b, q->name);
    bytes_add_text(&b, q->place.host);
    bytes_add_text(&b, q->place.boot);
    bytes_add_u64(&b, (uint64_t)q->pid);
    bytes_add_u64(&b, (uint64_t)q->start);
    if (b.failed)
        bytes_free(&b);
    ret->data = b.data;
    ret->len = b.len;
}

static bool is_id(int64_t id, int64_t least)
{
    return id >= least && id < RANKS_MAX;
}

tenrec_status request_unpack(const struct store_value *value, struct request *ret,
                             tenrec_error *err)
{
    struct bytes_reader r = { .data = value->data, .len = value->len };
    struct request q = { .ticket = 0 };
    const bool known = bytes_read_u32(&r) == MAGIC;
    const uint64_t kind = bytes_read_u64(&r);
    int64_t id, by;

    id = (int64_t)bytes_read_u64(&r);
    q.incarnation = (int64_t)bytes_read_u64(&r);
    q.died = bytes_read_u64(&r) != 0;
    by = (int64_t)bytes_read_u64(&r);
    q.by_incarnation = (int64_t)bytes_read_u64(&r);
    bytes_read_text(&r, q.name, sizeof q.name);
    bytes_read_text(&r, q.place.host, sizeof q.place.host);
    bytes_read_text(&r, q.place.boot, sizeof q.place.boot);
    q.pid = (int64_t)bytes_read_u64(&r);
    q.start = (int64_t)bytes_read_u64(&r);
    if (r.bad || !known ||
        (kind == REQUEST_JOIN ? !is_id(id, -1) || !*q.name
                              : kind != REQUEST_REMOVE || !is_id(id, 0) || !is_id(by, 0)))
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed request of a worker");
    q.kind = (enum request_kind)kind;
    q.id = (tenrec_peer)id;
    q.by = (tenrec_peer)by;
    *ret = q;
    return TENREC_OK;
}

void request_write_answer(const struct request *q, char ret[LEASE_ANSWER])
{
    snprintf(ret, LEASE_ANSWER, "%d %" PRId64, (int)q->id, q->incarnation);
}

tenrec_status request_read_answer(const char *text, tenrec_peer wished, tenrec_peer *ret_id,
                                  int64_t *ret_incarnation, tenrec_error *err)
{
    const char *blank = strchr(text, ' ');
    int64_t id = -1, incarnation = 0;

    if (!blank ||
        !bytes_number((struct bytes_slice){ (const uint8_t *)text, (size_t)(blank - text) }, &id) ||
        !bytes_number(bytes_of_text(blank + 1), &incarnation) || !is_id(id, 0) || incarnation < 1 ||
        (wished >= 0 && id != wished))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed answer to a worker that joins: \"%.40s\"", text);
    *ret_id = (tenrec_peer)id;
    *ret_incarnation = incarnation;
    return TENREC_OK;
}
