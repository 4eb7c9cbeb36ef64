/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/transport_tls.h"
#include "endpoint.h"
#include "transport/conn.h"
#include "transport/tcp/transport_uv.h"

#include <errno.h>

static bool transport_tls_take(struct conn *c, bool dials)
{
    if (!stream_tls_begin(c, dials)) {
        conn_drop(c);
        return false;
    }
    c->transport = &transport_tls;
    return true;
}

static struct conn *transport_tls_accept(struct endpoint *ep, int fd,
                                         const union transport_address *from)
{
    struct conn *c = transport_uv.accept(ep, fd, from);

    return c && transport_tls_take(c, false) ? c : NULL;
}

static int transport_tls_connect(struct endpoint *ep, const union transport_address *to,
                                 struct conn **ret)
{
    const int e = transport_uv.connect(ep, to, ret);

    if (e)
        return e;
    return transport_tls_take(*ret, true) ? 0 : ENOMEM;
}

static bool transport_tls_domain(const struct tp_options *o, char buf[TRANSPORT_DOMAIN_MAX])
{
    (void)o;
    snprintf(buf, TRANSPORT_DOMAIN_MAX, "tls:*");
    return true;
}

const struct transport transport_tls = {
    .name = "tls",
    .option = TRANSPORT_UV,
    .remote = true,
    .encrypted = true,
    .domain = transport_tls_domain,
    .listen = uv_listen,
    .parse = transport_parse,
    .accept = transport_tls_accept,
    .connect = transport_tls_connect,
};
