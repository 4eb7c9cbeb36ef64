/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UCX_FALLBACK_H
#define UCX_FALLBACK_H

#include "ucx.h"

/* Warns, once in the life of an agent, if UCX carries this connection to a member on another host
 * over TCP, unless the user asked for that. When the lanes are known. The driver's. */
void fallback_check(struct conn *c);

#endif
