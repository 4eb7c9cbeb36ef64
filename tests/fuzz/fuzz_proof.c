/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_proof.c - what a peer sends in place of, or as, its side of a proof.
 *
 * The first byte says which side reads the rest, and whether it takes each mac for right, as if the
 * peer had the secret. Nonces are always the same, so that a good exchange can be a seed. Two
 * proofs read the input, one of them byte by byte: both must see the same. */
#include "fuzz.h"

#include "security/proof/proof.h"
#include "security/secret/crypto.h"

enum { FUZZ_DIALLER = 1, FUZZ_TRUSTS = 2, FUZZ_HAS_NO_SECRET = 4, FUZZ_HAS_NO_NAME = 8 };

static bool trusts;

tenrec_status __wrap_crypto_draw_public(void *ret, size_t len, tenrec_error *err);
bool __real_crypto_equal(const void *a, const void *b, size_t len);
bool __wrap_crypto_equal(const void *a, const void *b, size_t len);

tenrec_status __wrap_crypto_draw_public(void *ret, size_t len, tenrec_error *err)
{
    (void)err;
    memset(ret, 'n', len);
    return TENREC_OK;
}

bool __wrap_crypto_equal(const void *a, const void *b, size_t len)
{
    return __real_crypto_equal(a, b, len) || trusts;
}

/* One reader of the input, and all that it has said. */
struct fuzz_reader {
    struct proof *proof;
    tenrec_status status;
    size_t used;
    uint8_t out[4 * PROOF_RECORD_MAX];
    size_t out_len;
};

static void reader_output(struct fuzz_reader *r)
{
    size_t n;
    const void *out = proof_output(r->proof, &n);

    fuzz_expect(n <= PROOF_RECORD_MAX && n <= sizeof r->out - r->out_len);
    memcpy(r->out + r->out_len, out, n);
    r->out_len += n;
}

static void reader_open(struct fuzz_reader *r, unsigned flags)
{
    uint8_t bytes[SECRET_BYTES];
    struct secret *secret;
    struct proof_terms terms = {
        .side = flags & FUZZ_DIALLER ? PROOF_DIALLER : PROOF_LISTENER,
        .purpose = "test",
        .me = { 0, 10, flags & FUZZ_HAS_NO_NAME ? "" : "worker0", "uv://127.0.0.1:1010" },
        .peer = { 1, 11, "worker1", "" },
        .label = "label",
        .label_len = 5,
    };

    memset(bytes, 7, sizeof bytes);
    fuzz_expect(secret_new(bytes, sizeof bytes, &secret, NULL) == TENREC_OK);
    terms.secret = flags & FUZZ_HAS_NO_SECRET ? NULL : secret;
    memset(r, 0, sizeof *r);
    fuzz_expect(proof_open(&terms, &r->proof, NULL) == TENREC_OK);
    secret_drop(secret);
    reader_output(r);
}

static void reader_take(struct fuzz_reader *r, const uint8_t *data, size_t len)
{
    size_t used;

    if (r->status != TENREC_OK)
        return;
    r->status = proof_take(r->proof, data, len, &used, NULL);
    fuzz_expect(used <= len && (used == len || r->status || proof_is_complete(r->proof)));
    r->used += used;
    reader_output(r);
}

/* What holds for a reader at the end of the input. */
static void reader_check(struct fuzz_reader *r)
{
    const struct proof_party *peer = proof_peer(r->proof);
    size_t used, len;

    fuzz_expect(!r->status || r->status == TENREC_EPERM || r->status == TENREC_EPROTOCOL);
    if (proof_is_complete(r->proof)) {
        fuzz_expect(!r->status && proof_may_send(r->proof) && peer->rank >= -1);
        fuzz_touch(peer->name, strlen(peer->name));
        fuzz_touch(peer->address, strlen(peer->address));
        fuzz_touch(proof_label(r->proof, &len), len);
        fuzz_expect(len <= PROOF_LABEL_MAX);
    }
    if (r->status) {
        fuzz_expect(!proof_may_send(r->proof));
        fuzz_expect(proof_take(r->proof, "TNRP", 4, &used, NULL) == r->status && used == 0);
        proof_output(r->proof, &len);
        fuzz_expect(len == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fuzz_reader whole, slow;

    if (len == 0)
        return 0;
    trusts = data[0] & FUZZ_TRUSTS;
    reader_open(&whole, data[0]);
    reader_open(&slow, data[0]);
    reader_take(&whole, data + 1, len - 1);
    for (size_t i = 1; i < len; i++)
        reader_take(&slow, data + i, 1);
    /* A malformed head is seen at its first wrong byte, or with all of it. */
    fuzz_expect(whole.status == slow.status && (whole.status || whole.used == slow.used));
    fuzz_expect(whole.out_len == slow.out_len && memcmp(whole.out, slow.out, whole.out_len) == 0);
    fuzz_expect(proof_is_complete(whole.proof) == proof_is_complete(slow.proof));
    reader_check(&whole);
    reader_check(&slow);
    proof_close(whole.proof);
    proof_close(slow.proof);
    return 0;
}
