/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/worker/worker.h"

#include "core/chain/chain.h"
#include "group/meeting/meeting.h"
#include "group/meeting/membership.h"
#include "rpc/call/calls.h"
#include "rpc/devices/devices.h"

#include <stdlib.h>

/* Ids of a worker that may have links, its own with them. */
enum { LINK_IDS = 1024 };

tenrec_status group_find(struct tenrec_worker *w, const struct group_entry *e, tenrec_error *err)
{
    struct membership **m = &group_of(w)->membership;
    tenrec_status st = e->visits ? membership_visit(e->options, e->store, e->until_ns, m, err)
                                 : membership_find(e->options, w->loop, e->until_ns, m, err);

    if (st != TENREC_OK)
        return st;
    w->self.id = membership_rank(*m);
    w->self.name = (*m)->name;
    return TENREC_OK;
}

struct chain_identity group_identity(const struct tenrec_worker *w)
{
    const struct membership *m = group_of(w)->membership;

    return (struct chain_identity){ .me = w->self.id,
                                    .world = membership_list_of(m) ? 0 : membership_world(m),
                                    .links = membership_is_alone(m),
                                    .incarnation = membership_incarnation(m),
                                    .token = membership_token(m),
                                    .name = m->name,
                                    .host_address = m->rendezvous->own_address };
}

/* Publishes our address and devices. */
static tenrec_status group_publish(struct tenrec_worker *w, const struct group_entry *e,
                                   tenrec_error *err)
{
    const struct tenrec_plugin *wire = chain_plugin(w->chain, chain_depth(w->chain) - 1);
    const char *address = chain_address(w->chain);
    struct store_value extra;
    tenrec_status st = devices_tell(w->calls->devices, w->chain, &extra, err);

    if (st != TENREC_OK)
        return st;
    exposure_warn(rendezvous_options_of(e->options).security, w->self.name, address);
    st = membership_join(group_of(w)->membership, wire->name, address, &extra, e->until_ns, err);
    free(extra.data);
    return st;
}

static tenrec_status group_fill_peers(struct tenrec_worker *w, tenrec_error *err)
{
    const struct membership *m = group_of(w)->membership;
    const size_t members = membership_ids(m), ids = chain_links(w->chain) ? LINK_IDS : members;
    tenrec_status st = contacts_reset(&w->contacts, membership_list_of(m) ? 0 : ids, err);

    disconnects_reset(&group_of(w)->disconnects, ids);
    if (st == TENREC_OK)
        st = peers_init(&w->peers, ids, w->self.id, err);
    w->peers.lives = membership_list_of(m) != NULL;
    w->peers.members = members;
    return st == TENREC_OK ? peers_fill(&w->peers, m->member, membership_world(m), err) : st;
}

tenrec_status group_enter(struct tenrec_worker *w, const struct group_entry *e, tenrec_error *err)
{
    tenrec_status st = e->visits ? TENREC_OK : group_publish(w, e, err);

    if (st == TENREC_OK)
        st = group_fill_peers(w, err);
    if (st != TENREC_OK)
        return st;
    termination_watch_disconnects(w);
    if (e->visits)
        return TENREC_OK;
    w->self.name = peers_name(&w->peers, w->self.id);
    return devices_agree(w, group_of(w)->membership, e->until_ns, err);
}

void group_leave(struct tenrec_worker *w, uint64_t until_ns)
{
    membership_drop(group_of(w)->membership, until_ns);
    group_of(w)->membership = NULL;
}
