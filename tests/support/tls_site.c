/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_site.h"

#include "authority.h"
#include "security/tls/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HOUR_S 3600L
#define TEMPLATE "/tmp/tenrec-site-XXXXXX"

static char folder[] = TEMPLATE;

const char *tls_site_path(const char *name)
{
    static char path[8][128];
    static unsigned next;
    char *p = path[next++ % 8];

    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void site_make_authority(const char *name)
{
    struct authority a = authority_make(name);
    char file[3][64];

    snprintf(file[0], sizeof file[0], "%s.pem", name);
    snprintf(file[1], sizeof file[1], "%s-leaf.pem", name);
    snprintf(file[2], sizeof file[2], "%s-leaf.key", name);
    authority_write(&a, tls_site_path(file[0]));
    authority_issue(&a, "DNS:worker0,DNS:worker1", -HOUR_S, HOUR_S, tls_site_path(file[1]),
                    tls_site_path(file[2]));
    if (strcmp(name, "ours") == 0)
        authority_issue(&a, "DNS:worker0", -HOUR_S, -60, tls_site_path("expired.pem"),
                        tls_site_path("expired.key"));
    authority_drop(&a);
}

void tls_site_make(void)
{
    memcpy(folder, TEMPLATE, sizeof folder);
    assert_non_null(mkdtemp(folder));
    site_make_authority("ours");
    site_make_authority("theirs");
}

void tls_site_remove(void)
{
    static const char *const names[] = { "ours.pem",    "ours-leaf.pem",   "ours-leaf.key",
                                         "theirs.pem",  "theirs-leaf.pem", "theirs-leaf.key",
                                         "expired.pem", "expired.key" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(unlink(tls_site_path(names[i])), 0);
    assert_int_equal(rmdir(folder), 0);
}

struct security *tls_site_secret(const char *text, enum security_plain store_plain)
{
    struct security *s = secured(text, store_plain);
    tenrec_error err;

    s->mode = SECURITY_TLS;
    assert_status(tls_open_secret(s->secret, &s->tls, &err), &err);
    return s;
}

struct security *tls_site_certificates(const char *leaf, const char *ca, const char *name,
                                       enum security_plain store_plain)
{
    const union tenrec_option_value wanted = { .s = name };
    char file[3][64];
    struct security *s;
    tenrec_error err;

    snprintf(file[0], sizeof file[0], "%s.pem", ca);
    snprintf(file[1], sizeof file[1], "%s-leaf.pem", leaf);
    snprintf(file[2], sizeof file[2], "%s-leaf.key", leaf);
    assert_status(security_open(NULL, CLOCK_NEVER, &s, &err), &err);
    s->mode = SECURITY_MTLS;
    s->store_plain = store_plain;
    assert_status(tls_open_files(&(struct tls_files){ .ca = tls_site_path(file[0]),
                                                      .cert = tls_site_path(file[1]),
                                                      .key = tls_site_path(file[2]),
                                                      .refresh_ms = TENREC_FOREVER,
                                                      .names = { &wanted, name != NULL } },
                                 &s->tls, &err),
                  &err);
    return s;
}
