/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/member_record.h"

#include "core/base/memory.h"
#include "group/membership/membership.h"
#include "group/store/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
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
    free(m->texts);
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
 * for a zombie. *ret_state: a letter, or NUL. */
static int64_t start_of(int64_t pid, char *ret_state)
{
    char path[64], text[1024];
    char *at;

    *ret_state = '\0';
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    read_file(path, text, sizeof text);
    if (!(at = strrchr(text, ')')))
        return 0;
    if (at[1] == ' ')
        *ret_state = at[2];
    if (*ret_state && strchr("ZX", *ret_state))
        return 0;
    for (int field = 2; field < 22 && at; field++)
        if ((at = strchr(at, ' ')))
            at++;
    return at ? strtoll(at, NULL, 10) : 0;
}

/* Where this process runs, as the thread has read it; a child of fork may be elsewhere. */
static _Thread_local struct member_place here;
static _Thread_local pid_t here_pid;

static void find_here(void)
{
    struct stat ns;

    if (here_pid == getpid())
        return;
    if (gethostname(here.host, sizeof here.host) != 0)
        here.host[0] = '\0';
    here.host[sizeof here.host - 1] = '\0';
    read_file("/proc/sys/kernel/random/boot_id", here.boot, sizeof here.boot - 24);
    if (stat("/proc/self/ns/pid", &ns) == 0)
        snprintf(here.boot + strlen(here.boot), 24, " %llu", (unsigned long long)ns.st_ino);
    here_pid = getpid();
}

void member_describe_process(struct member *m, struct member_place *place)
{
    char state;

    find_here();
    *place = here;
    m->host = place->host;
    m->boot = place->boot;
    m->pid = here_pid;
    m->start = start_of(m->pid, &state);
}

bool member_was_here(const struct member *m)
{
    find_here();
    return m->pid > 0 && m->host && m->boot && strcmp(here.host, m->host) == 0 &&
           strcmp(here.boot, m->boot) == 0;
}

bool member_runs_here(const struct member *m)
{
    char state;

    if (!member_was_here(m))
        return false;
    if (kill((pid_t)m->pid, 0) != 0 && errno != EPERM)
        return false;
    return start_of(m->pid, &state) == m->start;
}

static void write_process(int64_t pid, int64_t start, char ret[MEMBER_PROCESS])
{
    snprintf(ret, MEMBER_PROCESS, "%" PRId64 ":%" PRId64 ":%s", pid, start, here.boot);
    for (char *c = ret; *c; c++)
        if (*c == ' ')
            *c = '-';
}

void member_write_process(char ret[MEMBER_PROCESS])
{
    struct member_place place;
    struct member m;

    member_describe_process(&m, &place);
    write_process(m.pid, m.start, ret);
}

bool member_process_has_ended(const char *text)
{
    char mine[MEMBER_PROCESS], state;
    int64_t pid, start;

    find_here();
    if (sscanf(text, "%" SCNd64 ":%" SCNd64 ":", &pid, &start) != 2 || pid <= 0 || !*here.boot)
        return false;
    write_process(pid, start, mine);
    return strncmp(text, mine, strlen(mine)) == 0 && start_of(pid, &state) != start;
}

bool member_shares_process(const struct member *a, const struct member *b)
{
    return a->pid == b->pid && a->start == b->start && a->host && b->host && a->boot && b->boot &&
           strcmp(a->host, b->host) == 0 && strcmp(a->boot, b->boot) == 0;
}

bool member_find_process(const struct member *m, struct member_process *ret)
{
    const bool found = member_was_here(m);

    *ret = (struct member_process){ found ? m->pid : 0, found ? m->start : 0 };
    return found;
}

bool member_process_is_stopped(const struct member_process *p)
{
    char state;

    return p->pid > 0 && start_of(p->pid, &state) == p->start && state && strchr("Tt", state);
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

    if (!backend || !m->backend || !*m->backend || strcmp(backend, m->backend) == 0)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EGROUP,
                       "worker \"%s\" (%s %d) of group \"%s\" uses the backend \"%s\", %s %d "
                       "uses \"%s\": they cannot call each other, choose one for all",
                       m->name, number, m->rank, group, m->backend, number, rank, backend);
}

static void add_text(struct bytes *b, const char *text)
{
    bytes_add_text(b, text ? text : "");
}

void member_pack(const struct member *m, struct store_value *ret)
{
    struct bytes b = { 0 };

    bytes_add_u32(&b, MAGIC);
    add_text(&b, m->name);
    add_text(&b, m->address);
    add_text(&b, m->host);
    add_text(&b, m->boot);
    bytes_add_u64(&b, (uint64_t)m->rank);
    bytes_add_u64(&b, (uint64_t)m->world);
    bytes_add_u64(&b, (uint64_t)m->incarnation);
    bytes_add_u64(&b, (uint64_t)m->pid);
    bytes_add_u64(&b, (uint64_t)m->start);
    bytes_add_blob(&b, m->extra, m->extra_len);
    bytes_add_u64(&b, m->token);
    add_text(&b, m->backend);
    if (b.failed)
        bytes_free(&b);
    ret->data = b.data;
    ret->len = b.len;
}

static int64_t read_number(struct bytes_reader *r)
{
    return (int64_t)bytes_read_u64(r);
}

/* Reads a text of at most `max` bytes, and writes it at *at, where there is room. */
static const char *read_text(struct bytes_reader *r, size_t max, char **at)
{
    size_t len;
    const uint8_t *text = bytes_read_blob(r, max, &len);
    char *const to = *at;

    if (r->bad || memchr(text, 0, len)) {
        r->bad = true;
        return NULL;
    }
    memcpy(to, text, len);
    to[len] = '\0';
    *at += len + 1;
    return to;
}

/* Reads `bytes` if they are next. */
static bool read_same(struct bytes_reader *r, const uint8_t *bytes, size_t len)
{
    if (r->bad || !bytes || r->len - r->at < len || memcmp(r->data + r->at, bytes, len) != 0)
        return false;
    r->at += len;
    return true;
}

static void read_place(struct bytes_reader *r, struct member_texts *texts, struct member *ret)
{
    const size_t begin = r->at;

    if (read_same(r, texts->place, texts->place_len)) {
        ret->host = texts->before->host;
        ret->boot = texts->before->boot;
    } else {
        ret->host = read_text(r, sizeof((struct member_place *)0)->host - 1, &texts->at);
        ret->boot = read_text(r, sizeof((struct member_place *)0)->boot - 1, &texts->at);
    }
    texts->place = r->data + begin;
    texts->place_len = r->at - begin;
}

static void read_backend(struct bytes_reader *r, struct member_texts *texts, struct member *ret)
{
    const size_t begin = r->at;

    if (read_same(r, texts->backend, texts->backend_len))
        ret->backend = texts->before->backend;
    else
        ret->backend = read_text(r, TENREC_NAME_MAX, &texts->at);
    texts->backend = r->data + begin;
    texts->backend_len = r->at - begin;
}

/* A text ends with a byte where the record has its length, of more bytes. */
static void read_fields(struct bytes_reader *r, struct member_texts *texts, struct member *ret)
{
    int64_t rank, world;
    const uint8_t *extra;

    ret->name = read_text(r, TENREC_NAME_MAX, &texts->at);
    ret->address = read_text(r, MEMBER_MAX_ADDRESS, &texts->at);
    read_place(r, texts, ret);
    rank = read_number(r);
    world = read_number(r);
    ret->incarnation = read_number(r);
    ret->pid = read_number(r);
    ret->start = read_number(r);
    extra = bytes_read_blob(r, MEMBER_MAX_EXTRA, &ret->extra_len);
    ret->token = bytes_read_u64(r);
    read_backend(r, texts, ret);
    if (world < 0 || world > RANKS_MAX || rank < 0 || rank >= (world ? world : RANKS_MAX))
        r->bad = true;
    if (r->bad)
        return;
    ret->rank = (int32_t)rank;
    ret->world = (int32_t)world;
    if (ret->extra_len) {
        ret->extra = memcpy(texts->at, extra, ret->extra_len);
        texts->at += ret->extra_len;
    }
    texts->before = ret;
}

tenrec_status member_unpack_into(const struct store_value *value, struct member_texts *texts,
                                 struct member *ret, tenrec_error *err)
{
    struct bytes_reader r = { .data = value->data, .len = value->len };

    *ret = (struct member){ 0 };
    if (bytes_read_u32(&r) != MAGIC)
        return tenrec_fail(err, TENREC_EPROTOCOL, "not a record of a worker");
    read_fields(&r, texts, ret);
    if (!r.bad && ranks_check_name("worker name", ret->name, NULL) == TENREC_OK)
        return TENREC_OK;
    *ret = (struct member){ 0 };
    return tenrec_fail(err, TENREC_EPROTOCOL, "malformed record of a worker");
}

tenrec_status member_unpack(const struct store_value *value, struct member *ret, tenrec_error *err)
{
    char *room = malloc(value->len + 1);
    struct member_texts texts = { .at = room };
    tenrec_status st;

    *ret = (struct member){ 0 };
    if (!room)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a worker's record");
    st = member_unpack_into(value, &texts, ret, err);
    if (st == TENREC_OK)
        ret->texts = room;
    else
        free(room);
    return st;
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
    struct member_place place;
    struct store_value record;
    tenrec_status st;

    me->address = address;
    if (extra) {
        me->extra = extra->data;
        me->extra_len = extra->len;
    }
    member_describe_process(me, &place);
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
