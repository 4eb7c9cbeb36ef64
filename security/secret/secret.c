/* SPDX-License-Identifier: Apache-2.0 */
#include "security/secret/secret.h"

#include "core/base/memory.h"
#include "security/secret/crypto.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct secret {
    atomic_uint shares;
    size_t len;
    size_t mapped;  /* bytes, whole pages */
    uint8_t *bytes; /* owns the pages */
};

/* Maps pages for `len` bytes. A limit on locked memory is no reason to refuse the secret: it could
 * then reach the swap space, and nothing else. */
static tenrec_status secret_map(struct secret *s, size_t len, tenrec_error *err)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t mapped = (len + page - 1) / page * page;
    void *at = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED)
        return tenrec_fail_errno(err, TENREC_ENOMEM, errno, "no pages for a secret");
    (void)mlock(at, mapped);
    (void)madvise(at, mapped, MADV_DONTDUMP);
    s->bytes = at;
    s->mapped = mapped;
    s->len = len;
    return TENREC_OK;
}

/* Makes a secret of `len` bytes, which the caller fills in. */
static tenrec_status secret_make(size_t len, struct secret **ret, tenrec_error *err)
{
    struct secret *s = memory_new(1, sizeof *s);
    tenrec_status st;

    if (!s)
        return memory_fail(err);
    st = secret_map(s, len, err);
    if (st != TENREC_OK) {
        free(s);
        return st;
    }
    atomic_init(&s->shares, 1);
    *ret = s;
    return TENREC_OK;
}

tenrec_status secret_new(const void *bytes, size_t len, struct secret **ret, tenrec_error *err)
{
    tenrec_status st;

    if (len < SECRET_MIN || len > SECRET_MAX)
        return tenrec_fail(err, TENREC_EINVAL, "a secret of %zu bytes, %d to %d were expected", len,
                           SECRET_MIN, SECRET_MAX);
    st = secret_make(len, ret, err);
    if (st == TENREC_OK)
        memcpy((*ret)->bytes, bytes, len);
    return st;
}

tenrec_status secret_draw(struct secret **ret, tenrec_error *err)
{
    struct secret *s;
    tenrec_status st = secret_make(SECRET_BYTES, &s, err);

    if (st != TENREC_OK)
        return st;
    st = crypto_draw_secret(s->bytes, s->len, err);
    if (st == TENREC_OK)
        *ret = s;
    else
        secret_drop(s);
    return st;
}

struct secret *secret_share(struct secret *s)
{
    /* Relaxed: the caller's own share keeps the secret alive. */
    atomic_fetch_add_explicit(&s->shares, 1, memory_order_relaxed);
    return s;
}

void secret_drop(struct secret *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->shares, 1, memory_order_acq_rel) > 1)
        return;
    crypto_wipe(s->bytes, s->len);
    munmap(s->bytes, s->mapped);
    free(s);
}

bool secret_equal(const struct secret *a, const struct secret *b)
{
    return a->len == b->len && crypto_equal(a->bytes, b->bytes, a->len);
}

const void *secret_bytes(const struct secret *s, size_t *ret_len)
{
    *ret_len = s->len;
    return s->bytes;
}

tenrec_status secret_derive(const struct secret *s, const char *purpose, void *ret, size_t len,
                            tenrec_error *err)
{
    const struct crypto_part no_salt = { NULL, 0 }, info = { purpose, strlen(purpose) };

    return crypto_derive(s->bytes, s->len, no_salt, info, ret, len, err);
}
