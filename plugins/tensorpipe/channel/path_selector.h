/* SPDX-License-Identifier: Apache-2.0 */
/* path_selector.h - which of two ways took tensors of a size sooner, lately.
 *
 * A tensor between two processes of a host can be read out of the sender's
 * memory, by one processor, or copied by both at once through a ring. Which is
 * faster depends on what cannot be asked for: whether both processors have time,
 * whose caches hold what, how large the pages are. So each side tries both and
 * keeps to the better one. */
#ifndef TENSORPIPE_PATH_SELECTOR_H
#define TENSORPIPE_PATH_SELECTOR_H

#include <stdbool.h>
#include <stdint.h>

#define PATH_ROOM ((uint64_t)1 << 20) /* bytes that the ring holds */
#define PATH_CLASSES 8                /* between two powers of two; from 512 KiB on */

enum copier { BY_RECEIVER, BY_BOTH };

/* Zero at first. */
struct path_selector {
    struct {
        uint64_t ns[2]; /* of a MiB; 0: not known */
        unsigned tried; /* at first */
        unsigned n;     /* choices since the worse one had its turn */
        unsigned turns; /* that it had, up to EARLY_TURNS */
    } of[PATH_CLASSES];
};

/* The way for a tensor of `len` bytes. When path_note will tell how long it takes
 * (`timed`), now and then also the one that is not the best. */
enum copier path_choose(struct path_selector *w, uint64_t len, bool timed);
void path_note(struct path_selector *w, enum copier way, uint64_t len, uint64_t ns);

#endif
