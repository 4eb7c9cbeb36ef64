/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_region.c - messages that read and write regions, and their answers, from members and others.
 *
 * Input: steps. A step registers, revokes or drops a region, begins a transfer to another worker,
 * or is a message, whose payload is right by default: it is placed, its bytes arrive, and it is
 * delivered at once or some steps later. The bytes of a transfer arrive nowhere but in the part of
 * a region, or of a local tensor, that the transfer names: AddressSanitizer sees any other. */
#include "amplification.h"
#include "fake_worker.h"

#include "core/tensor/tensor.h"
#include "rpc/call/call.h"
#include "rpc/call/service.h"
#include "rpc/region/regions.h"
#include "rpc/value/codec.h"

enum { STEPS_MAX = 100, REGIONS = 4, WAITING = 4, BYTES = 64, NUMBERS_MAX = 12 };
enum { LIFE = 7 };

static struct {
    struct tenrec_region *region[REGIONS];
    struct tenrec_region_ref ref[REGIONS]; /* the latest, also of regions that were dropped */
    struct tenrec_msg *waiting[WAITING];   /* placed, and not delivered */
    tenrec_peer from[WAITING];
} has;

static struct tenrec_tensor *tensor_new(int64_t bytes)
{
    struct tenrec_tensor *t = NULL;

    fuzz_expect(tenrec_tensor_new(TENREC_UINT8, 1, &bytes, &t, NULL) == TENREC_OK);
    memset(tenrec_tensor_data(t), 1, (size_t)bytes);
    return t;
}

/* ---- what the program does ------------------------------------------------------------ */

static void region_register(struct fuzz_input *in)
{
    const uint8_t b = (uint8_t)fuzz_take(in, 1);
    struct tenrec_region **r = &has.region[b % REGIONS];
    struct tenrec_tensor *t;

    if (*r)
        return;
    t = tensor_new(1 + (b >> 4) * 5 % BYTES);
    if (tenrec_region_new(&fake.worker, t, 1 + (b >> 2) % 3, r, NULL) == TENREC_OK) {
        (*r)->ref.key[0] = b; /* an input does the same each time */
        (*r)->ref.key[1] = 2;
        tenrec_region_describe(*r, &has.ref[b % REGIONS]);
    }
    tenrec_tensor_drop(t);
}

/* After OK no transfer uses the memory, and later ones are refused: message_place sees that. */
static void region_revoke(struct fuzz_input *in)
{
    struct tenrec_region *r = has.region[fuzz_take(in, 1) % REGIONS];
    tenrec_error why;

    if (r && tenrec_region_revoke(r, 1, &why) == TENREC_OK)
        fuzz_expect(tenrec_region_pending(r) == 0);
}

static void region_end(struct fuzz_input *in)
{
    struct tenrec_region **r = &has.region[fuzz_take(in, 1) % REGIONS];

    tenrec_region_drop(*r);
    *r = NULL;
}

/* To worker1, or to this worker's own regions. */
static void transfer_begin(struct fuzz_input *in)
{
    const uint8_t how = (uint8_t)fuzz_take(in, 1), n = (uint8_t)fuzz_take(in, 1);
    struct tenrec_tensor *local = tensor_new(1 + n % BYTES);
    struct tenrec_bulk e = {
        .size = sizeof e,
        .direction = how & 1,
        .remote = { .size = sizeof e.remote, .rights = 3, .length = BYTES, .owner = "worker1" },
        .remote_offset = how >> 2,
        .bytes = 1 + n % BYTES,
        .local = local
    };
    struct tenrec_future *f;

    if (fake.n_futures < FAKE_KEPT &&
        tenrec_bulk_async(&fake.worker, &e, 1, NULL, &f, NULL) == TENREC_OK)
        fake.future[fake.n_futures++] = f;
    tenrec_tensor_drop(local);
}

/* ---- messages ------------------------------------------------------------------------- */

static struct tenrec_value numbers_of(struct fuzz_input *in, const struct tenrec_region_ref *r,
                                      uint64_t bytes, struct tenrec_value *item)
{
    const uint8_t n = (uint8_t)fuzz_take(in, 1);
    const uint64_t number[] = { r->life,   r->number, r->generation,     r->key[0],
                                r->key[1], n & 0x1f,  bytes ? bytes : 1, fuzz_take(in, 1) };

    for (size_t i = 0; i < NUMBERS_MAX; i++)
        item[i] = tenrec_value_int((int64_t)number[i < 8 ? i : 7]);
    return tenrec_value_array(item, n & 0x80 ? n % (NUMBERS_MAX + 1) : 7);
}

/* One tensor more or less, and another shape, as `how` says. */
static void message_describe(struct tenrec_msg *msg, uint8_t how, uint64_t bytes)
{
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const int64_t shape = (int64_t)(how & 0x20 ? bytes + 1 : bytes);
        struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i);
        fuzz_expect(tensor_describe(how & 0x40 ? TENREC_FLOAT32 : TENREC_UINT8, 1, &shape, d,
                                    NULL) == TENREC_OK);
    }
}

static struct tenrec_msg *message_make(struct fuzz_input *in, int32_t type, uint8_t how)
{
    const uint64_t bytes = fuzz_take(in, 1) % (BYTES + 2);
    const bool carries = type == TENREC_MSG_BULK_WRITE || type == TENREC_MSG_BULK_READ_RET;
    const bool answers = type & TENREC_MSG_RESPONSE_BIT;
    struct tenrec_value item[NUMBERS_MAX], v = { 0 };
    struct tenrec_msg *plain, *msg;

    if (!answers)
        v = numbers_of(in, &has.ref[how % REGIONS], bytes, item);
    if (codec_write_value(answers ? NULL : &v, type, &plain, NULL) != TENREC_OK)
        return NULL;
    msg = rpc_message_new(plain->payload_len, (carries ? 1 : 0) + (how & 0x80 ? 1 : 0));
    if (msg) {
        msg->type = type;
        if (msg->payload_len)
            memcpy(msg->payload, plain->payload, (size_t)msg->payload_len);
        message_describe(msg, how, bytes ? bytes : 1);
    }
    plain->release(plain);
    return msg;
}

static void message_spoil(struct tenrec_msg *msg, struct fuzz_input *in)
{
    const size_t at = fuzz_take(in, 1);

    if (msg->payload_len)
        ((unsigned char *)msg->payload)[at % msg->payload_len] ^= (unsigned char)fuzz_take(in, 1);
}

/* The bytes arrive. Those of a write are for a region that was not revoked when it was placed. */
static bool message_place(tenrec_peer from, struct tenrec_msg *msg)
{
    tenrec_error why;

    if (recv_alloc_tensors(&fake.worker, from, msg, &why) != TENREC_OK)
        return false;
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *d = tenrec_msg_tensor(msg, i);
        memset(d->data, 2, (size_t)d->bytes);
    }
    return true;
}

static void message_deliver(tenrec_peer from, struct tenrec_msg *msg)
{
    const size_t len = (size_t)msg->payload_len, n_messages = fake.n_messages;

    fuzz_measure();
    worker_deliver(&fake.worker, from, msg);
    fuzz_made.steps = fake.n_messages - n_messages;
    fuzz_expect_made(len, (struct fuzz_bound){ 100, 32768 }, (struct fuzz_bound){ 1, 100 });
}

/* A byte: type and sender; another: its region, whether it waits before it is delivered, what is
 * wrong with it; a third: its id. */
static void message_arrives(struct fuzz_input *in)
{
    static const int32_t types[] = { TENREC_MSG_BULK_READ, TENREC_MSG_BULK_WRITE,
                                     TENREC_MSG_BULK_READ_RET, TENREC_MSG_BULK_WRITE_RET };
    const uint8_t what = (uint8_t)fuzz_take(in, 1), how = (uint8_t)fuzz_take(in, 1);
    const uint8_t id = (uint8_t)fuzz_take(in, 1);
    const tenrec_peer from = (what >> 2 & 3) == 3 ? TENREC_ANONYMOUS : what >> 2 & 3;
    struct tenrec_msg *msg = message_make(in, types[what & 3], how), **at = &has.waiting[id & 3];

    if (!msg)
        return;
    if (how & 0x10)
        message_spoil(msg, in);
    msg->id = id < 0x80 ? fake.sent_id[id % FAKE_KEPT] : id;
    msg->route = (struct tenrec_route){ what >> 2 & 3, 1 };
    if (msg->n_tensors && !message_place(from, msg)) {
        msg->release(msg);
    } else if ((how & 4) && !*at) {
        *at = msg;
        has.from[id & 3] = from;
    } else {
        message_deliver(from, msg);
    }
}

static void waiting_end(size_t i, bool delivers)
{
    struct tenrec_msg *msg = has.waiting[i];

    has.waiting[i] = NULL;
    if (msg && delivers)
        message_deliver(has.from[i], msg);
    else if (msg)
        msg->release(msg); /* its connection has ended */
}

static void step(struct fuzz_input *in)
{
    const uint8_t what = (uint8_t)fuzz_take(in, 1);

    switch (what % 8) {
    case 0:
        region_register(in);
        break;
    case 1:
        region_revoke(in);
        break;
    case 2:
        region_end(in);
        break;
    case 3:
        transfer_begin(in);
        break;
    case 4:
        waiting_end(what >> 4 & 3, what & 8);
        break;
    default:
        message_arrives(in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fuzz_input in = { data, len };

    memset(&has, 0, sizeof has);
    fake_worker_make(false);
    (*region_table_of(&fake.worker))->life = LIFE;
    for (int i = 0; in.len && i < STEPS_MAX; i++)
        step(&in);
    for (size_t i = 0; i < WAITING; i++)
        waiting_end(i, false);
    for (size_t i = 0; i < REGIONS; i++)
        tenrec_region_drop(has.region[i]);
    fake_worker_end();
    return 0;
}
