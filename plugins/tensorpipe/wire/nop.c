/* SPDX-License-Identifier: Apache-2.0 */
/* nop.c - bounds-checked reading and smallest-form writing of libnop values. */
#include "wire/nop.h"

enum {
    NOP_U64 = 0x83,
    NOP_I8 = 0x84,
    NOP_I32 = 0x86,
    NOP_NEGATIVE = 0xc0, /* c0..ff: -64..-1 */
};

struct nop_bytes nop_text(const char *text)
{
    return (struct nop_bytes){ (const unsigned char *)text, strlen(text) };
}

static bool nop_bytes_equal(struct nop_bytes a, struct nop_bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool nop_bytes_is(struct nop_bytes a, const char *text)
{
    return nop_bytes_equal(a, nop_text(text));
}

bool nop_device_equal(const struct nop_device *a, const struct nop_device *b)
{
    return a->index == b->index && nop_bytes_equal(a->type, b->type);
}

void nop_write_raw(struct nop_writer *w, const void *data, size_t len)
{
    if (len > 0 && w->len <= w->cap && len <= w->cap - w->len)
        memcpy(w->buf + w->len, data, len);
    w->len += len;
}

void nop_write_long_uint(struct nop_writer *w, uint64_t value)
{
    unsigned char bytes[NOP_UINT_MAX];

    nop_write_raw(w, bytes, (size_t)(nop_put_uint(bytes, value) - bytes));
}

void nop_write_int(struct nop_writer *w, int32_t value)
{
    const int log = value == (int8_t)value ? 0 : value == (int16_t)value ? 1 : 2;
    unsigned char wide[1 + 4] = { (unsigned char)(NOP_I8 + log) };

    if (value >= -64 && value <= INT8_MAX) {
        nop_write_byte(w, (unsigned char)value);
        return;
    }
    put_le32(wide + 1, (uint32_t)value);
    nop_write_raw(w, wide, 1 + ((size_t)1 << log));
}

void nop_write_variant(struct nop_writer *w, int32_t index)
{
    nop_write_byte(w, NOP_VARIANT);
    nop_write_int(w, index);
}

void nop_write_uint64s(struct nop_writer *w, const uint64_t *values, size_t n)
{
    nop_write_head(w, NOP_BINARY, 8 * (uint64_t)n);
    for (size_t i = 0; i < n; i++) {
        unsigned char bytes[8];

        put_le64(bytes, values[i]);
        nop_write_raw(w, bytes, sizeof bytes);
    }
}

void nop_write_device(struct nop_writer *w, const struct nop_device *device)
{
    nop_write_struct(w, 2);
    nop_write_string(w, device->type);
    nop_write_int(w, device->index);
}

void nop_reader_fail(struct nop_reader *r, tenrec_status code, const char *what, const char *fmt,
                     ...)
{
    va_list ap;

    if (r->status)
        return;
    r->status = code;
    va_start(ap, fmt);
    tenrec_vfail(r->err, code, fmt, ap);
    va_end(ap);
    tenrec_error_prefix(r->err, "%s.%s at byte %zu", r->object, what, (size_t)(r->pos - r->start));
    r->pos = r->end;
}

/* The next byte without taking it; fails at the end of the frame. */
static bool nop_peek(struct nop_reader *r, const char *what, const char *expected,
                     unsigned int *ret)
{
    if (r->pos == r->end) {
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "the frame ends where %s was expected",
                        expected);
        return false;
    }
    *ret = *r->pos;
    return true;
}

/* Takes `bytes` bytes as a little endian number, the prefix before them. */
static uint64_t take_wide(struct nop_reader *r, unsigned int bytes, const char *what)
{
    uint64_t value = 0;

    if ((size_t)(r->end - r->pos) < (size_t)bytes + 1) {
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "the frame ends inside a number of %u bytes",
                        bytes);
        return 0;
    }
    for (unsigned int i = 0; i < bytes; i++)
        value |= (uint64_t)r->pos[1 + i] << (8 * i);
    r->pos += 1 + bytes;
    return value;
}

uint64_t nop_read_uint(struct nop_reader *r, uint64_t max, const char *what)
{
    const unsigned char *at = r->pos;
    unsigned int prefix;
    uint64_t value;

    if (!nop_peek(r, what, "an unsigned number", &prefix))
        return 0;
    if (prefix < NOP_U8) {
        value = prefix;
        r->pos++;
    } else if (prefix <= NOP_U64) {
        /* A field of 32 bits has no form of 64. */
        if (prefix == NOP_U64 && max <= UINT32_MAX) {
            nop_reader_fail(r, TENREC_EPROTOCOL, what, "a number of 8 bytes in a field of 4");
            return 0;
        }
        value = take_wide(r, 1u << (prefix - NOP_U8), what);
    } else {
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "expected an unsigned number, got byte 0x%02x",
                        prefix);
        return 0;
    }
    if (!r->status && value > max) {
        r->pos = at;
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "%llu is more than %llu",
                        (unsigned long long)value, (unsigned long long)max);
        return 0;
    }
    return value;
}

int32_t nop_read_int(struct nop_reader *r, const char *what)
{
    unsigned int prefix;

    if (!nop_peek(r, what, "a signed number", &prefix))
        return 0;
    if (prefix < NOP_U8 || prefix >= NOP_NEGATIVE) {
        r->pos++;
        return (int8_t)prefix;
    }
    switch (prefix) {
    case NOP_I8:
        return (int8_t)take_wide(r, 1, what);
    case NOP_I8 + 1:
        return (int16_t)take_wide(r, 2, what);
    case NOP_I32:
        return (int32_t)take_wide(r, 4, what);
    default:
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "expected a signed number, got byte 0x%02x",
                        prefix);
        return 0;
    }
}

/* Takes the prefix of a composite value. */
static bool take_prefix(struct nop_reader *r, enum nop_prefix prefix, const char *kind,
                        const char *what)
{
    unsigned int byte;

    if (!nop_peek(r, what, kind, &byte))
        return false;
    if (byte != (unsigned int)prefix) {
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "expected %s (0x%02x), got byte 0x%02x", kind,
                        (unsigned int)prefix, byte);
        return false;
    }
    r->pos++;
    return true;
}

/* Takes a count of items of at least `min_bytes` bytes that are to follow. */
static size_t take_count(struct nop_reader *r, size_t min_bytes, const char *items,
                         const char *what)
{
    uint64_t count = nop_read_uint(r, UINT64_MAX, what);
    size_t rest = (size_t)(r->end - r->pos);

    if (count > rest / min_bytes) {
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "%llu %s do not fit in the %zu bytes left",
                        (unsigned long long)count, items, rest);
        return 0;
    }
    return (size_t)count;
}

static struct nop_bytes take_bytes(struct nop_reader *r, enum nop_prefix prefix, const char *kind,
                                   const char *what)
{
    struct nop_bytes bytes = { r->pos, 0 };

    if (!take_prefix(r, prefix, kind, what))
        return bytes;
    bytes.len = take_count(r, 1, "bytes", what);
    bytes.data = r->pos;
    r->pos += bytes.len;
    return bytes;
}

struct nop_bytes nop_read_string(struct nop_reader *r, const char *what)
{
    return take_bytes(r, NOP_STRING, "a string", what);
}

void nop_read_struct(struct nop_reader *r, uint64_t members, const char *what)
{
    uint64_t count;

    if (!take_prefix(r, NOP_STRUCT, "a structure", what))
        return;
    count = nop_read_uint(r, UINT64_MAX, what);
    if (count != members)
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "expected %llu members, got %llu",
                        (unsigned long long)members, (unsigned long long)count);
}

size_t nop_read_array(struct nop_reader *r, size_t min_bytes, const char *what)
{
    return take_prefix(r, NOP_ARRAY, "an array", what) ? take_count(r, min_bytes, "elements", what)
                                                       : 0;
}

uint32_t nop_read_map(struct nop_reader *r, size_t min_bytes, uint32_t max, const char *what)
{
    const size_t n =
        take_prefix(r, NOP_MAP, "a map", what) ? take_count(r, min_bytes, "pairs", what) : 0;

    if (n > max) {
        nop_reader_fail(r, TENREC_ETOOBIG, what, "%zu pairs; the limit is %u", n, max);
        return 0;
    }
    return (uint32_t)n;
}

int32_t nop_read_variant(struct nop_reader *r, int32_t alternatives, const char *what)
{
    int32_t index;

    if (!take_prefix(r, NOP_VARIANT, "a variant", what))
        return -1;
    index = nop_read_int(r, what);
    if (index < -1 || index >= alternatives)
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "expected an alternative below %d, got %d",
                        (int)alternatives, (int)index);
    if (!r->status && index == -1 && !nop_read_nil(r))
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "expected nil in an empty variant");
    return r->status ? -1 : index;
}

bool nop_read_nil(struct nop_reader *r)
{
    if (r->pos == r->end || *r->pos != NOP_NIL)
        return false;
    r->pos++;
    return true;
}

struct nop_bytes nop_read_uint64s(struct nop_reader *r, const char *what)
{
    struct nop_bytes bytes = take_bytes(r, NOP_BINARY, "a vector of numbers", what);

    if (bytes.len % 8 != 0) {
        nop_reader_fail(r, TENREC_EPROTOCOL, what, "%zu bytes are no vector of 8-byte numbers",
                        bytes.len);
        bytes.len = 0;
    }
    return bytes;
}

uint64_t nop_uint64_at(struct nop_bytes values, size_t i)
{
    return get_le64(values.data + 8 * i);
}

struct nop_device nop_read_device(struct nop_reader *r, const char *what)
{
    struct nop_device device;

    nop_read_struct(r, 2, what);
    device.type = nop_read_string(r, what);
    device.index = nop_read_int(r, what);
    return device;
}
