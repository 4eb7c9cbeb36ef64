/* SPDX-License-Identifier: Apache-2.0 */
/* caller.h - a caller by hand that was sent on to a better transport. */
#ifndef TENSORPIPE_TEST_CALLER_H
#define TENSORPIPE_TEST_CALLER_H

#include "transport/transport.h"

struct caller {
    int bootstrap;
    union transport_address to;
    uint64_t id[3]; /* descriptor, reply, channel */
};

/* Dials "uv://..." and asks for transport `t`, which begins on a Unix socket. */
void caller_open(struct caller *c, const struct transport *t, const char *address);
void caller_close(const struct caller *c);
/* A socket connected to where the agent sent it. */
int caller_dial(const struct caller *c);
/* The hello of connection `id`, as a frame of the uv transport. Its length. */
size_t caller_hello(unsigned char *buf, uint64_t id);

#endif
