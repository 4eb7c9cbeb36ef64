/* SPDX-License-Identifier: Apache-2.0 */
/* security_settings_test.c - the section `security:`. */
#include "core/config/settings.h"
#include "sample.h"

#include "../testing.h"

#include <stdio.h>
#include <tenrec/agent.h>
#include <unistd.h>

static struct config_security *security_of_config(const struct tenrec_config *config)
{
    struct config_security *s = NULL;
    tenrec_error err;

    assert_status(config_security_make(config, &s, &err), &err);
    return s;
}

TEST(security_is_refused_with_place_and_suggestion)
{
    static const char *const cases[][2] = {
        { "security: [a]", "t.yaml:1:11: 'security': expected a map, found a list" },
        { "security:\n  mode: none\n  secretfile: x",
          "t.yaml:3:3: security: has no key 'secretfile' (did you mean 'secret_file'?)" },
        { "security: {worker: {}}", "t.yaml:1:12: security: has no key 'worker': it belongs beside "
                                    "'security', not below it" },
        { "security: {mode: secrt}", "t.yaml:1:18: security.mode: expected one of none, secret, "
                                     "tls, mtls, found 'secrt' (did you mean 'secret'?)" },
        { "security: {store_plain: same}", "t.yaml:1:25: security.store_plain: expected one of "
                                           "same_user, loopback, all, none, found "
                                           "'same'" },
        { "security: {plain_peers: loopback}",
          "t.yaml:1:25: security.plain_peers: expected one of none, same_user, all, found "
          "'loopback'" },
        { "security: {mtls: x}",
          "t.yaml:1:18: security.mtls: expected a map such as {ca: FILE, cert: FILE, key: FILE}, "
          "found 'x'" },
        { "security: {mtls: {kay: x}}",
          "t.yaml:1:19: security.mtls: has no key 'kay' (did you mean 'key'?)" },
        { "security: {mtls: {refresh: 5}}",
          "t.yaml:1:28: security.mtls.refresh: a duration needs a "
          "unit (ms, s, m, h), found '5'" },
        { "security: {mode: mtls, mtls: {ca: a, key: b}}",
          "t.yaml:1:18: security.mode: mtls needs 'security.mtls.cert'" },
        { "security: {allow: {function: f}}",
          "t.yaml:1:19: security.allow: expected a list of maps such as [{key: value}], found a "
          "map" },
        { "security: {allow: [{function: f, form: a}]}",
          "t.yaml:1:34: security.allow, item 1: has no key 'form' (did you mean 'from'?)" },
        { "security: {allow: [{function: f, from: {}}]}",
          "t.yaml:1:40: security.allow, item 1: 'from': expected a list such as [a, b], found a "
          "map" },
        { "security: {allow: [{from: a}]}",
          "t.yaml:1:20: security.allow, item 1: 'function' is missing" },
        { "security: {allow: [{function: f, from: a}, {function: g}]}",
          "t.yaml:1:44: security.allow, item 2: 'from' is missing: name workers, or any_member" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tenrec_config *config = NULL;
        tenrec_error err = { 0 };
        tenrec_status st = tenrec_config_parse(cases[i][0], "t.yaml", &config, &err);
        assert_string_equal(err.text, cases[i][1]);
        assert_int_equal(st, TENREC_ECONFIG);
        assert_null(config);
    }
}

TEST(security_is_of_defaults_when_nothing_is_written)
{
    struct tenrec_config *config = config_of("");
    struct config_security *s = security_of_config(config);

    assert_null(s->mode);
    assert_int_equal(s->mode_where.kind, POSITION_DEFAULT);
    assert_string_equal(s->secret_file, "");
    assert_string_equal(s->store_plain, "same_user");
    assert_string_equal(s->plain_peers, "none");
    assert_string_equal(s->kernel_tls, "auto");
    assert_int_equal(s->allow.n, 0);
    assert_int_equal(s->mtls.refresh_ms, 60000);
    assert_string_equal(s->mtls.ca, "");
    config_security_drop(s);
    tenrec_config_drop(config);
}

TEST(security_is_typed)
{
    struct tenrec_config *config =
        config_of("security:\n  mode: mtls\n  secret_file: /run/job.key\n  store_plain: none\n"
                  "  plain_peers: all\n  kernel_tls: off\n  mtls: {ca: a, cert: b, key: c, "
                  "refresh: none, names: [x, y]}\n"
                  "  allow:\n    - {function: \"tenrec.*\", from: any_member}\n"
                  "    - {function: f, from: [worker0, worker1]}\n");
    struct config_security *s = security_of_config(config);
    const struct config_rule *rule = s->allow.v;

    tenrec_config_drop(config); /* the settings stand on their own */
    assert_string_equal(s->mode, "mtls");
    assert_int_equal(s->mode_where.line, 2);
    assert_string_equal(s->secret_file, "/run/job.key");
    assert_string_equal(s->store_plain, "none");
    assert_string_equal(s->plain_peers, "all");
    assert_string_equal(s->kernel_tls, "off");
    assert_string_equal(s->mtls.key, "c");
    assert_true(s->mtls.refresh_ms == TENREC_FOREVER);
    assert_int_equal(s->mtls.names.n, 2);
    assert_int_equal(s->allow.n, 2);
    assert_string_equal(rule[0].function, "tenrec.*");
    assert_int_equal(rule[0].from.n, 1);
    assert_string_equal(rule[0].from.v[0].s, "any_member");
    assert_int_equal(rule[1].from.n, 2);
    assert_string_equal(rule[1].from.v[1].s, "worker1");
    assert_string_equal(s->allow.where[1], "t.yaml:10:7");
    config_security_drop(s);
}

TEST_WITH(security_of_a_variable_overrides_the_file, clean_environment, clean_environment)
{
    struct tenrec_config *config;
    struct config_security *s;
    const struct config_rule *rule;

    setenv("TENREC_SECURITY__MODE", "none", 1);
    setenv("TENREC_SECURITY__MTLS__CA", "/ca.pem", 1);
    setenv("TENREC_SECURITY__ALLOW", "[{function: g, from: w}]", 1);
    config = config_of("security: {mode: secret, mtls: {ca: x}}");
    s = security_of_config(config);
    rule = s->allow.v;
    assert_string_equal(s->mode, "none");
    assert_int_equal(s->mode_where.kind, POSITION_ENVIRONMENT);
    assert_string_equal(s->mtls.ca, "/ca.pem");
    assert_int_equal(s->allow.n, 1);
    assert_string_equal(rule[0].from.v[0].s, "w");
    config_security_drop(s);
    assert_int_equal(tenrec_config_set(config, "security.mode", "secret", NULL), TENREC_OK);
    assert_int_equal(tenrec_config_set(config, "security.mtls.ca", "/b.pem", NULL), TENREC_OK);
    s = security_of_config(config);
    assert_string_equal(s->mode, "secret");
    assert_string_equal(s->mtls.ca, "/b.pem");
    config_security_drop(s);
    tenrec_config_drop(config);
}

TEST(security_is_shown_with_its_sources)
{
    struct tenrec_config *config =
        config_of("security: {secret_file: k, allow: [{function: f, from: a}]}");
    struct shown shown = { "" };
    tenrec_error err;

    assert_status(config_show(config, show_line, &shown, &err), &err);
    assert_shown(&shown, "security.mode = (not set) (default)");
    assert_shown(&shown, "security.secret_file = k (t.yaml:1:25)");
    assert_shown(&shown, "security.store_plain = same_user (default)");
    assert_shown(&shown, "security.allow = [{function: f, from: [a]}] (t.yaml:1:35)");
    assert_shown(&shown, "security.mtls.refresh = 60s (default)");
    tenrec_config_drop(config);
}

TEST(security_files_begin_at_the_folder_of_the_configuration)
{
    char folder[] = "/tmp/security_settings.XXXXXX", path[64], wanted[64];
    struct tenrec_config *config;
    struct config_security *s;
    tenrec_error err;
    FILE *f;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.yaml", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("security: {secret_file: job.key, mtls: {ca: ca.pem, cert: /c.pem}}\n", f);
    fclose(f);
    assert_status(tenrec_config_load(path, &config, &err), &err);
    unlink(path);
    rmdir(folder);
    s = security_of_config(config);
    snprintf(wanted, sizeof wanted, "%s/job.key", folder);
    assert_string_equal(s->secret_file, wanted);
    snprintf(wanted, sizeof wanted, "%s/ca.pem", folder);
    assert_string_equal(s->mtls.ca, wanted);
    assert_string_equal(s->mtls.cert, "/c.pem");
    config_security_drop(s);
    tenrec_config_drop(config);
}
