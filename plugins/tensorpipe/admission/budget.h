/* SPDX-License-Identifier: Apache-2.0 */
/* budget.h - memory and work that unauthenticated callers cost this process, by source.
 *
 * A stranger is a caller that has not shown to be a member: connections are free to it, so a limit
 * for each of them limits nothing. Bytes are charged at three levels: to all strangers of the
 * process, to their source, and to the pipe (its own queue). A member is charged to its pipe only.
 * The table is the process's, whatever agents it has; limits are each agent's options.
 *
 * Where a secret is asked for, the proofs of a source are limited in their rate, too. A source from
 * which a connection was let in is exempt, for it has members; and so is this host, whose processes
 * can use up our processors without a connection. */
#ifndef TENSORPIPE_BUDGET_H
#define TENSORPIPE_BUDGET_H

#include "options.h"
#include "transport/transport.h"
#include <stdatomic.h>
#include <tenrec/agent.h>

/* One IPv4 address, one IPv6 network of 64 bits, or one process of this host. Counted: a
 * reference keeps it. */
struct source {
    struct source *next;
    uint64_t key;
    unsigned refs;                      /* under the table's lock */
    atomic_uint handshakes;             /* under way, at all agents */
    atomic_uint opening;                /* of these pipes, whose further connections arrive next */
    atomic_uint members;                /* of them pipes of members */
    struct tenrec_account *account;     /* what its strangers make us hold; NULL: nothing yet */
    const struct tenrec_budget *budget; /* of the account */
    bool admitted;                      /* its proofs have no limit; under the table's lock */
    uint64_t until_ns; /* when its proofs so far are worked off; under the table's lock */
};

/* Proofs that a source may begin at once, as many as it may have handshakes; and later in each
 * second. */
#define SOURCE_PROOFS 1024
#define SOURCE_PROOFS_PER_S 32

/* A reference to the source of a connection from `a`; `pid` counts where `a` is a Unix socket.
 * NULL: no memory. */
struct source *source_get(const union transport_address *a, pid_t pid);
void source_put(struct source *s); /* NULL is fine */
/* Returns false if too many connections of the source have begun a proof and none was let in.
 * `now_ns` does not decrease. NULL is fine. */
bool source_may_prove(struct source *s, uint64_t now_ns);
/* A connection of the source has been let in. NULL is fine. */
void source_admit(struct source *s);
/* Sources in the table: those with references, and those whose proofs are not worked off. */
size_t budget_sources(void);

/* Before anything is charged to the source. Returns false if memory is exhausted. */
bool source_open_account(struct source *s, const struct tenrec_budget *budget);

/* Charges `n` bytes in any case. Returns true while both limits hold, as struct tenrec_budget. */
bool budget_charge(struct source *s, uint64_t n, const struct tp_options *o);
void budget_give(struct source *s, uint64_t n);
/* Charges `n` bytes only while both limits hold. errors: EAGAIN */
tenrec_status budget_take(struct source *s, uint64_t n, const struct tp_options *o,
                          tenrec_error *err);
/* Why the limits do not hold. Returns EAGAIN */
tenrec_status budget_refuse(const struct source *s, const struct tp_options *o, tenrec_error *err);
/* The message takes `n` bytes that are charged, until its release. */
void budget_carry(struct source *s, struct tenrec_msg *msg, uint64_t n, const struct tp_options *o);

#endif
