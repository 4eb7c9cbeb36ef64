/* SPDX-License-Identifier: Apache-2.0 */
/* selection.h - what Brochure and BrochureAnswer have in common: the map of
 * channels, and the pairs of devices that a channel serves. Only their codecs
 * include this.
 */
#ifndef TENSORPIPE_SELECTION_H
#define TENSORPIPE_SELECTION_H

#include "wire/handshake/brochure.h"

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
