/* SPDX-License-Identifier: Apache-2.0 */
/* regions.c - reads and writes of memory that the callee has registered: in one piece, or in
 * scattered blocks as one batch; and the registration itself. */
#include "measure.h"
#include "modes.h"
#include "side.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/region.h>

#define BLOCK ((uint64_t)16 << 10)
#define SCATTER 617 /* a prime: block i of a batch is the (617 * i)th of the memory */

struct state {
    struct side *side;
    struct measure m;
    struct tenrec_tensor *local;
    struct tenrec_bulk *entries;
    size_t n;
};

static bool mode_has(const struct trial *t, const char *word)
{
    return strstr(t->mode, word) != NULL;
}

static void prepare(struct trial *t)
{
    struct state *s = calloc(1, sizeof *s);

    if (!s)
        pair_die("calloc");
    s->side = side_new(t->via, t->progress, 2);
    t->state = s;
}

/* ---- the callee ---------------------------------------------------------------------- */

static int serve(struct trial *t)
{
    struct state *s = t->state;
    struct tenrec_worker *w = side_worker(s->side, 1);
    struct tenrec_tensor *memory = side_tensor(t->size, mode_has(t, "mapped"));
    struct tenrec_region_ref ref;
    struct tenrec_region *r;
    struct measure_callee c;
    tenrec_error err;

    if (measure_callee_init(&c, w, PAIR_SMALL, TENREC_INLINE, &err) || tenrec_init_rpc(w, &err) ||
        tenrec_region_new(w, memory, TENREC_REGION_READ | TENREC_REGION_WRITE, &r, &err))
        side_give_up(&err);
    tenrec_region_describe(r, &ref);
    driver_say(t, &ref, sizeof ref);
    measure_callee_wait(&c);
    tenrec_region_drop(r);
    tenrec_tensor_drop(memory);
    side_end_worker(w);
    measure_callee_finish(&c);
    return 0;
}

/* ---- the caller --------------------------------------------------------------------------- */

static void transfer(struct state *s)
{
    const struct tenrec_bulk_options waits = { .size = sizeof waits, .flags = TENREC_WAIT_NEXT };
    struct tenrec_future *f;
    tenrec_error err;

    if (tenrec_bulk_async(s->m.worker, s->entries, s->n, &waits, &f, &err) ||
        tenrec_future_wait(f, TENREC_TIMEOUT_DEFAULT, &err))
        side_give_up(&err);
    tenrec_future_drop(f);
}

static void set_direction(struct state *s, uint32_t direction)
{
    for (size_t i = 0; i < s->n; i++)
        s->entries[i].direction = direction;
}

static void make_entries(const struct trial *t, struct state *s)
{
    const uint64_t one = mode_has(t, "blocks") ? BLOCK : t->size;
    struct tenrec_region_ref ref;

    driver_hear(t, &ref, sizeof ref);
    s->n = (t->size + one - 1) / one;
    s->entries = calloc(s->n, sizeof *s->entries);
    if (!s->entries || t->size % one)
        pair_die("%zu bytes are no whole number of blocks", t->size);
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t at = i * SCATTER % s->n * one;

        s->entries[i] = (struct tenrec_bulk){ .size = sizeof s->entries[i],
                                              .remote = ref,
                                              .remote_offset = at,
                                              .bytes = one,
                                              .local = s->local,
                                              .local_offset = at };
    }
}

/* The transfer reads the pattern of the callee; a put writes it first from here. */
static void check_bytes(const struct trial *t, struct state *s)
{
    if (mode_has(t, "put"))
        transfer(s);
    memset(tenrec_tensor_data(s->local), 0, t->size);
    set_direction(s, TENREC_BULK_READ);
    transfer(s);
    pair_expect(t->peer, tenrec_tensor_data(s->local), t->size);
}

static void start(struct trial *t)
{
    const uint32_t direction = mode_has(t, "put") ? TENREC_BULK_WRITE : TENREC_BULK_READ;
    struct state *s = t->state;
    tenrec_error err;

    s->m.worker = side_worker(s->side, 0);
    s->m.to = "w1";
    s->local = side_tensor(t->size, false);
    if (tenrec_init_rpc(s->m.worker, &err))
        side_give_up(&err);
    make_entries(t, s);
    set_direction(s, direction);
    check_bytes(t, s);
    set_direction(s, direction);
}

static void call(struct trial *t)
{
    transfer(t->state);
}

static void call_register(struct trial *t)
{
    struct state *s = t->state;
    struct tenrec_region *r;
    tenrec_error err;

    if (tenrec_region_new(s->m.worker, s->local, TENREC_REGION_READ, &r, &err))
        side_give_up(&err);
    tenrec_region_drop(r);
}

static void end(struct trial *t)
{
    struct state *s = t->state;
    tenrec_error err;

    tenrec_tensor_drop(s->local);
    free(s->entries);
    if (measure_end(&s->m, &err))
        side_give_up(&err);
    side_end_worker(s->m.worker);
}

static void clean(struct trial *t)
{
    side_drop(((struct state *)t->state)->side);
}

#define REGIONS_WAY(name, mode, fn)                                                                \
    {                                                                                              \
        .peer = "tenrec", .via = name, .modes = mode, .progress = "busy adaptive sleep",           \
        .prepare = prepare, .serve = serve, .open = start, .call = fn, .close = end,               \
        .clean = clean                                                                             \
    }
#define MODES "get put get_mapped get_blocks put_blocks"

const struct way regions_uv = REGIONS_WAY("uv", MODES, call);
const struct way regions_shm = REGIONS_WAY("shm", MODES, call);
const struct way regions_ucx = REGIONS_WAY("ucx", MODES, call);
const struct way regions_register = REGIONS_WAY("shm", "register", call_register);
