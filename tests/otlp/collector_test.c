/* SPDX-License-Identifier: Apache-2.0 */
/* collector_test.c - addresses of collectors, and headers that are refused. */
#include "../testing.h"
#include "otlp.h"

static void addresses_get_the_path_of_the_protocol(void **state)
{
    static const struct {
        const char *address, *url, *host;
        bool plain;
    } row[] = {
        { "http://collector:4318", "http://collector:4318/v1/traces", "collector", true },
        { "http://collector:4318/", "http://collector:4318/v1/traces", "collector", true },
        { "https://collector/otlp/v1/traces?a=b", "https://collector/otlp/v1/traces?a=b",
          "collector", false },
        { "http://127.evil.invalid:4318", "http://127.evil.invalid:4318/v1/traces",
          "127.evil.invalid", true },
        { "http://[::1]:4318", "http://[::1]:4318/v1/traces", "[::1]", true },
        { "HTTP://10.0.0.7:1", "http://10.0.0.7:1/v1/traces", "10.0.0.7", true },
    };
    struct collector c;
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_status(collector_parse(row[i].address, &c, &err), &err);
        assert_string_equal(c.url, row[i].url);
        assert_string_equal(c.host, row[i].host);
        assert_int_equal(c.plain, row[i].plain);
        collector_finish(&c);
    }
}

static void other_addresses_are_refused(void **state)
{
    static const struct {
        const char *address, *said;
    } row[] = {
        { "", "no URL such as http://collector:4318" },
        { "collector:4318", "no URL such as" },
        { "collector", "no URL such as" },
        { "/v1/traces", "no URL such as" },
        { "http://", "no URL such as" },
        { "http://collector:99999", "no URL such as" },
        { "ftp://collector/", "'ftp://collector/': expected http:// or https://" },
        { "file:///etc/passwd", "expected http:// or https://" },
        { "http://collector/#part", "a collector has no '#'" },
        { "http://me@collector/", "has no user and password" },
        { "http://me:pw@collector/", "has no user and password" },
    };
    struct collector c = { 0 };
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        if (collector_parse(row[i].address, &c, &err) != TENREC_EINVAL)
            fail_msg("'%s' is not refused", row[i].address);
        assert_text_has(err.text, row[i].said);
        assert_null(strstr(err.text, "pw"));
    }
}

static void a_header_cannot_become_two(void **state)
{
    static const struct tenrec_option_pair wrong[] = {
        { "x-key", { .s = "a\r\nx-other: b" } },
        { "x-key", { .s = "a\nb" } },
        { "x-key", { .s = "" } },
        { "", { .s = "a" } },
        { "x key", { .s = "a" } },
        { "x:", { .s = "a" } },
        { "x\r\ny", { .s = "a" } },
    };
    struct tenrec_option_map one = { .n = 1 };
    struct post *p = NULL;
    tenrec_error err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        one.v = &wrong[i];
        assert_int_equal(post_open("http://127.0.0.1:1/", true, &one, "", &p, &err), TENREC_EINVAL);
        assert_null(p);
    }
    one.n = 0;
    assert_status(post_open("http://127.0.0.1:1/", true, &one, "", &p, &err), &err);
    assert_int_equal(post_send(p, "{}", 2, 1000, &err), TENREC_ECONNECT);
    post_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_get_the_path_of_the_protocol),
        cmocka_unit_test(other_addresses_are_refused),
        cmocka_unit_test(a_header_cannot_become_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
