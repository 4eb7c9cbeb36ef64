/* SPDX-License-Identifier: Apache-2.0 */
/* tls_certificates_test.c - sessions by certificates: the holders that are admitted, and files that
 * change. */
#include "two.h"

#include <stdio.h>
#include <sys/stat.h>

enum { DIALLER, LISTENER };

#define HOUR_S 3600L

static char folder[] = "/tmp/tenrec-tls-XXXXXX";
static struct authority ours, theirs;

static const char *at(const char *name)
{
    static char path[8][128];
    static unsigned next;
    char *p = path[next++ % 8];

    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void make_files(void)
{
    static char made[sizeof folder];

    memcpy(made, "/tmp/tenrec-tls-XXXXXX", sizeof made);
    assert_non_null(mkdtemp(made));
    memcpy(folder, made, sizeof made);
    ours = authority_make("ours");
    theirs = authority_make("theirs");
    authority_write(&ours, at("ca.pem"));
    authority_write(&theirs, at("other-ca.pem"));
    for (int i = 0; i < 2; i++) {
        char name[32], cert[32], key[32];
        snprintf(name, sizeof name, "DNS:worker%d", i);
        snprintf(cert, sizeof cert, "worker%d.pem", i);
        snprintf(key, sizeof key, "worker%d.key", i);
        authority_issue(&ours, name, -HOUR_S, HOUR_S, at(cert), at(key));
    }
    authority_issue(&theirs, "DNS:worker1", -HOUR_S, HOUR_S, at("stranger.pem"),
                    at("stranger.key"));
    authority_issue(&ours, "DNS:worker1", -HOUR_S, -60, at("expired.pem"), at("expired.key"));
}

static void remove_files(void)
{
    static const char *const names[] = { "ca.pem",       "other-ca.pem", "worker0.pem",
                                         "worker0.key",  "worker1.pem",  "worker1.key",
                                         "stranger.pem", "stranger.key", "expired.pem",
                                         "expired.key" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(at(names[i]));
    rmdir(folder);
    authority_drop(&ours);
    authority_drop(&theirs);
}

static tenrec_status open_files(const char *ca, const char *name, uint64_t refresh_ms,
                                struct tls **ret, tenrec_error *err)
{
    char cert[64], key[64];

    snprintf(cert, sizeof cert, "%s.pem", name);
    snprintf(key, sizeof key, "%s.key", name);
    return tls_open_files(
        &(struct tls_files){
            .ca = at(ca), .cert = at(cert), .key = at(key), .refresh_ms = refresh_ms },
        ret, err);
}

static struct tls *files_of(const char *ca, const char *name)
{
    struct tls *t;
    tenrec_error err;

    assert_status(open_files(ca, name, TENREC_FOREVER, &t, &err), &err);
    return t;
}

/* Ends the dialler's session as the user of it sees the end: the listener's refusal may come behind
 * its handshake. */
static const char *end_of_dialler(struct two *x)
{
    char byte;
    struct iovec to = { &byte, 1 };

    if (x->status[DIALLER] != TENREC_OK)
        return x->err[DIALLER].text;
    assert_true(tls_session_read(x->side[DIALLER], &to, 1) <= 0);
    return tls_session_reason(x->side[DIALLER]);
}

TEST_WITH(session_checks_the_name_in_the_certificate, make_files, remove_files)
{
    struct tls *dialler = files_of("ca.pem", "worker1"), *listener = files_of("ca.pem", "worker0");
    struct two x;
    tenrec_error err;

    two_open(&x, dialler, listener, true);
    two_shake(&x);
    for (int i = 0; i < 2; i++)
        assert_status(x.status[i], &x.err[i]);
    assert_status(tls_session_check_name(x.side[DIALLER], "worker0", &err), &err);
    assert_status(tls_session_check_name(x.side[LISTENER], "worker1", &err), &err);
    assert_status(tls_session_check_name(x.side[LISTENER], "", &err), &err); /* a tool */
    assert_int_equal(tls_session_check_name(x.side[LISTENER], "worker2", &err), TENREC_EPERM);
    assert_text_has(err.text, "is for 'worker1', not for 'worker2'");
    two_close(&x);
    tls_drop(dialler);
    tls_drop(listener);
}

TEST_WITH(session_checks_the_demanded_names, make_files, remove_files)
{
    union tenrec_option_value wanted[] = { { .s = "trainer.example" }, { .s = "worker1" } };
    struct tls *dialler = files_of("ca.pem", "worker1"), *listener;
    const struct tls_files files = { .ca = at("ca.pem"),
                                     .cert = at("worker0.pem"),
                                     .key = at("worker0.key"),
                                     .refresh_ms = TENREC_FOREVER,
                                     .names = { .n = 2, .v = wanted } };
    struct two x;
    tenrec_error err;

    for (int named = 1; named >= 0; named--) {
        wanted[1].s = named ? "worker1" : "worker9";
        assert_status(tls_open_files(&files, &listener, &err), &err);
        two_open(&x, dialler, listener, true);
        two_shake(&x);
        if (named) {
            assert_status(x.status[LISTENER], &x.err[LISTENER]);
            assert_status(tls_session_check_name(x.side[LISTENER], "any", &err), &err);
        } else {
            assert_int_equal(x.status[LISTENER], TENREC_EPERM);
            assert_text_has(x.err[LISTENER].text, "'worker1', none of security.mtls.names");
            assert_text_has(end_of_dialler(&x), "refuses this worker's certificate");
        }
        two_close(&x);
        tls_drop(listener);
    }
    tls_drop(dialler);
}

static void must_refuse(struct tls *dialler, struct tls *listener, const char *ours_says,
                        const char *theirs_hears)
{
    struct two x;

    two_open(&x, dialler, listener, true);
    two_shake(&x);
    assert_int_equal(x.status[LISTENER], TENREC_EPERM);
    assert_text_has(x.err[LISTENER].text, ours_says);
    assert_text_has(end_of_dialler(&x), theirs_hears);
    two_close(&x);
    tls_drop(dialler);
    tls_drop(listener);
}

TEST_WITH(session_is_refused_when_another_authority_has_signed, make_files, remove_files)
{
    must_refuse(files_of("ca.pem", "stranger"), files_of("ca.pem", "worker0"),
                "certificate is refused", "authority");
}

TEST_WITH(session_is_refused_when_one_side_has_only_a_secret, make_files, remove_files)
{
    must_refuse(two_of_secret(1), files_of("ca.pem", "worker0"), "gave no certificate",
                "no proof of the group secret");
}

TEST_WITH(files_are_refused_with_the_reason, make_files, remove_files)
{
    struct tls *t;
    tenrec_error err;

    assert_int_equal(open_files("ca.pem", "expired", TENREC_FOREVER, &t, &err), TENREC_ECONFIG);
    assert_text_has(err.text, "has expired");
    assert_int_equal(open_files("none.pem", "worker0", TENREC_FOREVER, &t, &err), TENREC_ECONFIG);
    assert_text_has(err.text, "security.mtls.ca: cannot read");
    assert_int_equal(chmod(at("worker0.key"), 0644), 0);
    assert_int_equal(open_files("ca.pem", "worker0", TENREC_FOREVER, &t, &err), TENREC_ECONFIG);
    assert_text_has(err.text, "chmod 600");
    assert_int_equal(rename(at("worker1.key"), at("worker0.key")), 0);
    assert_int_equal(open_files("ca.pem", "worker0", TENREC_FOREVER, &t, &err), TENREC_ECONFIG);
    assert_text_has(err.text, "security.mtls.key: cannot use the key");
}

static tenrec_status try_once(struct tls *dialler, struct tls *listener, struct two *x)
{
    two_open(x, dialler, listener, true);
    two_shake(x);
    return x->status[LISTENER];
}

/* The authority is replaced: a holder of a certificate of the old one is refused from then on, and
 * a session that stands goes on. */
TEST_WITH(session_uses_files_that_have_changed, make_files, remove_files)
{
    struct iovec from = { (char[]){ "x" }, 1 };
    struct tls *dialler = files_of("ca.pem", "worker1"), *listener;
    char byte;
    struct iovec to = { &byte, 1 };
    struct two old, newer;
    tenrec_error err;

    assert_status(open_files("ca.pem", "worker0", 0, &listener, &err), &err);
    assert_int_equal(try_once(dialler, listener, &old), TENREC_OK);
    assert_int_equal(rename(at("other-ca.pem"), at("ca.pem")), 0);
    assert_int_equal(try_once(dialler, listener, &newer), TENREC_EPERM);
    two_close(&newer);
    assert_int_equal(tls_session_write(old.side[DIALLER], &from, 1), 1);
    assert_int_equal(tls_session_read(old.side[LISTENER], &to, 1), 1);
    two_close(&old);
    /* Files that cannot be used change nothing. */
    authority_write(&ours, at("ca.pem"));
    assert_int_equal(try_once(dialler, listener, &newer), TENREC_OK);
    two_close(&newer);
    assert_int_equal(unlink(at("worker0.key")), 0);
    assert_int_equal(try_once(dialler, listener, &newer), TENREC_OK);
    two_close(&newer);
    tls_drop(dialler);
    tls_drop(listener);
}
