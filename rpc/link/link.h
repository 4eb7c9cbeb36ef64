/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - links of a worker to workers outside its group (tenrec/link.h), as a service of it. */
#ifndef TENREC_LINK_SERVICE_H
#define TENREC_LINK_SERVICE_H

#include "rpc/call/service.h"

extern const struct service link_service;

#endif
