/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_sources.h"

#include "core/base/hash.h"
#include "core/base/memory.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define PROOF_NS (UINT64_C(1000000000) / STORE_PROOFS_PER_S)

struct store_source {
    uint64_t id; /* a keyed hash of the address */
    unsigned connections;
    bool admitted;
    uint64_t until_ns; /* when its proofs so far are worked off */
    UT_hash_handle hh;
};

/* The bytes of an address that count: a host has as many IPv6 addresses of its network as it likes,
 * but of the link one. Returns their number, 0 for this host and other families. */
static size_t source_bytes(const struct sockaddr *from, uint8_t ret[8])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
    const struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
    size_t len = 0;

    if (from->sa_family == AF_INET) {
        memcpy(ret, &v4->sin_addr, len = 4);
    } else if (from->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(v6)) {
        memcpy(ret, &v6->s6_addr[12], len = 4);
    } else if (from->sa_family == AF_INET6 && !IN6_IS_ADDR_LOOPBACK(v6)) {
        memcpy(ret, &v6->s6_addr[IN6_IS_ADDR_LINKLOCAL(v6) ? 8 : 0], len = 8);
    }
    return len == 4 && memcmp(ret, &loopback, 4) == 0 ? 0 : len;
}

static struct store_source *source_add(struct store_sources *all, uint64_t id)
{
    struct store_source *s = memory_new(1, sizeof *s);

    if (!s)
        return NULL;
    s->id = id;
    HASH_ADD(hh, all->list, id, sizeof s->id, s);
    if (hash_has(s))
        return s;
    free(s);
    return NULL;
}

struct store_source *store_sources_get(struct store_sources *all, const struct sockaddr *from)
{
    uint8_t bytes[8];
    const size_t len = source_bytes(from, bytes);
    struct store_source *s;
    uint64_t id;

    if (len == 0)
        return NULL;
    if (!all->list)
        all->key = siphash_draw();
    id = siphash(&all->key, bytes, len);
    HASH_FIND(hh, all->list, &id, sizeof id, s);
    if (!s)
        s = source_add(all, id);
    if (s)
        s->connections++;
    return s;
}

static void source_drop(struct store_sources *all, struct store_source *s)
{
    HASH_DEL(all->list, s);
    free(s);
}

void store_sources_expire(struct store_sources *all, uint64_t now_ns)
{
    struct store_source *s, *next;

    HASH_ITER(hh, all->list, s, next)
    {
        if (s->connections == 0 && s->until_ns <= now_ns)
            source_drop(all, s);
    }
}

void store_sources_finish(struct store_sources *all)
{
    store_sources_expire(all, UINT64_MAX);
}

bool store_source_may_prove(struct store_source *s, uint64_t now_ns)
{
    uint64_t from;

    if (!s || s->admitted)
        return true;
    from = s->until_ns > now_ns ? s->until_ns : now_ns;
    if (from + PROOF_NS > now_ns + STORE_PROOFS * PROOF_NS)
        return false;
    s->until_ns = from + PROOF_NS;
    return true;
}

void store_source_admit(struct store_source *s)
{
    if (!s)
        return;
    s->admitted = true;
    s->until_ns = 0;
}

void store_source_put(struct store_source *s)
{
    if (s && --s->connections == 0)
        s->admitted = false;
}
