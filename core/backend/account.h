/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - the bytes that callers that are no members make this process hold: one account for
 * each source of them, and the sum of all. The backends of the process share the sum (struct
 * tenrec_budget); limits are the options of each. Any thread. */
#ifndef TENREC_BACKEND_ACCOUNT_H
#define TENREC_BACKEND_ACCOUNT_H

#include <stdatomic.h>
#include <tenrec/agent.h>

/* Opened for a source (source_get), which then has it in its table, or alone. */
struct account {
    struct tenrec_account seen; /* first: what plugins know */
    atomic_uint refs;
    unsigned life; /* of the process's sum, when it was opened */
    atomic_uint_fast64_t bytes;
    bool listed;
    uint64_t id;          /* the next ones only if listed, and under the lock of source.c */
    struct account *next; /* in its bucket */
    bool admitted;        /* its proofs have no limit */
    uint64_t until_ns;    /* when its proofs so far are worked off */
};

static inline struct account *account_of(const struct tenrec_account *a)
{
    return (struct account *)(uintptr_t)a;
}

/* With one reference. NULL: out of memory. */
struct account *account_new(void);
struct tenrec_account *account_open(void);
struct tenrec_account *account_share(struct tenrec_account *a);
void account_close(struct tenrec_account *a); /* NULL is fine */

bool account_charge(struct tenrec_account *a, uint64_t n,
                    const struct tenrec_account_limits *limits);
void account_give(struct tenrec_account *a, uint64_t n);
tenrec_status account_refuse(const struct tenrec_account *a,
                             const struct tenrec_account_limits *limits, tenrec_error *err);
/* Charges `n` bytes only while both limits hold. errors: EAGAIN */
tenrec_status account_take(struct tenrec_account *a, uint64_t n,
                           const struct tenrec_account_limits *limits, tenrec_error *err);

/* Bytes of all accounts of the process. */
uint64_t accounts_held(void);

/* The accounts by where their callers come from, and how many proofs of membership each source may
 * make this process compute (struct tenrec_budget).
 *
 * Connections are free to a stranger, so a limit for each of them limits nothing. A source from
 * which a connection was let in is exempt, for it has members that a stranger at the same address
 * must not keep out; and so is this host, whose processes can use up our processors without a
 * connection. One table for the process. Any thread. */

/* Proofs of a source in each second, after the first ones. */
#define SOURCE_PROOFS_PER_S 32

struct tenrec_account *source_get(const void *owner, const struct sockaddr *from, uint32_t process);
bool source_may_prove(struct tenrec_account *a, uint32_t at_once, uint64_t now_ns);
void source_admit(struct tenrec_account *a);

/* For account.c: frees the accounts beside that of `id` that nothing refers to. */
void source_sweep(uint64_t id);

/* Sources in the table: those with references, and those whose proofs are not worked off. */
size_t sources_kept(void);

#endif
