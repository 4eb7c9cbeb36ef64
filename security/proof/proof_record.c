/* SPDX-License-Identifier: Apache-2.0 */
#include "security/proof/proof_record.h"

#include <string.h>

/* ---- a cursor over a body: a read beyond the end makes it bad ---- */

struct record_reader {
    const uint8_t *at;
    size_t left;
    bool bad;
};

static const uint8_t *reader_bytes(struct record_reader *r, size_t n)
{
    const uint8_t *at = r->at;

    if (r->bad || n > r->left) {
        r->bad = true;
        return NULL;
    }
    r->at += n;
    r->left -= n;
    return at;
}

static void reader_copy(struct record_reader *r, void *ret, size_t n)
{
    const uint8_t *at = reader_bytes(r, n);

    if (at)
        memcpy(ret, at, n);
}

static uint64_t reader_number(struct record_reader *r, size_t bytes)
{
    const uint8_t *at = reader_bytes(r, bytes);
    uint64_t v = 0;

    for (size_t i = 0; at && i < bytes; i++)
        v |= (uint64_t)at[i] << 8 * i;
    return v;
}

/* A length of one byte, at most `most`, and so many bytes. */
static size_t reader_blob(struct record_reader *r, void *ret, size_t most)
{
    const size_t len = (size_t)reader_number(r, 1);

    if (len > most)
        r->bad = true;
    reader_copy(r, ret, len);
    return r->bad ? 0 : len;
}

/* The same without a NUL, to `most` + 1 bytes. */
static void reader_text(struct record_reader *r, char *ret, size_t most)
{
    const size_t len = reader_blob(r, ret, most);

    if (memchr(ret, '\0', len))
        r->bad = true;
    ret[len] = '\0';
}

static void reader_party(struct record_reader *r, struct proof_party_text *ret)
{
    ret->rank = (int32_t)(uint32_t)reader_number(r, 4);
    ret->incarnation = reader_number(r, 8);
    reader_text(r, ret->name, TENREC_NAME_MAX);
    reader_text(r, ret->address, PROOF_ADDRESS_MAX);
    if (ret->rank < -1)
        r->bad = true;
}

static void reader_hello(struct record_reader *r, struct proof_hello *ret)
{
    const uint64_t flags = reader_number(r, 1);

    ret->has_secret = flags & 1;
    reader_copy(r, ret->nonce, sizeof ret->nonce);
    reader_text(r, ret->purpose, PROOF_PURPOSE_MAX);
    reader_party(r, &ret->me);
    reader_party(r, &ret->wanted);
    ret->label_len = reader_blob(r, ret->label, PROOF_LABEL_MAX);
    if (flags > 1)
        r->bad = true;
}

/* ---- its opposite; a record of valid fields always fits ---- */

struct record_writer {
    uint8_t *at;
};

static void writer_copy(struct record_writer *w, const void *data, size_t n)
{
    memcpy(w->at, data, n);
    w->at += n;
}

static void writer_number(struct record_writer *w, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        *w->at++ = (uint8_t)(v >> 8 * i);
}

static void writer_blob(struct record_writer *w, const void *data, size_t len)
{
    writer_number(w, len, 1);
    writer_copy(w, data, len);
}

static void writer_party(struct record_writer *w, const struct proof_party_text *party)
{
    writer_number(w, (uint32_t)party->rank, 4);
    writer_number(w, party->incarnation, 8);
    writer_blob(w, party->name, strlen(party->name));
    writer_blob(w, party->address, strlen(party->address));
}

static void writer_hello(struct record_writer *w, const struct proof_hello *hello)
{
    writer_number(w, hello->has_secret, 1);
    writer_copy(w, hello->nonce, sizeof hello->nonce);
    writer_blob(w, hello->purpose, strlen(hello->purpose));
    writer_party(w, &hello->me);
    writer_party(w, &hello->wanted);
    writer_blob(w, hello->label, hello->label_len);
}

/* ---- records ---- */

static tenrec_status record_fail(const char *what, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EPROTOCOL, "malformed proof: %s", what);
}

bool proof_begins(const void *bytes, size_t n)
{
    return n >= PROOF_MAGIC_LEN && memcmp(bytes, PROOF_MAGIC, PROOF_MAGIC_LEN) == 0;
}

tenrec_status proof_record_peek(const uint8_t *data, size_t n, size_t *ret_len, tenrec_error *err)
{
    size_t body;

    *ret_len = 0;
    if (memcmp(data, PROOF_MAGIC, n < PROOF_MAGIC_LEN ? n : PROOF_MAGIC_LEN) != 0)
        return record_fail("the bytes begin no record", err);
    if (n > 4 && data[4] != PROOF_VERSION)
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed proof: version %d, %d was expected",
                           data[4], PROOF_VERSION);
    if (n > 5 && (data[5] < PROOF_HELLO || data[5] > PROOF_REFUSED))
        return record_fail("unknown kind of record", err);
    if (n < PROOF_HEAD_LEN)
        return TENREC_OK;
    body = data[6] | (size_t)data[7] << 8;
    if (body > PROOF_RECORD_MAX - PROOF_HEAD_LEN)
        return record_fail("the record is too long", err);
    *ret_len = PROOF_HEAD_LEN + body;
    return TENREC_OK;
}

tenrec_status proof_record_unpack(const uint8_t *data, size_t len, struct proof_record *ret,
                                  tenrec_error *err)
{
    struct record_reader r = { data + PROOF_HEAD_LEN, len - PROOF_HEAD_LEN, false };

    memset(ret, 0, sizeof *ret);
    ret->kind = data[5];
    switch (ret->kind) {
    case PROOF_HELLO:
        reader_hello(&r, &ret->hello);
        break;
    case PROOF_CHALLENGE:
        reader_copy(&r, ret->nonce, sizeof ret->nonce);
        break;
    case PROOF_ANSWER:
        break;
    case PROOF_ACCEPTED:
        reader_party(&r, &ret->party);
        break;
    case PROOF_REFUSED:
        ret->reason = (enum proof_reason)reader_number(&r, 1);
        break;
    }
    (void)reader_bytes(&r, proof_record_mac_len(ret->kind));
    if (r.bad || r.left > 0)
        return record_fail("a field does not fit its record", err);
    return TENREC_OK;
}

size_t proof_record_pack(const struct proof_record *r, uint8_t ret[PROOF_RECORD_MAX])
{
    struct record_writer w = { ret + PROOF_HEAD_LEN };
    size_t body;

    switch (r->kind) {
    case PROOF_HELLO:
        writer_hello(&w, &r->hello);
        break;
    case PROOF_CHALLENGE:
        writer_copy(&w, r->nonce, sizeof r->nonce);
        break;
    case PROOF_ANSWER:
        break;
    case PROOF_ACCEPTED:
        writer_party(&w, &r->party);
        break;
    case PROOF_REFUSED:
        writer_number(&w, r->reason, 1);
        break;
    }
    body = (size_t)(w.at - ret) - PROOF_HEAD_LEN + proof_record_mac_len(r->kind);
    w.at = ret;
    writer_copy(&w, PROOF_MAGIC, PROOF_MAGIC_LEN);
    writer_number(&w, PROOF_VERSION, 1);
    writer_number(&w, r->kind, 1);
    writer_number(&w, body, 2);
    return PROOF_HEAD_LEN + body;
}

const char *proof_reason_text(enum proof_reason reason)
{
    switch (reason) {
    case PROOF_NEEDS_SECRET:
        return "the other side asks for a group secret; none was given: --secret-file or "
               "TENREC_SECRET_FILE";
    case PROOF_HAS_NO_SECRET:
        return "the other side has no group secret, and this side asks for it";
    case PROOF_OTHER_SECRET:
        return "the other side has another group secret";
    case PROOF_OTHER_PURPOSE:
        return "the other side expects a proof for another purpose";
    case PROOF_OTHER_PARTY:
        return "another worker listens at this address";
    case PROOF_OTHER_NAME:
        return "the other side refuses this worker: its certificate is for another name";
    case PROOF_MALFORMED:
        return "the other side found the proof malformed";
    case PROOF_NEEDS_TLS:
        return "the other side is in security mode 'tls' and speaks TLS only, this side in mode "
               "'secret'";
    case PROOF_NEEDS_MTLS:
        return "the other side is in security mode 'mtls' and speaks TLS only, this side in mode "
               "'secret'";
    }
    return "the other side refused the proof";
}
