/* SPDX-License-Identifier: Apache-2.0 */
/* shm_ring.h - one ring of TensorPipe's shm transport.
 *
 * A ring is two files in memory, its header and its data, which two processes
 * map. Each side has a role in it and moves the marker of that role; what lies
 * between the two markers is to be read. A marker counts bytes and never
 * wraps, so that its place in the data is the marker modulo the size.
 *
 * The other side is not trusted: sizes are read once, our own marker is kept
 * outside of the shared memory, and the other one is checked at every look.
 * The length of the other side's files cannot be checked: libtensorpipe does not seal
 * them, and truncating a mapped file kills its reader with SIGBUS. So only processes
 * of the same user are admitted (local_peer_is_ours), which could as well send that
 * signal. */
#ifndef TENSORPIPE_SHM_RING_H
#define TENSORPIPE_SHM_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

enum shm_role { SHM_CONSUMER, SHM_PRODUCER, SHM_ROLES };
enum shm_file { SHM_HEADER, SHM_DATA, SHM_FILES };

#define SHM_RING_MAX                                                                               \
    (UINT64_C(1) << 30) /* bytes of data; markers of a ring stay exact far beyond */

/* As it lies in memory, by TensorPipe's rules. */
struct shm_ring_header {
    uint64_t size, mask;
    atomic_uchar in_use[SHM_ROLES]; /* held by the thread that moves the marker */
    unsigned char reserved[6];
    atomic_uint_least64_t marker[SHM_ROLES];
};

struct shm_ring {
    struct shm_ring_header *header; /* shared; NULL: not mapped */
    unsigned char *data;            /* shared */
    uint64_t size;                  /* of the data; a power of two */
    uint64_t own;                   /* our marker */
    enum shm_role role;
};

/* Closes those of `n` descriptors that are there, and marks them as closed (-1). */
void shm_files_close(int *fd, unsigned n);

/* A new ring. The two descriptors are for the other side, and the caller's.
 * errors: EOS, ENOMEM */
tenrec_status shm_ring_make(struct shm_ring *ret, enum shm_role role, uint64_t size,
                            int ret_fd[SHM_FILES], tenrec_error *err);

/* The ring that another process made; borrows the descriptors for the call.
 * errors: EPROTOCOL (they are no ring), EOS, ENOMEM */
tenrec_status shm_ring_map(struct shm_ring *ret, enum shm_role role, const int fd[SHM_FILES],
                           tenrec_error *err);

/* Nothing to do for a zeroed one. */
void shm_ring_unmap(struct shm_ring *r);

/* How many bytes there are to read, or is room for. False when the other side
 * moved its marker to where it cannot be. */
bool shm_ring_available(const struct shm_ring *r, uint64_t *ret);

/* Copies from or to the place `offset` bytes behind our marker; all of it must
 * be available. */
void shm_ring_get(const struct shm_ring *r, uint64_t offset, void *to, size_t len);
void shm_ring_put(const struct shm_ring *r, uint64_t offset, const void *from, size_t len);

/* Moves our marker: what was read is free, what was written can be read. */
void shm_ring_advance(struct shm_ring *r, uint64_t len);

#endif
