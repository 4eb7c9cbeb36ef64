/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in.h - a libcuda without a GPU, for tests.
 *
 * Device memory is host memory that other processes can map, at an address that
 * the host may not touch: a read without the driver crashes. A stream is
 * a thread that runs the queued work late: it waits for a random time before and
 * in the middle of each operation, and the destination of a copy is poisoned until it
 * is done. So code that misses an event sees wrong bytes. Misuse is reported on stderr and
 * ends the process with status 86 at its exit.
 *
 * Settings are read from the environment when the library is loaded:
 *
 *     FAKE_CUDA_DEVICES   number of devices (2)
 *     FAKE_CUDA_SEED      of the random times (1)
 *     FAKE_CUDA_DELAY_US  the longest of them, microseconds (200)
 *     FAKE_CUDA_LATE_QUERIES  1: each other answer about an event is late (0)
 *     FAKE_CUDA_PEERS     0: no device can reach another one's memory
 *     FAKE_CUDA_FAIL      cuMemAlloc_v2:3,cuInit:1 - the third call of the one and
 *                         the first of the other fail, once each
 *
 * Left out: the default stream does not synchronize with other streams. */
#ifndef STAND_IN_H
#define STAND_IN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_CONTEXT = 201,
    MAPPING_FAILED = 205,
    ALREADY_MAPPED = 208,
    PEER_ACCESS_UNSUPPORTED = 217,
    INVALID_HANDLE = 400,
    NOT_READY = 600,
    UNKNOWN = 999,
};

#define DEVICES_MAX 16
#define EXPORT __attribute__((visibility("default")))

/* ---- faults.c ---- */

/* The first thing in every function: its call is counted, and fails when the test
 * wants that. */
#define CALL                                                                                       \
    do {                                                                                           \
        int failure_ = fault(__func__);                                                            \
        if (failure_)                                                                              \
            return failure_;                                                                       \
    } while (0)
int fault(const char *call);

/* Says on stderr what the program does wrong. */
__attribute__((format(printf, 1, 2))) void misuse(const char *fmt, ...);

/* ---- waits.c ---- */

/* Waits while *word is `value`, also for another process. Returns spuriously from time to
 * time, since a death of that process wakes no waiter. Ends this process after a time that
 * no test takes: `started` is 0 at first, and keeps the start time. */
void word_wait(void *word, unsigned value, uint64_t *started, const char *call);
/* Wakes all waiters. `word` may be freed by now: then it has none. */
void word_wake(void *word);

enum live { LIVE_DEVICE_MEMORY, LIVE_HOST_MEMORY, LIVE_IMPORTED, LIVE_EVENTS, LIVE_STREAMS, LIVES };
extern atomic_int live[LIVES];

long setting(const char *name, long other);

/* ---- devices.c ---- */

struct CUctx_st {
    int device;
    atomic_int retained;
    pthread_mutex_t lock;
    struct CUstream_st *default_stream; /* under lock; made at its first use */
};

/* NULL: none is current, which is an error of the caller's. */
struct CUctx_st *context(void);

/* ---- memory.c ---- */

#define USERS_MAX 16

/* The header of an allocation that another process can map. */
struct shared_head {
    uint64_t id;
    struct {
        atomic_int pid, operations; /* that read or write it now */
    } user[USERS_MAX];
};

struct memory {
    struct memory *next;
    char *address; /* what the program sees */
    char *bytes;   /* what a stream reads and writes */
    size_t len, mapped;
    int device; /* -1: pinned host memory */
    int fd;
    bool imported;
    int opened_on; /* device of the context that did */
    struct shared_head *head;
    struct shared_head own_head; /* of host memory */
};

/* An operand that a copy reads or writes. */
struct operand {
    char *bytes;
    atomic_int *operations; /* NULL: memory that the driver does not know */
};

/* `host`: memory that the driver does not know will do. Returns false if `call` was misused. */
bool operand_find(const char *call, uintptr_t at, size_t len, bool host, struct operand *ret);
void operand_drop(struct operand *p);

/* ---- streams.c ---- */

/* One event's state, maybe in memory that processes share. */
struct event_state {
    atomic_uint recorded, completed; /* how often; `completed` wakes waiters */
    atomic_int recorder;             /* process */
    atomic_int refs;                 /* of this process; not of one that is shared */
};

struct CUstream_st *stream_of(struct CUstream_st *s, const char *call);
/* Queued on `s`. */
int stream_record(struct CUstream_st *s, struct event_state *e, bool counted);
int stream_wait_for(struct CUstream_st *s, struct event_state *e, bool counted);
bool event_is_done(struct event_state *e, unsigned number);
struct CUctx_st *stream_context(const struct CUstream_st *s);

#endif
