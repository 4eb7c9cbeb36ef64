/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_frame.c - every object of the tensorpipe wire. The first byte says
 * which reader gets the rest; what it accepts is then used as the agent would.
 */
#include "../tensorpipe/wire/peer_side.h"
#include "cuda/link/link.h"
#include "fuzz.h"
#include "transport/ring/transport_ring.h"
#include "transport/tcp/transport_uv.h"
#include "transport/transport_local.h"
#include "wire/brief.h"
#include "wire/handshake/identity.h"
#include "wire/storage.h"
#include "wire/tensorlist.h"

#include <stdlib.h>

#define CPU_DEVICE                                                                                 \
    {                                                                                              \
        { (const unsigned char *)"cpu", 3 }, 0                                                     \
    }

static const struct wire_channel_device any_cpu[] = { { CPU_DEVICE, "any" } };
static const struct wire_channel channels[] = { { "cma", any_cpu, 1, 2 },
                                                { "basic", any_cpu, 1, 1 } };
static const struct wire_transport offered[] = { { "shm", "shm:a", "1" },
                                                 { "uv", "uv:*", "127.0.0.1:1" } };
static const struct wire_offer offer = { offered, channels, 2, 2, "tenrec:1:0:1:3" };

static void fuzz_hello(const uint8_t *data, size_t len)
{
    struct hello hello;
    tenrec_error err;

    if (hello_read(data, len, &hello, &err) == TENREC_OK && hello.kind == HELLO_SPONTANEOUS)
        fuzz_expect(hello.name.len < len);
}

/* Selects, answers, and lets the client check that answer. */
static void fuzz_brochure(const uint8_t *data, size_t len)
{
    static const uint64_t ids[3] = { 1, 2, 3 };
    struct wire_ids wire_ids = { .reply = 4, .channels = ids };
    static unsigned char buf[1 << 16];
    struct wire_selection s;
    struct identity identity;
    struct brochure b;
    struct answer a;
    tenrec_error err;
    size_t n;

    if (brochure_read(data, len, &b, &err))
        return;
    identity_of_client(&b, &identity, &err);
    if (brochure_select(&b, &offer, &s, &err))
        return;
    fuzz_expect(selection_connections(&s, &offer) <= 3);
    n = answer_write(buf, sizeof buf, &offer, &s, &wire_ids, true);
    if (n <= sizeof buf)
        fuzz_expect(answer_read(buf, n, &a, &err) == TENREC_OK &&
                    identity_of_listener(&a, &identity, &err) == TENREC_OK &&
                    identity.version == 1);
}

static void fuzz_answer(const uint8_t *data, size_t len)
{
    struct wire_selection s;
    struct identity identity;
    struct nop_bytes ids;
    struct answer a;
    tenrec_error err;

    if (answer_read(data, len, &a, &err))
        return;
    identity_of_listener(&a, &identity, &err);
    if (answer_check(&a, &offer, "uv", &s, &err))
        return;
    for (uint32_t i = 0; i < offer.n_channels; i++)
        if (s.channel_used[i])
            fuzz_expect(answer_find_ids(&a, channels[i].name, &ids) &&
                        nop_uint64_count(ids) == channels[i].n_connections);
}

static void fuzz_descriptor(const uint8_t *data, size_t len)
{
    static const struct descriptor_limits limits = { 64, 4096 };
    struct payload_reader payloads = payload_reader(data, len);
    struct payload payload;
    struct descriptor_tensor tensor;
    struct tenrec_device device;
    struct descriptor d;
    uint64_t bytes = 0;
    struct arriving *in = NULL;
    uint32_t n = 0;
    tenrec_error err;

    if (descriptor_read(data, len, &limits, &d, &err))
        return;
    while (payload_next(&payloads, &payload))
        bytes += payload.length;
    fuzz_expect(bytes == d.payload_bytes);
    while (descriptor_next_tensor(&d, &tensor)) {
        bytes += tensor.length;
        device_from_wire(&tensor.source, &device);
        if (tensor.length && !tensor.on_host) /* its note names the link that brings it */
            link_announced(NULL, &in, d.n_tensors, n, tensor.metadata, &tensor, &err);
        n++;
        d.n_targetless -= !tensor.has_target;
    }
    link_drop_arriving(in);
    fuzz_expect(bytes == d.payload_bytes + d.tensor_bytes && bytes <= INT64_MAX);
    fuzz_expect(d.n_targetless == 0 && !payloads.at.status && !d.tensors.status);
}

static void fuzz_reply(const uint8_t *data, size_t len)
{
    struct nop_device devices[8];
    tenrec_error err;

    if (len > 0)
        descriptor_reply_read(data + 1, len - 1, data[0] % 9, devices, &err);
}

#define FUZZED_STORAGES 16
#define FUZZED_TENSORS 32 /* views of them */

typedef tenrec_status read_list_fn(const void *list, size_t len, const struct listed *to,
                                   uint32_t *ret_n, tenrec_error *err);

/* Storages of `bytes` bytes each, and what the list says of their views. Each storage has a
 * first view, and each further one names that. */
static bool read_list(read_list_fn *read, const uint8_t *data, size_t len, uint32_t n_carried,
                      uint32_t bytes, struct tenrec_tensor_desc *tensors, uint32_t *ret_n)
{
    struct carried carried[FUZZED_STORAGES];
    const struct listed to = { carried,        n_carried,       tensors,
                               FUZZED_TENSORS, sizeof *tensors, FUZZED_TENSORS };
    uint32_t firsts = 0;
    tenrec_error err;

    for (uint32_t i = 0; i < n_carried; i++)
        carried[i].bytes = bytes;
    if (read(data, len, &to, ret_n, &err))
        return false;
    fuzz_expect(*ret_n >= n_carried && *ret_n <= FUZZED_TENSORS);
    for (uint32_t i = 0; i < *ret_n; i++) {
        const uint64_t same = tensors[i].same_storage;

        fuzz_expect(tensors[i].ndim <= TENREC_MAX_DIMS && tensors[i].bytes == bytes &&
                    storage_check_view(&tensors[i], TENREC_EINVAL, &err) == TENREC_OK);
        fuzz_expect(same ? same <= i && !tensors[same - 1].same_storage
                         : carried[firsts++].tensor == i);
    }
    fuzz_expect(firsts == n_carried);
    return true;
}

static void fuzz_shortlist(const uint8_t *data, size_t len, uint32_t n_carried, uint32_t bytes)
{
    static unsigned char buf[SHORTLIST_MAX(FUZZED_TENSORS)];
    struct tenrec_tensor_desc tensors[FUZZED_TENSORS] = { 0 };
    uint32_t n, again;
    tenrec_error err;
    size_t written;

    if (!read_list(shortlist_read, data, len, n_carried, bytes, tensors, &n))
        return;
    fuzz_expect(shortlist_write(buf, tensors, n, sizeof *tensors, &written, &err) == TENREC_OK &&
                written <= len &&
                read_list(shortlist_read, buf, written, n_carried, bytes, tensors, &again) &&
                again == n);
}

/* The second byte is the number of storages, the next four their bytes. */
static void fuzz_tensorlist(const uint8_t *data, size_t len)
{
    static unsigned char buf[TENSORLIST_MAX(FUZZED_TENSORS)];
    struct tenrec_tensor_desc tensors[FUZZED_TENSORS] = { 0 };
    uint32_t n_carried, bytes, n, again;
    tenrec_error err;
    size_t written;

    if (len < 5)
        return;
    n_carried = data[0] % (FUZZED_STORAGES + 1);
    bytes = data[1] | (uint32_t)data[2] << 8 | (uint32_t)data[3] << 16 | (uint32_t)data[4] << 24;
    for (uint32_t i = 0; i < FUZZED_TENSORS; i++)
        tensors[i].device.kind = TENREC_CPU;
    if (shortlist_is(data + 5, len - 5)) {
        fuzz_shortlist(data + 5, len - 5, n_carried, bytes);
        return;
    }
    if (!read_list(tensorlist_read, data + 5, len - 5, n_carried, bytes, tensors, &n))
        return;
    fuzz_expect(tensorlist_write(buf, sizeof buf, tensors, n, sizeof *tensors, true, &written,
                                 &err) == TENREC_OK &&
                read_list(tensorlist_read, buf, written, n_carried, bytes, tensors, &again) &&
                again == n);
}

/* A whole brief message reads within its bounds, and is written again if it has no tensors. */
static void fuzz_brief(const uint8_t *data, size_t len)
{
    static unsigned char again[BRIEF_HEAD + BRIEF_BODY_MAX];
    const size_t whole = brief_length(data);
    struct brief b;

    if (!whole || whole > len || !brief_read(data, whole, &b))
        return;
    fuzz_expect(b.plain.payload + b.plain.payload_len <= data + whole);
    if (!b.n)
        fuzz_expect(brief_write(again, b.plain.type, b.plain.id, b.plain.payload,
                                b.plain.payload_len) == whole &&
                    memcmp(again, data, whole) == 0);
    for (unsigned i = 0; i < b.n; i++)
        fuzz_expect(b.storage[i].note.data + b.storage[i].note.len <= b.list);
    fuzz_expect(!b.n || b.list + b.list_len == data + whole);
}

/* A message that is recognised is written again, and reads the same. */
static void fuzz_plain(const uint8_t *data, size_t len)
{
    struct plain first, second;
    unsigned char *again;
    size_t again_len;

    if (len >= BRIEF_HEAD && brief_is(data))
        fuzz_brief(data, len);
    if (!plain_read(data, len, &first))
        return;
    fuzz_expect(first.len <= len && first.payload >= data &&
                first.payload + first.payload_len <= data + first.len);
    again = malloc(first.payload_len + PLAIN_FRAMES_MAX);
    fuzz_expect(again != NULL);
    again_len = plain_write(again, first.type, first.id, first.payload, first.payload_len);
    fuzz_expect(plain_read(again, again_len, &second) && second.len == again_len &&
                second.type == first.type && second.id == first.id &&
                second.payload_len == first.payload_len);
    free(again);
}

/* What answers and the store name; what can be read is written again. */
static void fuzz_address(const uint8_t *data, size_t len)
{
    const char *text = (const char *)data;
    char again[TRANSPORT_TEXT_MAX], port[16] = "";
    union transport_address a, b;
    struct port_range range;
    tenrec_error err;

    if (transport_parse(text, len, &a, &err) == TENREC_OK) {
        transport_format(&a, again);
        fuzz_expect(transport_parse(again, strlen(again), &b, &err) == TENREC_OK &&
                    transport_same_host(&a, &b));
    }
    if (local_parse(text, len, &a, &err) == TENREC_OK) {
        transport_format(&a, again);
        fuzz_expect(strlen(again) == len && memcmp(again, text, len) == 0);
    }
    if (ring_folder_parse(text, len, &a, &err) == TENREC_OK) {
        transport_format(&a, again);
        fuzz_expect(strlen(again) == len && !memchr(text, '/', len));
    }
    memcpy(port, text, len < sizeof port ? len : sizeof port - 1);
    if (transport_ports(port, &range, &err) == TENREC_OK)
        fuzz_expect(range.first <= range.last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static void (*const readers[])(const uint8_t *, size_t) = {
        fuzz_hello, fuzz_brochure,   fuzz_answer, fuzz_descriptor,
        fuzz_reply, fuzz_tensorlist, fuzz_plain,  fuzz_address,
    };

    if (len > 0)
        readers[data[0] % (sizeof readers / sizeof readers[0])](data + 1, len - 1);
    return 0;
}
