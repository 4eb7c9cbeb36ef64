/* SPDX-License-Identifier: Apache-2.0 */
/* The agent contract: what every chain must do, whatever it is made of.
 *
 *     contract_test CONFIG WORKERS [SECURITY MODE]
 *
 * With one worker it talks to itself, and the cases that need a second one are
 * left out. */
#include "cases.h"

#include <stdlib.h>
#include <tenrec/log.h>
#include <tenrec/message.h>

struct world w;
struct worker *a, *b;

static const char *config_path, *mode;
static int n_workers;
static atomic_int log_errors;

static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg;
    if (level == TENREC_LOG_ERROR || strstr(text, "does not run")) {
        atomic_fetch_add(&log_errors, 1);
        fprintf(stderr, "%s: %s\n", part, text);
    }
}

bool has_peer(void)
{
    return n_workers > 1;
}

void set_up(void)
{
    world_open(&w, config_path, n_workers, mode);
    a = &w.worker[0];
    b = world_other(&w);
}

void tear_down(void)
{
    world_close(&w);
    assert_int_equal(atomic_exchange(&log_errors, 0), 0);
}

struct tenrec_msg *await(struct worker *k, size_t i, tenrec_peer *ret_from)
{
    assert_becomes(worker_got(k, i, NULL));
    return worker_got(k, i, ret_from);
}

struct keys {
    char seen[4096]; /* "\nkey\nkey\n" */
    int n;
};

static void on_key(void *arg, const char *key, const char *value)
{
    struct keys *keys = arg;
    const struct chain *c = a->chain;
    char line[300];
    bool known = false;
    size_t n;

    assert_non_null(value);
    for (size_t i = 0; i < chain_depth(c); i++) {
        n = strlen(chain_name(c, i));
        known |= strncmp(key, chain_name(c, i), n) == 0 && key[n] == '.' && key[n + 1];
    }
    if (!known)
        fail_msg("'%s' begins with the name of no link", key);
    snprintf(line, sizeof line, "\n%s\n", key);
    if (strstr(keys->seen, line))
        fail_msg("'%s' is there twice", key);
    n = strlen(keys->seen);
    assert_true(n + strlen(line) < sizeof keys->seen);
    snprintf(keys->seen + n, sizeof keys->seen - n, "%s", keys->n++ ? line + 1 : line);
}

TEST_WITH(contract_debug_info_names_its_link, set_up, tear_down)
{
    struct keys keys = { .n = 0 };
    static struct tally t;

    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    chain_debug_info(a->chain, on_key, &keys);
    if (a != b)
        assert_true(keys.n > 0);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    config_path = argv[1];
    n_workers = atoi(argv[2]);
    mode = argv[3];
    tenrec_log_set_callback(on_log, NULL);
    tenrec_log_set_level(TENREC_LOG_DEBUG);
    return testing_run(NULL, NULL);
}
