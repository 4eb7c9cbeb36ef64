/* SPDX-License-Identifier: Apache-2.0 */
/* secret_test.c - the memory of a secret, and keys of it. */
#include "security/secret/secret.h"

#include "../testing.h"

#include <stdio.h>
#include <sys/mman.h>

/* What the pages of a secret hold when they are given back. */
static const void *watched;
static bool was_unmapped, was_zero;

int __real_munmap(void *at, size_t len);
int __wrap_munmap(void *at, size_t len);

int __wrap_munmap(void *at, size_t len)
{
    if (at == watched) {
        was_unmapped = was_zero = true;
        for (size_t i = 0; i < len; i++)
            was_zero &= ((const uint8_t *)at)[i] == 0;
    }
    return __real_munmap(at, len);
}

static struct secret *secret_of(uint8_t fill, size_t len)
{
    static uint8_t bytes[SECRET_MAX];
    struct secret *s;
    tenrec_error err;

    memset(bytes, fill, len);
    assert_status(secret_new(bytes, len, &s, &err), &err);
    return s;
}

TEST(secret_is_refused_when_it_is_too_short_or_too_long)
{
    static const uint8_t bytes[SECRET_MAX + 1];
    struct secret *s = NULL;
    tenrec_error err;

    assert_int_equal(secret_new(bytes, SECRET_MIN - 1, &s, &err), TENREC_EINVAL);
    assert_text_has(err.text, "a secret of 15 bytes, 16 to 4096 were expected");
    assert_int_equal(secret_new(bytes, SECRET_MAX + 1, &s, &err), TENREC_EINVAL);
    assert_null(s);
    secret_drop(secret_of(1, SECRET_MIN));
    secret_drop(secret_of(1, SECRET_MAX));
    secret_drop(NULL);
}

TEST(secret_is_wiped_with_its_last_share)
{
    struct secret *s = secret_of(7, SECRET_MAX);
    size_t len;

    watched = secret_bytes(s, &len);
    was_unmapped = was_zero = false;
    assert_int_equal(len, SECRET_MAX);
    assert_ptr_equal(secret_share(s), s);
    secret_drop(s);
    assert_false(was_unmapped);
    secret_drop(s);
    assert_true(was_unmapped && was_zero);
    watched = NULL;
}

TEST(secret_is_in_no_core_dump)
{
    struct secret *s = secret_of(7, SECRET_BYTES);
    size_t len;
    const uintptr_t at = (uintptr_t)secret_bytes(s, &len);
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool mine = false, found = false;

    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            mine = from <= at && at < to;
        else if (mine && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, " dd") != NULL;
    }
    fclose(f);
    secret_drop(s);
    assert_true(found);
}

TEST(secret_derives_another_key_for_each_purpose)
{
    struct secret *a = secret_of(7, SECRET_BYTES), *b = secret_of(8, SECRET_BYTES);
    uint8_t one[32], same[32], other[32], of_b[32];
    tenrec_error err;

    assert_status(secret_derive(a, "tenrec proof 1", one, sizeof one, &err), &err);
    assert_status(secret_derive(a, "tenrec proof 1", same, sizeof same, &err), &err);
    assert_status(secret_derive(a, "tenrec tls psk 1", other, sizeof other, &err), &err);
    assert_status(secret_derive(b, "tenrec proof 1", of_b, sizeof of_b, &err), &err);
    assert_memory_equal(one, same, sizeof one);
    assert_memory_not_equal(one, other, sizeof one);
    assert_memory_not_equal(one, of_b, sizeof one);
    secret_drop(a);
    secret_drop(b);
}

TEST(secret_draws_differ)
{
    struct secret *a, *b;
    tenrec_error err;
    size_t len;

    assert_status(secret_draw(&a, &err), &err);
    assert_status(secret_draw(&b, &err), &err);
    assert_memory_not_equal(secret_bytes(a, &len), secret_bytes(b, &len), SECRET_BYTES);
    assert_int_equal(len, SECRET_BYTES);
    secret_drop(a);
    secret_drop(b);
}
