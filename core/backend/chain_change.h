/* SPDX-License-Identifier: Apache-2.0 */
/* chain_change.h - options that change in a running chain, of all its agents or of none. */
#ifndef TENREC_BACKEND_CHAIN_CHANGE_H
#define TENREC_BACKEND_CHAIN_CHANGE_H

#include "core/backend/chain.h"

struct chain_change;
struct node;

/* chain_change_begin keeps the chain as it is until commit or discard, one of which follows in any
 * case; chain_change_add checks the changed options of one entry, once for each. No call blocks.
 *
 * errors   EBUSY (the chain starts or stops, its group changes, or another change is under way),
 *          ENOTFOUND (no such entry in the chain, with the nearest name), EUNSUPPORTED (an agent or
 *          an option that cannot change), ECONFIG, ENOMEM and those of the plugin */
tenrec_status chain_change_begin(struct chain *c, struct chain_change **ret, tenrec_error *err);
tenrec_status chain_change_add(struct chain_change *change, const char *name,
                               const struct node *options, tenrec_error *err);

/* NULL is fine. */
void chain_change_commit(struct chain_change *change);
void chain_change_discard(struct chain_change *change);

#endif
