/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/account.h"

#include "core/base/forks.h"
#include "core/base/hash.h"
#include "core/base/memory.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024u
#define PROOF_NS (UINT64_C(1000000000) / SOURCE_PROOFS_PER_S)

/* What makes a source: hashed as a whole. */
struct source_name {
    uint64_t owner;
    uint32_t address_len; /* 0: a process of this host */
    uint32_t process;
    uint8_t address[8];
};

static struct {
    pthread_mutex_t lock; /* guards all of this, and the accounts' fields for it */
    struct siphash_key key;
    struct account *bucket[BUCKETS];
    size_t kept;
    uint64_t now_ns; /* of the last proof */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* In the child of a fork: a thread of the parent may hold the lock, and the parent's strangers
 * are the parent's. */
static void table_forget(void)
{
    pthread_mutex_init(&table.lock, NULL);
    memset(table.bucket, 0, sizeof table.bucket);
    table.kept = 0;
}

static struct fork_hook fork_hook = { .child = table_forget };

/* A host has as many IPv6 addresses of its network as it likes, but of the link one. */
static struct source_name name_of(const void *owner, const struct sockaddr *from, uint32_t process)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
    struct source_name n = { .owner = (uintptr_t)owner };
    const void *address = NULL;

    if (from->sa_family == AF_INET) {
        address = &v4->sin_addr;
        n.address_len = 4;
    } else if (from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6)) {
        address = &v6->s6_addr[12];
        n.address_len = 4;
    } else if (from->sa_family == AF_INET6) {
        address = &v6->s6_addr[IN6_IS_ADDR_LINKLOCAL(v6) ? 8 : 0];
        n.address_len = 8;
    } else {
        n.process = process;
    }
    if (address)
        memcpy(n.address, address, n.address_len);
    return n;
}

/* Other addresses of this host than the usual ones are not known as such. No network of global
 * IPv6 addresses is zero: that is ::1. */
static bool name_is_local(const struct source_name *n)
{
    static const uint8_t none[8];
    const struct in_addr loopback = { htonl(INADDR_LOOPBACK) };

    if (n->address_len == 4)
        return memcmp(n->address, &loopback, 4) == 0;
    return memcmp(n->address, none, sizeof none) == 0;
}

static struct account **bucket_of(uint64_t id)
{
    return &table.bucket[id % BUCKETS];
}

/* Those whose proofs are not worked off stay: otherwise a stranger could reset its limit by closing
 * its connections. Lock held. */
static void bucket_sweep(struct account **at)
{
    while (*at) {
        struct account *a = *at;

        if (atomic_load(&a->refs) > 0 || a->until_ns > table.now_ns) {
            at = &a->next;
            continue;
        }
        *at = a->next;
        table.kept--;
        free(a);
    }
}

void source_sweep(uint64_t id)
{
    pthread_mutex_lock(&table.lock);
    bucket_sweep(bucket_of(id));
    pthread_mutex_unlock(&table.lock);
}

/* Lock held. */
static struct account *source_add(uint64_t id, bool local)
{
    struct account **bucket = bucket_of(id), *a = account_new();

    bucket_sweep(bucket);
    if (a) {
        a->listed = true;
        a->id = id;
        a->admitted = local;
        a->next = *bucket;
        *bucket = a;
        table.kept++;
    }
    return a;
}

/* Lock held. */
static struct account *source_share(const struct source_name *name)
{
    struct account *a;
    uint64_t id;

    if (table.kept == 0)
        table.key = siphash_draw();
    id = siphash(&table.key, name, sizeof *name);
    for (a = *bucket_of(id); a && a->id != id;)
        a = a->next;
    if (!a)
        return source_add(id, name_is_local(name));
    atomic_fetch_add(&a->refs, 1);
    return a;
}

struct tenrec_account *source_get(const void *owner, const struct sockaddr *from, uint32_t process)
{
    const struct source_name name = name_of(owner, from, process);
    struct account *a;

    forks_follow(&fork_hook);
    pthread_mutex_lock(&table.lock);
    a = source_share(&name);
    pthread_mutex_unlock(&table.lock);
    return a ? &a->seen : NULL;
}

/* Lock held. */
static bool source_charge_proof(struct account *a, uint32_t at_once)
{
    const uint64_t from = a->until_ns > table.now_ns ? a->until_ns : table.now_ns;

    if (from + PROOF_NS > table.now_ns + at_once * PROOF_NS)
        return false;
    a->until_ns = from + PROOF_NS;
    return true;
}

bool source_may_prove(struct tenrec_account *account, uint32_t at_once, uint64_t now_ns)
{
    struct account *a = account_of(account);
    bool may;

    if (!a)
        return true;
    pthread_mutex_lock(&table.lock);
    table.now_ns = now_ns;
    may = a->admitted || source_charge_proof(a, at_once);
    pthread_mutex_unlock(&table.lock);
    return may;
}

void source_admit(struct tenrec_account *account)
{
    struct account *a = account_of(account);

    if (!a)
        return;
    pthread_mutex_lock(&table.lock);
    a->admitted = true;
    a->until_ns = 0;
    pthread_mutex_unlock(&table.lock);
}

size_t sources_kept(void)
{
    size_t n;

    pthread_mutex_lock(&table.lock);
    n = table.kept;
    pthread_mutex_unlock(&table.lock);
    return n;
}
