/* SPDX-License-Identifier: Apache-2.0 */
/* redis://..., taken apart or refused. */
#include "store/url.h"

#include "../testing.h"

static const struct store_url_form form = { "redis", 6379, 1 };

TEST(url_is_taken_apart)
{
    static const struct {
        const char *url, *host, *user, *password, *prefix;
        uint16_t port;
    } rows[] = {
        { "redis://h", "h", "", "", "tenrec", 6379 },
        { "redis://h/", "h", "", "", "tenrec", 6379 },
        { "redis://h:7000/jobs/17/", "h", "", "", "jobs/17", 7000 },
        { "redis://10.0.0.3:1/x", "10.0.0.3", "", "", "x", 1 },
        { "redis://[fd00::3]", "fd00::3", "", "", "tenrec", 6379 },
        { "redis://[fd00::3]:7000/x", "fd00::3", "", "", "x", 7000 },
        { "redis://:pw@h/x", "h", "", "pw", "x", 6379 },
        { "redis://bob:pw@h:7/x", "h", "bob", "pw", "x", 7 },
        { "redis://bob:p%40%2F%3a%25w@h/x", "h", "bob", "p@/:%w", "x", 6379 },
        { "redis://bob:p@/w:@h/x", "h", "bob", "p@/w:", "x", 6379 },
        { "cluster://h/a%2fb", "h", "", "", "a/b", 6379 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct store_url u;
        tenrec_error err;
        assert_status(store_url_read(rows[i].url, &form, &u, &err), &err);
        assert_string_equal(u.at->host, rows[i].host);
        assert_string_equal(u.user, rows[i].user);
        assert_string_equal(u.password, rows[i].password);
        assert_string_equal(u.prefix, rows[i].prefix);
        assert_int_equal(u.at->port, rows[i].port);
    }
}

TEST(url_that_is_malformed_is_refused)
{
    static const char *const rows[][2] = {
        { "redis://", "found no host" },
        { "redis:///x", "found no host" },
        { "redis:h", "found no \"://\"" },
        { "redis://:7000", "found no host" },
        { "redis://:s3cret@", "found no host" },
        { "redis://h:0", "port \"0\" is not within 1..65535" },
        { "redis://h:65536/x", "port \"65536\"" },
        { "redis://bob:s3cret", "the port is no number, or the @ after the password is missing" },
        { "redis://h:", "port \"\"" },
        { "redis://fd00::3", "[address]:port" },
        { "redis://[fd00::3", "expected [address]:port" },
        { "redis://[fd00::3]7", "expected [address]:port" },
        { "redis://s3cret@h", "the password before the @ is missing" },
        { "redis://bob:@h", "the password before the @ is missing" },
        { "redis://bob:s3cret%4@h", "the password has a %" },
        { "redis://bob:s3cret%zz@h", "the password has a %" },
        { "redis://bob:s3cret%00@h", "the password has a %" },
        { "redis://h/a b", "has blanks" },
        { "redis://h/a%0ab", "has blanks" },
        { "redis://h/a%ffb", "not ASCII" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct store_url u;
        tenrec_error err;
        assert_int_equal(store_url_read(rows[i][0], &form, &u, &err), TENREC_EINVAL);
        assert_text_has(err.text, rows[i][1]);
        assert_null(strstr(err.text, "s3cret"));
    }
}

TEST(url_that_is_too_long_is_refused)
{
    static const char *const before[] = { "redis://", "redis://:", "redis://h/" };
    static const char *const after[] = { "", "@h", "" };

    for (size_t i = 0; i < 3; i++) {
        char url[1200], many[1025];
        struct store_url u;
        tenrec_error err;
        memset(many, 'a', sizeof many - 1);
        many[sizeof many - 1] = '\0';
        snprintf(url, sizeof url, "%s%s%s", before[i], many, after[i]);
        assert_int_equal(store_url_read(url, &form, &u, &err), TENREC_EINVAL);
    }
}

TEST(url_of_tls_is_marked)
{
    struct store_url u;
    tenrec_error err;

    assert_status(store_url_read("rediss://bob:s3cret@h/x", &form, &u, &err), &err);
    assert_true(u.tls);
    assert_string_equal(u.at->host, "h");
    assert_int_equal(u.at->port, 6379);
    assert_status(store_url_read("redis://h", &form, &u, &err), &err);
    assert_false(u.tls);
}
