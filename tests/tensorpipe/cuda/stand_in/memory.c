/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - memory of devices and pinned memory, here and in other processes. */
#include "stand_in.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

EXPORT int cuMemAlloc_v2(uint64_t *ret, size_t bytes);
EXPORT int cuMemFree_v2(uint64_t at);
EXPORT int cuMemGetAddressRange_v2(uint64_t *ret_base, size_t *ret_bytes, uint64_t at);
EXPORT int cuPointerGetAttribute(void *ret, int what, uint64_t at);
EXPORT int cuMemHostAlloc(void **ret, size_t bytes, unsigned flags);
EXPORT int cuMemFreeHost(void *at);

/* Packed: cuda.h's is 64 chars, which may lie anywhere. */
struct __attribute__((packed)) ipc_memory {
    uint64_t magic, id, len, mapped;
    int32_t pid, fd, device;
    char rest[64 - 4 * 8 - 3 * 4];
};
_Static_assert(sizeof(struct ipc_memory) == 64, "a handle has 64 bytes");

EXPORT int cuIpcGetMemHandle(struct ipc_memory *ret, uint64_t at);
EXPORT int cuIpcOpenMemHandle_v2(uint64_t *ret, struct ipc_memory handle, unsigned flags);
EXPORT int cuIpcCloseMemHandle(uint64_t at);

#define PAGE ((size_t)4096)
#define MAGIC UINT64_C(0x6d656d6f72790001)
#define POISON 0xdb
#define HOST_POISON 0xad
#define BUFFER_ID 7
#define DEVICE_ORDINAL 9
/* So that a program that frees and makes again sees the same addresses, as with
 * the driver. */
#define ALIGN ((size_t)512)

static struct memory *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint_fast64_t next_id = 1;

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Under the lock. */
static struct memory *find(uintptr_t at)
{
    for (struct memory *m = all; m; m = m->next)
        if (at >= (uintptr_t)m->address && at < (uintptr_t)m->address + m->len)
            return m;
    return NULL;
}

static void add(struct memory *m, enum live kind)
{
    atomic_fetch_add(&live[kind], 1);
    pthread_mutex_lock(&lock);
    m->next = all;
    all = m;
    pthread_mutex_unlock(&lock);
}

/* Takes it out of the table; NULL: it does not begin there. */
static struct memory *take(uintptr_t at, bool host, bool imported)
{
    struct memory **m = &all, *found = NULL;

    pthread_mutex_lock(&lock);
    while (*m && (uintptr_t)(*m)->address != at)
        m = &(*m)->next;
    if (*m && ((*m)->device < 0) == host && (*m)->imported == imported) {
        found = *m;
        *m = found->next;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* The bytes at `fd` behind its head, and an address for them. */
static bool map(struct memory *m)
{
    char *base = mmap(NULL, PAGE + m->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);

    if (base == MAP_FAILED)
        return false;
    m->address =
        mmap(NULL, m->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m->address == MAP_FAILED) {
        munmap(base, PAGE + m->mapped);
        return false;
    }
    m->head = (void *)base;
    m->bytes = base + PAGE;
    return true;
}

/* This process's count of operations. */
static atomic_int *operations_of(struct shared_head *h)
{
    const int me = (int)getpid();

    for (unsigned i = 0; i < USERS_MAX; i++) {
        int nobody = 0;

        if (atomic_load(&h->user[i].pid) == me ||
            atomic_compare_exchange_strong(&h->user[i].pid, &nobody, me))
            return &h->user[i].operations;
    }
    abort();
}

/* The count of a live process that uses it; NULL: no process does. */
static atomic_int *busy(struct shared_head *h, bool here_only)
{
    for (unsigned i = 0; i < USERS_MAX && atomic_load(&h->user[i].pid); i++) {
        const int pid = atomic_load(&h->user[i].pid);

        if (atomic_load(&h->user[i].operations) > 0 &&
            (pid == getpid() || (!here_only && kill(pid, 0) == 0)))
            return &h->user[i].operations;
    }
    return NULL;
}

/* It is given back: the driver waits until nothing uses it, we also say so. */
static void rest(struct memory *m, const char *call)
{
    atomic_int *operations = busy(m->head, m->imported);
    uint64_t started = 0;

    if (operations)
        misuse("%s of %p while it is in use", call, (void *)m->address);
    for (; operations; operations = busy(m->head, m->imported)) {
        const int n = atomic_load(operations);

        if (n > 0)
            word_wait(operations, (unsigned)n, &started, call);
    }
}

static void unmap(struct memory *m)
{
    munmap(m->address, m->mapped);
    munmap(m->head, PAGE + m->mapped);
    close(m->fd);
    free(m);
}

int cuMemAlloc_v2(uint64_t *ret, size_t bytes)
{
    struct memory *m;

    CALL;
    if (!context())
        return INVALID_CONTEXT;
    if (!bytes)
        return INVALID_VALUE;
    m = calloc(1, sizeof *m);
    if (!m)
        return OUT_OF_MEMORY;
    m->len = round_up(bytes, ALIGN);
    m->mapped = round_up(bytes, PAGE);
    m->device = context()->device;
    m->fd = memfd_create("stand-in of CUDA", MFD_CLOEXEC);
    if (m->fd < 0 || ftruncate(m->fd, (off_t)(PAGE + m->mapped)) || !map(m)) {
        if (m->fd >= 0)
            close(m->fd);
        free(m);
        return OUT_OF_MEMORY;
    }
    m->head->id = (uint64_t)getpid() << 32 | atomic_fetch_add(&next_id, 1);
    memset(m->bytes, POISON, m->mapped);
    add(m, LIVE_DEVICE_MEMORY);
    *ret = (uintptr_t)m->address;
    return SUCCESS;
}

int cuMemFree_v2(uint64_t at)
{
    struct memory *m;

    CALL;
    m = take(at, false, false);
    if (!m) {
        misuse("cuMemFree of 0x%llx, where no memory of a device begins", (unsigned long long)at);
        return INVALID_VALUE;
    }
    rest(m, "cuMemFree");
    memset(m->bytes, POISON, m->mapped);
    atomic_fetch_sub(&live[LIVE_DEVICE_MEMORY], 1);
    unmap(m);
    return SUCCESS;
}

int cuMemGetAddressRange_v2(uint64_t *ret_base, size_t *ret_bytes, uint64_t at)
{
    struct memory *m;

    CALL;
    pthread_mutex_lock(&lock);
    m = find(at);
    if (m) {
        *ret_base = (uintptr_t)m->address;
        *ret_bytes = m->len;
    }
    pthread_mutex_unlock(&lock);
    return m ? SUCCESS : INVALID_VALUE;
}

int cuPointerGetAttribute(void *ret, int what, uint64_t at)
{
    struct memory *m;

    CALL;
    pthread_mutex_lock(&lock);
    m = find(at);
    if (m && what == BUFFER_ID)
        memcpy(ret, &m->head->id, sizeof m->head->id);
    else if (m && what == DEVICE_ORDINAL)
        memcpy(ret, &m->device, sizeof m->device);
    else
        m = NULL;
    pthread_mutex_unlock(&lock);
    return m ? SUCCESS : INVALID_VALUE;
}

int cuMemHostAlloc(void **ret, size_t bytes, unsigned flags)
{
    struct memory *m;

    CALL;
    (void)flags;
    if (!context())
        return INVALID_CONTEXT;
    m = calloc(1, sizeof *m);
    if (!m)
        return OUT_OF_MEMORY;
    m->len = round_up(bytes, PAGE);
    m->device = -1;
    m->fd = -1;
    m->head = &m->own_head;
    m->bytes = m->address =
        mmap(NULL, m->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->address == MAP_FAILED) {
        free(m);
        return OUT_OF_MEMORY;
    }
    memset(m->bytes, HOST_POISON, m->len);
    add(m, LIVE_HOST_MEMORY);
    *ret = m->address;
    return SUCCESS;
}

int cuMemFreeHost(void *at)
{
    struct memory *m;

    CALL;
    m = take((uintptr_t)at, true, false);
    if (!m) {
        misuse("cuMemFreeHost of %p, where no pinned memory begins", at);
        return INVALID_VALUE;
    }
    rest(m, "cuMemFreeHost");
    atomic_fetch_sub(&live[LIVE_HOST_MEMORY], 1);
    munmap(m->address, m->len);
    free(m);
    return SUCCESS;
}

bool operand_find(const char *call, uintptr_t at, size_t len, bool host, struct operand *ret)
{
    struct memory *m;

    pthread_mutex_lock(&lock);
    m = find(at);
    if (m && at + len <= (uintptr_t)m->address + m->len) {
        *ret = (struct operand){ m->bytes + (at - (uintptr_t)m->address), operations_of(m->head) };
        atomic_fetch_add(ret->operations, 1);
    }
    pthread_mutex_unlock(&lock);
    if (m ? at + len <= (uintptr_t)m->address + m->len : host) {
        if (!m)
            *ret = (struct operand){ (char *)at, NULL };
        return true;
    }
    misuse("%s: %zu bytes at 0x%llx are no memory of a device", call, len, (unsigned long long)at);
    return false;
}

EXPORT int fake_cuda_busy(uint64_t at);

/* Returns true if queued work reads or writes the memory there. */
int fake_cuda_busy(uint64_t at)
{
    struct memory *m;
    int is_busy;

    pthread_mutex_lock(&lock);
    m = find(at);
    is_busy = m && busy(m->head, false);
    pthread_mutex_unlock(&lock);
    return is_busy;
}

void operand_drop(struct operand *p)
{
    if (p->operations && atomic_fetch_sub(p->operations, 1) == 1)
        word_wake(p->operations);
}

/* ---- other processes ---- */

int cuIpcGetMemHandle(struct ipc_memory *ret, uint64_t at)
{
    struct memory *m;

    CALL;
    pthread_mutex_lock(&lock);
    m = find(at);
    if (m && m->device >= 0 && !m->imported) {
        memset(ret, 0, sizeof *ret);
        *ret = (struct ipc_memory){ MAGIC,         m->head->id, m->len,   m->mapped,
                                    (int)getpid(), m->fd,       m->device };
    } else {
        m = NULL;
    }
    pthread_mutex_unlock(&lock);
    return m ? SUCCESS : INVALID_VALUE;
}

static bool is_open(uint64_t id)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (struct memory *m = all; m && !found; m = m->next)
        found = m->imported && m->head->id == id && m->opened_on == context()->device;
    pthread_mutex_unlock(&lock);
    return found;
}

int cuIpcOpenMemHandle_v2(uint64_t *ret, struct ipc_memory handle, unsigned flags)
{
    struct memory *m;
    char path[64];

    CALL;
    if (!context())
        return INVALID_CONTEXT;
    if (handle.magic != MAGIC || flags != 1)
        return INVALID_VALUE;
    if (handle.pid == getpid())
        return INVALID_CONTEXT;
    if (context()->device != handle.device && !setting("FAKE_CUDA_PEERS", 1))
        return PEER_ACCESS_UNSUPPORTED;
    if (is_open(handle.id)) {
        misuse("cuIpcOpenMemHandle of memory that is open already");
        return ALREADY_MAPPED;
    }
    m = calloc(1, sizeof *m);
    if (!m)
        return OUT_OF_MEMORY;
    m->len = handle.len;
    m->mapped = handle.mapped;
    m->device = handle.device;
    m->imported = true;
    m->opened_on = context()->device;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)handle.pid, (int)handle.fd);
    m->fd = open(path, O_RDWR | O_CLOEXEC);
    if (m->fd < 0 || !map(m)) {
        if (m->fd >= 0)
            close(m->fd);
        free(m);
        return MAPPING_FAILED;
    }
    if (m->head->id != handle.id) {
        unmap(m);
        return MAPPING_FAILED;
    }
    add(m, LIVE_IMPORTED);
    *ret = (uintptr_t)m->address;
    return SUCCESS;
}

int cuIpcCloseMemHandle(uint64_t at)
{
    struct memory *m;

    CALL;
    m = take(at, false, true);
    if (!m) {
        misuse("cuIpcCloseMemHandle of 0x%llx, which is not open", (unsigned long long)at);
        return INVALID_VALUE;
    }
    rest(m, "cuIpcCloseMemHandle");
    atomic_fetch_sub(&live[LIVE_IMPORTED], 1);
    unmap(m);
    return SUCCESS;
}
