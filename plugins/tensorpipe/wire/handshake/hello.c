/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - codec of the hello object. */
#include "wire/handshake/identity.h"

size_t hello_write_spontaneous(void *buf, size_t cap, struct nop_bytes name)
{
    struct nop_writer w;

    nop_writer_init(&w, buf, cap);
    nop_write_variant(&w, 0);
    nop_write_struct(&w, 1);
    nop_write_string(&w, name);
    return w.len;
}

size_t hello_write_requested(void *buf, size_t cap, uint64_t id)
{
    struct nop_writer w;

    nop_writer_init(&w, buf, cap);
    nop_write_variant(&w, 1);
    nop_write_struct(&w, 1);
    nop_write_uint(&w, id);
    return w.len;
}

tenrec_status hello_read(const void *frame, size_t len, struct hello *ret, tenrec_error *err)
{
    struct hello hello = { .kind = HELLO_EMPTY, .id = 0 };
    struct nop_reader r;

    nop_reader_init(&r, "hello", frame, len, err);
    switch (nop_read_variant(&r, 2, "kind")) {
    case 0:
        hello.kind = HELLO_SPONTANEOUS;
        nop_read_struct(&r, 1, "SpontaneousConnection");
        hello.name = nop_read_string(&r, "contextName");
        break;
    case 1:
        hello.kind = HELLO_REQUESTED;
        nop_read_struct(&r, 1, "RequestedConnection");
        hello.id = nop_read_uint(&r, UINT64_MAX, "registrationId");
        break;
    default:
        break;
    }
    if (!r.status)
        *ret = hello;
    return r.status;
}
