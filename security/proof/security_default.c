/* SPDX-License-Identifier: Apache-2.0 */
/* security_default.c - the demands of a program that opens or serves a store without a worker. */
#include "security/proof/security.h"

#include <tenrec/config.h>

tenrec_status security_open_default(uint64_t deadline_ns, struct security **ret, tenrec_error *err)
{
    struct tenrec_config *config;
    tenrec_status st = tenrec_config_load(NULL, &config, err);

    if (st != TENREC_OK)
        return st;
    st = security_open(config, deadline_ns, ret, err);
    tenrec_config_drop(config);
    return st;
}
