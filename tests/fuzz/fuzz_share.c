/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_share.c - records of shared memory from a hostile owner, with descriptors of all
 * kinds, and its changes to the release page that both have mapped.
 *
 * Input: for each record a byte of what its descriptors are (three of two bits), a byte of
 * what happens next, and the 16 bytes of the record. */
#include "fuzz.h"

#include "core/tensor/mapping.h"
#include "core/tensor/release_page.h"
#include "core/tensor/sharing.h"

#include <sys/mman.h>
#include <unistd.h>

#define KEPT 4

/* The state of the owner. */
struct owner {
    struct release_page release_page;
    int page_fd[RELEASE_PAGE_FDS];
    struct memfd_region region;
};

enum kind { FD_NONE, FD_REGION, FD_LEDGER, FD_WRONG };

static int descriptor(const struct owner *o, enum kind kind, unsigned at)
{
    switch (kind) {
    case FD_REGION:
        return dup(o->region.fd);
    case FD_LEDGER:
        return dup(o->page_fd[at % RELEASE_PAGE_FDS]);
    case FD_WRONG:
        return memfd_create("unsealed", MFD_CLOEXEC);
    case FD_NONE:
        break;
    }
    return -1;
}

static void owner_open(struct owner *o)
{
    fuzz_expect(release_page_make(&o->release_page, o->page_fd, NULL) == TENREC_OK);
    fuzz_expect(memfd_region_make(3 * memfd_region_page(), REGION_READ, &o->region, NULL) ==
                TENREC_OK);
}

static void owner_close(struct owner *o)
{
    for (unsigned i = 0; i < RELEASE_PAGE_FDS; i++)
        close(o->page_fd[i]);
    release_page_close(&o->release_page);
    memfd_region_close(&o->region);
}

static void record_arrives(struct tenrec_sharing *s, struct owner *o, struct fuzz_input *in,
                           struct tenrec_mapping **kept)
{
    struct tenrec_tensor_desc d = { 0 };
    struct tenrec_share share = { .size = sizeof share };
    const unsigned kinds = (unsigned)fuzz_take(in, 1), next = (unsigned)fuzz_take(in, 1);
    tenrec_error err;

    d.bytes = (next >> 2) * 256u;
    for (unsigned i = 0; i < TENREC_SHARE_FDS; i++) {
        const int fd = descriptor(o, (enum kind)(kinds >> 2 * i & 3), i);

        if (fd >= 0)
            share.fd[share.n_fds++] = fd;
    }
    for (unsigned i = 0; i < sizeof share.record; i++)
        share.record[i] = (unsigned char)fuzz_take(in, 1);
    if (next & 1) /* the owner writes where it should only read */
        memset(o->release_page.page.base, (int)next, o->release_page.page.bytes);
    if (sharing_shared(s, &share, next & 2 ? &d : NULL, &err) != TENREC_OK || !d.mapping)
        return;
    fuzz_touch(d.mapping->data, (size_t)d.bytes);
    if (kept[next % KEPT])
        mapping_drop(kept[next % KEPT]);
    kept[next % KEPT] = d.mapping;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct tenrec_mapping *kept[KEPT] = { NULL };
    struct fuzz_input in = { data, len };
    struct tenrec_sharing *s = sharing_open();
    struct owner owner;

    fuzz_expect(s != NULL);
    owner_open(&owner);
    while (in.len >= 18)
        record_arrives(s, &owner, &in, kept);
    if (len % 2) /* tensors may outlive the connection */
        sharing_close(s);
    for (unsigned i = 0; i < KEPT; i++)
        if (kept[i])
            mapping_drop(kept[i]);
    if (!(len % 2))
        sharing_close(s);
    for (unsigned i = 0; i < RELEASE_PAGE_WORDS; i++) {
        (void)release_page_ended(&owner.release_page, i);
        (void)release_page_held(&owner.release_page, i);
    }
    owner_close(&owner);
    fuzz_expect(mapping_count().tensors == 0);
    return 0;
}
