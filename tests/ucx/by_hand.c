/* SPDX-License-Identifier: Apache-2.0 */
#include "by_hand.h"

#include "../testing.h"
#include "stranger.h"

#include <stdlib.h>
#include <unistd.h>

enum { DATA_MAX = HEAD_COOKIE_LEN + PROOF_RECORD_MAX };

unsigned char by_hand_cookie[HEAD_COOKIE_LEN];

static char folder[64], path[2][96];
static struct secret *secret[2];
static struct proof *proof;
static uint64_t sequence;
static int answers;
static unsigned char its_cookie[HEAD_COOKIE_LEN];

void by_hand_make_secrets(void)
{
    tenrec_error err;

    snprintf(folder, sizeof folder, "/tmp/tenrec_ucx_proof_XXXXXX");
    assert_non_null(mkdtemp(folder));
    for (int i = OUR_SECRET; i <= OTHER_SECRET; i++) {
        snprintf(path[i], sizeof path[i], "%s/secret%d", folder, i);
        assert_status(secret_draw(&secret[i], &err), &err);
        assert_status(secret_write_file(secret[i], path[i], &err), &err);
    }
    by_hand_use(OUR_SECRET);
}

void by_hand_remove_secrets(void)
{
    for (int i = OUR_SECRET; i <= OTHER_SECRET; i++) {
        unlink(path[i]);
        secret_drop(secret[i]);
    }
    rmdir(folder);
}

void by_hand_use(enum which_secret which)
{
    setenv("TENREC_SECRET_FILE", path[which], 1);
}

void by_hand_open(enum which_secret which, const struct proof_party *me, const struct side *to)
{
    const char *address = chain_address(to->chain);
    static const unsigned char label[HEAD_COOKIE_LEN] = "sixteen bytes ..";
    const struct proof_terms terms = { .side = PROOF_DIALLER,
                                       .secret = secret[which],
                                       .purpose = "ucx",
                                       .me = *me,
                                       .peer = { to->id, 1000 + (uint64_t)to->id, to->name,
                                                 address },
                                       .label = label,
                                       .label_len = sizeof label };
    tenrec_error err;

    memcpy(by_hand_cookie, label, sizeof label);
    memset(its_cookie, 0, sizeof its_cookie);
    sequence = 0;
    answers = 0;
    stranger_open(address);
    assert_status(proof_open(&terms, &proof, &err), &err);
}

void by_hand_close(void)
{
    proof_close(proof);
    proof = NULL;
    stranger_close();
}

const unsigned char *by_hand_output(size_t *ret_len)
{
    return proof_output(proof, ret_len);
}

static void say(struct head *h, const void *data, size_t len)
{
    h->sequence = sequence++;
    memcpy(h->cookie, its_cookie, sizeof its_cookie);
    stranger_say(h, data, len);
}

void by_hand_say_proof(const void *bytes, size_t len)
{
    struct head h = { .kind = HEAD_PROOF };
    unsigned char data[DATA_MAX];

    assert_true(len <= PROOF_RECORD_MAX);
    memcpy(data, by_hand_cookie, HEAD_COOKIE_LEN);
    memcpy(data + HEAD_COOKIE_LEN, bytes, len);
    say(&h, data, HEAD_COOKIE_LEN + len);
}

void by_hand_say(struct head h)
{
    say(&h, NULL, 0);
}

tenrec_status by_hand_take(tenrec_error *err)
{
    unsigned char data[DATA_MAX];
    struct head h;
    size_t len, used;

    assert_becomes(stranger_answers() > answers || stranger_is_cut());
    if (stranger_answers() == answers)
        return tenrec_fail(err, TENREC_ECONNECT, "cut");
    answers++;
    len = stranger_answer(&h, data, sizeof data);
    assert_int_equal(h.kind, HEAD_PROOF);
    assert_memory_equal(h.cookie, by_hand_cookie, HEAD_COOKIE_LEN);
    assert_true(len > HEAD_COOKIE_LEN && len <= sizeof data);
    memcpy(its_cookie, data, HEAD_COOKIE_LEN);
    return proof_take(proof, data + HEAD_COOKIE_LEN, len - HEAD_COOKIE_LEN, &used, err);
}

tenrec_status by_hand_prove(tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    while (st == TENREC_OK && !proof_is_complete(proof)) {
        size_t len;
        const unsigned char *out = by_hand_output(&len);

        by_hand_say_proof(out, len);
        st = by_hand_take(err);
    }
    return st;
}
