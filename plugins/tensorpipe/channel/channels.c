/* SPDX-License-Identifier: Apache-2.0 */
/* channels.c - which channels an agent offers. */
#include "channel/channels.h"
#include "channel/channel.h"

#define HOST_VERSION "2" /* of channel_host's notes and control frames */
#define CUDA_VERSION "1" /* of a link's */

static bool channels_lists(const struct tenrec_option_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].s, name) == 0)
            return true;
    return false;
}

static void channels_offer(struct channels *cs, const struct channel *ch, const char *descriptor)
{
    uint32_t i = cs->n++;

    cs->channel[i] = ch;
    cs->cpu[i] = (struct wire_channel_device){ { nop_text("cpu"), 0 }, descriptor };
    cs->offered[i] = (struct wire_channel){ ch->name, &cs->cpu[i], 1, ch->connections };
}

/* For TCP only: where memory is shared one lane is as good as several. */
static void offer_lanes(struct channels *cs, unsigned lanes)
{
    cs->lanes = channel_lanes;
    cs->lanes.data = lanes;
    cs->lanes.connections = lanes;
    snprintf(cs->lanes_domain, sizeof cs->lanes_domain, HOST_VERSION ":%u", lanes);
    channels_offer(cs, &cs->lanes, cs->lanes_domain);
    cs->offered[cs->n - 1].remote = true;
}

/* With the host's memory alone it is chosen for nothing between two workers without
 * devices, and so costs them no connection. */
static void offer_cuda(struct channels *cs)
{
    cs->cuda[0] = (struct wire_channel_device){ { nop_text("cpu"), 0 }, CUDA_VERSION };
    cs->channel[cs->n] = NULL;
    cs->offered[cs->n++] = (struct wire_channel){ CHANNEL_CUDA, cs->cuda, 1, 1, NULL };
}

void channels_add_devices(struct channels *cs, uint32_t n)
{
    for (uint32_t i = 0; i < cs->n; i++) {
        struct wire_channel *ch = &cs->offered[i];

        for (; ch->devices == cs->cuda && ch->n_devices < CHANNEL_DEVICES && ch->n_devices <= n;
             ch->n_devices++)
            cs->cuda[ch->n_devices] =
                (struct wire_channel_device){ { nop_text("cuda"), (int32_t)ch->n_devices - 1 },
                                              CUDA_VERSION };
    }
}

void channels_leave_shared_out(struct wire_offer *offer, struct wire_channel ret[CHANNELS_MAX])
{
    for (uint32_t i = 0; i < offer->n_channels; i++) {
        ret[i] = offer->channels[i];
        if (strcmp(ret[i].name, channel_basic.name) != 0)
            ret[i].n_devices = 0;
    }
    offer->channels = ret;
}

/* Tenrec's own precedes TensorPipe's: its peers are Tenrec's only. */
void channels_init(struct channels *cs, const struct tp_options *o, bool devices)
{
    char why[CMA_TEXT_MAX];

    cs->n = 0;
    cs->pulls = channels_lists(&o->channels, channel_cma.name) && cma_viable(why, sizeof why) &&
                cma_domain(cs->cma);
    if (cs->pulls || channels_lists(&o->channels, channel_basic.name)) {
        offer_lanes(cs, (unsigned)o->lanes);
        channels_offer(cs, &channel_host, HOST_VERSION);
    }
    for (size_t i = 0; i < o->channels.n; i++) {
        /* A peer on libtensorpipe cannot leave this channel once it has chosen it, and the kernel
         * may permit only one process to read. */
        if (cs->pulls && !cma_wants_names() && strcmp(o->channels.v[i].s, channel_cma.name) == 0)
            channels_offer(cs, &channel_cma, cs->cma);
        else if (strcmp(o->channels.v[i].s, channel_basic.name) == 0)
            channels_offer(cs, &channel_basic, "any");
    }
    /* Last: what others carry from host to host is theirs. */
    if (cs->n && devices)
        offer_cuda(cs);
}

const struct channel *channels_selected(const struct channels *cs, struct wire_selection *s,
                                        bool *ret_devices)
{
    const struct nop_device cpu = { nop_text("cpu"), 0 };
    const struct wire_pair *pair = wire_selection_find(s, &cpu, &cpu);
    uint32_t only = pair ? pair->channel : WIRE_MAX_CHANNELS, n = 0;

    *ret_devices = false;
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        const uint32_t c = s->pairs[i].channel;
        const bool first = c != only && cs->offered[c].devices == cs->cuda && !*ret_devices;

        /* One pair represents all: with 16 devices on both sides they are many. */
        if (c == only || first)
            s->pairs[n++] = s->pairs[i];
        *ret_devices |= first;
    }
    s->n_pairs = n;
    for (uint32_t i = 0; i < WIRE_MAX_CHANNELS; i++)
        s->channel_used[i] = false;
    for (uint32_t i = 0; i < n; i++)
        s->channel_used[s->pairs[i].channel] = true;
    return pair ? cs->channel[only] : NULL;
}

const char *channels_best(const struct channels *cs)
{
    return cs->n ? channel_host.name : "none";
}

const char *channels_option(const struct channels *cs)
{
    return cs->pulls ? channel_cma.name : channel_basic.name;
}
