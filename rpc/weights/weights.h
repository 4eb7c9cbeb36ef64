/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h - versions of weights, as a service of a worker. */
#ifndef TENREC_WEIGHTS_WEIGHTS_H
#define TENREC_WEIGHTS_WEIGHTS_H

#include "rpc/call/service.h"

extern const struct service weights_service;

#endif
