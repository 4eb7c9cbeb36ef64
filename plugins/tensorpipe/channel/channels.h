/* SPDX-License-Identifier: Apache-2.0 */
/* channels.h - the channels that an agent offers, the preferred first. */
#ifndef TENSORPIPE_CHANNELS_H
#define TENSORPIPE_CHANNELS_H

#include "channel/channel.h"
#include "options.h"
#include "wire/handshake/brochure.h"

#define CHANNELS_MAX 8
#define CHANNEL_CUDA "tenrec_cuda" /* for memory of devices; see cuda/link/link.h */
#define CHANNEL_DEVICES 17         /* the host and 16 GPUs */

struct channels {
    uint32_t n;
    const struct channel *channel[CHANNELS_MAX];
    struct wire_channel offered[CHANNELS_MAX];
    struct wire_channel_device cpu[CHANNELS_MAX];
    char cma[CMA_TEXT_MAX];
    struct channel lanes; /* with as many connections as the options say */
    char lanes_domain[16];
    bool pulls; /* tensors may be read out of memory */
    struct wire_channel_device cuda[CHANNEL_DEVICES];
};

/* `devices`: a channel for their memory is offered too. */
void channels_init(struct channels *cs, const struct tp_options *o, bool devices);

/* Takes all channels but basic out of the offer: those through which the peer would share memory
 * with us. The indices stay.
 *
 * ret   where offer->channels is afterwards */
void channels_leave_shared_out(struct wire_offer *offer, struct wire_channel ret[CHANNELS_MAX]);

/* From now on the first `n` devices are offered too. */
void channels_add_devices(struct channels *cs, uint32_t n);

/* The one for host memory on both sides; NULL when there is none. *ret_devices:
 * there is one for the memory of devices beside it. All else is taken out of the
 * selection. */
const struct channel *channels_selected(const struct channels *cs, struct wire_selection *s,
                                        bool *ret_devices);

/* The channel between Tenrec workers on this host: the best channel in the options. */
const char *channels_best(const struct channels *cs);
const char *channels_option(const struct channels *cs);

#endif
