/* SPDX-License-Identifier: Apache-2.0 */
/* The agent contract: what every chain must do, whatever it is made of.
 *
 *     contract_test CONFIG WORKERS
 *
 * With one worker it talks to itself, and the cases that need a second one are
 * left out. */
#include "cases.h"

#include <stdlib.h>
#include <tenrec/log.h>

struct world w;
struct worker *a, *b;

static const char *config_path;
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

static int set_up(void **state)
{
    (void)state;
    world_open(&w, config_path, n_workers);
    a = &w.worker[0];
    b = world_other(&w);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    world_close(&w);
    return atomic_exchange(&log_errors, 0) ? -1 : 0;
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

static void contract_debug_info_names_its_link(void **state)
{
    struct keys keys = { .n = 0 };
    static struct tally t;

    (void)state;
    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    chain_debug_info(a->chain, on_key, &keys);
    if (a != b)
        assert_true(keys.n > 0);
}

int main(int argc, char **argv)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest alone[] = {
        CASE(contract_send_delivers_both_ways),
        CASE(contract_types_and_ids_are_untouched),
        CASE(contract_payloads_of_all_sizes_arrive),
        CASE(contract_tensors_keep_all_their_fields),
        CASE(contract_large_tensors_land_where_the_receiver_says),
        CASE(contract_a_message_without_memory_is_dropped_alone),
        CASE(contract_done_and_release_come_exactly_once),
        CASE(contract_an_unknown_peer_is_an_error),
        CASE(contract_a_send_to_oneself_arrives),
        CASE(contract_many_threads_may_send_at_once),
        CASE(contract_an_answer_finds_its_way_back),
        CASE(contract_poll_brings_the_answer_or_is_unsupported),
        CASE(contract_shutdown_tells_what_is_pending),
        CASE(contract_a_send_after_shutdown_fails),
        CASE(contract_debug_info_names_its_link),
    };
    const struct CMUnitTest with_a_peer[] = {
        CASE(contract_an_answer_without_a_way_back_is_dropped),
        CASE(contract_requests_wait_while_the_user_takes_none),
        CASE(contract_a_send_after_disconnect_connects_again),
        CASE(contract_a_peer_that_shuts_down_is_lost),
        CASE(contract_a_caller_that_shuts_down_is_lost),
        CASE(contract_nothing_is_called_after_shutdown),
    };
    const size_t n_alone = sizeof alone / sizeof alone[0];
    struct CMUnitTest all[sizeof alone / sizeof alone[0] + sizeof with_a_peer / sizeof alone[0]];

    if (argc != 3)
        return 2;
    config_path = argv[1];
    n_workers = atoi(argv[2]);
    tenrec_set_log_callback(on_log, NULL);
    tenrec_set_log_level(TENREC_LOG_DEBUG);
    memcpy(all, alone, sizeof alone);
    memcpy(all + n_alone, with_a_peer, sizeof with_a_peer);
    if (n_workers == 1)
        return cmocka_run_group_tests_name("contract", alone, NULL, NULL);
    return cmocka_run_group_tests_name("contract", all, NULL, NULL);
}
