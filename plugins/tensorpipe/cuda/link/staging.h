/* SPDX-License-Identifier: Apache-2.0 */
/* staging.h - pinned memory of the host, through which tensors go from and to
 * devices in pieces. One agent's; of any thread. */
#ifndef TENSORPIPE_CUDA_STAGING_H
#define TENSORPIPE_CUDA_STAGING_H

#include "cuda/device.h"
#include <pthread.h>

#define STAGING_PIECE ((uint64_t)1 << 20) /* bytes */

struct staging_piece {
    struct staging_piece *next;
    unsigned char *data;
    int device; /* whose context made it; any can use it */
};

struct staging {
    pthread_mutex_t lock;
    struct staging_piece *free; /* under lock */
    uint64_t made, max;         /* pieces, under lock */
};

void staging_init(struct staging *s, uint64_t max_bytes);
/* Once all have been returned. */
void staging_finish(struct staging *s);

/* errors   EAGAIN (all are in use; one will be returned), ENOMEM, EOS */
tenrec_status staging_get(struct staging *s, int device, struct staging_piece **ret,
                          tenrec_error *err);
void staging_give(struct staging *s, struct staging_piece *piece);

#endif
