/* SPDX-License-Identifier: Apache-2.0 */
/* peer_side.h - the parts of the wire that only a peer on libtensorpipe needs: it reads the
 * metadata of payloads, and answers to tensors without a target. */
#ifndef TENREC_TEST_PEER_SIDE_H
#define TENREC_TEST_PEER_SIDE_H

#include "wire/descriptor.h"
#include "wire/handshake/brochure.h"

struct payload {
    uint64_t length;
    struct nop_bytes metadata;
};

struct payload_reader {
    struct nop_reader at;
    size_t left;
};

/* At the first payload of a descriptor that descriptor_read accepts. */
static inline struct payload_reader payload_reader(const void *frame, size_t len)
{
    struct payload_reader r;

    nop_reader_init(&r.at, "descriptor", frame, len, NULL);
    nop_read_struct(&r.at, 3, "structure");
    nop_read_string(&r.at, "metadata");
    r.left = nop_read_array(&r.at, 1, "payloads");
    return r;
}

/* Returns false after the last. */
static inline bool payload_next(struct payload_reader *r, struct payload *ret)
{
    if (r->left == 0)
        return false;
    r->left--;
    nop_read_struct(&r->at, 2, "payload");
    ret->length = nop_read_uint(&r->at, UINT64_MAX, "payload length");
    ret->metadata = nop_read_string(&r->at, "payload metadata");
    return true;
}

/* Fills exactly `n` devices; any other number in the reply is refused.
 *
 * errors   EPROTOCOL
 */
static inline tenrec_status descriptor_reply_read(const void *frame, size_t len, uint32_t n,
                                                  struct nop_device *ret, tenrec_error *err)
{
    struct nop_reader r;
    size_t count;

    nop_reader_init(&r, "descriptor reply", frame, len, err);
    nop_read_struct(&r, 1, "structure");
    count = nop_read_array(&r, NOP_DEVICE_MIN, "targetDevices");
    if (count != n)
        nop_reader_fail(&r, TENREC_EPROTOCOL, "targetDevices", "expected %u devices, got %zu", n,
                        count);
    for (uint32_t i = 0; i < n && !r.status; i++)
        ret[i] = nop_read_device(&r, "targetDevice");
    return r.status;
}

/* How many connections the channels of a selection need. */
static inline uint32_t selection_connections(const struct wire_selection *s,
                                             const struct wire_offer *offer)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < offer->n_channels; i++)
        if (s->channel_used[i])
            n += offer->channels[i].n_connections;
    return n;
}

#endif
