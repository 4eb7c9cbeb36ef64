/* SPDX-License-Identifier: Apache-2.0 */
/* security_settings.c - the keys of `security:`, read into a struct. */
#include "core/config/settings.h"

#include "core/base/memory.h"
#include "core/config/state.h"

#include <stdlib.h>
#include <string.h>

struct security_settings_made {
    struct arena arena;
    struct config_security security;
};

#define RULE_AT(field) offsetof(struct config_rule, field)
#define AT(field) offsetof(struct config_security, field)
#define MTLS_AT(field) offsetof(struct config_mtls, field)
/* clang-format off */
static const struct tenrec_option rule_table[] = {
    { "function", TENREC_OPT_STRING, 0, RULE_AT(function), 0, "", 0, 0, NULL,
      "Function, or a pattern such as admin.*; a * stands for any bytes." },
    { "from", TENREC_OPT_LIST, TENREC_OPT_STRING, RULE_AT(from), TENREC_OPT_SINGLE, "[]", 0, 0, NULL,
      "Callers that the rule permits: any_member, anyone, or names of workers, with * as above." },
};
static const struct tenrec_option_record rule_record =
    TENREC_OPTION_RECORD(rule_table, struct config_rule);

static const struct tenrec_option table[] = {
    { "mode", TENREC_OPT_STRING, 0, AT(mode), 0, NULL, 0, 0, "none|secret|tls|mtls",
      "Proof that workers and the store demand of each other; by default secret if the process has one (secret_file, "
      "the launcher, TENREC_SECRET_FILE), else none." },
    { "secret_file", TENREC_OPT_STRING, 0, AT(secret_file), 0, "", 0, 0, NULL,
      "File of the group secret, with mode 0600; relative to the configuration file." },
    { "store_plain", TENREC_OPT_STRING, 0, AT(store_plain), 0, "same_user", 0, 0, "same_user|loopback|all|none",
      "Clients that the store admits without a proof, such as torch's." },
    { "plain_peers", TENREC_OPT_STRING, 0, AT(plain_peers), 0, "none", 0, 0, "none|same_user|all",
      "Peers that a worker admits without a proof, such as those on libtensorpipe." },
    { "kernel_tls", TENREC_OPT_STRING, 0, AT(kernel_tls), 0, "auto", 0, 0, "auto|off",
      "Encryption by the kernel in the modes tls and mtls: auto uses it if the kernel and libssl can." },
    { "allow", TENREC_OPT_RECORDS, 0, AT(allow), 0, "[]", 0, 0, NULL,
      "Rules for calls; the first rule whose function matches decides. If none matches, each member may call the function.",
      &rule_record },
};

static const struct tenrec_option mtls_table[] = {
    { "ca", TENREC_OPT_STRING, 0, MTLS_AT(ca), 0, "", 0, 0, NULL,
      "Certificates of the authorities that sign the certificates of peers." },
    { "cert", TENREC_OPT_STRING, 0, MTLS_AT(cert), 0, "", 0, 0, NULL,
      "Certificate of this worker." },
    { "key", TENREC_OPT_STRING, 0, MTLS_AT(key), 0, "", 0, 0, NULL,
      "Private key of the certificate, with mode 0600." },
    { "refresh", TENREC_OPT_DURATION, 0, MTLS_AT(refresh_ms), 0, "60s", 1000, -1, NULL,
      "Interval at which the worker checks the files for changes." },
    { "names", TENREC_OPT_LIST, TENREC_OPT_STRING, MTLS_AT(names), TENREC_OPT_SINGLE, "[]", 0, 0, NULL,
      "A peer's certificate must have one of these names; [] requires the name of the worker." },
};
/* clang-format on */

const struct tenrec_plugin security_table = {
    TENREC_PLUGIN_HEADER,
    .name = "security",
    TENREC_PLUGIN_OPTIONS(table, struct config_security),
};

const struct tenrec_plugin security_mtls_table = {
    TENREC_PLUGIN_HEADER,
    .name = "security.mtls",
    TENREC_PLUGIN_OPTIONS(mtls_table, struct config_mtls),
};

struct option_source security_source(const struct tenrec_config *config)
{
    return (struct option_source){
        .map = node_get(config->root, "security"),
        .env = &config->env,
        .top = "security",
    };
}

struct option_source security_mtls_source(const struct tenrec_config *config)
{
    return (struct option_source){
        .map = node_get(node_get(config->root, "security"), SECURITY_MTLS_KEY),
        .env = &config->env,
        .top = "security." SECURITY_MTLS_KEY,
    };
}

static tenrec_status rules_check(const struct config_security *s, tenrec_error *err)
{
    const struct config_rule *rule = s->allow.v;

    for (size_t i = 0; i < s->allow.n; i++) {
        const char *where = s->allow.where[i], *join = *where ? ": " : "";
        if (!*rule[i].function)
            return tenrec_fail(err, TENREC_ECONFIG,
                               "%s%ssecurity.allow, item %zu: 'function' is missing", where, join,
                               i + 1);
        if (rule[i].from.n == 0)
            return tenrec_fail(err, TENREC_ECONFIG,
                               "%s%ssecurity.allow, item %zu: 'from' is missing: name workers, or "
                               "any_member",
                               where, join, i + 1);
        for (size_t k = 0; k < rule[i].from.n; k++)
            if (strpbrk(rule[i].from.v[k].s, ", \t"))
                return tenrec_fail(
                    err, TENREC_ECONFIG,
                    "%s%ssecurity.allow, item %zu: 'from: %s' is no name of a worker; "
                    "write a list as [a, b]",
                    where, join, i + 1, rule[i].from.v[k].s);
    }
    return TENREC_OK;
}

static tenrec_status mtls_check(const struct config_security *s, tenrec_error *err)
{
    const char *missing = !*s->mtls.ca     ? "ca"
                          : !*s->mtls.cert ? "cert"
                          : !*s->mtls.key  ? "key"
                                           : NULL;

    if (!s->mode || strcmp(s->mode, "mtls") != 0 || !missing)
        return TENREC_OK;
    return position_fail(err, TENREC_ECONFIG, &s->mode_where,
                         "security.mode: mtls needs 'security.mtls.%s'", missing);
}

static tenrec_status mtls_fill(const struct tenrec_config *config,
                               struct security_settings_made *made, tenrec_error *err)
{
    const struct option_source src = security_mtls_source(config);
    char found[120];
    tenrec_status st;

    if (src.map && src.map->kind != NODE_MAP)
        return position_fail(err, TENREC_ECONFIG, &src.map->where,
                             "security.mtls: expected a map such as {ca: FILE, cert: FILE, key: "
                             "FILE}, found %s",
                             node_describe(src.map, found, sizeof found));
    st = options_check_keys(&security_mtls_table, &src, NULL, err);
    return st == TENREC_OK
               ? options_fill(&security_mtls_table, &src, &made->arena, &made->security.mtls, err)
               : st;
}

tenrec_status config_security_make(const struct tenrec_config *config, struct config_security **ret,
                                   tenrec_error *err)
{
    const struct option_source src = security_source(config);
    struct security_settings_made *made = memory_new(1, sizeof *made);
    struct config_security *s;
    tenrec_status st;

    if (!made)
        return memory_fail(err);
    s = &made->security;
    s->mode_where = options_key_where(&src, "mode");
    s->secret_file_where = options_key_where(&src, "secret_file");
    st = options_check_keys(&security_table, &src, SECURITY_MTLS_KEY, err);
    if (st == TENREC_OK)
        st = options_fill(&security_table, &src, &made->arena, s, err);
    if (st == TENREC_OK)
        st = mtls_fill(config, made, err);
    if (st == TENREC_OK)
        st = rules_check(s, err);
    if (st == TENREC_OK)
        st = mtls_check(s, err);
    if (st == TENREC_OK)
        *ret = s;
    else
        config_security_drop(s);
    return st;
}

void config_security_drop(struct config_security *security)
{
    struct security_settings_made *made;

    if (!security)
        return;
    made = (struct security_settings_made *)(void *)((char *)security -
                                                     offsetof(struct security_settings_made,
                                                              security));
    arena_finish(&made->arena);
    free(made);
}
