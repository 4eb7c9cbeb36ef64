/* SPDX-License-Identifier: Apache-2.0 */
/* crypto_test.c - the primitives against the vectors of their RFCs. */
#include "security/secret/crypto.h"

#include "../testing.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void from_hex(const char *hex, uint8_t *ret)
{
    for (; *hex; hex += 2) {
        const char digits[3] = { hex[0], hex[1], '\0' };
        *ret++ = (uint8_t)strtoul(digits, NULL, 16);
    }
}

static void assert_mac(const void *key, size_t key_len, const char *text, const char *hex)
{
    /* In two parts, which must count as one message. */
    const struct crypto_part part[] = { { text, 3 }, { text + 3, strlen(text) - 3 } };
    uint8_t mac[CRYPTO_MAC_BYTES], wanted[CRYPTO_MAC_BYTES];
    tenrec_error err;

    from_hex(hex, wanted);
    assert_status(crypto_mac(key, key_len, part, 2, mac, &err), &err);
    assert_memory_equal(mac, wanted, sizeof wanted);
}

TEST(crypto_mac_is_that_of_rfc_4231)
{
    uint8_t key[131];

    memset(key, 0x0b, 20);
    assert_mac(key, 20, "Hi There",
               "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_mac("Jefe", 4, "what do ya want for nothing?",
               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    assert_mac(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First",
               "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(crypto_derive_is_that_of_rfc_5869)
{
    uint8_t secret[22], salt[13], info[10], key[42], wanted[42];
    tenrec_error err;

    memset(secret, 0x0b, sizeof secret);
    from_hex("000102030405060708090a0b0c", salt);
    from_hex("f0f1f2f3f4f5f6f7f8f9", info);
    from_hex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
             wanted);
    assert_status(crypto_derive(secret, sizeof secret, (struct crypto_part){ salt, sizeof salt },
                                (struct crypto_part){ info, sizeof info }, key, sizeof key, &err),
                  &err);
    assert_memory_equal(key, wanted, sizeof wanted);
    from_hex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
             wanted);
    assert_status(crypto_derive(secret, sizeof secret, (struct crypto_part){ NULL, 0 },
                                (struct crypto_part){ NULL, 0 }, key, sizeof key, &err),
                  &err);
    assert_memory_equal(key, wanted, sizeof wanted);
}

TEST(crypto_derive_reports_a_length_that_hkdf_cannot_give)
{
    static uint8_t key[255 * 32 + 1];
    tenrec_error err;

    assert_int_equal(crypto_derive("secret", 6, (struct crypto_part){ NULL, 0 },
                                   (struct crypto_part){ NULL, 0 }, key, sizeof key, &err),
                     TENREC_EOS);
    assert_text_has(err.text, "libcrypto cannot derive a key: ");
}

TEST(crypto_draws_differ)
{
    uint8_t a[32] = { 0 }, b[32] = { 0 };
    tenrec_error err;

    assert_status(crypto_draw_public(a, sizeof a, &err), &err);
    assert_status(crypto_draw_secret(b, sizeof b, &err), &err);
    assert_memory_not_equal(a, b, sizeof a);
    assert_false(crypto_equal(a, b, sizeof a));
    assert_true(crypto_equal(a, a, sizeof a));
    crypto_wipe(a, sizeof a);
    memset(b, 0, sizeof b);
    assert_memory_equal(a, b, sizeof a);
}

static bool mac_is_right(void)
{
    const struct crypto_part part = { "what do ya want for nothing?", 28 };
    uint8_t mac[CRYPTO_MAC_BYTES], drawn[8];

    return crypto_mac("Jefe", 4, &part, 1, mac, NULL) == TENREC_OK && mac[0] == 0x5b &&
           mac[31] == 0x43 && crypto_draw_public(drawn, sizeof drawn, NULL) == TENREC_OK;
}

static void *mac_often(void *ret)
{
    bool *right = ret;

    *right = true;
    for (int i = 0; i < 200; i++)
        *right &= mac_is_right();
    return NULL;
}

TEST(crypto_works_in_several_threads)
{
    pthread_t thread[4];
    bool right[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, mac_often, &right[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        assert_true(right[i]);
    }
}

TEST(crypto_works_in_a_child_whose_draws_differ_from_the_parents)
{
    uint8_t mine[16] = { 0 }, its[16] = { 0 };
    int way[2], status;
    pid_t pid;

    assert_true(mac_is_right());
    assert_int_equal(pipe(way), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        bool ok = mac_is_right() && crypto_draw_public(its, sizeof its, NULL) == TENREC_OK &&
                  write(way[1], its, sizeof its) == sizeof its;
        _exit(ok ? 0 : 1);
    }
    close(way[1]);
    assert_int_equal(crypto_draw_public(mine, sizeof mine, NULL), TENREC_OK);
    assert_int_equal(read(way[0], its, sizeof its), sizeof its);
    close(way[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_memory_not_equal(mine, its, sizeof mine);
}
