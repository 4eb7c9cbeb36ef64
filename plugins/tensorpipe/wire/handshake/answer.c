/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - codec of BrochureAnswer, and the client's check of it. */
#include "wire/handshake/brochure.h"
#include "wire/handshake/identity.h"

#define IDS_MIN 4                             /* an empty string and vector */
#define CHANNEL_MIN 4                         /* an empty string and map */
#define PAIR_MIN (2 + 2 * NOP_DEVICE_MIN + 2) /* ba 02, two devices, an empty string */

/* Keys of transportRegistrationIds. */
enum { ID_DESCRIPTOR = 0, ID_REPLY = 1 };

static uint32_t channels_used(const struct wire_offer *offer, const struct wire_selection *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < offer->n_channels; i++)
        n += s->channel_used[i];
    return n;
}

static void write_transport(struct nop_writer *w, const struct wire_transport *t,
                            const struct wire_ids *ids)
{
    nop_write_string(w, nop_text(t->name));
    nop_write_string(w, nop_text(t->address));
    nop_write_map(w, ids->has_descriptor ? 2 : 1);
    if (ids->has_descriptor) {
        nop_write_uint(w, ID_DESCRIPTOR);
        nop_write_uint(w, ids->descriptor);
    }
    nop_write_uint(w, ID_REPLY);
    nop_write_uint(w, ids->reply);
    nop_write_string(w, nop_text(t->domain));
}

/* Not a channel: this is the only map of the answer in which a client skips unknown entries. */
static void write_identity(struct nop_writer *w, const char *identity)
{
    const struct wire_channel_device entry = { { nop_text("cpu"), 0 }, identity };
    const struct wire_channel as_channel = { .name = IDENTITY_ENTRY,
                                             .devices = &entry,
                                             .n_devices = 1 };

    wire_channel_write(w, &as_channel);
}

size_t answer_write(void *buf, size_t cap, const struct wire_offer *offer,
                    const struct wire_selection *s, const struct wire_ids *ids, bool with_identity)
{
    bool identity = with_identity && offer->identity && offer->identity[0];
    const uint64_t *id = ids->channels;
    struct nop_writer w;

    nop_writer_init(&w, buf, cap);
    nop_write_struct(&w, 7);
    write_transport(&w, &offer->transports[s->transport], ids);

    nop_write_map(&w, channels_used(offer, s));
    for (uint32_t i = 0; i < offer->n_channels; i++) {
        if (!s->channel_used[i])
            continue;
        nop_write_string(&w, nop_text(offer->channels[i].name));
        nop_write_uint64s(&w, id, offer->channels[i].n_connections);
        id += offer->channels[i].n_connections;
    }

    nop_write_map(&w, channels_used(offer, s) + (identity ? 1u : 0u));
    for (uint32_t i = 0; i < offer->n_channels; i++)
        if (s->channel_used[i])
            wire_channel_write(&w, &offer->channels[i]);
    if (identity)
        write_identity(&w, offer->identity);

    nop_write_map(&w, s->n_pairs);
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        struct nop_device theirs = wire_pair_theirs(&s->pairs[i]);
        nop_write_array(&w, 2);
        nop_write_device(&w, &s->pairs[i].ours);
        nop_write_device(&w, &theirs);
        nop_write_string(&w, nop_text(offer->channels[s->pairs[i].channel].name));
    }
    return w.len;
}

static void read_transport_ids(struct nop_reader *r, struct answer *a)
{
    uint32_t n = nop_read_map(r, 2, WIRE_MAX_NAMES, "transportRegistrationIds");

    for (uint32_t i = 0; i < n && !r->status; i++) {
        uint64_t key = nop_read_uint(r, UINT64_MAX, "transport registration key");
        uint64_t id = nop_read_uint(r, UINT64_MAX, "transport registration id");
        if (key == ID_DESCRIPTOR && !a->has_descriptor_id) {
            a->has_descriptor_id = true;
            a->descriptor_id = id;
        } else if (key == ID_REPLY && !a->has_reply_id) {
            a->has_reply_id = true;
            a->reply_id = id;
        }
    }
}

/* The listener's and the client's device of one pair, and its channel. */
static struct nop_bytes read_pair(struct nop_reader *r, struct nop_device *ret_listener,
                                  struct nop_device *ret_client)
{
    if (nop_read_array(r, NOP_DEVICE_MIN, "device pair") != 2)
        nop_reader_fail(r, TENREC_EPROTOCOL, "device pair", "expected 2 devices");
    *ret_listener = nop_read_device(r, "device pair");
    *ret_client = nop_read_device(r, "device pair");
    return nop_read_string(r, "channel of a device pair");
}

tenrec_status answer_read(const void *frame, size_t len, struct answer *ret, tenrec_error *err)
{
    struct answer a = { .n_pairs = 0 };
    struct nop_device device;
    struct nop_reader r;

    nop_reader_init(&r, "brochure answer", frame, len, err);
    nop_read_struct(&r, 7, "structure");
    a.transport = nop_read_string(&r, "transport");
    a.address = nop_read_string(&r, "address");
    read_transport_ids(&r, &a);
    a.domain = nop_read_string(&r, "transportDomainDescriptor");

    a.n_channel_ids = nop_read_map(&r, IDS_MIN, WIRE_MAX_NAMES, "channelRegistrationIds");
    a.channel_ids = r;
    for (uint32_t i = 0; i < a.n_channel_ids && !r.status; i++) {
        nop_read_string(&r, "channel name");
        nop_read_uint64s(&r, "channel registration ids");
    }
    a.n_channels = nop_read_map(&r, CHANNEL_MIN, WIRE_MAX_NAMES, "channelDeviceDescriptors");
    a.channels = r;
    wire_channels_skip(&r, a.n_channels);

    a.n_pairs = nop_read_map(&r, PAIR_MIN, WIRE_MAX_PAIRS, "channelForDevicePair");
    a.pairs = r;
    for (uint32_t i = 0; i < a.n_pairs && !r.status; i++)
        read_pair(&r, &device, &device);
    if (r.status)
        return r.status;
    a.channel_ids.err = a.channels.err = a.pairs.err = NULL;
    *ret = a;
    return TENREC_OK;
}

bool answer_find_ids(const struct answer *a, const char *channel, struct nop_bytes *ret)
{
    struct nop_reader r = a->channel_ids;

    for (uint32_t i = 0; i < a->n_channel_ids; i++) {
        struct nop_bytes name = nop_read_string(&r, "channel name");
        struct nop_bytes ids = nop_read_uint64s(&r, "channel registration ids");
        if (nop_bytes_is(name, channel)) {
            *ret = ids;
            return true;
        }
    }
    return false;
}

static tenrec_status check_transport(const struct answer *a, const struct wire_offer *offer,
                                     const char *dialled, uint32_t *ret, tenrec_error *err)
{
    uint32_t i = 0;

    while (i < offer->n_transports && !nop_bytes_is(a->transport, offer->transports[i].name))
        i++;
    if (i == offer->n_transports)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "brochure answer: transport \"%.*s\" was not offered",
                           NOP_PRINT(a->transport));
    if (!nop_bytes_is(a->domain, offer->transports[i].domain))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "brochure answer: domain \"%.*s\" of transport \"%s\" is not ours, "
                           "\"%s\"",
                           NOP_PRINT(a->domain), offer->transports[i].name,
                           offer->transports[i].domain);
    if (!a->has_reply_id)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "brochure answer: no registration id for descriptor replies");
    if (!nop_bytes_is(a->transport, dialled) != a->has_descriptor_id)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "brochure answer: transport \"%s\" after \"%s\" was dialled, %s "
                           "registration id for descriptors",
                           offer->transports[i].name, dialled,
                           a->has_descriptor_id ? "with a" : "without");
    *ret = i;
    return TENREC_OK;
}

/* Checks that the pair of devices may use channel `name`, and sets *ours to the offer's. */
static tenrec_status check_pair(const struct answer *a, const struct wire_offer *offer,
                                struct nop_bytes name, struct nop_device *ours,
                                const struct nop_device *theirs, uint32_t *ret_channel,
                                tenrec_error *err)
{
    uint32_t c = wire_offer_channel(offer, name), d = 0;
    const struct wire_channel *channel = &offer->channels[c];
    struct wire_device_map map;
    struct nop_bytes descriptor, ids;

    if (c == offer->n_channels)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "brochure answer: channel \"%.*s\" was not offered", NOP_PRINT(name));
    while (d < channel->n_devices && !nop_device_equal(&channel->devices[d].device, ours))
        d++;
    if (d == channel->n_devices ||
        !wire_channels_find(a->channels, a->n_channels, channel->name, &map) ||
        !wire_device_map_find(&map, theirs, &descriptor) ||
        !nop_bytes_is(descriptor, channel->devices[d].descriptor))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "brochure answer: channel \"%s\" cannot serve our %.*s:%d and their "
                           "%.*s:%d",
                           channel->name, NOP_PRINT(ours->type), (int)ours->index,
                           NOP_PRINT(theirs->type), (int)theirs->index);
    if (!answer_find_ids(a, channel->name, &ids) || nop_uint64_count(ids) != channel->n_connections)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "brochure answer: expected %u registration ids for channel \"%s\"",
                           channel->n_connections, channel->name);
    *ours = channel->devices[d].device;
    *ret_channel = c;
    return TENREC_OK;
}

tenrec_status answer_check(const struct answer *a, const struct wire_offer *offer,
                           const char *dialled, struct wire_selection *ret, tenrec_error *err)
{
    tenrec_status status = check_transport(a, offer, dialled, &ret->transport, err);
    struct nop_reader r = a->pairs;
    struct nop_device ours, theirs;
    uint32_t channel = 0;

    /* The listener's map is the law; each of its pairs only has to be one that
     * we can serve. Repeating its choice, as libtensorpipe does, would refuse
     * a listener that ranks the same channels in another order. */
    ret->n_pairs = 0;
    memset(ret->channel_used, 0, sizeof ret->channel_used);
    for (uint32_t i = 0; i < a->n_pairs && !status; i++) {
        struct nop_bytes name = read_pair(&r, &theirs, &ours);
        status = check_pair(a, offer, name, &ours, &theirs, &channel, err);
        if (!status && !wire_selection_find(ret, &ours, &theirs))
            status = wire_selection_add(ret, channel, &ours, &theirs, err);
    }
    return status;
}
