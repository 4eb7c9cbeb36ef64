/* channels.c - which channels an agent offers. */
#include "channel/channels.h"
#include "channel/channel.h"
#include "transport/transport_uv.h"

#define HOST_VERSION "1" /* of channel_host's notes and control frames */

static bool lists(const struct tenrec_option_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].s, name) == 0)
            return true;
    return false;
}

static void offer(struct channels *cs, const struct channel *ch, const char *descriptor)
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
    offer(cs, &cs->lanes, cs->lanes_domain);
    cs->offered[cs->n - 1].transport = TRANSPORT_UV;
}

/* Our own comes before TensorPipe's: its peers are Tenrec's only. */
void channels_init(struct channels *cs, const struct tp_options *o)
{
    char why[PULL_TEXT_MAX];

    cs->n = 0;
    cs->pulls = lists(&o->channels, channel_cma.name) && pull_viable(why, sizeof why) &&
                pull_domain(cs->cma);
    if (cs->pulls)
        pull_allow();
    if (cs->pulls || lists(&o->channels, channel_basic.name)) {
        offer_lanes(cs, (unsigned)o->lanes);
        offer(cs, &channel_host, HOST_VERSION);
    }
    for (size_t i = 0; i < o->channels.n; i++) {
        if (cs->pulls && strcmp(o->channels.v[i].s, channel_cma.name) == 0)
            offer(cs, &channel_cma, cs->cma);
        else if (strcmp(o->channels.v[i].s, channel_basic.name) == 0)
            offer(cs, &channel_basic, "any");
    }
}

const struct channel *channels_selected(const struct channels *cs, struct wire_selection *s)
{
    const struct nop_device cpu = { nop_text("cpu"), 0 };
    const struct wire_pair *pair = wire_selection_find(s, &cpu, &cpu);
    uint32_t only = pair ? pair->channel : WIRE_MAX_CHANNELS, n = 0;

    for (uint32_t i = 0; i < s->n_pairs; i++)
        if (s->pairs[i].channel == only)
            s->pairs[n++] = s->pairs[i];
    s->n_pairs = n;
    for (uint32_t i = 0; i < WIRE_MAX_CHANNELS; i++)
        s->channel_used[i] = i == only;
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
