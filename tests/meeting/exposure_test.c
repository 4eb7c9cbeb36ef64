/* SPDX-License-Identifier: Apache-2.0 */
/* exposure_test.c - the warning about a worker that any process of other hosts can call. */
#include "../testing.h"

#include "group/meeting/meeting.h"

#include "security/proof/security.h"

#include <stdio.h>
#include <tenrec/log.h>

static char logged[1024];
static int lines;

static void take_line(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg;
    lines++;
    snprintf(logged, sizeof logged, "%d %s: %s", (int)level, part, text);
}

static void begin(void)
{
    lines = 0;
    tenrec_log_set_callback(take_line, NULL);
}

static void end(void)
{
    tenrec_log_set_callback(NULL, NULL);
}

TEST(exposure_is_of_ip_addresses_beyond_loopback)
{
    static const char *const beyond[] = {
        "uv://10.1.0.1:4000", "uv://[fd77::2]:4000",      "uv://[fe80::1%eth0]:4000",
        "uv://0.0.0.0:4000",  "shm://x;uv://192.0.2.1:1", "uv://127.0.0.1:1,uv://[::]:1"
    };
    static const char *const not_beyond[] = {
        "",    "uv://127.0.0.1:4000", "uv://[::1]:4000", "inproc://3", "uv://localhost:1", "uv://",
        "://", "uv://127.9.9.9:1"
    };

    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++)
        assert_true(exposure_is_beyond_loopback(beyond[i]));
    for (size_t i = 0; i < sizeof not_beyond / sizeof not_beyond[0]; i++)
        assert_false(exposure_is_beyond_loopback(not_beyond[i]));
}

TEST_WITH(exposure_is_silent_where_it_is_meant, begin, end)
{
    const struct security by_default = { .mode = SECURITY_NONE };
    const struct security written = { .mode = SECURITY_NONE, .written = true };
    const struct security closed = { .mode = SECURITY_SECRET };

    exposure_warn(&by_default, "worker0", "uv://127.0.0.1:4000");
    exposure_warn(&written, "worker0", "uv://10.1.0.1:4000");
    exposure_warn(&closed, "worker0", "uv://10.1.0.1:4000");
    assert_int_equal(lines, 0);
}

TEST_WITH(exposure_is_told_once_with_the_mode_and_the_remedy, begin, end)
{
    const struct security by_default = { .mode = SECURITY_NONE };

    exposure_warn(&by_default, "worker0", "uv://10.1.0.1:4000");
    exposure_warn(&by_default, "worker1", "uv://10.1.0.1:4001");
    assert_int_equal(lines, 1);
    assert_text_has(logged, "worker0: listens at uv://10.1.0.1:4000 in security mode none");
    assert_text_has(logged, "TENREC_SECRET_FILE");
    assert_text_has(logged, "security: { mode: none }");
}
