/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/account.h"

#include "core/base/forks.h"
#include "core/base/memory.h"

#include <stdlib.h>

static struct {
    atomic_uint_fast64_t bytes;
    unsigned life; /* changes in the child of a fork only */
} all;

/* In the child of a fork: the strangers of the parent are the parent's. */
static void all_forget(void)
{
    atomic_store(&all.bytes, 0);
    all.life++;
}

static struct fork_hook fork_hook = { .child = all_forget };

struct account *account_new(void)
{
    struct account *a = memory_new(1, sizeof *a);

    forks_follow(&fork_hook);
    if (!a)
        return NULL;
    a->refs = 1;
    a->life = all.life;
    return a;
}

struct tenrec_account *account_open(void)
{
    struct account *a = account_new();

    return a ? &a->seen : NULL;
}

struct tenrec_account *account_share(struct tenrec_account *a)
{
    atomic_fetch_add_explicit(&account_of(a)->refs, 1, memory_order_relaxed);
    return a;
}

void account_close(struct tenrec_account *account)
{
    struct account *a = account_of(account);
    bool listed = a && a->listed;
    uint64_t id = a ? a->id : 0;

    /* A listed account may be in use again, or freed, as soon as it has no reference. */
    if (!a || atomic_fetch_sub(&a->refs, 1) > 1)
        return;
    if (listed)
        source_sweep(id);
    else
        free(a);
}

bool account_charge(struct tenrec_account *a, uint64_t n,
                    const struct tenrec_account_limits *limits)
{
    const uint64_t others = atomic_fetch_add_explicit(&all.bytes, n, memory_order_relaxed);
    const uint64_t own = atomic_fetch_add_explicit(&account_of(a)->bytes, n, memory_order_relaxed);

    /* No sum overflows: a peer may announce any number. */
    return n <= limits->all && others <= limits->all - n &&
           (own == 0 || (n <= limits->own && own <= limits->own - n));
}

void account_give(struct tenrec_account *a, uint64_t n)
{
    atomic_fetch_sub_explicit(&account_of(a)->bytes, n, memory_order_relaxed);
    if (account_of(a)->life == all.life)
        atomic_fetch_sub_explicit(&all.bytes, n, memory_order_relaxed);
}

tenrec_status account_refuse(const struct tenrec_account *a,
                             const struct tenrec_account_limits *limits, tenrec_error *err)
{
    const unsigned long long own = atomic_load(&account_of(a)->bytes), sum = accounts_held();

    if (limits->own == UINT64_MAX)
        return tenrec_fail(err, TENREC_EAGAIN,
                           "callers that are no members may make this worker hold "
                           "max_stranger_bytes (%llu) in all; this would make it %llu",
                           (unsigned long long)limits->all, sum);
    return tenrec_fail(err, TENREC_EAGAIN,
                       "callers that are no members may make this worker hold "
                       "max_stranger_bytes (%llu) in all, and max_source_bytes (%llu) for one "
                       "address; this would make it %llu and %llu",
                       (unsigned long long)limits->all, (unsigned long long)limits->own, sum, own);
}

tenrec_status account_take(struct tenrec_account *a, uint64_t n,
                           const struct tenrec_account_limits *limits, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    if (!account_charge(a, n, limits)) {
        st = account_refuse(a, limits, err);
        account_give(a, n);
    }
    return st;
}

uint64_t accounts_held(void)
{
    return atomic_load_explicit(&all.bytes, memory_order_relaxed);
}
