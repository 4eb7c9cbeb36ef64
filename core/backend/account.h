/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - the bytes that callers that are no members make this process hold: one account for
 * each source of them, and the sum of all. The backends of the process share the sum (struct
 * tenrec_budget); limits are the options of each. Any thread. */
#ifndef TENREC_BACKEND_ACCOUNT_H
#define TENREC_BACKEND_ACCOUNT_H

#include <stdatomic.h>
#include <tenrec/agent.h>

/* Opened for a source (source.h), which then has it in its table, or alone. */
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

#endif
