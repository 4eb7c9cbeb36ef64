/* SPDX-License-Identifier: Apache-2.0 */
/* backend_options.h - the options of a chain without a worker. */
#ifndef TENREC_WORKER_BACKEND_OPTIONS_H
#define TENREC_WORKER_BACKEND_OPTIONS_H

#include "rpc/worker/worker_config.h"

#include <tenrec/chain.h>

struct tenrec_rpc_backend_options {
    struct worker_config *setup; /* owns */
};

#endif
