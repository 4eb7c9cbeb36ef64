/* SPDX-License-Identifier: Apache-2.0 */
/* store_default_test.c - the secret of a program that opens and serves a store without a worker. */
#include "../support/secured.h"
#include "served.h"

#include "core/base/clock.h"
#include "group/store/store.h"

#include <sys/socket.h>

#define OURS "the secret of this group"
#define OTHER "the secret of another group"

static void write_file(char *path, const char *text)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* A member uses the store that this process serves, by URL alone. */
static void uses_its_own_store(void)
{
    struct tenrec_store *s = NULL;
    char url[64];
    tenrec_error err;

    snprintf(url, sizeof url, "tcp://127.0.0.1:%u", served_port);
    assert_status(tenrec_store_open(url, TEST_MS, &s, &err), &err);
    assert_status(tenrec_store_set(s, "k", "v", 1, TEST_MS, &err), &err);
    tenrec_store_close(s);
}

static void refuses_another_secret(void)
{
    struct security *other = secured(OTHER, PLAIN_NONE);
    struct tenrec_store *s = NULL;
    tenrec_error err;

    assert_int_equal(
        store_tcp_open("127.0.0.1", served_port, other, clock_deadline_ms(TEST_MS), &s, &err),
        TENREC_EPERM);
    security_drop(other);
}

TEST(program_takes_the_secret_of_its_environment)
{
    char path[] = "/tmp/tenrec-secret-XXXXXX";

    write_file(path, OURS);
    setenv("TENREC_SECRET_FILE", path, 1);
    start_server();
    uses_its_own_store();
    unsetenv("TENREC_SECRET_FILE");
    unlink(path);
    refuses_another_secret();
    stop_server();
}

TEST(program_takes_the_section_of_its_configuration)
{
    char path[] = "/tmp/tenrec-secret-XXXXXX", config[] = "/tmp/tenrec-config-XXXXXX", text[256];
    int fd;

    write_file(path, OURS);
    snprintf(text, sizeof text, "security: { mode: secret, secret_file: %s, store_plain: none }\n",
             path);
    write_file(config, text);
    setenv("TENREC_CONFIG", config, 1);
    start_server();
    uses_its_own_store();
    unsetenv("TENREC_CONFIG");
    unlink(config);
    unlink(path);
    refuses_another_secret();
    fd = dial();
    say(fd, HELLO);
    hear(fd, "544e5250"); /* it is asked for a proof, not let in as one of our user */
    close(fd);
    stop_server();
}
