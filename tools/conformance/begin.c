/* SPDX-License-Identifier: Apache-2.0 */
/* begin.c - that it starts and ends, and what it tells of itself. */
#include "conformance/agent_case.h"

#include "conformance/case.h"

#include <stdio.h>
#include <string.h>

CASE(it_starts_and_ends, "AG-8 AG-17 AG-18")
{
    expect_of("AG-17");
    chain_shutdown(a->chain);
    chain_shutdown(b->chain);
}

CASE(its_file_exports_no_other_symbol, "PL-1")
{
    case_check_exports(world_plugin_path());
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

    expect(value, "the value of '%s' is NULL", key);
    for (size_t i = 0; i < chain_depth(c); i++) {
        n = strlen(chain_name(c, i));
        known |= strncmp(key, chain_name(c, i), n) == 0 && key[n] == '.' && key[n + 1];
    }
    if (!known)
        expect_fail("'%s' begins with the name of no link", key);
    snprintf(line, sizeof line, "\n%s\n", key);
    if (strstr(keys->seen, line))
        expect_fail("'%s' is listed twice", key);
    n = strlen(keys->seen);
    expect_here(n + strlen(line) < sizeof keys->seen);
    snprintf(keys->seen + n, sizeof keys->seen - n, "%s", keys->n++ ? line + 1 : line);
}

CASE(debug_info_names_its_link, "AG-19")
{
    struct keys keys = { .n = 0 };
    static struct tally t;

    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    chain_debug_info(a->chain, on_key, &keys);
    if (!keys.n)
        expect_not_offered("debug_info");
}

/* From init to destroy, with a call and its answer. */
static void agent_live(void)
{
    static struct tally t;
    const int done = told(&t);

    world_start(&w, w.n);
    a = &w.worker[0];
    b = world_other(&w);
    send_ping(a, b->id, 1, &t);
    await(b, 0, NULL);
    expect_becomes(told(&t) == done + 1, "the send of a new life is not done");
    world_stop(&w);
}

CASE(destroy_leaves_nothing, "AG-18")
{
    struct leftover before;

    world_stop(&w);
    agent_live(); /* caches of libraries are filled */
    before = leftover_count();
    for (int i = 0; i < 3; i++)
        agent_live();
    expect_of("AG-17");
    leftover_expect_threads(before);
    expect_of("AG-18");
    leftover_expect_fds(before);
    leftover_expect_memory(agent_live);
    expect_of(NULL);
    world_start(&w, w.n);
}
