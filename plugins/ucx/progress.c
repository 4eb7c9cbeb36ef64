/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c - what a driver does: moves the operations of UCX on, and ends them all at
 * shutdown. */
#include "conn.h"
#include "send.h"

enum { ROUNDS = 64, GOODBYE_MS = 500 };

bool progress_step(struct ucx *u)
{
    bool any = false;

    /* Complete messages are delivered before UCX polls for more, which takes a system call. */
    for (int i = 0; i < ROUNDS && !u->ready && ucp_worker_progress(u->worker); i++)
        any = true;
    any |= send_queued(u);
    if (deliver_ready(u)) { /* before a loss is reported */
        any = true;
        send_queued(u); /* answers of functions that ran there */
    }
    any |= conn_end_detached(u);
    any |= conn_end_broken(u);
    any |= send_complete(u);
    return any;
}

void progress_sends(struct ucx *u)
{
    bool any;

    do {
        any = send_queued(u);
        any |= send_complete(u);
    } while (any);
}

/* ---- the end ------------------------------------------------------------------------- */

/* Says goodbye where no message waits for its peer, which says it back when it has read all: only
 * then does the end of the connection discard nothing. No flush, for which UCX's TCP needs an
 * acknowledgement: UCX 1.13 aborts the process if that meets the end of a connection. */
static void say_goodbye(struct ucx *u)
{
    const uint64_t deadline = clock_now_ns() + GOODBYE_MS * UINT64_C(1000000);
    struct conn *c;

    for (uint32_t i = 0; conn_at(u, i, &c); i++) {
        if (!c || !c->ep || !c->known || c->why.code != TENREC_OK)
            continue;
        send_bye(c);
        if (c->shared.queued == 0 && c->why.code == TENREC_OK) {
            c->awaits_bye = true;
            u->byes++;
        }
    }
    while (u->byes && clock_now_ns() < deadline)
        ucp_worker_progress(u->worker);
}

void progress_end_all(struct ucx *u)
{
    const uint64_t deadline = clock_now_ns() + UCX_STOP_MS * UINT64_C(1000000);
    struct conn *c;

    send_fail_queued(u);
    send_complete(u);
    say_goodbye(u);
    for (uint32_t i = 0; conn_at(u, i, &c); i++)
        if (c)
            conn_end(c);
    conn_end_detached(u);
    do {
        ucp_worker_progress(u->worker);
        conn_end_broken(u);
        send_complete(u);
    } while (u->operations && clock_now_ns() < deadline);
    deliver_ready(u); /* drops the references of the list: all connections have ended */
}
