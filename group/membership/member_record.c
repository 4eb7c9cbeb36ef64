/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/member_record.h"

#include "core/base/memory.h"
#include "group/membership/membership.h"
#include "group/store/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Magic, then texts as blobs and numbers as u64, little-endian. Later versions append fields, which
 * this version ignores. */
#define MAGIC 0x314d5254u /* "TRM1" */

void member_free(struct member *m)
{
    free(m->address);
    free(m->extra);
    *m = (struct member){ 0 };
}

tenrec_status member_draw_token(uint64_t *ret, tenrec_error *err)
{
    do
        if (getrandom(ret, sizeof *ret, 0) != (ssize_t)sizeof *ret)
            return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot draw the token of a worker");
    while (*ret == 0);
    return TENREC_OK;
}

/* Reads the first line of a small file. */
static void read_file(const char *path, char *ret, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, ret, room - 1);

    ret[n > 0 ? n : 0] = '\0';
    ret[strcspn(ret, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Returns field 22 of /proc/<pid>/stat; the second field may hold blanks and brackets. Returns 0
 * for a zombie. */
static int64_t start_of(int64_t pid)
{
    char path[64], text[1024];
    char *at;

    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    read_file(path, text, sizeof text);
    if (!(at = strrchr(text, ')')))
        return 0;
    if (at[1] == ' ' && strchr("ZX", at[2]))
        return 0;
    for (int field = 2; field < 22 && at; field++)
        if ((at = strchr(at, ' ')))
            at++;
    return at ? strtoll(at, NULL, 10) : 0;
}

void member_describe_process(struct member *m)
{
    struct stat ns;

    if (gethostname(m->host, sizeof m->host) != 0)
        m->host[0] = '\0';
    m->host[sizeof m->host - 1] = '\0';
    read_file("/proc/sys/kernel/random/boot_id", m->boot, sizeof m->boot - 24);
    if (stat("/proc/self/ns/pid", &ns) == 0)
        snprintf(m->boot + strlen(m->boot), 24, " %llu", (unsigned long long)ns.st_ino);
    m->pid = getpid();
    m->start = start_of(m->pid);
}

bool member_was_here(const struct member *m)
{
    struct member me = { 0 };

    member_describe_process(&me);
    return strcmp(me.host, m->host) == 0 && strcmp(me.boot, m->boot) == 0 && m->pid > 0;
}

bool member_runs_here(const struct member *m)
{
    if (!member_was_here(m))
        return false;
    if (kill((pid_t)m->pid, 0) != 0 && errno != EPERM)
        return false;
    return start_of(m->pid) == m->start;
}

tenrec_status member_check(const char *name, const char *address, const struct store_value *extra,
                           tenrec_error *err)
{
    tenrec_status st = ranks_check_name("worker name", name, err);

    if (st != TENREC_OK)
        return st;
    if (strlen(address) > MEMBER_MAX_ADDRESS)
        return tenrec_fail(err, TENREC_EINVAL, "address of worker \"%s\" has %zu bytes, at most %d",
                           name, strlen(address), MEMBER_MAX_ADDRESS);
    if (extra && extra->len > MEMBER_MAX_EXTRA)
        return tenrec_fail(err, TENREC_ETOOBIG,
                           "worker \"%s\" publishes %zu bytes about its devices, at most %d", name,
                           extra->len, MEMBER_MAX_EXTRA);
    return TENREC_OK;
}

tenrec_status member_check_backend(const struct member *m, const char *group, int32_t rank,
                                   const char *backend, tenrec_error *err)
{
    const char *number = m->world ? "rank" : "id";

    if (!backend || !*m->backend || strcmp(backend, m->backend) == 0)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EGROUP,
                       "worker \"%s\" (%s %d) of group \"%s\" uses the backend \"%s\", %s %d "
                       "uses \"%s\": they cannot call each other, choose one for all",
                       m->name, number, m->rank, group, m->backend, number, rank, backend);
}

void member_pack(const struct member *m, struct store_value *ret)
{
    struct bytes b = { 0 };

    bytes_add_u32(&b, MAGIC);
    bytes_add_text(&b, m->name);
    bytes_add_text(&b, m->address ? m->address : "");
    bytes_add_text(&b, m->host);
    bytes_add_text(&b, m->boot);
    bytes_add_u64(&b, (uint64_t)m->rank);
    bytes_add_u64(&b, (uint64_t)m->world);
    bytes_add_u64(&b, (uint64_t)m->incarnation);
    bytes_add_u64(&b, (uint64_t)m->pid);
    bytes_add_u64(&b, (uint64_t)m->start);
    bytes_add_blob(&b, m->extra, m->extra_len);
    bytes_add_u64(&b, m->token);
    bytes_add_text(&b, m->backend);
    if (b.failed)
        bytes_free(&b);
    ret->data = b.data;
    ret->len = b.len;
}

static int64_t read_number(struct bytes_reader *r)
{
    return (int64_t)bytes_read_u64(r);
}

/* Copies the blobs, of which `extra` may be empty. */
static tenrec_status copy_blobs(struct member *m, const uint8_t *address, size_t address_len,
                                const uint8_t *extra, size_t extra_len, tenrec_error *err)
{
    m->address = bytes_copy(address, address_len);
    m->extra = extra_len ? bytes_copy(extra, extra_len) : NULL;
    m->extra_len = extra_len;
    if (m->address && (m->extra || !extra_len))
        return TENREC_OK;
    member_free(m);
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for a worker's record");
}

tenrec_status member_unpack(const struct store_value *value, struct member *ret, tenrec_error *err)
{
    struct bytes_reader r = { .data = value->data, .len = value->len };
    const uint8_t *address, *extra;
    size_t address_len, extra_len;
    int64_t rank, world;

    *ret = (struct member){ 0 };
    if (bytes_read_u32(&r) != MAGIC)
        return tenrec_fail(err, TENREC_EPROTOCOL, "not a record of a worker");
    bytes_read_text(&r, ret->name, sizeof ret->name);
    address = bytes_read_blob(&r, MEMBER_MAX_ADDRESS, &address_len);
    bytes_read_text(&r, ret->host, sizeof ret->host);
    bytes_read_text(&r, ret->boot, sizeof ret->boot);
    rank = read_number(&r);
    world = read_number(&r);
    ret->incarnation = read_number(&r);
    ret->pid = read_number(&r);
    ret->start = read_number(&r);
    extra = bytes_read_blob(&r, MEMBER_MAX_EXTRA, &extra_len);
    ret->token = bytes_read_u64(&r);
    bytes_read_text(&r, ret->backend, sizeof ret->backend);
    if (r.bad || memchr(address, 0, address_len) || world < 0 || world > RANKS_MAX || rank < 0 ||
        rank >= (world ? world : RANKS_MAX) ||
        ranks_check_name("worker name", ret->name, NULL) != TENREC_OK) {
        *ret = (struct member){ 0 };
        return tenrec_fail(err, TENREC_EPROTOCOL, "malformed record of a worker");
    }
    ret->rank = (int32_t)rank;
    ret->world = (int32_t)world;
    return copy_blobs(ret, address, address_len, extra, extra_len, err);
}

/* Keeps the existing value instead of `record`. */
static tenrec_status member_add(struct tenrec_store *store, const char *key,
                                const struct store_value *record, uint64_t deadline_ns,
                                struct store_value *there, tenrec_error *err)
{
    const struct store_value none = { NULL, 0 };
    tenrec_status st = store_compare_set(store, key, &none, record, deadline_ns, there, err);

    if (st == TENREC_OK && there->len == record->len &&
        memcmp(there->data, record->data, record->len) == 0) {
        free(there->data);
        *there = none;
    }
    return st;
}

tenrec_status member_publish(struct member *me, const char *address,
                             const struct store_value *extra, struct tenrec_store *store,
                             const char *key, uint64_t deadline_ns, struct store_value *there,
                             tenrec_error *err)
{
    struct store_value record;
    tenrec_status st;

    me->address = (char *)(uintptr_t)address; /* only read, as extra */
    if (extra) {
        me->extra = extra->data;
        me->extra_len = extra->len;
    }
    member_describe_process(me);
    member_pack(me, &record);
    if (!record.data)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the worker's record");
    if (there)
        st = member_add(store, key, &record, deadline_ns, there, err);
    else
        st = store_set(store, key, record.data, record.len, deadline_ns, err);
    free(record.data);
    return st;
}
