/* SPDX-License-Identifier: Apache-2.0 */
/* region.h - the regions of a worker, as a service of it. */
#ifndef TENREC_REGION_REGION_H
#define TENREC_REGION_REGION_H

#include "rpc/call/service.h"

extern const struct service region_service;

#endif
