/* SPDX-License-Identifier: Apache-2.0 */
/* brochure.h - how two peers agree on a transport and on channels.
 *
 * The client sends a Brochure of all it has, the listener selects and sends a
 * BrochureAnswer, the client checks that answer. Names are the application's:
 * "uv", "basic", ... Unknown ones stay reachable by name and are never
 * selected. What is read are views of the frame, and lookups walk them:
 * that happens once per pipe, and there is nothing to free.
 */
#ifndef TENSORPIPE_BROCHURE_H
#define TENSORPIPE_BROCHURE_H

#include "wire/nop.h"

/* One transport of ours, in order of preference. */
struct wire_transport {
    const char *name;
    const char *domain;  /* domain descriptor, compatible when equal: "uv:*" */
    const char *address; /* of our listener, no scheme; NULL: none, not selectable */
    bool remote;         /* reaches other hosts */
};

struct wire_channel_device {
    struct nop_device device;
    const char *descriptor; /* compatible when equal: "any" */
};

/* One channel of ours, in order of preference. */
struct wire_channel {
    const char *name;
    const struct wire_channel_device *devices; /* borrowed with the struct */
    uint32_t n_devices;
    uint32_t n_connections; /* that one pipe needs for it */
    bool remote;            /* a listener selects it only with a transport to other hosts */
};

/* The offer of this side. Borrows the strings from the agent. */
struct wire_offer {
    const struct wire_transport *transports;
    const struct wire_channel *channels;
    uint32_t n_transports, n_channels;
    const char *identity; /* Tenrec's own entry; NULL or "": stay a plain peer */
};

#define WIRE_MAX_CHANNELS 16 /* of our own */
#define WIRE_MAX_NAMES 64    /* transports or channels that a peer may name */
#define WIRE_MAX_DEVICES 256 /* that it may name per channel */
#define WIRE_MAX_TYPE 15     /* bytes of the type of a device that gets a channel */
#define WIRE_MAX_PAIRS 320   /* of our and their devices: 16 GPUs and the CPU on both sides */

/* Tensors between these two devices travel through this channel. Our device borrows from the offer;
 * theirs is a copy, because the frame is freed. */
struct wire_pair {
    uint32_t channel; /* index in the offer */
    struct nop_device ours;
    int32_t their_index;
    char their_type[WIRE_MAX_TYPE + 1];
};

static inline struct nop_device wire_pair_theirs(const struct wire_pair *pair)
{
    return (struct nop_device){ nop_text(pair->their_type), pair->their_index };
}

/* The selection of a listener, or of the answer that a client received. */
struct wire_selection {
    uint32_t transport; /* index in the offer */
    uint32_t n_pairs;
    bool channel_used[WIRE_MAX_CHANNELS];
    struct wire_pair pairs[WIRE_MAX_PAIRS];
};

/* A map from devices to descriptors inside a frame. */
struct wire_device_map {
    uint32_t n;
    struct nop_reader entries;
};

/* Steps through a copy of the map; false after the last. */
bool wire_device_map_next(struct wire_device_map *map, struct nop_device *ret_device,
                          struct nop_bytes *ret_descriptor);
bool wire_device_map_find(const struct wire_device_map *map, const struct nop_device *device,
                          struct nop_bytes *ret_descriptor);

/* ---- Brochure: client to listener ---- */

struct brochure {
    uint32_t n_transports, n_channels;
    struct nop_reader transports, channels; /* at the first pair of each map */
};

/* return   length of the object; beyond `cap` nothing usable was written */
size_t brochure_write(void *buf, size_t cap, const struct wire_offer *offer);

/* errors   EPROTOCOL, ETOOBIG (more names or devices than the limits above) */
tenrec_status brochure_read(const void *frame, size_t len, struct brochure *ret, tenrec_error *err);

/* The first entry of that name; false when there is none. */
bool wire_channels_find(struct nop_reader channels, uint32_t n, const char *name,
                        struct wire_device_map *ret);
bool brochure_find_transport(const struct brochure *b, const char *name,
                             struct nop_bytes *ret_domain);

/* The listener's choice: the first transport that both can, then channels by
 * pair of devices. No channel at all is legal: then no tensor can travel.
 *
 * errors   EPROTOCOL (no common transport), ETOOBIG (too many pairs of devices)
 */
tenrec_status brochure_select(const struct brochure *b, const struct wire_offer *offer,
                              struct wire_selection *ret, tenrec_error *err);

/* ---- BrochureAnswer: listener to client ---- */

/* The registration id that each further connection of the pipe must send. */
struct wire_ids {
    bool has_descriptor; /* only when the transport differs from the dialled one */
    uint64_t descriptor;
    uint64_t reply;
    /* n_connections ids for each channel in use, in order of the offer; of
     * others nothing. */
    const uint64_t *channels;
};

/* `with_identity`: include offer->identity, for a client that sent its own; a libtensorpipe client
 * gets known fields only.
 *
 * return   length of the object; beyond `cap` nothing usable was written
 */
size_t answer_write(void *buf, size_t cap, const struct wire_offer *offer,
                    const struct wire_selection *s, const struct wire_ids *ids, bool with_identity);

struct answer {
    struct nop_bytes transport, address, domain;
    bool has_descriptor_id, has_reply_id;
    uint64_t descriptor_id, reply_id;
    uint32_t n_channel_ids, n_channels, n_pairs;
    struct nop_reader channel_ids, channels, pairs; /* at the first pair of each map */
};

/* errors   EPROTOCOL, ETOOBIG */
tenrec_status answer_read(const void *frame, size_t len, struct answer *ret, tenrec_error *err);

bool answer_find_ids(const struct answer *a, const char *channel, struct nop_bytes *ret);

/* The client's mirror of the listener's choice: the transport is one of ours
 * with our domain, a changed transport brings a descriptor id, every pair uses
 * a channel of ours whose descriptors match, with as many ids as connections.
 * `dialled` is the transport that the answer came over.
 *
 * errors   EPROTOCOL, ETOOBIG (too many pairs of devices)
 */
tenrec_status answer_check(const struct answer *a, const struct wire_offer *offer,
                           const char *dialled, struct wire_selection *ret, tenrec_error *err);

/* Channel for a tensor between these devices; NULL when there is none. */
const struct wire_pair *wire_selection_find(const struct wire_selection *s,
                                            const struct nop_device *ours,
                                            const struct nop_device *theirs);

/* selection.c: what Brochure and BrochureAnswer have in common: the map of
 * channels, and the pairs of devices that a channel serves. Only their codecs
 * include this.
 */

/* One pair of the map channel -> devices -> descriptors. */
void wire_channel_write(struct nop_writer *w, const struct wire_channel *channel);

/* Reads (and so checks) `n` pairs of that map. */
void wire_channels_skip(struct nop_reader *r, uint32_t n);

/* The index in the offer, or n_channels when we have none of that name. */
uint32_t wire_offer_channel(const struct wire_offer *offer, struct nop_bytes name);

/* Gives channel `i` every pair of our and their devices that it can serve and
 * that has none yet.
 *
 * errors   ETOOBIG
 */
tenrec_status wire_selection_assign(struct wire_selection *s, const struct wire_offer *offer,
                                    uint32_t i, const struct wire_device_map *theirs,
                                    tenrec_error *err);

/* errors   ETOOBIG */
tenrec_status wire_selection_add(struct wire_selection *s, uint32_t channel,
                                 const struct nop_device *ours, const struct nop_device *theirs,
                                 tenrec_error *err);

#endif
