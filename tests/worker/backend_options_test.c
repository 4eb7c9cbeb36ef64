/* SPDX-License-Identifier: Apache-2.0 */
/* backend_options_test.c - the options of a chain: whose security holds for it and for its store.
 */
#include "../testing.h"

#include <stdio.h>
#include <sys/stat.h>
#include <tenrec/chain.h>
#include <tenrec/config.h>
#include <tenrec/proof.h>
#include <tenrec/store.h>
#include <unistd.h>

#define LIMIT_MS 10000

static char secret_file[] = "/tmp/tenrec-secret-XXXXXX";

static void write_secret(void)
{
    static const char secret[] = "the secret of this group";
    int fd = mkstemp(secret_file);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, secret, strlen(secret)), strlen(secret));
    close(fd);
}

static void remove_secret(void)
{
    unlink(secret_file);
}

/* Those of the plugin `plugin`, with the secret if `mode` is "secret". */
static struct tenrec_chain_options *options_of(const char *plugin, const char *mode)
{
    struct tenrec_chain_options *options = NULL;
    struct tenrec_config *config;
    tenrec_error err;
    char text[256];

    snprintf(
        text, sizeof text,
        "security: { mode: %s, secret_file: %s }\nbackend: it\nbackends: { it: { plugin: %s } }\n",
        mode, secret_file, plugin);
    assert_status(tenrec_config_parse(text, NULL, &config, &err), &err);
    assert_status(tenrec_chain_options_new(config, &options, &err), &err);
    tenrec_config_drop(config);
    return options;
}

static struct tenrec_chain_settings settings_of(const char *plugin, const char *mode)
{
    struct tenrec_chain_options *options = options_of(plugin, mode);
    struct tenrec_chain_settings s = { .size = sizeof s };

    tenrec_chain_options_settings(options, &s);
    tenrec_chain_options_drop(options);
    return s;
}

TEST(options_tell_the_mode_and_whether_the_backend_proves)
{
    assert_int_equal(settings_of("tensorpipe", "secret").security_mode, TENREC_SECURITY_SECRET);
    assert_int_equal(settings_of("tensorpipe", "none").security_mode, TENREC_SECURITY_NONE);
    assert_int_equal(settings_of("tensorpipe", "secret").backend_proves, 1);
    assert_int_equal(settings_of("echo", "secret").backend_proves, 0);
}

/* Returns the status of opening `url` with these options. */
static tenrec_status open_with(const char *mode, const char *url, tenrec_error *err)
{
    struct tenrec_chain_options *options = options_of("tensorpipe", mode);
    struct tenrec_store *s = NULL;
    tenrec_status st = tenrec_store_open_with(options, url, LIMIT_MS, &s, err);

    tenrec_chain_options_drop(options);
    if (st == TENREC_OK)
        assert_status(tenrec_store_set(s, "k", "v", 1, LIMIT_MS, err), err);
    tenrec_store_close(s);
    return st;
}

TEST(store_is_opened_with_the_secret_of_the_options)
{
    struct tenrec_store_server *server;
    tenrec_error err;
    char url[64];
    uint16_t port;

    setenv("TENREC_SECRET_FILE", secret_file, 1);
    setenv("TENREC_SECURITY__STORE_PLAIN", "none", 1);
    assert_status(tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err), &err);
    unsetenv("TENREC_SECRET_FILE");
    unsetenv("TENREC_SECURITY__STORE_PLAIN");
    snprintf(url, sizeof url, "tcp://127.0.0.1:%u", port);
    assert_status(open_with("secret", url, &err), &err);
    assert_int_equal(open_with("none", url, &err), TENREC_EPERM);
    tenrec_store_server_drop(server);
}

TEST(store_of_options_needs_a_url_and_a_limit)
{
    struct tenrec_store *s = NULL;
    tenrec_error err;

    assert_int_equal(open_with("none", "nothing", &err), TENREC_EINVAL);
    assert_int_equal(tenrec_store_open_with(NULL, "tcp://127.0.0.1:1", 1, &s, &err), TENREC_EINVAL);
}

int main(void)
{
    int failed;

    write_secret();
    failed = testing_run(NULL, NULL);
    remove_secret();
    return failed;
}
