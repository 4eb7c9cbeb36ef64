/* SPDX-License-Identifier: Apache-2.0 */
/* keepalive.c - finds TCP connections whose peer's host does not answer.
 *
 * The kernel's keepalive asks only on idle connections. What was sent and is not acknowledged it
 * repeats for a quarter of an hour, with gaps of up to two minutes, so that a host that was cut off
 * would be found late and reached again late. TCP_USER_TIMEOUT would also end connections to a live
 * peer that does not read, which is how a full pool slows its callers down. Hence this check. */
#include "agent/agent.h"
#include "pipe/pipe.h"
#include "transport/tcp/transport_uv.h"

#include <errno.h>
#include <netinet/tcp.h>

/* Milliseconds since the last acknowledgement, while sent data or a probe is unanswered; else 0. */
static uint32_t keepalive_silence(const struct conn *c)
{
    struct tcp_info info = { 0 };
    socklen_t len = sizeof info;

    if (getsockopt(c->source.fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
        return 0;
    if (!info.tcpi_retransmits && !info.tcpi_probes)
        return 0;
    return info.tcpi_last_ack_recv;
}

static void keepalive_check(struct pipe *p, void *arg)
{
    const uint64_t limit = transport_silence_ms(p->ep->options);
    bool *any = arg;

    if (pipe_state(p) != PIPE_ESTABLISHED || !p->terms.transport->remote)
        return;
    *any = true;
    for (unsigned i = CONN_DESCRIPTOR; i < p->conns.n; i++) {
        uint32_t silence = p->conns.of[i] ? keepalive_silence(p->conns.of[i]) : 0;

        if (silence < limit)
            continue;
        pipe_failf(p, TENREC_EPEER_LOST, ETIMEDOUT,
                   "its host has not answered for %.1f s (keepalive)", silence / 1e3);
        return;
    }
}

static void keepalive_fire(struct reactor_timer *t)
{
    struct agent *a = CONTAINER(t, struct agent, keepalive_timer);
    bool any = false;

    pipe_table_each(&a->pipes, keepalive_check, &any);
    if (any)
        keepalive_watch(a);
}

void keepalive_watch(struct agent *a)
{
    uint64_t limit = transport_silence_ms(a->ep.options);

    a->keepalive_timer.fire = keepalive_fire;
    if (limit && !a->keepalive_timer.prev)
        reactor_arm(&a->ep.reactor, &a->keepalive_timer, clock_now_ns() + limit * 250000u);
}
