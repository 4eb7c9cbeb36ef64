/* SPDX-License-Identifier: Apache-2.0 */
/* services.h - the services of each worker. */
#ifndef TENREC_LIBTENREC_SERVICES_H
#define TENREC_LIBTENREC_SERVICES_H

#include "rpc/call/service.h"

extern const struct service *const worker_services[SERVICES];

#endif
