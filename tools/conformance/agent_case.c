/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/agent_case.h"

#include "conformance/case.h"

struct world w;
struct side *a, *b;

void agent_run(const struct conformance_case *c, const struct conformance_setup *setup)
{
    struct leftover before;

    world_begin(setup->text, setup->path, setup->mode);
    before = leftover_count();
    world_start(&w, setup->workers);
    a = &w.worker[0];
    b = world_other(&w);
    c->run();
    expect_of(NULL);
    world_stop(&w);
    expect_of("AG-17");
    leftover_expect_threads(before);
    expect_of("AG-18");
    leftover_expect_fds(before);
    expect_of(NULL);
    world_end();
}

struct tenrec_msg *await_at(const char *file, int line, struct side *k, size_t i,
                            tenrec_peer *ret_from)
{
    for (unsigned left = expect_ms(); !side_got(k, i, NULL); left--) {
        if (left == 0)
            expect_failed(file, line, "%s has received %zu messages after %u ms, expected %zu",
                          k->name, side_count(k), expect_ms(), i + 1);
        poll(NULL, 0, 1);
    }
    return side_got(k, i, ret_from);
}

void disconnect(tenrec_error *err)
{
    tenrec_status st = chain_disconnect(a->chain, b->id, err);

    if (st == TENREC_EUNSUPPORTED)
        expect_not_offered("disconnect");
    expect_ok(st, err, "disconnect");
}
