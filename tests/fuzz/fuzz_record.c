/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_record.c - the record of a link from a hostile peer.
 *
 * Input: the record. Its checksum is always right, as __wrap_siphash makes it the last bytes of the
 * input. A record that can be read is written again, and must read the same. */
#include "fuzz.h"

#include <tenrec/link.h>

#include "core/base/hash.h"
#include "rpc/link/link_record.h"

static uint64_t sum;

uint64_t __wrap_siphash(const struct siphash_key *key, const void *data, size_t len);

uint64_t __wrap_siphash(const struct siphash_key *key, const void *data, size_t len)
{
    (void)key, (void)data, (void)len;
    return sum;
}

static bool same(const struct link_record *a, const struct link_record *b)
{
    return strcmp(a->member.name, b->member.name) == 0 &&
           strcmp(a->member.address, b->member.address) == 0 &&
           strcmp(a->member.backend, b->member.backend) == 0 &&
           a->member.token == b->member.token && a->member.incarnation == b->member.incarnation &&
           !a->secret == !b->secret && (!a->secret || secret_equal(a->secret, b->secret));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    uint8_t again[TENREC_LINK_RECORD_MAX];
    struct link_record r, back;
    size_t n;

    sum = len >= 8 ? bytes_get_u64(data + len - 8) : 0;
    if (link_record_read(data, len, &r, NULL) != TENREC_OK)
        return 0;
    fuzz_expect(link_record_write(&r, again, &n, NULL) == TENREC_OK);
    fuzz_expect(n <= len && link_record_read(again, n, &back, NULL) == TENREC_OK &&
                same(&r, &back));
    link_record_free(&r);
    link_record_free(&back);
    return 0;
}
