/* SPDX-License-Identifier: Apache-2.0 */
#include "security/security.h"

#include "base/memory.h"
#include "security/secret_handover.h"

#include <stdatomic.h>
#include <stdlib.h>

#define INHERIT_MS 5000 /* the launcher answers at once, if it lives */

/* The public part of a shared one. */
struct security_made {
    atomic_uint shares;
    struct security public;
};

static struct security_made *security_of(struct security *s)
{
    return (struct security_made *)(void *)((char *)s - offsetof(struct security_made, public));
}

tenrec_status security_open(const struct tenrec_config *config, struct security **ret,
                            tenrec_error *err)
{
    struct secret *announced = NULL;
    const char *source;
    tenrec_status st = secret_inherit(INHERIT_MS, &announced, &source, err);

    if (st == TENREC_OK)
        st = security_open_with(config, announced, source, ret, err);
    secret_drop(announced);
    return st;
}

tenrec_status security_open_with(const struct tenrec_config *config, struct secret *announced,
                                 const char *source, struct security **ret, tenrec_error *err)
{
    struct security_made *made = memory_new(1, sizeof *made);
    struct security *s;

    (void)config;
    if (!made)
        return memory_fail(err);
    atomic_init(&made->shares, 1);
    s = &made->public;
    s->mode_source = "default";
    s->store_plain = PLAIN_SAME_USER;
    if (announced) {
        s->mode = SECURITY_SECRET;
        s->mode_source = source;
        s->secret = secret_share(announced);
    }
    *ret = s;
    return TENREC_OK;
}

struct security *security_share(struct security *s)
{
    /* Relaxed: the caller's own share keeps it alive. */
    atomic_fetch_add_explicit(&security_of(s)->shares, 1, memory_order_relaxed);
    return s;
}

void security_drop(struct security *s)
{
    struct security_made *made;

    if (!s)
        return;
    made = security_of(s);
    if (atomic_fetch_sub_explicit(&made->shares, 1, memory_order_acq_rel) > 1)
        return;
    secret_drop(s->secret);
    free(made);
}

const char *security_mode_name(enum security_mode mode)
{
    static const char *const names[] = {
        [SECURITY_NONE] = "none",
        [SECURITY_SECRET] = "secret",
        [SECURITY_TLS] = "tls",
        [SECURITY_MTLS] = "mtls",
    };

    return names[mode];
}
