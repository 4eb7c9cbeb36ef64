/* channels.h - the channels that an agent offers, the preferred first. */
#ifndef TENSORPIPE_CHANNELS_H
#define TENSORPIPE_CHANNELS_H

#include "channel/channel.h"
#include "channel/pull.h"
#include "options.h"
#include "wire/brochure.h"

#define CHANNELS_MAX 8

struct channels {
    uint32_t n;
    const struct channel *channel[CHANNELS_MAX];
    struct wire_channel offered[CHANNELS_MAX];
    struct wire_channel_device cpu[CHANNELS_MAX];
    char cma[PULL_TEXT_MAX];
    struct channel lanes; /* with as many connections as the options say */
    char lanes_domain[16];
    bool pulls; /* tensors may be read out of memory */
};

void channels_init(struct channels *cs, const struct tp_options *o);

/* The one for host memory on both sides; NULL when there is none. The others
 * are taken out of the selection. */
const struct channel *channels_selected(const struct channels *cs, struct wire_selection *s);

/* What Tenrec workers on this host use among themselves, and what the options
 * call the best that they list. */
const char *channels_best(const struct channels *cs);
const char *channels_option(const struct channels *cs);

#endif
