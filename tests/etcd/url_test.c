/* SPDX-License-Identifier: Apache-2.0 */
/* url_test.c - a URL with several hosts; the rest is that of redis. */
#include "store/url.h"

#include "../testing.h"

static const struct store_url_form form = { "etcd", 2379, STORE_HOSTS_MAX };

TEST(url_names_several_hosts)
{
    struct store_url u;
    tenrec_error err;
    char name[100];

    assert_status(store_url_read("etcd://bob:p,w@a,10.0.0.3:1,[fd00::3]:7/jobs/1", &form, &u, &err),
                  &err);
    assert_int_equal(u.n_hosts, 3);
    assert_string_equal(u.at[0].host, "a");
    assert_int_equal(u.at[0].port, 2379);
    assert_string_equal(u.at[1].host, "10.0.0.3");
    assert_int_equal(u.at[1].port, 1);
    assert_string_equal(u.at[2].host, "fd00::3");
    assert_int_equal(u.at[2].port, 7);
    assert_string_equal(u.password, "p,w");
    assert_string_equal(u.prefix, "jobs/1");
    assert_false(u.tls);
    store_url_name(&u, &form, sizeof name, name);
    assert_string_equal(name, "etcd store a:2379,10.0.0.3:1,[fd00::3]:7/jobs/1");
    store_url_name(&u, &form, 20, name);
    assert_string_equal(name, "etcd store a:2379,1");
}

TEST(url_with_a_malformed_host_is_refused)
{
    static const char *const rows[][2] = {
        { "etcd://a,", "found no host" },
        { "etcd://,a", "found no host" },
        { "etcd://a:1,b:x", "port is no number" },
        { "etcd://a,b,c,d,e,f,g,h,i", "more than 8 hosts" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct store_url u;
        tenrec_error err;
        assert_int_equal(store_url_read(rows[i][0], &form, &u, &err), TENREC_EINVAL);
        assert_text_has(err.text, rows[i][1]);
    }
}
