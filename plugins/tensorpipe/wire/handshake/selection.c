/* SPDX-License-Identifier: Apache-2.0 */
/* selection.c - channels by pair of devices. */
#include "wire/handshake/brochure.h"

#define ENTRY_MIN (NOP_DEVICE_MIN + 2) /* a device and an empty string */

void wire_channel_write(struct nop_writer *w, const struct wire_channel *channel)
{
    nop_write_string(w, nop_text(channel->name));
    nop_write_map(w, channel->n_devices);
    for (uint32_t i = 0; i < channel->n_devices; i++) {
        nop_write_device(w, &channel->devices[i].device);
        nop_write_string(w, nop_text(channel->devices[i].descriptor));
    }
}

/* Reads one pair of the map of channels; *ret is at its first device. */
static struct nop_bytes read_channel(struct nop_reader *r, struct wire_device_map *ret)
{
    struct nop_bytes name = nop_read_string(r, "channel name");

    ret->n = nop_read_map(r, ENTRY_MIN, WIRE_MAX_DEVICES, "device descriptors");
    ret->entries = *r;
    ret->entries.err = NULL;
    for (uint32_t i = 0; i < ret->n && !r->status; i++) {
        nop_read_device(r, "device");
        nop_read_string(r, "device descriptor");
    }
    return name;
}

void wire_channels_skip(struct nop_reader *r, uint32_t n)
{
    struct wire_device_map map;

    for (uint32_t i = 0; i < n && !r->status; i++)
        read_channel(r, &map);
}

bool wire_channels_find(struct nop_reader r, uint32_t n, const char *name,
                        struct wire_device_map *ret)
{
    struct wire_device_map map;

    for (uint32_t i = 0; i < n; i++)
        if (nop_bytes_is(read_channel(&r, &map), name)) {
            *ret = map;
            return true;
        }
    return false;
}

bool wire_device_map_next(struct wire_device_map *map, struct nop_device *ret_device,
                          struct nop_bytes *ret_descriptor)
{
    if (map->n == 0)
        return false;
    map->n--;
    *ret_device = nop_read_device(&map->entries, "device");
    *ret_descriptor = nop_read_string(&map->entries, "device descriptor");
    return true;
}

bool wire_device_map_find(const struct wire_device_map *map, const struct nop_device *device,
                          struct nop_bytes *ret_descriptor)
{
    struct wire_device_map rest = *map;
    struct nop_device at;

    while (wire_device_map_next(&rest, &at, ret_descriptor))
        if (nop_device_equal(&at, device))
            return true;
    return false;
}

uint32_t wire_offer_channel(const struct wire_offer *offer, struct nop_bytes name)
{
    uint32_t i = 0;

    while (i < offer->n_channels && !nop_bytes_is(name, offer->channels[i].name))
        i++;
    return i;
}

const struct wire_pair *wire_selection_find(const struct wire_selection *s,
                                            const struct nop_device *ours,
                                            const struct nop_device *theirs)
{
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        struct nop_device other = wire_pair_theirs(&s->pairs[i]);
        if (nop_device_equal(&s->pairs[i].ours, ours) && nop_device_equal(&other, theirs))
            return &s->pairs[i];
    }
    return NULL;
}

tenrec_status wire_selection_add(struct wire_selection *s, uint32_t channel,
                                 const struct nop_device *ours, const struct nop_device *theirs,
                                 tenrec_error *err)
{
    struct wire_pair *pair;

    if (s->n_pairs == WIRE_MAX_PAIRS)
        return tenrec_fail(err, TENREC_ETOOBIG, "more than %d pairs of devices have a channel",
                           WIRE_MAX_PAIRS);
    if (theirs->type.len > WIRE_MAX_TYPE || memchr(theirs->type.data, '\0', theirs->type.len))
        return tenrec_fail(err, TENREC_ETOOBIG, "device type \"%.*s\": expected at most %d bytes",
                           NOP_PRINT(theirs->type), WIRE_MAX_TYPE);
    pair = &s->pairs[s->n_pairs++];
    pair->channel = channel;
    pair->ours = *ours;
    pair->their_index = theirs->index;
    memcpy(pair->their_type, theirs->type.data, theirs->type.len);
    pair->their_type[theirs->type.len] = '\0';
    s->channel_used[channel] = true;
    return TENREC_OK;
}

tenrec_status wire_selection_assign(struct wire_selection *s, const struct wire_offer *offer,
                                    uint32_t i, const struct wire_device_map *theirs,
                                    tenrec_error *err)
{
    const struct wire_channel *channel = &offer->channels[i];
    tenrec_status status = TENREC_OK;
    struct nop_bytes descriptor;
    struct nop_device device;

    for (uint32_t d = 0; d < channel->n_devices; d++) {
        const struct wire_channel_device *own = &channel->devices[d];
        struct wire_device_map rest = *theirs;
        while (!status && wire_device_map_next(&rest, &device, &descriptor))
            if (nop_bytes_is(descriptor, own->descriptor) &&
                !wire_selection_find(s, &own->device, &device))
                status = wire_selection_add(s, i, &own->device, &device, err);
    }
    return status;
}
