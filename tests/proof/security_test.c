/* SPDX-License-Identifier: Apache-2.0 */
/* security_test.c - the section, the environment, and what they make together. */
#include "core/base/clock.h"
#include "security/proof/security.h"
#include "security/secret/secret_handover.h"
#include "security/tls/tls.h"

#include "../testing.h"

#include <stdio.h>
#include <tenrec/config.h>
#include <unistd.h>

static char path[64];

static void set_up(void)
{
    struct secret *s;
    tenrec_error err;

    unsetenv(SECRET_FD_VARIABLE);
    unsetenv(SECRET_SOCKET_VARIABLE);
    unsetenv(SECRET_FILE_VARIABLE);
    strcpy(path, "/tmp/security.XXXXXX");
    close(mkstemp(path));
    unlink(path);
    assert_status(secret_draw(&s, &err), &err);
    assert_status(secret_write_file(s, path, &err), &err);
    secret_drop(s);
}

static void tear_down(void)
{
    unlink(path);
    unsetenv(SECRET_FILE_VARIABLE);
}

/* Opens with this section, in which %s stands for the file; NULL: without a configuration. */
static tenrec_status open_with(const char *format, struct security **ret, tenrec_error *err)
{
    struct tenrec_config *config = NULL;
    char text[256];
    tenrec_status st = TENREC_OK;

    if (format) {
        const char *file = strstr(format, "FILE");
        snprintf(text, sizeof text, "%.*s%s%s", file ? (int)(file - format) : (int)sizeof text,
                 format, file ? path : "", file ? file + 4 : "");
        st = tenrec_config_parse(text, "t.yaml", &config, err);
    }
    if (st == TENREC_OK)
        st = security_open(config, CLOCK_NEVER, ret, err);
    tenrec_config_drop(config);
    return st;
}

static void assert_mode(const char *text, enum security_mode mode, bool written, const char *source)
{
    struct security *s;
    tenrec_error err;

    assert_status(open_with(text, &s, &err), &err);
    assert_int_equal(s->mode, mode);
    assert_int_equal(s->written, written);
    assert_string_equal(s->mode_source, source);
    assert_int_equal(s->secret != NULL, mode == SECURITY_SECRET || mode == SECURITY_TLS);
    assert_int_equal(s->tls != NULL, mode >= SECURITY_TLS);
    security_drop(s);
}

static void assert_refused(const char *text, const char *wanted)
{
    struct security *s = NULL;
    tenrec_error err;

    assert_int_equal(open_with(text, &s, &err), TENREC_ECONFIG);
    assert_null(s);
    assert_text_has(err.text, wanted);
}

TEST_WITH(security_mode_is_none_when_nothing_is_said, set_up, tear_down)
{
    assert_mode(NULL, SECURITY_NONE, false, "default");
    assert_mode("", SECURITY_NONE, false, "default");
    assert_mode("security: {mode: none}", SECURITY_NONE, true, "t.yaml:1:18");
}

TEST_WITH(security_mode_is_secret_when_there_is_one, set_up, tear_down)
{
    assert_mode("security: {secret_file: FILE}", SECURITY_SECRET, false, "t.yaml:1:25");
    assert_mode("security: {mode: secret, secret_file: FILE}", SECURITY_SECRET, true,
                "t.yaml:1:18");
    setenv(SECRET_FILE_VARIABLE, path, 1);
    assert_mode(NULL, SECURITY_SECRET, false, "TENREC_SECRET_FILE");
    assert_mode("", SECURITY_SECRET, false, "TENREC_SECRET_FILE");
    assert_mode("security: {mode: secret}", SECURITY_SECRET, true, "t.yaml:1:18");
    assert_mode("security: {mode: none}", SECURITY_NONE, true, "t.yaml:1:18");
}

TEST_WITH(security_is_refused_when_an_announced_secret_cannot_be_had, set_up, tear_down)
{
    setenv(SECRET_FILE_VARIABLE, "/nowhere/key", 1);
    assert_refused(NULL, "environment TENREC_SECRET_FILE: secret file '/nowhere/key'");
    assert_refused("security: {secret_file: /nowhere/other}",
                   "t.yaml:1:25: security.secret_file: secret file '/nowhere/other'");
    /* The file that the section names is asked first. */
    assert_mode("security: {secret_file: FILE}", SECURITY_SECRET, false, "t.yaml:1:25");
}

TEST_WITH(security_is_refused_when_the_mode_has_no_secret, set_up, tear_down)
{
    assert_refused("security: {mode: secret}",
                   "t.yaml:1:18: security.mode: no group secret was given");
}

TEST_WITH(security_has_tls_when_the_mode_says_so, set_up, tear_down)
{
    assert_mode("security: {mode: tls, secret_file: FILE}", SECURITY_TLS, true, "t.yaml:1:18");
    assert_refused("security: {mode: tls}",
                   "t.yaml:1:18: security.mode: no group secret was given");
    assert_refused("security: {mode: mtls, mtls: {ca: a, cert: b, key: c}}",
                   "t.yaml:1:18: security.mtls.ca: cannot read 'a'");
    assert_refused("security: {mode: tls, plain_peers: all, secret_file: FILE}",
                   "t.yaml:1:18: security.plain_peers: 'all' does not go with mode tls");
}

TEST_WITH(security_lets_in_what_the_section_says, set_up, tear_down)
{
    struct security *s;
    tenrec_error err;

    assert_status(open_with(NULL, &s, &err), &err);
    assert_int_equal(s->store_plain, PLAIN_SAME_USER);
    assert_int_equal(s->plain_peers, PLAIN_NONE);
    security_drop(s);
    assert_status(open_with("security: {store_plain: loopback, plain_peers: all}", &s, &err), &err);
    assert_int_equal(s->store_plain, PLAIN_LOOPBACK);
    assert_int_equal(s->plain_peers, PLAIN_ALL);
    security_drop(security_share(s));
    assert_int_equal(s->plain_peers, PLAIN_ALL);
    security_drop(s);
    security_drop(NULL);
}

TEST_WITH(security_of_a_launcher_asks_no_environment, set_up, tear_down)
{
    struct secret *secret;
    struct security *s;
    tenrec_error err;

    setenv(SECRET_FILE_VARIABLE, "/nowhere/key", 1);
    assert_status(secret_draw(&secret, &err), &err);
    assert_status(security_open_with(NULL, secret, "the launcher", &s, &err), &err);
    assert_int_equal(s->mode, SECURITY_SECRET);
    assert_ptr_equal(s->secret, secret);
    assert_string_equal(s->mode_source, "the launcher");
    secret_drop(secret);
    security_drop(s);
    assert_status(security_open_with(NULL, NULL, NULL, &s, &err), &err);
    assert_int_equal(s->mode, SECURITY_NONE);
    security_drop(s);
}

/* The time that the environment's launcher had for its answer. */
static uint32_t waited_ms;

tenrec_status __real_secret_inherit(uint32_t ms, struct secret **ret, const char **ret_source,
                                    tenrec_error *err);
tenrec_status __wrap_secret_inherit(uint32_t ms, struct secret **ret, const char **ret_source,
                                    tenrec_error *err);
tenrec_status __wrap_secret_inherit(uint32_t ms, struct secret **ret, const char **ret_source,
                                    tenrec_error *err)
{
    waited_ms = ms;
    return __real_secret_inherit(ms, ret, ret_source, err);
}

TEST_WITH(security_waits_for_a_launcher_no_longer_than_its_caller, set_up, tear_down)
{
    struct security *s;
    tenrec_error err;

    assert_status(security_open(NULL, clock_deadline_ms(200), &s, &err), &err);
    security_drop(s);
    assert_true(waited_ms <= 200);
    assert_status(security_open_default(clock_deadline_ms(200), &s, &err), &err);
    security_drop(s);
    assert_true(waited_ms <= 200);
    assert_status(security_open(NULL, CLOCK_NEVER, &s, &err), &err);
    security_drop(s);
    assert_true(waited_ms > 200 && waited_ms <= 5000);
}

static int forbidden; /* kernels, by tls_forbid_kernel */

void __real_tls_forbid_kernel(struct tls *t);
void __wrap_tls_forbid_kernel(struct tls *t);
void __wrap_tls_forbid_kernel(struct tls *t)
{
    forbidden++;
    __real_tls_forbid_kernel(t);
}

TEST_WITH(kernel_tls_is_forbidden_where_the_section_turns_it_off, set_up, tear_down)
{
    forbidden = 0;
    assert_mode("security: {mode: tls, secret_file: FILE}", SECURITY_TLS, true, "t.yaml:1:18");
    assert_int_equal(forbidden, 0);
    assert_mode("security: {mode: tls, secret_file: FILE, kernel_tls: off}", SECURITY_TLS, true,
                "t.yaml:1:18");
    assert_int_equal(forbidden, 1);
}

TEST(security_modes_have_names)
{
    assert_string_equal(security_mode_name(SECURITY_NONE), "none");
    assert_string_equal(security_mode_name(SECURITY_MTLS), "mtls");
}
