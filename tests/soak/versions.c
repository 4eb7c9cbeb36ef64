/* SPDX-License-Identifier: Apache-2.0 */
/* versions.c - publishes and pulls versions of weights, whose elements follow from the version,
 * its publisher and their place. */
#include "caller.h"
#include "ledger.h"
#include "soak_functions.h"

#include <tenrec/weights.h>

/* The matrix has two halves, so that two workers can publish a version together. */
enum {
    REPORT_MS = 5000,
    HALF = 300,
    ROWS = 2 * HALF,
    COLS = 500,
    WAIT_MS = 300,
    STUCK_MS = 20000,
    TOGETHER = 3
};

/* Elements: the ids of the publishers of both halves, and the matrix. */
struct elements {
    struct tenrec_tensor *ids, *matrix;
    int64_t row, rows; /* of the matrix */
};

/* Of the one thread that has this job. */
static struct tenrec_weights *set;
static struct elements pulled, held; /* of pulls; published in place */
static int64_t have, held_version, known;
static uint64_t held_id; /* of its publish */
static unsigned held_for;

static void elements_drop(struct elements *e)
{
    tenrec_tensor_drop(e->ids);
    tenrec_tensor_drop(e->matrix);
    memset(e, 0, sizeof *e);
}

/* Of both halves, or of one, or of rows of both. */
static tenrec_status elements_new(struct elements *e, int64_t ids, int64_t row, int64_t rows,
                                  tenrec_error *err)
{
    const int64_t shape[] = { rows, COLS };
    tenrec_status st = tenrec_tensor_new(TENREC_INT64, 1, &ids, &e->ids, err);

    e->row = row;
    e->rows = rows;
    return st == TENREC_OK ? tenrec_tensor_new(TENREC_INT32, 2, shape, &e->matrix, err) : st;
}

static uint64_t origin(int64_t id, int64_t version)
{
    return (uint64_t)id * 31 + (uint64_t)version;
}

static void elements_fill(struct elements *e, int64_t id, int64_t version)
{
    int64_t *ids = tenrec_tensor_data(e->ids);

    for (uint64_t i = 0; i < tenrec_tensor_count(e->ids); i++)
        ids[i] = id;
    pattern_fill(tenrec_tensor_data(e->matrix), origin(id, version), (uint64_t)(e->row * COLS * 4),
                 tenrec_tensor_bytes(e->matrix));
}

/* `e` has both ids. */
static bool elements_are(const struct elements *e, int64_t version)
{
    const int64_t *ids = tenrec_tensor_data(e->ids);
    const int64_t bytes = COLS * 4;
    bool good = true;

    for (int64_t r = e->row; r < e->row + e->rows && good; r++)
        good = pattern_is((char *)tenrec_tensor_data(e->matrix) + (r - e->row) * bytes,
                          origin(ids[r / HALF], version), (uint64_t)(r * bytes), (uint64_t)bytes);
    return good;
}

/* The boxes of elements whose first id is that of the half `half`. */
static void elements_boxes(const struct elements *e, const int64_t *half,
                           struct tenrec_weights_box ret[2])
{
    static const int64_t ids[] = { 2 }, matrix[] = { ROWS, COLS };
    static const int64_t at[][2] = { { 0, 0 }, { HALF / 2, 0 }, { HALF, 0 } };

    ret[0] = (struct tenrec_weights_box){
        .size = sizeof ret[0], .name = "ids", .tensor = e->ids, .shape = ids, .at = half
    };
    ret[1] = (struct tenrec_weights_box){ .size = sizeof ret[1],
                                          .name = "matrix",
                                          .tensor = e->matrix,
                                          .shape = matrix,
                                          .at = at[e->row / (HALF / 2)] };
}

static struct tenrec_weights_options options(int64_t ms)
{
    return (struct tenrec_weights_options){ .size = sizeof(struct tenrec_weights_options),
                                            .timeout_ms = ms };
}

/* ---- in place ------------------------------------------------------------------- */

/* Ends what is published in place: then its memory is this worker's alone. */
static tenrec_status withdraw(int64_t ms)
{
    static int64_t late; /* that was not withdrawn in time: it may have ended since */
    const uint64_t id = begin(KIND_WITHDRAW, ms);
    tenrec_error err;
    tenrec_status st = tenrec_weights_withdraw(set, held_version, ms, &err);
    const bool ended = st == TENREC_ENOTFOUND && late == held_version;

    if (st == TENREC_ENOTFOUND && !ended)
        ledger_note(LEDGER_BAD, held_id, BAD_WITHDRAW, 0);
    if (st == TENREC_ETIMEDOUT)
        late = held_version;
    if (st == TENREC_ETIMEDOUT && !strstr(err.text, "'worker"))
        ledger_note(LEDGER_BAD, id, BAD_NAMES, 0);
    end(id, st, &err);
    if (st != TENREC_OK && !ended)
        return st;
    elements_fill(&held, (int64_t)id, -1); /* no reader may see that */
    elements_drop(&held);
    held_version = 0;
    return TENREC_OK;
}

/* ---- publish --------------------------------------------------------------------- */

/* Which half this worker publishes of a version of two publishers; -1: none. */
static int own_half(const struct caller *c)
{
    struct tenrec_worker_info me = { 0 };

    (void)tenrec_get_worker_info(c->worker, NULL, &me, NULL);
    if (strcmp(me.name, "worker0") == 0)
        return 0;
    return strcmp(me.name, "worker1") == 0 ? 1 : -1;
}

/* The newest version that is visible. */
static void ask_newest(void)
{
    const uint64_t id = begin(KIND_WAIT, WAIT_MS);
    struct tenrec_value *view = NULL;
    tenrec_error err;
    tenrec_status st = tenrec_weights_wait(set, TENREC_WEIGHTS_LATEST, 0, WAIT_MS, &view, &err);
    const struct tenrec_value *v = st == TENREC_OK ? tenrec_value_find(view, "version") : NULL;

    if (v && v->type == TENREC_VALUE_INT && v->u.integer > known)
        known = v->u.integer;
    end(id, st, &err);
    tenrec_value_drop(view);
}

static tenrec_status publish_elements(struct elements *e, int64_t version, int64_t half, bool whole,
                                      uint32_t flags)
{
    struct tenrec_weights_options o = options(whole ? 1000 : 3000);
    const uint64_t id = begin(KIND_PUBLISH, o.timeout_ms);
    struct tenrec_weights_box box[2];
    tenrec_error err;
    tenrec_status st;

    o.flags = flags;
    o.publishers = whole ? 1 : 2;
    elements_fill(e, (int64_t)id, version);
    elements_boxes(e, &half, box);
    st = tenrec_weights_publish(set, version, box, 2, &o, &err);
    end(id, st, &err);
    if (st == TENREC_OK && flags) {
        held = *e;
        held_version = version;
        held_id = id;
    }
    return st;
}

static void publish(struct caller *c)
{
    const int half = own_half(c);
    int64_t version;
    struct elements e = { 0 };
    uint32_t flags = held_version || draw(c, 3) ? 0 : TENREC_WEIGHTS_IN_PLACE;
    tenrec_error err;
    tenrec_status st;
    bool whole;

    ask_newest();
    version = known + 1;
    whole = version % TOGETHER != 0;
    if (!whole && half < 0)
        return;
    st = elements_new(&e, whole ? 2 : 1, whole ? 0 : half * HALF, whole ? ROWS : HALF, &err);
    if (st == TENREC_OK)
        st = publish_elements(&e, version, whole ? 0 : half, whole, flags);
    if (st == TENREC_EEXIST)
        known++;
    if (st == TENREC_OK && flags) {
        held_for = 1 + draw(c, 10);
        return;
    }
    if (!flags && e.matrix)
        elements_fill(&e, 0, -1); /* the copy is made */
    elements_drop(&e);
}

/* ---- pull ------------------------------------------------------------------------ */

static void report(int64_t version, bool well)
{
    const uint64_t id = begin(KIND_REPORT, REPORT_MS);
    tenrec_error err, why;
    tenrec_status st;

    (void)tenrec_fail(&why, TENREC_EINVAL, "a soak refuses some");
    st = tenrec_weights_report(set, version, well ? NULL : &why, &err);
    end(id, st, &err);
}

/* Mostly into the memory of the pull before, whose readers go on elsewhere. */
static void pull(struct caller *c)
{
    static const int64_t limit[] = { 100, 1000, 3000 }, none = 0;
    struct tenrec_weights_options o = options(limit[draw(c, 3)]);
    const bool rows = draw(c, 4) == 0, former = draw(c, 8) == 0;
    struct tenrec_weights_box box[2];
    const uint64_t id = begin(KIND_PULL, o.timeout_ms);
    tenrec_error err;
    tenrec_status st = TENREC_OK;

    o.after = draw(c, 2) ? have : 0;
    if (!pulled.ids || draw(c, 8) == 0) {
        elements_drop(&pulled);
        st = elements_new(&pulled, 2, rows ? HALF / 2 : 0, rows ? HALF : ROWS, &err);
    }
    if (st == TENREC_OK) {
        elements_boxes(&pulled, &none, box);
        st = tenrec_weights_pull(set, former && have ? have : TENREC_WEIGHTS_LATEST, box, 2, &o,
                                 &have, &err);
    }
    if (st == TENREC_OK && !elements_are(&pulled, have))
        ledger_note(LEDGER_BAD, id, BAD_MIXED, 0);
    end(id, st, &err);
    if (st == TENREC_OK)
        report(have, draw(c, 8) != 0);
}

/* ---- the job --------------------------------------------------------------------- */

static void versions_rest(struct caller *c)
{
    (void)c;
    for (int i = 0; held_version && i < STUCK_MS * slow() / 2000; i++)
        (void)withdraw(2000);
    if (held_version)
        ledger_note(LEDGER_BAD, held_id, BAD_WITHDRAW, 0);
    tenrec_weights_close(set);
    set = NULL;
    elements_drop(&pulled);
    elements_drop(&held);
    held_version = have = 0;
}

static bool versions_work(struct caller *c)
{
    tenrec_error err;

    if (work_was_removed())
        return false;
    if (!set && tenrec_weights_open(c->worker, "soak", "worker0", &set, &err) != TENREC_OK)
        return false;
    if (held_version && held_for-- == 0 && withdraw(draw(c, 2) ? 50 : 1000) != TENREC_OK)
        held_for = 1;
    if (draw(c, 3) == 0)
        publish(c);
    else
        pull(c);
    if (draw(c, 64) == 0)
        versions_rest(c);
    return false;
}

const struct caller_job versions_job = { .work = versions_work, .rest = versions_rest };
