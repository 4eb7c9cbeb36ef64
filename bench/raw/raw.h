/* SPDX-License-Identifier: Apache-2.0 */
/* raw.h - transports between two processes without any library: the limits of this
 * machine. */
#ifndef TENREC_BENCH_RAW_H
#define TENREC_BENCH_RAW_H

#include "../driver.h"

/* Only the first large message has its bytes checked. */
static inline bool raw_is_large(const struct trial *t)
{
    return t->size > PAIR_SMALL;
}

/* A TCP connection on loopback, [0] the caller's; socket.c. */
void raw_tcp_pair(int fd[2]);

extern const struct way raw_tcp, raw_unix;             /* socket.c */
extern const struct way raw_tls;                       /* tls.c */
extern const struct way raw_eventfd, raw_futex;        /* wake.c */
extern const struct way raw_spin;                      /* memory.c */
extern const struct way raw_copy, raw_ring, raw_readv; /* copy.c */
extern const struct way raw_pages, raw_huge, raw_keep_pages, raw_keep_huge,
    raw_memcpy;                    /* pages.c */
extern const struct way raw_memfd; /* handover.c */

#endif
