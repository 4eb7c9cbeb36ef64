/* SPDX-License-Identifier: Apache-2.0 */
/* ways.h - which of two ways took tensors of a size sooner, lately.
 *
 * A tensor between two processes of a host can be read out of the sender's
 * memory, by one processor, or copied by both at once through a ring. Which is
 * faster depends on what cannot be asked for: whether both processors have time,
 * whose caches hold what, how large the pages are. So each side tries both and
 * keeps to the better one. */
#ifndef TENSORPIPE_WAYS_H
#define TENSORPIPE_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#define WAYS_ROOM ((uint64_t)1 << 20) /* bytes that the ring holds */
#define WAYS_CLASSES 8                /* between two powers of two; from 512 KiB on */

enum copier { BY_RECEIVER, BY_BOTH };

/* Zero at first. */
struct ways {
    struct {
        uint64_t ns[2]; /* of a MiB; 0: not known */
        unsigned tried; /* at first */
        unsigned n;     /* choices since the worse one had its turn */
    } of[WAYS_CLASSES];
};

/* The way for a tensor of `len` bytes. When ways_note will tell how long it takes
 * (`timed`), now and then also the one that is not the best. */
enum copier ways_choose(struct ways *w, uint64_t len, bool timed);
void ways_note(struct ways *w, enum copier way, uint64_t len, uint64_t ns);

#endif
