/* SPDX-License-Identifier: Apache-2.0 */
/* chain_additions.c - the options of a chain in the whole library: what each folder above core
 * adds. */
#include "core/chain/chain.h"
#include "group/meeting/meeting.h"
#include "group/store/store.h"
#include "security/proof/security.h"

tenrec_status tenrec_chain_options_new(const struct tenrec_config *config,
                                       struct tenrec_chain_options **ret, tenrec_error *err)
{
    static const struct chain_addition *const all[] = { &rendezvous_addition, &security_addition,
                                                        &stores_addition, NULL };

    return chain_options_make(config, all, ret, err);
}
