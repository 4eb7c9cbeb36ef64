/* SPDX-License-Identifier: Apache-2.0 */
/* side.h - one worker of a benchmark: configuration, start and end. */
#ifndef TENREC_BENCH_SIDE_H
#define TENREC_BENCH_SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/tenrec.h>

#define SIDE_WORLD_MAX 8

/* State shared by all processes of one run; mapped before the first fork. */
struct side {
    char folder[64], store[96]; /* of the file store */
    char secret[96];            /* file, for the modes that need one */
    char via[16], progress[16];
    int world;
    _Atomic int ready;
    uint64_t begin_ns[SIDE_WORLD_MAX], end_ns[SIDE_WORLD_MAX];
};

/* Makes the folder of the store, and removes it. */
struct side *side_new(const char *via, const char *progress, int world);
void side_drop(struct side *s);

/* Starts worker `rank` of s->world on the tensorpipe backend, over transport uv, or
 * with `via` "shm" over the best transport of one host, and with "secret" or "tls" over uv in
 * that security mode. "trace", "meter" and "limit" are "shm" with that wrapper, "layers" with ten
 * that do nothing, "traces" is "shm" with 1 % of the calls traced, and "durations" and "recorder"
 * are "shm" with these. BENCH_TENREC adds options of
 * the backend, as in "lanes: 2". */
struct tenrec_worker *side_worker(const struct side *s, int rank);
void side_end_worker(struct tenrec_worker *w);

/* A tensor of `size` bytes with the pattern of pair_fill. `shared`: in memory that a worker of this
 * host can map. */
struct tenrec_tensor *side_tensor(size_t size, bool shared);

void side_pause_ms(unsigned ms);

/* Prints the error and ends the program. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void side_give_up(const tenrec_error *err);

#endif
