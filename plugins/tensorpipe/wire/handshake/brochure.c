/* SPDX-License-Identifier: Apache-2.0 */
/* brochure.c - codec of Brochure, and the listener's choice from it. */
#include "wire/handshake/brochure.h"
#include "wire/handshake/identity.h"

/* Shortest pair of a map: two empty strings, or an empty string and map. */
#define ENTRY_MIN 4

size_t brochure_write(void *buf, size_t cap, const struct wire_offer *offer)
{
    bool identity = offer->identity && offer->identity[0];
    struct nop_writer w;

    nop_writer_init(&w, buf, cap);
    nop_write_struct(&w, 2);
    nop_write_map(&w, offer->n_transports + (identity ? 1u : 0u));
    for (uint32_t i = 0; i < offer->n_transports; i++) {
        nop_write_string(&w, nop_text(offer->transports[i].name));
        nop_write_string(&w, nop_text(offer->transports[i].domain));
    }
    if (identity) {
        nop_write_string(&w, nop_text(IDENTITY_ENTRY));
        nop_write_string(&w, nop_text(offer->identity));
    }
    nop_write_map(&w, offer->n_channels);
    for (uint32_t i = 0; i < offer->n_channels; i++)
        wire_channel_write(&w, &offer->channels[i]);
    return w.len;
}

tenrec_status brochure_read(const void *frame, size_t len, struct brochure *ret, tenrec_error *err)
{
    struct nop_reader r;
    struct brochure b;

    nop_reader_init(&r, "brochure", frame, len, err);
    nop_read_struct(&r, 2, "structure");
    b.n_transports = nop_read_map(&r, ENTRY_MIN, WIRE_MAX_NAMES, "transportDomainDescriptors");
    b.transports = r;
    for (uint32_t i = 0; i < b.n_transports && !r.status; i++) {
        nop_read_string(&r, "transport name");
        nop_read_string(&r, "domain descriptor");
    }
    b.n_channels = nop_read_map(&r, ENTRY_MIN, WIRE_MAX_NAMES, "channelDeviceDescriptors");
    b.channels = r;
    wire_channels_skip(&r, b.n_channels);
    if (r.status)
        return r.status;
    b.transports.err = b.channels.err = NULL;
    *ret = b;
    return TENREC_OK;
}

bool brochure_find_transport(const struct brochure *b, const char *name,
                             struct nop_bytes *ret_domain)
{
    struct nop_reader r = b->transports;

    for (uint32_t i = 0; i < b->n_transports; i++) {
        struct nop_bytes key = nop_read_string(&r, "transport name");
        struct nop_bytes domain = nop_read_string(&r, "domain descriptor");
        if (nop_bytes_is(key, name)) {
            *ret_domain = domain;
            return true;
        }
    }
    return false;
}

static tenrec_status select_transport(const struct brochure *b, const struct wire_offer *offer,
                                      uint32_t *ret, tenrec_error *err)
{
    struct nop_bytes domain;

    for (uint32_t i = 0; i < offer->n_transports; i++) {
        const struct wire_transport *t = &offer->transports[i];
        if (t->address && brochure_find_transport(b, t->name, &domain) &&
            nop_bytes_is(domain, t->domain)) {
            *ret = i;
            return TENREC_OK;
        }
    }
    return tenrec_fail(err, TENREC_EPROTOCOL,
                       "no common transport: the peer names %u, none of them with our domain",
                       b->n_transports);
}

static bool brochure_suits(const struct wire_channel *ch, const struct wire_transport *t)
{
    return !ch->remote || t->remote;
}

tenrec_status brochure_select(const struct brochure *b, const struct wire_offer *offer,
                              struct wire_selection *ret, tenrec_error *err)
{
    struct wire_device_map map;
    tenrec_status status = select_transport(b, offer, &ret->transport, err);

    ret->n_pairs = 0;
    memset(ret->channel_used, 0, sizeof ret->channel_used);
    for (uint32_t i = 0; i < offer->n_channels && !status; i++)
        if (brochure_suits(&offer->channels[i], &offer->transports[ret->transport]) &&
            wire_channels_find(b->channels, b->n_channels, offer->channels[i].name, &map))
            status = wire_selection_assign(ret, offer, i, &map, err);
    return status;
}
