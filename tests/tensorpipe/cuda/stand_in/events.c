/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - events, of one process or of several. */
#include "stand_in.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC 0x65766e74u
#define HANDLE_MAGIC UINT64_C(0x6576656e74000001)
#define DISABLE_TIMING 2
#define INTERPROCESS 4

struct CUevent_st {
    unsigned magic;
    unsigned flags;
    struct CUctx_st *ctx;
    struct event_state *state;
    bool mapped; /* state lies in memory that processes share, for ever */
    int fd;      /* of it; -1: not ours to give */
};

/* Packed: cuda.h's is 64 chars, which may lie anywhere. */
struct __attribute__((packed)) ipc_event {
    uint64_t magic;
    int32_t pid, fd;
    char rest[64 - 8 - 2 * 4];
};

EXPORT int cuEventCreate(struct CUevent_st **ret, unsigned flags);
EXPORT int cuEventDestroy_v2(struct CUevent_st *e);
EXPORT int cuEventRecord(struct CUevent_st *e, struct CUstream_st *s);
EXPORT int cuEventQuery(struct CUevent_st *e);
EXPORT int cuStreamWaitEvent(struct CUstream_st *s, struct CUevent_st *e, unsigned flags);
EXPORT int cuIpcGetEventHandle(struct ipc_event *ret, struct CUevent_st *e);
EXPORT int cuIpcOpenEventHandle(struct CUevent_st **ret, struct ipc_event handle);

static bool is_event(const struct CUevent_st *e, const char *call)
{
    if (e && e->magic == MAGIC)
        return true;
    misuse("%s of no event", call);
    return false;
}

static struct event_state *map(int fd)
{
    void *at = mmap(NULL, sizeof(struct event_state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

static int make(unsigned flags, int fd, struct CUevent_st **ret)
{
    struct CUevent_st *e = calloc(1, sizeof *e);

    if (!e)
        return OUT_OF_MEMORY;
    e->magic = MAGIC;
    e->flags = flags;
    e->ctx = context();
    e->fd = fd;
    e->mapped = fd >= 0;
    e->state = e->mapped ? map(fd) : calloc(1, sizeof *e->state);
    if (!e->state) {
        free(e);
        return OUT_OF_MEMORY;
    }
    if (!e->mapped)
        atomic_store(&e->state->refs, 1);
    atomic_fetch_add(&live[LIVE_EVENTS], 1);
    *ret = e;
    return SUCCESS;
}

int cuEventCreate(struct CUevent_st **ret, unsigned flags)
{
    int fd = -1, r;

    CALL;
    if (!context())
        return INVALID_CONTEXT;
    if ((flags & INTERPROCESS) && !(flags & DISABLE_TIMING))
        return INVALID_VALUE;
    if (flags & INTERPROCESS) {
        fd = memfd_create("event of the stand-in of CUDA", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, sizeof(struct event_state)))
            return OUT_OF_MEMORY;
    }
    r = make(flags, fd, ret);
    if (r && fd >= 0)
        close(fd);
    return r;
}

int cuEventDestroy_v2(struct CUevent_st *e)
{
    CALL;
    if (!is_event(e, __func__))
        return INVALID_HANDLE;
    e->magic = 0;
    /* A stream may still read mapped memory, which stays. */
    if (e->fd >= 0)
        close(e->fd);
    if (!e->mapped && atomic_fetch_sub(&e->state->refs, 1) == 1)
        free(e->state);
    atomic_fetch_sub(&live[LIVE_EVENTS], 1);
    free(e);
    return SUCCESS;
}

/* Waiters for the earlier record keep waiting for it. Other processes see one event, which
 * is recorded again once complete. */
static bool record_anew(struct CUevent_st *e)
{
    struct event_state *fresh;

    if (e->mapped)
        return true;
    fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return false;
    atomic_store(&fresh->refs, 1);
    if (atomic_fetch_sub(&e->state->refs, 1) == 1)
        free(e->state);
    e->state = fresh;
    return true;
}

int cuEventRecord(struct CUevent_st *e, struct CUstream_st *s)
{
    CALL;
    if (!is_event(e, __func__))
        return INVALID_HANDLE;
    s = stream_of(s, __func__);
    if (!s)
        return INVALID_HANDLE;
    if (e->ctx != stream_context(s)) {
        misuse("cuEventRecord: event and stream are of two contexts");
        return INVALID_HANDLE;
    }
    return record_anew(e) ? stream_record(s, e->state, !e->mapped) : OUT_OF_MEMORY;
}

int cuEventQuery(struct CUevent_st *e)
{
    static atomic_uint queries;

    CALL;
    if (!is_event(e, __func__))
        return INVALID_HANDLE;
    /* As if it became done a moment later, and the next one that is asked before that. */
    if (setting("FAKE_CUDA_LATE_QUERIES", 0) && atomic_fetch_add(&queries, 1) % 2 == 0)
        return NOT_READY;
    return event_is_done(e->state, atomic_load(&e->state->recorded)) ? SUCCESS : NOT_READY;
}

int cuStreamWaitEvent(struct CUstream_st *s, struct CUevent_st *e, unsigned flags)
{
    CALL;
    (void)flags;
    if (!is_event(e, __func__))
        return INVALID_HANDLE;
    s = stream_of(s, __func__);
    if (!s)
        return INVALID_HANDLE;
    return stream_wait_for(s, e->state, !e->mapped);
}

int cuIpcGetEventHandle(struct ipc_event *ret, struct CUevent_st *e)
{
    CALL;
    if (!is_event(e, __func__) || !(e->flags & INTERPROCESS) || e->fd < 0)
        return INVALID_HANDLE;
    memset(ret, 0, sizeof *ret);
    *ret = (struct ipc_event){ HANDLE_MAGIC, (int)getpid(), e->fd };
    return SUCCESS;
}

int cuIpcOpenEventHandle(struct CUevent_st **ret, struct ipc_event handle)
{
    char path[64];
    int fd, r;

    CALL;
    if (!context())
        return INVALID_CONTEXT;
    if (handle.magic != HANDLE_MAGIC)
        return INVALID_VALUE;
    if (handle.pid == getpid())
        return INVALID_CONTEXT;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)handle.pid, (int)handle.fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return MAPPING_FAILED;
    r = make(DISABLE_TIMING, fd, ret);
    close(fd);
    if (r == SUCCESS)
        (*ret)->fd = -1;
    return r;
}
