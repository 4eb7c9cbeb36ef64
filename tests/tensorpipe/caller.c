/* SPDX-License-Identifier: Apache-2.0 */
#include "caller.h"

#include "node.h"
#include "raw.h"
#include "transport/conn.h"

#include "transport/transport_local.h"
#include "wire/handshake/brochure.h"
#include "wire/handshake/identity.h"
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void caller_open(struct caller *c, const struct transport *t, const char *address)
{
    const struct wire_channel_device any = { { nop_text("cpu"), 0 }, "any" };
    const struct wire_channel channel = { "basic", &any, 1, 1 };
    char domain[TRANSPORT_DOMAIN_MAX];
    const struct wire_transport known[] = { { t->name, domain, NULL }, { "uv", "uv:*", NULL } };
    const struct wire_offer offer = { known, &channel, 2, 1, NULL };
    unsigned char buf[1024];
    struct nop_bytes ids;
    struct answer answer;
    tenrec_error err;
    long len;

    t->domain(NULL, domain);
    c->bootstrap = raw_connect(address);
    raw_frame(c->bootstrap, raw_hello, sizeof raw_hello);
    raw_frame(c->bootstrap, buf, brochure_write(buf, sizeof buf, &offer));
    len = raw_recv_frame(c->bootstrap, buf, sizeof buf);
    assert_true(len > 0);
    if (answer_read(buf, (size_t)len, &answer, &err))
        fail_msg("%s", err.text);
    assert_true(nop_bytes_is(answer.transport, t->name));
    assert_true(nop_bytes_is(answer.domain, domain));
    assert_true(answer.has_descriptor_id && answer.has_reply_id);
    assert_true(answer_find_ids(&answer, "basic", &ids));
    c->id[0] = answer.descriptor_id;
    c->id[1] = answer.reply_id;
    c->id[2] = nop_uint64_at(ids, 0);
    if (t->parse((const char *)answer.address.data, answer.address.len, &c->to, &err))
        fail_msg("%s", err.text);
}

void caller_close(const struct caller *c)
{
    close(c->bootstrap);
}

int caller_dial(const struct caller *c)
{
    const struct timeval limit = { 20, 0 };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    assert_int_equal(local_connect(fd, &c->to), 0);
    return fd;
}

size_t caller_hello(unsigned char *buf, uint64_t id)
{
    size_t len = hello_write_requested(buf + FRAME_HEAD, HELLO_MAX(0), id);

    put_le64(buf, len);
    return FRAME_HEAD + len;
}
