/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_group.c - what other workers left in the store: records, lists, locks.
 *
 * The first byte says which reader gets the rest. What can be unpacked is packed again and
 * must read the same; what a function of the group looks up lies in a store of this process. */
#include "fuzz.h"

#include "core/base/clock.h"
#include "group/membership/group_directory.h"
#include "group/membership/lease.h"
#include "group/membership/member_record.h"
#include "group/membership/membership.h"
#include "group/membership/torch_keys.h"
#include "group/store/file_log.h"
#include "rpc/devices/devices.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void fuzz_member(const uint8_t *data, size_t len)
{
    const struct store_value value = { (void *)(uintptr_t)data, len };
    struct member first, second;
    struct store_value again;

    if (member_unpack(&value, &first, NULL) != TENREC_OK)
        return;
    fuzz_expect(strnlen(first.name, TENREC_NAME_MAX + 1) <= TENREC_NAME_MAX && first.address);
    member_was_here(&first);
    member_pack(&first, &again);
    fuzz_expect(again.data && member_unpack(&again, &second, NULL) == TENREC_OK);
    fuzz_expect(strcmp(first.name, second.name) == 0 && first.rank == second.rank &&
                first.incarnation == second.incarnation && first.extra_len == second.extra_len &&
                strcmp(first.address, second.address) == 0);
    member_free(&first);
    member_free(&second);
    free(again.data);
}

static void fuzz_device(const uint8_t *data, size_t len)
{
    struct device_row row, second;
    struct store_value again;

    if (device_record_unpack(data, len, &row, NULL) != TENREC_OK)
        return;
    device_record_pack(&row, &again);
    fuzz_expect(again.data &&
                device_record_unpack(again.data, again.len, &second, NULL) == TENREC_OK);
    device_row_free(&row);
    device_row_free(&second);
    free(again.data);
}

static void fuzz_view(const uint8_t *data, size_t len)
{
    const struct store_value value = { (void *)(uintptr_t)data, len };
    struct store_value again;
    struct membership_view v, second;

    if (membership_view_unpack(&value, &v, NULL) != TENREC_OK)
        return;
    for (size_t i = 0; i < v.n; i++)
        fuzz_expect(membership_view_find(&v, v.entry[i].id, v.entry[i].incarnation) ==
                        &v.entry[i] &&
                    membership_view_by_name(&v, v.entry[i].name) == &v.entry[i]);
    fuzz_expect(v.n_gone <= RANKS_MAX + VIEW_GONE_MIN);
    membership_view_pack(&v, &again);
    fuzz_expect(again.data && membership_view_unpack(&again, &second, NULL) == TENREC_OK);
    fuzz_expect(second.version == v.version && second.n == v.n && second.n_gone == v.n_gone);
    if (v.n) {
        const struct membership_view_entry e = second.entry[v.n / 2]; /* its name ends below */

        fuzz_expect(membership_view_remove(&second, e.id, e.incarnation, true, 0) &&
                    !membership_view_by_id(&second, e.id) &&
                    membership_view_free_id(&second) >= 0 &&
                    membership_view_free_id(&second) <= e.id);
    }
    membership_view_finish(&v);
    membership_view_finish(&second);
    free(again.data);
}

/* A store with `data` under `key`. */
static struct tenrec_store *store_with(const char *key, const uint8_t *data, size_t len)
{
    struct tenrec_store *s;

    fuzz_expect(store_memory_open("fuzz", &s, NULL) == TENREC_OK);
    fuzz_expect(store_set(s, key, data, len, CLOCK_NEVER, NULL) == TENREC_OK);
    return s;
}

static void fuzz_groups(const uint8_t *data, size_t len)
{
    struct tenrec_store *s = store_with("tenrec.groups", data, len);
    struct group_directory_entry found;
    tenrec_error err;

    if (group_directory_find(s, "default", CLOCK_NEVER, &found, &err) == TENREC_OK)
        fuzz_expect(found.incarnation > 0 && found.world >= 0);
    if (group_directory_announce(s, "default", "run", 2, 5, CLOCK_NEVER, &err) == TENREC_OK)
        fuzz_expect(group_directory_find(s, "default", CLOCK_NEVER, &found, &err) == TENREC_OK &&
                    found.incarnation == 5);
    tenrec_store_close(s);
}

/* The time of fuzz_lease; 0: the real one. Each sleep takes the holder's silence further. */
static uint64_t lease_time;

uint64_t __real_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void);
int __real_nanosleep(const struct timespec *wanted, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

uint64_t __wrap_clock_now_ns(void)
{
    return lease_time ? lease_time : __real_clock_now_ns();
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    if (!lease_time)
        return __real_nanosleep(wanted, left);
    lease_time += (uint64_t)wanted->tv_nsec + 1000000000u;
    return 0;
}

static void fuzz_lease(const uint8_t *data, size_t len)
{
    struct tenrec_store *s = store_with("lock", data, len);
    struct lease l = { .store = s, .key = "lock", .lease_ms = 1000 };
    tenrec_error err;

    lease_time = 1;
    if (lease_acquire(&l, "fuzz", UINT64_C(20000000000), &err) == TENREC_OK) {
        fuzz_expect(l.held && memchr(l.mine, '\0', sizeof l.mine));
        lease_release(&l, UINT64_C(20000000000));
    }
    lease_time = 0;
    tenrec_store_close(s);
}

enum { RECORDS = 40 /* enough to be read in one value */ };

/* A byte says under which key the rest lies. */
static void fuzz_member_list(const uint8_t *data, size_t len)
{
    static const char *const keys[] = { "tenrec/default/view",
                                        "tenrec.groups",
                                        "tenrec/default/lock",
                                        "tenrec/default/incarnations",
                                        TORCH_KIND,
                                        TORCH_TOKEN,
                                        "tenrec/default/member/1",
                                        "tenrec/default/records",
                                        "tenrec/default/lock/ids" };
    struct tenrec_store *s;
    struct membership_list r;
    struct membership_view v;
    tenrec_error err;

    if (len == 0)
        return;
    s = store_with(keys[data[0] % (sizeof keys / sizeof keys[0])], data + 1, len - 1);
    if (membership_list_open(s, "default", "", 1000, &r, &err) == TENREC_OK) {
        struct membership_view_entry e[RECORDS];
        char name[RECORDS][16];
        struct member m[RECORDS];
        struct reservations ids;

        if (membership_list_read(&r, 1, &v, &err) == TENREC_OK)
            membership_view_finish(&v);
        for (int i = 0; i < RECORDS; i++) {
            e[i] = (struct membership_view_entry){ i, i + 1, name[i] };
            snprintf(name[i], sizeof name[i], "worker%d", i);
        }
        if (membership_list_records(&r, e, RECORDS, 1, m, &err) == TENREC_OK)
            for (int i = 0; i < RECORDS; i++)
                member_free(&m[i]);
        if (reservations_read(&r, 1, &ids, &err) == TENREC_OK)
            for (size_t i = 0; i < ids.n; i++)
                fuzz_expect(reservations_find(&ids, ids.list[i].ticket) == &ids.list[i] &&
                            ids.list[i].id < RANKS_MAX);
        reservations_finish(&ids);
        membership_list_close(&r);
    }
    group_kind_claim_static(s, "default", "", 1, &err);
    tenrec_store_close(s);
}

static void fuzz_torch_keys(const uint8_t *data, size_t len)
{
    const struct membership_view_entry me = { 0, 1, "worker0" };
    struct membership_view v = { 0 }, none = { 0 };
    struct tenrec_store *s = store_with("names/_ALL_WORKER_INFOS", data, len);
    tenrec_error err;

    fuzz_expect(membership_view_add(&v, &me, &err) == TENREC_OK);
    torch_keys_set(s, &(struct torch_member){ &me, "uv://127.0.0.1:1" }, 1, CLOCK_NEVER, &err);
    torch_keys_replace(s, &(struct membership_view){ .version = 0 }, &v, CLOCK_NEVER, &err);
    torch_keys_replace(s, &v, &none, CLOCK_NEVER, &err);
    membership_view_finish(&v);
    tenrec_store_close(s);
}

static void fuzz_file_log(const uint8_t *data, size_t len)
{
    struct file_log l = { .fd = -1 };
    char path[64];
    int file = memfd_create("log", MFD_CLOEXEC);
    const struct bytes_slice value = { (const uint8_t *)"v", 1 };
    tenrec_error err;

    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    l.path = path;
    fuzz_expect(store_table_init(&l.table, 1 << 20) == TENREC_OK);
    fuzz_expect(file >= 0 && write(file, data, len) == (ssize_t)len);
    if (file_log_open(&l, true, &err) == TENREC_OK) {
        (void)file_log_append(&l, "", "key", value, &err);
        file_log_close(&l);
        (void)file_log_has_news(&l, l.changes);
    }
    store_table_finish(&l.table);
    close(file);
}

static void fuzz_request(const uint8_t *data, size_t len)
{
    char text[LEASE_ANSWER];
    const struct store_value value = { (void *)(uintptr_t)data, len };
    struct request q;
    tenrec_peer id;
    int64_t incarnation;
    tenrec_error err;

    if (request_unpack(&value, &q, &err) == TENREC_OK)
        fuzz_expect(q.id < RANKS_MAX && memchr(q.name, '\0', sizeof q.name));
    snprintf(text, sizeof text, "%.*s", (int)(len < sizeof text ? len : sizeof text - 1),
             (const char *)data);
    if (request_read_answer(text, -1, &id, &incarnation, &err) == TENREC_OK)
        fuzz_expect(id >= 0 && id < RANKS_MAX && incarnation > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static void (*const readers[])(const uint8_t *, size_t) = {
        fuzz_member,      fuzz_device,     fuzz_view,     fuzz_groups,  fuzz_lease,
        fuzz_member_list, fuzz_torch_keys, fuzz_file_log, fuzz_request,
    };

    if (len > 0)
        readers[data[0] % (sizeof readers / sizeof readers[0])](data + 1, len - 1);
    return 0;
}
