/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.c - the pickle operations that torch's C++ pickler writes. */
#include "wire/pickle.h"

static void pickle_fail(struct pickle *p, const char *text)
{
    nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle", "%s", text);
}

static const unsigned char *pickle_take(struct pickle *p, size_t len)
{
    const unsigned char *at = p->r.pos;

    if ((size_t)(p->r.end - at) < len) {
        pickle_fail(p, "it ends inside an operation");
        return NULL;
    }
    p->r.pos += len;
    return at;
}

/* Little endian, at most 8 bytes. */
static uint64_t take_number(struct pickle *p, unsigned int len)
{
    const unsigned char *at = pickle_take(p, len);
    uint64_t value = 0;

    for (unsigned int i = 0; at && i < len; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* Up to the next line end, which is taken too. */
static struct nop_bytes take_line(struct pickle *p)
{
    struct nop_bytes line = { p->r.pos, 0 };
    size_t rest = (size_t)(p->r.end - p->r.pos);
    const unsigned char *end = rest > 0 ? memchr(p->r.pos, '\n', rest) : NULL;

    if (!end) {
        pickle_fail(p, "a name has no end");
        return line;
    }
    line.len = (size_t)(end - line.data);
    p->r.pos = end + 1;
    return line;
}

static void pickle_push(struct pickle *p, struct pickle_value value)
{
    struct pickle_value *top = p->n_stack > 0 ? &p->stack[p->n_stack - 1] : NULL;

    if (p->r.status)
        return;
    /* Objects in a row take one place, so that their number has no limit. */
    if (value.kind == PICKLE_OBJECTS && top && top->kind == PICKLE_OBJECTS)
        top->count += value.count;
    else if (p->n_stack == PICKLE_STACK)
        nop_reader_fail(&p->r, TENREC_ETOOBIG, "pickle", "more than %d values on its stack",
                        PICKLE_STACK);
    else
        p->stack[p->n_stack++] = value;
}

static void push_number(struct pickle *p, enum pickle_kind kind, int64_t number)
{
    pickle_push(p, (struct pickle_value){ .kind = kind, .number = number });
}

static struct pickle_value pickle_pop(struct pickle *p)
{
    if (p->r.status || p->n_stack == 0 || p->stack[p->n_stack - 1].kind == PICKLE_MARK) {
        pickle_fail(p, "an operation lacks its operand");
        return (struct pickle_value){ .kind = PICKLE_NOTHING };
    }
    return p->stack[--p->n_stack];
}

/* Makes a tuple of the top `n` values, in their place and that of the `marks` below them. */
static void make_tuple(struct pickle *p, uint32_t n, uint32_t marks)
{
    struct pickle_value tuple = {
        .kind = PICKLE_TUPLE, .number = p->n_items, .first = p->n_items, .count = n
    };

    if (n > PICKLE_ITEMS - p->n_items) {
        nop_reader_fail(&p->r, TENREC_ETOOBIG, "pickle", "more than %d items in its tuples",
                        PICKLE_ITEMS);
        return;
    }
    for (uint32_t i = n; i > 0; i--) {
        struct pickle_value item = pickle_pop(p);
        if (item.kind == PICKLE_TUPLE && item.number < tuple.number)
            tuple.number = item.number;
        p->items[tuple.first + i - 1] = item;
    }
    p->n_items += n;
    p->n_stack -= marks;
    pickle_push(p, tuple);
}

/* The number of values above the topmost mark. */
static uint32_t above_mark(struct pickle *p)
{
    uint32_t i = p->n_stack;

    while (i > 0 && p->stack[i - 1].kind != PICKLE_MARK)
        i--;
    if (i == 0)
        pickle_fail(p, "an operation lacks its mark");
    return i == 0 ? 0 : p->n_stack - i;
}

static void tuple_from_mark(struct pickle *p)
{
    uint32_t n = above_mark(p);

    if (!p->r.status)
        make_tuple(p, n, 1);
}

static void append_from_mark(struct pickle *p)
{
    uint32_t n = above_mark(p);
    struct pickle_value objects = { .count = 0 };

    if (p->r.status)
        return;
    if (n > 0)
        objects = pickle_pop(p);
    if (n > 1 || (n == 1 && objects.kind != PICKLE_OBJECTS)) {
        pickle_fail(p, "a list holds something else than tensors");
        return;
    }
    p->n_stack--; /* the mark */
    if (p->n_stack == 0 || p->stack[p->n_stack - 1].kind != PICKLE_LIST)
        pickle_fail(p, "values are appended to something that is no list");
    else
        p->stack[p->n_stack - 1].count += objects.count;
}

/* Keys of storages are digits: their number grows with the list, and torch recalls none. */
static bool worth_keeping(const struct pickle_value *value)
{
    if (value->kind == PICKLE_STRING)
        for (size_t i = 0; i < value->text.len; i++)
            if (value->text.data[i] < '0' || value->text.data[i] > '9')
                return true;
    return value->kind == PICKLE_GLOBAL;
}

static const struct pickle_value *memo_find(const struct pickle *p, uint32_t key)
{
    for (uint32_t i = 0; i < p->n_memo; i++)
        if (p->memo[i].key == key)
            return &p->memo[i].value;
    return NULL;
}

static void memo_put(struct pickle *p, uint32_t key)
{
    const struct pickle_value *top = p->n_stack > 0 ? &p->stack[p->n_stack - 1] : NULL;

    if (p->r.status)
        return;
    if (!top)
        pickle_fail(p, "it memoizes nothing");
    else if (memo_find(p, key))
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle", "it sets memo %u twice", key);
    else if (top->kind == PICKLE_OTHER)
        p->user->remember(p, key, top);
    else if (worth_keeping(top) && p->n_memo < PICKLE_MEMO) {
        p->memo[p->n_memo].key = key;
        p->memo[p->n_memo++].value = *top;
    }
}

static void memo_get(struct pickle *p, uint32_t key)
{
    const struct pickle_value *kept = memo_find(p, key);
    struct pickle_value value;

    if (p->r.status)
        return;
    if (kept)
        pickle_push(p, *kept);
    else if (p->user->recall(p, key, &value))
        pickle_push(p, value);
    else
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle",
                        "it recalls memo %u, which holds no name and no storage", key);
}

static void run_global(struct pickle *p)
{
    struct pickle_value value = { .kind = PICKLE_GLOBAL };
    struct nop_bytes module = take_line(p), name = take_line(p);

    if (p->r.status)
        return;
    value.text = name;
    p->user->global(p, module, name, &value);
    pickle_push(p, value);
}

static void run_reduce(struct pickle *p)
{
    struct pickle_value args = pickle_pop(p), callable = pickle_pop(p);
    struct pickle_value result = { .kind = PICKLE_NOTHING };

    if (!p->r.status && (args.kind != PICKLE_TUPLE || callable.kind != PICKLE_GLOBAL))
        pickle_fail(p, "a call needs a name and a tuple");
    if (p->r.status)
        return;
    p->user->reduce(p, &callable, &args, &result);
    /* The tuple is consumed; the entries below it on the stack are older. */
    p->n_items = (uint32_t)args.number;
    pickle_push(p, result);
}

static void run_persistent(struct pickle *p)
{
    struct pickle_value id = pickle_pop(p), result = { .kind = PICKLE_NOTHING };

    if (!p->r.status && id.kind != PICKLE_TUPLE)
        pickle_fail(p, "a persistent id is no tuple");
    if (p->r.status)
        return;
    p->user->persistent(p, &id, &result);
    p->n_items = (uint32_t)id.number;
    pickle_push(p, result);
}

static void run_string(struct pickle *p)
{
    struct pickle_value value = { .kind = PICKLE_STRING };

    value.text.len = (size_t)take_number(p, 4);
    value.text.data = pickle_take(p, value.text.len);
    pickle_push(p, value);
}

static void run_long(struct pickle *p)
{
    uint64_t len = take_number(p, 1);

    if (!p->r.status && len != 8)
        pickle_fail(p, "a long number of other than 8 bytes");
    push_number(p, PICKLE_INT, (int64_t)take_number(p, 8));
}

/* The operations that push a value of their own. */
static bool run_push(struct pickle *p, unsigned int op)
{
    switch (op) {
    case '(':
        pickle_push(p, (struct pickle_value){ .kind = PICKLE_MARK });
        return true;
    case ']':
        pickle_push(p, (struct pickle_value){ .kind = PICKLE_LIST });
        return true;
    case 'K':
    case 'M':
        push_number(p, PICKLE_INT, (int64_t)take_number(p, op == 'K' ? 1 : 2));
        return true;
    case 'J':
        push_number(p, PICKLE_INT, (int32_t)(uint32_t)take_number(p, 4));
        return true;
    case 0x8a:
        run_long(p);
        return true;
    case 0x88:
    case 0x89:
        push_number(p, PICKLE_BOOL, op == 0x88);
        return true;
    case 'X':
        run_string(p);
        return true;
    default:
        return false;
    }
}

static void run_op(struct pickle *p, unsigned int op)
{
    switch (op) {
    case 'c':
        run_global(p);
        break;
    case ')':
        make_tuple(p, 0, 0);
        break;
    case 0x85:
    case 0x86:
    case 0x87:
        make_tuple(p, op - 0x84, 0);
        break;
    case 't':
        tuple_from_mark(p);
        break;
    case 'e':
        append_from_mark(p);
        break;
    case 'R':
        run_reduce(p);
        break;
    case 'Q':
        run_persistent(p);
        break;
    case 'q':
    case 'r':
        memo_put(p, (uint32_t)take_number(p, op == 'q' ? 1 : 4));
        break;
    case 'h':
    case 'j':
        memo_get(p, (uint32_t)take_number(p, op == 'h' ? 1 : 4));
        break;
    default:
        if (!run_push(p, op)) {
            p->r.pos--;
            nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle",
                            "operation 0x%02x is none that torch writes here", op);
        }
    }
}

static unsigned int take_op(struct pickle *p)
{
    const unsigned char *at = pickle_take(p, 1);

    return at ? *at : '.';
}

tenrec_status pickle_run(struct pickle *p, const struct pickle_user *user, void *arg,
                         struct pickle_value *ret)
{
    unsigned int op;

    p->user = user;
    p->arg = arg;
    p->n_stack = p->n_items = p->n_memo = 0;
    if (take_op(p) != 0x80 || take_number(p, 1) != 2)
        pickle_fail(p, "expected protocol 2");
    while (!p->r.status && (op = take_op(p)) != '.')
        run_op(p, op);
    *ret = pickle_pop(p);
    if (!p->r.status && p->n_stack > 0)
        pickle_fail(p, "it ends with more than one value");
    return p->r.status;
}
