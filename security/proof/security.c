/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/security.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "core/chain/chain.h"
#include "core/config/settings.h"
#include "security/proof/rules.h"
#include "security/secret/secret_handover.h"
#include "security/tls/tls.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define INHERIT_MS 5000 /* the launcher answers at once, if it lives */

/* The public part of a shared one. */
struct security_made {
    atomic_uint shares;
    char mode_source[POSITION_TEXT_MAX];
    struct security public;
};

/* The secret for a configuration that names no file. */
struct security_announced {
    bool inherit;          /* the environment's */
    uint64_t deadline_ns;  /* of the launcher's answer then */
    struct secret *secret; /* else this one, borrowed; NULL: none */
    const char *source;
};

static struct security_made *security_of(struct security *s)
{
    return (struct security_made *)(void *)((char *)s - offsetof(struct security_made, public));
}

/* Returns the position of `word` in "a|b|c". */
static int security_choice(const char *choices, const char *word)
{
    const size_t len = strlen(word);
    int i = 0;

    for (const char *p = choices; *p; p += *p == '|', i++) {
        const size_t n = strcspn(p, "|");
        if (n == len && strncmp(p, word, n) == 0)
            break;
        p += n;
    }
    return i;
}

static enum security_plain security_plain_of(const char *word)
{
    return (enum security_plain)security_choice("none|same_user|loopback|all", word);
}

static tenrec_status security_read_file(struct security_made *made,
                                        const struct config_security *config, tenrec_error *err)
{
    char where[POSITION_TEXT_MAX];
    tenrec_status st = secret_read_file(config->secret_file, &made->public.secret, err);

    position_text(&config->secret_file_where, where);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "%s: security.secret_file", where);
    else if (!config->mode)
        memcpy(made->mode_source, where, sizeof where);
    return st;
}

static tenrec_status security_inherit(uint64_t deadline_ns, struct secret **ret,
                                      const char **ret_source, tenrec_error *err)
{
    const uint64_t most_ns = clock_deadline_ms(INHERIT_MS);

    return secret_inherit((uint32_t)clock_left_ms(deadline_ns < most_ns ? deadline_ns : most_ns),
                          ret, ret_source, err);
}

/* Gets the secret, and with it the mode where none is written. */
static tenrec_status security_get_secret(struct security_made *made,
                                         const struct config_security *config,
                                         const struct security_announced *announced,
                                         tenrec_error *err)
{
    struct security *s = &made->public;
    const char *source = announced->source;
    tenrec_status st = TENREC_OK;

    if (config && *config->secret_file) {
        st = security_read_file(made, config, err);
    } else {
        if (announced->inherit)
            st = security_inherit(announced->deadline_ns, &s->secret, &source, err);
        else if (announced->secret)
            s->secret = secret_share(announced->secret);
        if (st == TENREC_OK && s->secret && !s->written)
            snprintf(made->mode_source, sizeof made->mode_source, "%s", source);
    }
    if (st != TENREC_OK)
        return st;
    if (s->secret && !s->written)
        s->mode = SECURITY_SECRET;
    else if (!s->secret && s->written)
        return position_fail(
            err, TENREC_ECONFIG, &config->mode_where,
            "security.mode: no group secret was given: set security.secret_file or "
            "TENREC_SECRET_FILE, or start the workers by 'tenrec run'");
    return TENREC_OK;
}

/* Applies the section, all but the secret. */
static tenrec_status security_apply(struct security_made *made,
                                    const struct config_security *config, tenrec_error *err)
{
    struct security *s = &made->public;

    s->store_plain = security_plain_of(config->store_plain);
    s->plain_peers = security_plain_of(config->plain_peers);
    s->written = config->mode != NULL;
    if (!s->written)
        return TENREC_OK;
    s->mode = (enum security_mode)security_choice("none|secret|tls|mtls", config->mode);
    position_text(&config->mode_where, made->mode_source);
    if (s->mode < SECURITY_TLS || s->plain_peers == PLAIN_NONE)
        return TENREC_OK;
    return position_fail(err, TENREC_ECONFIG, &config->mode_where,
                         "security.plain_peers: '%s' does not go with mode %s, whose workers have "
                         "addresses that no plain peer can dial",
                         config->plain_peers, config->mode);
}

/* Makes the means of the modes tls and mtls. */
static tenrec_status security_open_tls(struct security *s, const struct config_security *config,
                                       tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    if (s->mode == SECURITY_TLS)
        st = tls_open_secret(s->secret, &s->tls, err);
    else if (s->mode == SECURITY_MTLS && config) /* which has named the mode */
        st = tls_open_files(&(struct tls_files){ .ca = config->mtls.ca,
                                                 .cert = config->mtls.cert,
                                                 .key = config->mtls.key,
                                                 .refresh_ms = config->mtls.refresh_ms,
                                                 .names = config->mtls.names },
                            &s->tls, err);
    if (st == TENREC_OK && s->tls && config && strcmp(config->kernel_tls, "off") == 0)
        tls_forbid_kernel(s->tls);
    if (st != TENREC_OK && s->mode == SECURITY_MTLS)
        tenrec_error_prefix(err, "%s", s->mode_source);
    return st;
}

static bool security_wants_secret(const struct security *s)
{
    return !s->written || s->mode == SECURITY_SECRET || s->mode == SECURITY_TLS;
}

static tenrec_status security_make(const struct tenrec_config *config,
                                   const struct security_announced *announced,
                                   struct security **ret, tenrec_error *err)
{
    struct security_made *made = memory_new(1, sizeof *made);
    struct config_security *section = NULL;
    tenrec_status st = TENREC_OK;

    if (!made)
        return memory_fail(err);
    atomic_init(&made->shares, 1);
    snprintf(made->mode_source, sizeof made->mode_source, "default");
    made->public.guard = chain_proof_guard;
    made->public.mode_source = made->mode_source;
    made->public.store_plain = PLAIN_SAME_USER;
    if (config)
        st = config_security_make(config, &section, err);
    if (st == TENREC_OK && section)
        st = security_apply(made, section, err);
    if (st == TENREC_OK && security_wants_secret(&made->public))
        st = security_get_secret(made, section, announced, err);
    if (st == TENREC_OK)
        st = security_open_tls(&made->public, section, err);
    if (st == TENREC_OK)
        st = rules_make(section ? &section->allow : NULL, made->public.mode != SECURITY_NONE,
                        &made->public.rules, err);
    config_security_drop(section);
    if (st == TENREC_OK)
        *ret = &made->public;
    else
        security_drop(&made->public);
    return st;
}

tenrec_status security_open(const struct tenrec_config *config, uint64_t deadline_ns,
                            struct security **ret, tenrec_error *err)
{
    return security_make(
        config, &(struct security_announced){ .inherit = true, .deadline_ns = deadline_ns }, ret,
        err);
}

tenrec_status security_open_with(const struct tenrec_config *config, struct secret *announced,
                                 const char *source, struct security **ret, tenrec_error *err)
{
    return security_make(
        config, &(struct security_announced){ .secret = announced, .source = source }, ret, err);
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
    tls_drop(s->tls);
    rules_drop(s->rules);
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

static tenrec_status security_add(const struct tenrec_config *config,
                                  const struct config_settings *s, void **ret, tenrec_error *err)
{
    struct security *made = NULL;
    tenrec_status st = security_open(config, CLOCK_NEVER, &made, err);

    (void)s;
    *ret = made;
    return st;
}

static void security_remove(void *made)
{
    security_drop(made);
}

static const struct chain_guard *security_guard(const void *made)
{
    return &((const struct security *)made)->guard;
}

const struct chain_addition security_addition = { security_add, security_remove, security_guard };
