/* SPDX-License-Identifier: Apache-2.0 */
/* probe.h - the USDT probe fault__injected: plugin, rule, action (enum rule_action), message type,
 * peer. Nothing without sys/sdt.h. */
#ifndef FAULTY_PROBE_H
#define FAULTY_PROBE_H

#ifdef TENREC_HAVE_SDT
#include <sys/sdt.h>
#define FAULTY_PROBE(rule, action, type, peer)                                                     \
    DTRACE_PROBE5(tenrec, fault__injected, "faulty", rule, action, type, peer)
#else
#define FAULTY_PROBE(rule, action, type, peer) ((void)0)
#endif

#endif
