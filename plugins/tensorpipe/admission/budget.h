/* SPDX-License-Identifier: Apache-2.0 */
/* budget.h - what strangers make this process hold, by where they come from.
 *
 * A stranger is a caller that has not shown to be a member: connections are free to it, so a
 * limit for each of them limits nothing. Bytes are charged at three levels: to all strangers of the
 * process, to their source, and to the pipe (its own queue). A member is charged to its pipe
 * only. The table is the process's, whatever agents it has; limits are each agent's options. */
#ifndef TENSORPIPE_BUDGET_H
#define TENSORPIPE_BUDGET_H

#include "options.h"
#include "transport/transport.h"
#include <stdatomic.h>

/* One IPv4 address, one IPv6 network of 64 bits, or one process of this host. Counted: a
 * reference keeps it. */
struct source {
    struct source *next;
    uint64_t key;
    unsigned refs;          /* under the table's lock */
    atomic_uint handshakes; /* under way, at all agents */
    atomic_uint opening;    /* of them pipes, whose further connections come next */
    atomic_uint members;    /* of them pipes of members */
    atomic_uint_fast64_t bytes;
};

/* A reference to the source of a connection from `a`; `pid` counts where `a` is a Unix socket.
 * NULL: no memory. */
struct source *source_get(const union transport_address *a, pid_t pid);
void source_put(struct source *s); /* NULL is fine */

/* Charges `n` bytes in any case. Returns true while both limits hold. A source that held
 * nothing may exceed its own limit, for one message larger than that; none exceeds that of all. */
bool budget_charge(struct source *s, uint64_t n, const struct tp_options *o);
void budget_give(struct source *s, uint64_t n);
/* Charges `n` bytes only while both limits hold. errors: EAGAIN */
tenrec_status budget_take(struct source *s, uint64_t n, const struct tp_options *o,
                          tenrec_error *err);
/* Why the limits do not hold. Returns EAGAIN */
tenrec_status budget_refuse(const struct source *s, const struct tp_options *o, tenrec_error *err);
/* Bytes of all strangers. */
uint64_t budget_held(void);

#endif
