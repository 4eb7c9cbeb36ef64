/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_in.c - maps memory that the peer of a connection lends or moves here. */
#include "core/base/fail.h"
#include "core/base/memory.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing_inside.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct share_record sharing_record(const struct tenrec_share *share)
{
    struct share_record_bytes bytes;

    memcpy(&bytes, share->record, sizeof bytes);
    return (struct share_record){ .kind = bytes.kind,
                                  .flags = bytes.flags,
                                  .region = bytes.region,
                                  .slot = le16toh(bytes.slot),
                                  .offset = le64toh(bytes.offset) };
}

/* ---- descriptors ---------------------------------------------------------------- */

/* The descriptors of one record; -1: taken. */
struct fds {
    int fd[TENREC_SHARE_FDS];
    unsigned n;
};

static struct fds take_fds(struct tenrec_share *share)
{
    struct fds fds = { .n = share->n_fds < TENREC_SHARE_FDS ? share->n_fds : TENREC_SHARE_FDS };

    for (unsigned i = 0; i < fds.n; i++)
        fds.fd[i] = share->fd[i];
    share->n_fds = 0;
    return fds;
}

static void close_fds(struct fds *fds)
{
    for (unsigned i = 0; i < fds->n; i++)
        if (fds->fd[i] >= 0)
            close(fds->fd[i]);
}

static tenrec_status check_record(const struct share_record *r, const struct fds *fds,
                                  tenrec_error *err)
{
    const unsigned expected = (r->flags & RECORD_RELEASE_PAGE ? RELEASE_PAGE_FDS : 0) +
                              (r->flags & RECORD_REGION ? 1 : 0);

    if (r->kind < RECORD_LENT || r->kind > RECORD_PRIVATE || r->region >= SHARING_REGIONS ||
        r->slot >= RELEASE_PAGE_SLOTS ||
        r->flags & ~(unsigned)(RECORD_REGION | RECORD_RELEASE_PAGE) ||
        (r->kind == RECORD_MOVED && r->flags != RECORD_REGION) ||
        r->offset % (r->kind == RECORD_PRIVATE ? memfd_region_page() : SHARING_ALIGNMENT))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "malformed record of shared memory: kind %u, flags 0x%x, region "
                           "%u, slot %u, offset %llu",
                           r->kind, r->flags, r->region, r->slot, (unsigned long long)r->offset);
    if (fds->n > expected)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "record of shared memory has %u descriptors, expected %u", fds->n,
                           expected);
    if (fds->n < expected)
        return tenrec_fail(err, TENREC_EOS,
                           "%u of %u descriptors of shared memory did not arrive: this process may "
                           "have too many open",
                           expected - fds->n, expected);
    return TENREC_OK;
}

static tenrec_status check_reach(const struct memfd_region *region, uint64_t offset, uint64_t bytes,
                                 tenrec_error *err)
{
    if (offset <= region->bytes && bytes <= region->bytes - offset)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPROTOCOL,
                       "record of %llu bytes at %llu of shared memory, which has %zu bytes",
                       (unsigned long long)bytes, (unsigned long long)offset, region->bytes);
}

/* ---- received memory ------------------------------------------------------------- */

/* The release page and the region of a record are taken even if the rest of the record fails,
 * since later records depend on them. The caller holds the lock. */
static tenrec_status take_release_page(struct tenrec_sharing *s, struct fds *fds, tenrec_error *err)
{
    struct holding *h;
    tenrec_status st;

    if (s->holding)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the peer sent a second release page");
    h = memory_new(1, sizeof *h);
    if (!h)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a release page");
    st = release_page_take(fds->fd, &h->release_page, err);
    if (st != TENREC_OK) {
        free(h);
        return st;
    }
    fds->fd[0] = fds->fd[1] = -1;
    atomic_init(&h->count, 1);
    s->holding = h;
    return TENREC_OK;
}

static tenrec_status take_region(struct tenrec_sharing *s, const struct share_record *record,
                                 struct fds *fds, tenrec_error *err)
{
    const bool private = record->kind == RECORD_PRIVATE;
    const unsigned at = record->region;
    struct mapped_region *r = memory_new(1, sizeof *r);
    tenrec_status st;

    mapped_region_drop(s->mapped[at]);
    s->mapped[at] = NULL;
    if (!r)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for shared memory of the peer");
    /* The mapping does not need the descriptor. */
    st = memfd_region_map(fds->fd[fds->n - 1], private ? REGION_PRIVATE : REGION_READ, &r->region,
                          err);
    if (st != TENREC_OK) {
        free(r);
        return st;
    }
    r->region.fd = -1;
    r->private = private;
    atomic_init(&r->count, 1);
    mapping_count_region(r);
    s->mapped[at] = r;
    return TENREC_OK;
}

/* The caller holds the lock. */
static tenrec_status sharing_in_arrive(struct tenrec_sharing *s, const struct share_record *r,
                                       uint64_t bytes, struct tenrec_mapping *m, tenrec_error *err)
{
    struct mapped_region *region = s->mapped[r->region];
    tenrec_status st;

    if (!region)
        return tenrec_fail(err, TENREC_EOS, "shared memory of the peer could not be mapped before");
    if (region->private != (r->kind == RECORD_PRIVATE))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "record of shared memory of kind %u is in a region of the other kind",
                           r->kind);
    st = check_reach(&region->region, r->offset, bytes, err);
    if (st != TENREC_OK)
        return st;
    atomic_fetch_add(&region->count, 1);
    atomic_fetch_add(&s->holding->count, 1);
    release_page_hold(&s->holding->release_page, r->slot);
    *m = (struct tenrec_mapping){ .data = region->region.base + r->offset,
                                  .region = region,
                                  .bytes = (size_t)bytes,
                                  .forks = shared_memory_forks(),
                                  .holding = s->holding,
                                  .slot = r->slot };
    return TENREC_OK;
}

static tenrec_status arrive_lent(struct tenrec_sharing *s, const struct share_record *r,
                                 struct fds *fds, uint64_t bytes, struct tenrec_mapping *m,
                                 tenrec_error *err)
{
    tenrec_status st = TENREC_OK, region = TENREC_OK;
    tenrec_error why;

    if (r->flags & RECORD_RELEASE_PAGE)
        st = take_release_page(s, fds, err);
    if (r->flags & RECORD_REGION)
        region = take_region(s, r, fds, &why);
    if (st != TENREC_OK)
        return st;
    if (!s->holding)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the peer lent memory before the release page");
    st = region == TENREC_OK ? sharing_in_arrive(s, r, bytes, m, err) : fail_with(err, &why);
    if (st != TENREC_OK)
        release_page_end(&s->holding->release_page, r->slot);
    return st;
}

static tenrec_status arrive_moved(const struct share_record *r, struct fds *fds, uint64_t bytes,
                                  struct tenrec_mapping *m, tenrec_error *err)
{
    struct memfd_region region;
    tenrec_status st = memfd_region_map(fds->fd[0], REGION_WRITE, &region, err);

    if (st != TENREC_OK)
        return st;
    fds->fd[0] = -1;
    st = check_reach(&region, r->offset, bytes, err);
    if (st != TENREC_OK) {
        memfd_region_close(&region);
        return st;
    }
    *m = (struct tenrec_mapping){ .data = region.base + r->offset };
    return shared_block_adopt(&region, &m->given, err);
}

tenrec_status sharing_shared(struct tenrec_sharing *s, struct tenrec_share *share,
                             struct tenrec_tensor_desc *desc, tenrec_error *err)
{
    const struct share_record r = sharing_record(share);
    struct tenrec_mapping *m = memory_new(1, sizeof *m);
    struct fds fds = take_fds(share);
    const uint64_t bytes = desc ? desc->bytes : 0;
    tenrec_status st = check_record(&r, &fds, err);

    if (st == TENREC_OK && !m)
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor");
    if (st == TENREC_OK && r.kind != RECORD_MOVED) {
        pthread_mutex_lock(&s->lock);
        st = arrive_lent(s, &r, &fds, bytes, m, err);
        pthread_mutex_unlock(&s->lock);
    } else if (st == TENREC_OK) {
        st = arrive_moved(&r, &fds, bytes, m, err);
    }
    close_fds(&fds);
    if (st != TENREC_OK) {
        free(m);
        return st;
    }
    if (desc)
        desc->mapping = m;
    else
        mapping_drop(m);
    return TENREC_OK;
}

void sharing_in_close(struct tenrec_sharing *s)
{
    for (unsigned i = 0; i < SHARING_REGIONS; i++) {
        mapped_region_drop(s->mapped[i]);
        s->mapped[i] = NULL;
    }
    if (s->holding)
        release_page_leave(&s->holding->release_page);
    holding_drop(s->holding);
    s->holding = NULL;
}
