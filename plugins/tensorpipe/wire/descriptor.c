/* SPDX-License-Identifier: Apache-2.0 */
/* descriptor.c - codec of Descriptor and DescriptorReply. */
#include "wire/descriptor.h"

#define PAYLOAD_MIN 5 /* b9 02 00 bd 00 */
#define TENSOR_MIN 11 /* b9 04 00, a device, nil, bd 00 */

/* The four members that every message of the agent has in common. */
static const unsigned char agent_head[] = { NOP_STRUCT, 3,         NOP_STRING,
                                            0,          NOP_ARRAY, DESCRIPTOR_AGENT_PAYLOADS };

/* Of most tensors: source and target. */
static const unsigned char host_devices[] = { NOP_STRUCT, 2, NOP_STRING, 3, 'c', 'p', 'u', 0,
                                              NOP_STRUCT, 2, NOP_STRING, 3, 'c', 'p', 'u', 0 };

/* Returns its length. */
static uint64_t read_payload(struct nop_reader *r)
{
    uint64_t length;

    nop_read_struct(r, 2, "payload");
    length = nop_read_uint(r, UINT64_MAX, "payload length");
    nop_read_string(r, "payload metadata");
    return length;
}

static struct descriptor_tensor read_tensor(struct nop_reader *r)
{
    struct descriptor_tensor tensor = { .has_target = false };

    nop_read_struct(r, 4, "tensor");
    tensor.length = nop_read_uint(r, UINT64_MAX, "tensor length");
    tensor.source = nop_read_device(r, "sourceDevice");
    if (!nop_read_nil(r)) {
        tensor.target = nop_read_device(r, "targetDevice");
        tensor.has_target = true;
    }
    tensor.metadata = nop_read_string(r, "tensor metadata");
    return tensor;
}

static void add_bytes(struct nop_reader *r, struct descriptor *d, uint64_t length, uint64_t *sum)
{
    if (length > INT64_MAX - (d->payload_bytes + d->tensor_bytes))
        nop_reader_fail(r, TENREC_EPROTOCOL, "length", "a message of 2^63 bytes or more");
    else
        *sum += length;
}

static uint32_t read_number(struct nop_reader *r, size_t min_bytes, uint32_t max, const char *what)
{
    size_t n = nop_read_array(r, min_bytes, what);

    if (n > max) {
        nop_reader_fail(r, TENREC_ETOOBIG, what, "%zu of them; the limit is %u", n, max);
        return 0;
    }
    return (uint32_t)n;
}

/* Reads a tensor between host memories. Returns false for any other tensor. */
static bool take_host_tensor(const unsigned char **pos, const unsigned char *end,
                             struct descriptor_tensor *ret)
{
    const unsigned char *at = *pos;

    if (end - at < 2 || at[0] != NOP_STRUCT || at[1] != 4)
        return false;
    at += 2;
    if (!nop_take_short(&at, end, &ret->length) || (size_t)(end - at) < sizeof host_devices + 2 ||
        memcmp(at, host_devices, sizeof host_devices) != 0)
        return false;
    ret->source = ret->target = (struct nop_device){ { at + 4, 3 }, 0 };
    ret->has_target = ret->on_host = true;
    at += sizeof host_devices;
    if (at[0] != NOP_STRING || at[1] >= 0x80 || end - at - 2 < at[1])
        return false;
    ret->metadata = (struct nop_bytes){ at + 2, at[1] };
    *pos = at + 2 + at[1];
    return true;
}

/* The agent's form with tensors in host memory only, as most messages have, at a
 * third of the time. Returns false if the general reader must parse it, which also finds the
 * mistake. */
static bool read_short(const unsigned char *frame, size_t len,
                       const struct descriptor_limits *limits, struct descriptor *d)
{
    const unsigned char *pos = frame + sizeof agent_head, *end = frame + len;
    struct descriptor_tensor tensor;
    uint64_t n_tensors;

    if (len < sizeof agent_head || memcmp(frame, agent_head, sizeof agent_head) != 0 ||
        limits->max_payloads < DESCRIPTOR_AGENT_PAYLOADS)
        return false;
    d->metadata = (struct nop_bytes){ frame + 4, 0 };
    d->payload_bytes = d->tensor_bytes = 0;
    for (int i = 0; i < DESCRIPTOR_AGENT_PAYLOADS; i++) {
        if (end - pos < 2 || pos[0] != NOP_STRUCT || pos[1] != 2)
            return false;
        pos += 2;
        if (!nop_take_short(&pos, end, &d->payload_len[i]) || end - pos < 2 ||
            pos[0] != NOP_STRING || pos[1] != 0)
            return false;
        pos += 2;
        d->payload_bytes += d->payload_len[i];
    }
    if (pos == end || *pos++ != NOP_ARRAY || !nop_take_short(&pos, end, &n_tensors) ||
        n_tensors > limits->max_tensors)
        return false;
    nop_reader_init(&d->tensors, "descriptor", frame, len, NULL);
    d->tensors.pos = pos;
    d->n_payloads = DESCRIPTOR_AGENT_PAYLOADS;
    d->n_tensors = d->tensors_left = (uint32_t)n_tensors;
    d->n_targetless = 0;
    for (uint32_t i = 0; i < d->n_tensors; i++) {
        if (!take_host_tensor(&pos, end, &tensor))
            return false;
        d->tensor_bytes += tensor.length; /* of 4 bytes each */
    }
    return true;
}

tenrec_status descriptor_read(const void *frame, size_t len, const struct descriptor_limits *limits,
                              struct descriptor *ret, tenrec_error *err)
{
    struct descriptor d = { .n_payloads = 0 };
    struct nop_reader r;

    if (read_short(frame, len, limits, ret))
        return TENREC_OK;
    nop_reader_init(&r, "descriptor", frame, len, err);
    nop_read_struct(&r, 3, "structure");
    d.metadata = nop_read_string(&r, "metadata");

    d.n_payloads = read_number(&r, PAYLOAD_MIN, limits->max_payloads, "payloads");
    for (uint32_t i = 0; i < d.n_payloads && !r.status; i++) {
        const uint64_t length = read_payload(&r);

        add_bytes(&r, &d, length, &d.payload_bytes);
        if (i < DESCRIPTOR_AGENT_PAYLOADS)
            d.payload_len[i] = length;
    }

    d.n_tensors = read_number(&r, TENSOR_MIN, limits->max_tensors, "tensors");
    d.tensors = r;
    for (uint32_t i = 0; i < d.n_tensors && !r.status; i++) {
        struct descriptor_tensor tensor = read_tensor(&r);
        add_bytes(&r, &d, tensor.length, &d.tensor_bytes);
        d.n_targetless += !tensor.has_target;
    }
    if (r.status)
        return r.status;

    d.tensors_left = d.n_tensors;
    d.tensors.err = NULL;
    *ret = d;
    return TENREC_OK;
}

bool descriptor_next_tensor(struct descriptor *d, struct descriptor_tensor *ret)
{
    if (d->tensors_left == 0)
        return false;
    d->tensors_left--;
    if (!take_host_tensor(&d->tensors.pos, d->tensors.end, ret))
        *ret = read_tensor(&d->tensors);
    return true;
}

static bool is_host(struct tenrec_device device)
{
    return device.kind == TENREC_CPU && device.index == 0;
}

static bool device_to_wire(struct tenrec_device device, struct nop_device *ret)
{
    switch (device.kind) {
    case TENREC_CPU:
        *ret = (struct nop_device){ nop_text("cpu"), 0 };
        return true;
    case TENREC_CUDA:
        *ret = (struct nop_device){ nop_text("cuda"), device.index };
        return true;
    default:
        return false;
    }
}

bool device_from_wire(const struct nop_device *device, struct tenrec_device *ret)
{
    if (nop_bytes_is(device->type, "cpu") && device->index == 0) {
        *ret = (struct tenrec_device){ TENREC_CPU, 0 };
        return true;
    }
    if (nop_bytes_is(device->type, "cuda") && device->index >= 0) {
        *ret = (struct tenrec_device){ TENREC_CUDA, device->index };
        return true;
    }
    return false;
}

/* What most descriptors consist of is put together here and written as a whole. */
#define PAYLOADS_LEN (DESCRIPTOR_AGENT_PAYLOADS * (2 + NOP_UINT_MAX + 2))
#define HOST_TENSOR_LEN (2 + NOP_UINT_MAX + sizeof host_devices + 2 + DESCRIPTOR_NOTE_MAX)

static void write_payloads(struct nop_writer *w, const uint64_t *len)
{
    unsigned char text[PAYLOADS_LEN], *at = text;

    for (int i = 0; i < DESCRIPTOR_AGENT_PAYLOADS; i++) {
        *at++ = NOP_STRUCT;
        *at++ = 2;
        at = nop_put_uint(at, len[i]);
        *at++ = NOP_STRING;
        *at++ = 0;
    }
    nop_write_raw(w, text, (size_t)(at - text));
}

/* From host to host memory. */
static void write_host_tensor(struct nop_writer *w, uint64_t bytes, struct nop_bytes note)
{
    unsigned char text[HOST_TENSOR_LEN], *at = text;

    *at++ = NOP_STRUCT;
    *at++ = 4;
    at = nop_put_uint(at, bytes);
    memcpy(at, host_devices, sizeof host_devices);
    at += sizeof host_devices;
    *at++ = NOP_STRING;
    *at++ = (unsigned char)note.len;
    if (note.len)
        memcpy(at, note.data, note.len);
    nop_write_raw(w, text, (size_t)(at + note.len - text));
}

static uint32_t count_storages(const char *at, uint32_t n, uint32_t tensor_size)
{
    uint32_t storages = 0;

    for (uint32_t i = 0; i < n; i++, at += tensor_size)
        storages += !((const struct tenrec_tensor_desc *)(const void *)at)->same_storage;
    return storages;
}

size_t descriptor_write(void *buf, size_t cap,
                        const uint64_t payload_len[DESCRIPTOR_AGENT_PAYLOADS],
                        const struct tenrec_tensor_desc *tensors, uint32_t n, uint32_t tensor_size,
                        const struct descriptor_note *notes)
{
    static const struct nop_bytes no_metadata = { NULL, 0 };
    const char *at = (const char *)tensors;
    struct nop_writer w;

    nop_writer_init(&w, buf, cap);
    nop_write_raw(&w, agent_head, sizeof agent_head);
    write_payloads(&w, payload_len);
    nop_write_array(&w, count_storages(at, n, tensor_size));
    for (uint32_t i = 0; i < n; i++, at += tensor_size) {
        const struct tenrec_tensor_desc *tensor = (const void *)at;
        const struct nop_bytes note =
            notes ? (struct nop_bytes){ notes[i].bytes, notes[i].len } : no_metadata;
        struct nop_device source, target;

        if (tensor->same_storage)
            continue;
        if (is_host(tensor->device) && is_host(tensor->target) && note.len <= DESCRIPTOR_NOTE_MAX) {
            write_host_tensor(&w, tensor->bytes, note);
            continue;
        }
        if (!device_to_wire(tensor->device, &source) || !device_to_wire(tensor->target, &target))
            return 0;
        nop_write_struct(&w, 4);
        nop_write_uint(&w, tensor->bytes);
        nop_write_device(&w, &source);
        nop_write_device(&w, &target);
        nop_write_string(&w, note);
    }
    return w.len;
}

size_t descriptor_reply_write(void *buf, size_t cap, const struct nop_device *devices, uint32_t n)
{
    struct nop_writer w;

    nop_writer_init(&w, buf, cap);
    nop_write_struct(&w, 1);
    nop_write_array(&w, n);
    for (uint32_t i = 0; i < n; i++)
        nop_write_device(&w, &devices[i]);
    return w.len;
}
