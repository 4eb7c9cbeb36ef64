/* SPDX-License-Identifier: Apache-2.0 */
/* forge_test.c - a stranger that names the connection of a member in its messages: without a secret
 * they count as the member's, with one they are dropped, and the member's connection lives on.
 *
 *     forge_test CONFIG */
#include "forge.h"

#include "../testing.h"
#include "conformance/world.h"

#include <tenrec/log.h>

static const char *config_path;
static struct world w;
static struct side *a, *b;
static struct tally t;
static atomic_int dropped;

/* The member `b` has called `a`, which has answered: each has an endpoint of their connection. */
static void open_world(const char *mode)
{
    world_open(&w, NULL, config_path, 2, mode);
    a = &w.worker[0];
    b = &w.worker[1];
    atomic_store(&dropped, 0);
    atomic_store(&a->answers, true);
    send_ping(b, a->id, 1, &t);
    assert_becomes(side_count(b) == 1);
    atomic_store(&a->answers, false);
}

static void open_plain(void)
{
    open_world("none");
}

static void open_proved(void)
{
    open_world("secret");
}

static void close_world(void)
{
    world_close(&w);
}

TEST_WITH(ucx_forged_message_counts_as_the_members_without_a_secret, open_plain, close_world)
{
    /* Behind the hello and the ping. */
    const struct head h = { .kind = HEAD_MESSAGE, .sequence = 2, .type = 0x102 };
    tenrec_peer from = -7;

    forge_learn(chain_address(a->chain));
    forge_say(chain_address(a->chain), &h);
    assert_becomes(side_got(a, 0, &from));
    assert_int_equal(from, b->id);
}

/* Of each kind, behind two messages of the proof, the hello and the ping. */
static const struct head forged[] = {
    { .kind = HEAD_MESSAGE, .sequence = 4, .type = 0x102 },
    { .kind = HEAD_MESSAGE, .sequence = 4, .type = 0x202, .cookie = { 1 } },
    { .kind = HEAD_HELLO, .sequence = 4, .type = 1 },
    { .kind = HEAD_BYE, .sequence = 4 },
    { .kind = HEAD_PROOF, .sequence = 4 },
    { .kind = HEAD_PART, .sequence = 3 },
    { .kind = HEAD_TAKEN, .length = 1 << 20 },
    { .kind = 77, .sequence = 4 },
};

/* Says it all, and then the member calls once more over the same connection. */
static void assert_dropped(const struct side *at)
{
    const size_t before = side_count(a), n = sizeof forged / sizeof forged[0];

    forge_learn(chain_address(at->chain));
    for (size_t i = 0; i < n; i++)
        forge_say(chain_address(at->chain), &forged[i]);
    assert_becomes(atomic_load(&dropped) > 0);
    send_ping(b, a->id, 2, &t);
    assert_becomes(side_count(a) > before);
    assert_int_equal(side_got(a, before, NULL)->id, 2);
    assert_int_equal(side_count(b), 1);
    assert_int_equal(atomic_load(&a->callers_lost), 0);
    assert_int_equal(atomic_load(&b->lost), 0);
    assert_int_equal(atomic_load(&dropped), 1); /* the warning: once */
}

TEST_WITH(ucx_forged_messages_to_a_callee_are_dropped_with_a_secret, open_proved, close_world)
{
    assert_dropped(a);
}

TEST_WITH(ucx_forged_messages_to_a_client_are_dropped_with_a_secret, open_proved, close_world)
{
    assert_dropped(b);
}

static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg, (void)level, (void)part;
    if (strstr(text, "names the connection of"))
        atomic_fetch_add(&dropped, 1);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    config_path = argv[1];
    tenrec_log_set_callback(on_log, NULL);
    return testing_run(NULL, NULL);
}
