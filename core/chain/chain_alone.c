/* SPDX-License-Identifier: Apache-2.0 */
/* chain_alone.c - the options of a chain in a library of core alone. */
#include "core/chain/chain.h"

tenrec_status tenrec_chain_options_new(const struct tenrec_config *config,
                                       struct tenrec_chain_options **ret, tenrec_error *err)
{
    static const struct chain_addition *const none[] = { NULL };

    return chain_options_make(config, none, ret, err);
}
