/* SPDX-License-Identifier: Apache-2.0 */
/* known.h - the members that the monitor knows, with their records. By its thread. */
#ifndef TENREC_MONITOR_KNOWN_H
#define TENREC_MONITOR_KNOWN_H

#include "rpc/monitor/monitor_inside.h"

/* The agent borrows the address until shutdown. */
struct known_member {
    struct known_member *next;
    tenrec_peer id; /* -1: the member has left; only its address is kept */
    bool leaving;   /* it has said so */
    struct member record;
};

/* NULL: unknown. */
struct known_member *known_find(const struct monitor *m, tenrec_peer id, int64_t incarnation);
/* Takes `record`. Returns NULL if out of memory. */
struct known_member *known_add(struct monitor *m, struct member *record);
void known_finish(struct monitor *m);

#endif
