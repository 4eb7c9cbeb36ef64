/* SPDX-License-Identifier: Apache-2.0 */
/* link_message.c - LINK: the first message of a worker that has connected. It carries the record of
 * its sender, so that the receiver knows whom the next messages of the connection are of. */
#include "rpc/link/links.h"

#include "core/backend/backend.h"
#include "core/base/log.h"
#include "group/meeting/membership.h"
#include "rpc/worker/worker.h"

#include <string.h>

/* A failure is left to the first call, which fails, too. */
void link_announce(struct tenrec_worker *w, const struct tenrec_link *l)
{
    uint8_t data[TENREC_LINK_RECORD_MAX];
    struct link_record own;
    struct tenrec_msg *msg;
    size_t len;

    if (link_own_record(w, false, &own, NULL) != TENREC_OK)
        return;
    if (link_record_write(&own, data, &len, NULL) == TENREC_OK &&
        (msg = message_new(len + LINK_SEAL_BYTES, 0))) {
        memcpy(msg->payload, data, len);
        link_record_seal(data, len, l->record.member.token, (uint8_t *)msg->payload + len);
        msg->type = TENREC_MSG_LINK;
        msg->flags = TENREC_MSG_CONTROL;
        chain_send(w->chain, l->id, msg, (struct tenrec_done){ NULL, NULL });
    }
    link_record_free(&own);
}

static tenrec_status message_read(const struct tenrec_worker *w, const struct tenrec_msg *msg,
                                  struct link_record *ret, tenrec_error *err)
{
    const uint64_t token = membership_token(group_of(w)->membership);
    uint8_t seal[LINK_SEAL_BYTES];
    size_t len;

    if (!chain_links(w->chain))
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "this worker has no links");
    if (msg->payload_len <= LINK_SEAL_BYTES ||
        msg->payload_len > TENREC_LINK_RECORD_MAX + LINK_SEAL_BYTES)
        return tenrec_fail(err, TENREC_EPROTOCOL, "a LINK of %llu bytes",
                           (unsigned long long)msg->payload_len);
    len = (size_t)msg->payload_len - LINK_SEAL_BYTES;
    link_record_seal(msg->payload, len, token, seal);
    if (memcmp((const uint8_t *)msg->payload + len, seal, sizeof seal) != 0)
        return tenrec_fail(err, TENREC_EPERM, "its sender has not the record of this worker");
    return link_record_read(msg->payload, len, ret, err);
}

void link_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct link_record r = { .secret = NULL };
    struct tenrec_link *l;
    bool first;
    tenrec_error why;
    tenrec_status st = message_read(w, msg, &r, &why);

    (void)from; /* as yet a stranger */
    if (st == TENREC_OK)
        st = link_add(w, &r, false, &l, &first, &why);
    if (st == TENREC_OK)
        contact_forget(w, l->id); /* it is reached again */
    else
        log_line(TENREC_LOG_DEBUG, w->self.name, "a link was refused: %s", why.text);
    link_record_free(&r);
    msg->release(msg);
}
