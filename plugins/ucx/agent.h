/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UCX_AGENT_H
#define UCX_AGENT_H

#include <tenrec/plugin.h>

/* Does what tenrec_init_agent is asked for. */
tenrec_status agent_new(const struct tenrec_init *in, struct tenrec_agent *self, tenrec_error *err);

#endif
