/* SPDX-License-Identifier: Apache-2.0 */
#include "admission/budget.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024u
#define KIND(n) ((uint64_t)(n) << 48) /* no network of global IPv6 addresses begins so */
#define PROOF_NS (UINT64_C(1000000000) / SOURCE_PROOFS_PER_S)

static struct {
    pthread_mutex_t lock; /* guards the buckets and the references */
    struct source *bucket[BUCKETS];
    size_t sources;  /* under the lock */
    uint64_t now_ns; /* of the last proof; under the lock */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t table_once = PTHREAD_ONCE_INIT;

/* In the child of a fork: a thread of the parent may hold the lock, and the parent's strangers
 * are the parent's. */
static void table_forget(void)
{
    pthread_mutex_init(&table.lock, NULL);
    memset(table.bucket, 0, sizeof table.bucket);
    table.sources = 0;
}

static void table_init(void)
{
    pthread_atfork(NULL, NULL, table_forget);
}

static uint64_t key_of_v6(const struct in6_addr *a)
{
    uint64_t key = 0;
    uint32_t v4;

    if (IN6_IS_ADDR_V4MAPPED(a)) {
        memcpy(&v4, &a->s6_addr[12], sizeof v4);
        return KIND(1) | v4;
    }
    /* A host has as many addresses of its network as it likes, but of the link one. */
    for (int i = 0; i < 8; i++)
        key = key << 8 | a->s6_addr[IN6_IS_ADDR_LINKLOCAL(a) ? i + 8 : i];
    return key;
}

static uint64_t key_of(const union transport_address *a, pid_t pid)
{
    switch (a->any.sa_family) {
    case AF_INET:
        return KIND(1) | a->v4.sin_addr.s_addr;
    case AF_INET6:
        return key_of_v6(&a->v6.sin6_addr);
    default:
        return KIND(2) | (uint32_t)pid;
    }
}

static struct source **bucket_of(uint64_t key)
{
    return &table.bucket[(key * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

/* Other addresses of this host than the usual ones are not known as such. */
static bool key_is_local(uint64_t key)
{
    return key == 0 /* of ::1 */ || key == (KIND(1) | htonl(INADDR_LOOPBACK)) || key >> 48 == 2;
}

/* Frees the sources of a bucket that nothing refers to. Those whose proofs are not worked off stay:
 * otherwise a stranger could reset its limit by closing its connections. Lock held. */
static void bucket_sweep(struct source **at)
{
    while (*at) {
        struct source *s = *at;

        if (s->refs > 0 || s->until_ns > table.now_ns) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        table.sources--;
        if (s->account)
            s->budget->close(s->account);
        free(s);
    }
}

/* Lock held. */
static struct source *source_add(uint64_t key)
{
    struct source *s = calloc(1, sizeof *s), **bucket = bucket_of(key);

    bucket_sweep(bucket);
    if (s) {
        s->key = key;
        s->admitted = key_is_local(key);
        s->next = *bucket;
        *bucket = s;
        table.sources++;
    }
    return s;
}

struct source *source_get(const union transport_address *a, pid_t pid)
{
    const uint64_t key = key_of(a, pid);
    struct source *s;

    pthread_once(&table_once, table_init);
    pthread_mutex_lock(&table.lock);
    s = *bucket_of(key);
    while (s && s->key != key)
        s = s->next;
    if (!s)
        s = source_add(key);
    if (s)
        s->refs++;
    pthread_mutex_unlock(&table.lock);
    return s;
}

void source_put(struct source *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&table.lock);
    if (--s->refs == 0)
        bucket_sweep(bucket_of(s->key));
    pthread_mutex_unlock(&table.lock);
}

/* Lock held. */
static bool source_charge_proof(struct source *s, uint64_t now_ns)
{
    const uint64_t from = s->until_ns > now_ns ? s->until_ns : now_ns;

    if (from + PROOF_NS > now_ns + SOURCE_PROOFS * PROOF_NS)
        return false;
    s->until_ns = from + PROOF_NS;
    return true;
}

bool source_may_prove(struct source *s, uint64_t now_ns)
{
    bool may;

    if (!s)
        return true;
    pthread_mutex_lock(&table.lock);
    table.now_ns = now_ns;
    may = s->admitted || source_charge_proof(s, now_ns);
    pthread_mutex_unlock(&table.lock);
    return may;
}

void source_admit(struct source *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&table.lock);
    s->admitted = true;
    s->until_ns = 0;
    pthread_mutex_unlock(&table.lock);
}

size_t budget_sources(void)
{
    size_t n;

    pthread_mutex_lock(&table.lock);
    n = table.sources;
    pthread_mutex_unlock(&table.lock);
    return n;
}

static struct tenrec_account_limits limits_of(const struct tp_options *o)
{
    return (struct tenrec_account_limits){ .all = o->max_stranger_bytes,
                                           .own = o->max_source_bytes };
}

bool source_open_account(struct source *s, const struct tenrec_budget *budget)
{
    pthread_mutex_lock(&table.lock);
    if (!s->account) {
        s->budget = budget;
        s->account = budget->open();
    }
    pthread_mutex_unlock(&table.lock);
    return s->account != NULL;
}

bool budget_charge(struct source *s, uint64_t n, const struct tp_options *o)
{
    const struct tenrec_account_limits limits = limits_of(o);

    return s->budget->charge(s->account, n, &limits);
}

void budget_give(struct source *s, uint64_t n)
{
    s->budget->give(s->account, n);
}

tenrec_status budget_take(struct source *s, uint64_t n, const struct tp_options *o,
                          tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    if (!budget_charge(s, n, o)) {
        st = budget_refuse(s, o, err);
        budget_give(s, n);
    }
    return st;
}

tenrec_status budget_refuse(const struct source *s, const struct tp_options *o, tenrec_error *err)
{
    const struct tenrec_account_limits limits = limits_of(o);

    return s->budget->refuse(s->account, &limits, err);
}

void budget_carry(struct source *s, struct tenrec_msg *msg, uint64_t n, const struct tp_options *o)
{
    const struct tenrec_account_limits limits = limits_of(o);

    s->budget->carry(msg, s->account, n, &limits);
}
