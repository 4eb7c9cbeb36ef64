/* SPDX-License-Identifier: Apache-2.0 */
/* interface.h - which of this machine's network interfaces an agent listens on.
 *
 * The option names one or several, separated by commas, the first that fits is
 * taken:
 *
 *     eth0             this one
 *     eth*             any whose name begins so
 *     10.1.0.0/16      any with an address in this subnet, and that address
 *     ^docker0,virbr*  any but these, and not loopback
 *
 * Of several addresses IPv4 goes before IPv6, and what is good on one link only
 * (fe80::...) comes last. */
#ifndef TENSORPIPE_INTERFACE_H
#define TENSORPIPE_INTERFACE_H

#include "transport/transport.h"

/* Checks the syntax of the text. errors: ECONFIG */
tenrec_status interface_check(const char *wanted, tenrec_error *err);

/* The address to listen on. family: AF_UNSPEC for any.
 * errors: ECONFIG lists the interfaces; EOS */
tenrec_status interface_pick(const char *wanted, int family, union transport_address *ret,
                             tenrec_error *err);

#endif
