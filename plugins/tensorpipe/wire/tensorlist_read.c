/* SPDX-License-Identifier: Apache-2.0 */
/* tensorlist_read.c - the tensor list out of torch's pickle. */
#include "wire/pickle.h"
#include "wire/storage.h"
#include "wire/tensorlist.h"

enum name_tag { NAME_BUILD_LIST, NAME_REBUILD, NAME_ORDERED_DICT, NAME_STORAGE_CLASS };
enum other_tag { OTHER_STORAGE, OTHER_HOOKS, OTHER_RESULT };

#define UNUSED UINT32_MAX /* carried.tensor: no tensor yet */

struct tensorlist_reader {
    const struct listed *to;
    uint32_t at;          /* the tensor that is being read */
    uint32_t named, used; /* storages so far: by their persistent id, by a tensor */
    uint32_t memo;        /* the last one of a storage; without one 0 */
    bool has_memo;
    struct tenrec_tensor_desc beyond; /* for a tensor that finds no room */
};

static void fail_tensor(struct pickle *p, tenrec_status code, const char *text)
{
    const struct tensorlist_reader *l = p->arg;

    nop_reader_fail(&p->r, code, "pickle", "tensor %u: %s", l->at, text);
}

static void read_global(struct pickle *p, struct nop_bytes module, struct nop_bytes name,
                        struct pickle_value *ret)
{
    static const struct {
        const char *module, *name;
        enum name_tag tag;
    } known[] = {
        { "torch.jit._pickle", "build_tensorlist", NAME_BUILD_LIST },
        { "torch._utils", "_rebuild_tensor_v2", NAME_REBUILD },
        { "collections", "OrderedDict", NAME_ORDERED_DICT },
    };
    struct tenrec_dtype dtype;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (nop_bytes_is(module, known[i].module) && nop_bytes_is(name, known[i].name)) {
            ret->tag = known[i].tag;
            return;
        }
    if (!storage_dtype(module, name, &dtype)) {
        nop_reader_fail(&p->r, TENREC_EUNSUPPORTED, "pickle",
                        "\"%.*s.%.*s\": only dense tensors of known storage classes can be read",
                        NOP_PRINT(module), NOP_PRINT(name));
        return;
    }
    /* A dtype fits into the number that a memoized name carries along. */
    ret->tag = NAME_STORAGE_CLASS;
    ret->number = (int64_t)dtype.code << 32 | (int64_t)dtype.bits << 16 | dtype.lanes;
}

static bool is_key(struct nop_bytes text, uint32_t index)
{
    char key[12];

    snprintf(key, sizeof key, "%u", index);
    return nop_bytes_is(text, key);
}

/* ("storage", class, key, device, elements), of the form that torch writes. */
static bool storage_check(struct pickle *p, const struct pickle_value *id)
{
    static const enum pickle_kind kinds[5] = { PICKLE_STRING, PICKLE_GLOBAL, PICKLE_STRING,
                                               PICKLE_STRING, PICKLE_INT };
    const struct pickle_value *item = pickle_item(p, id, 0);
    const struct tensorlist_reader *l = p->arg;

    for (uint32_t i = 0; i < 5; i++)
        if (id->count != 5 || item[i].kind != kinds[i]) {
            fail_tensor(p, TENREC_EPROTOCOL, "expected a storage of 5 parts");
            return false;
        }
    if (!nop_bytes_is(item[0].text, "storage") || item[1].tag != NAME_STORAGE_CLASS)
        fail_tensor(p, TENREC_EPROTOCOL, "expected a storage with its class");
    else if (l->named == l->to->n_carried)
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle",
                        "more storages than the %u that the message carries", l->named);
    else if (!is_key(item[2].text, l->named))
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle",
                        "tensor %u: expected storage %u, the next one, as key, got \"%.*s\"", l->at,
                        l->named, NOP_PRINT(item[2].text));
    return !p->r.status;
}

static void storage_value(uint32_t index, struct pickle_value *ret)
{
    *ret = (struct pickle_value){ .kind = PICKLE_OTHER, .tag = OTHER_STORAGE, .first = index };
}

static void read_storage(struct pickle *p, const struct pickle_value *id, struct pickle_value *ret)
{
    struct tensorlist_reader *l = p->arg;
    const struct pickle_value *item = pickle_item(p, id, 0);
    struct carried *c;
    uint64_t bytes;

    if (!storage_check(p, id))
        return;
    c = &l->to->carried[l->named];
    c->dtype = (struct tenrec_dtype){ (uint8_t)(item[1].number >> 32),
                                      (uint8_t)(item[1].number >> 16), (uint16_t)item[1].number };
    if (item[4].number < 0 ||
        __builtin_mul_overflow((uint64_t)item[4].number, storage_element_bytes(c->dtype), &bytes) ||
        bytes > c->bytes)
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle",
                        "tensor %u: %lld elements of %u bytes in a storage of %llu", l->at,
                        (long long)item[4].number, storage_element_bytes(c->dtype),
                        (unsigned long long)c->bytes);
    c->tensor = UNUSED;
    c->memo = l->memo;
    c->named = false;
    storage_value(l->named++, ret);
}

/* torch gives each storage a memo once and counts upwards, so that recalls need no more
 * than a binary search, however many storages there are. */
static void remember_storage(struct pickle *p, uint32_t key, const struct pickle_value *other)
{
    struct tensorlist_reader *l = p->arg;
    struct carried *c;

    if (other->tag != OTHER_STORAGE)
        return;
    c = &l->to->carried[other->first];
    if (other->first + 1 != l->named || c->named || (l->has_memo && key <= l->memo)) {
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle",
                        "memo %u of storage %u: expected one memo per storage, in rising order",
                        key, other->first);
        return;
    }
    c->memo = l->memo = key;
    c->named = l->has_memo = true;
}

static bool recall_storage(const struct pickle *p, uint32_t key, struct pickle_value *ret)
{
    const struct tensorlist_reader *l = p->arg;
    uint32_t low = 0, high = l->named;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (l->to->carried[middle].memo < key)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == l->named || l->to->carried[low].memo != key || !l->to->carried[low].named)
        return false;
    storage_value(low, ret);
    return true;
}

static void read_numbers(struct pickle *p, const struct pickle_value *tuple, int64_t *ret)
{
    for (uint32_t i = 0; i < tuple->count; i++) {
        const struct pickle_value *item = pickle_item(p, tuple, i);
        if (item->kind != PICKLE_INT) {
            fail_tensor(p, TENREC_EPROTOCOL, "expected numbers as sizes and strides");
            return;
        }
        ret[i] = item->number;
    }
}

/* The arguments of _rebuild_tensor_v2 are those that torch writes. */
static bool check_args(struct pickle *p, const struct pickle_value *args)
{
    const struct pickle_value *a = pickle_item(p, args, 0);
    const struct tensorlist_reader *l = p->arg;

    if (args->count != 6 || a[0].kind != PICKLE_OTHER || a[0].tag != OTHER_STORAGE ||
        a[1].kind != PICKLE_INT || a[2].kind != PICKLE_TUPLE || a[3].kind != PICKLE_TUPLE ||
        a[4].kind != PICKLE_BOOL || a[5].kind != PICKLE_OTHER || a[5].tag != OTHER_HOOKS)
        fail_tensor(p, TENREC_EPROTOCOL,
                    "expected storage, offset, sizes, strides, requires_grad and hooks");
    else if (l->at >= l->to->max)
        nop_reader_fail(&p->r, TENREC_ETOOBIG, "pickle", "more than %u tensors", l->to->max);
    else if (a[2].count > TENREC_MAX_DIMS)
        nop_reader_fail(&p->r, TENREC_ETOOBIG, "pickle",
                        "tensor %u: %u dimensions; the limit is %d", l->at, a[2].count,
                        TENREC_MAX_DIMS);
    else if (a[2].count != a[3].count)
        fail_tensor(p, TENREC_EPROTOCOL, "expected as many strides as sizes");
    return !p->r.status;
}

/* Which storage the tensor views: the next one, or one that an earlier tensor has. */
static void tensor_set_storage(struct pickle *p, struct tenrec_tensor_desc *t, uint32_t storage)
{
    struct tensorlist_reader *l = p->arg;
    struct carried *c = &l->to->carried[storage];

    t->bytes = c->bytes;
    t->dtype = c->dtype;
    t->same_storage = 0;
    if (c->tensor != UNUSED)
        t->same_storage = (uint64_t)c->tensor + 1;
    else if (storage != l->used)
        fail_tensor(p, TENREC_EPROTOCOL, "its storage is not the next one");
    else
        l->used++;
    if (c->tensor == UNUSED)
        c->tensor = l->at;
}

static void read_tensor(struct pickle *p, const struct pickle_value *args)
{
    const struct pickle_value *a = pickle_item(p, args, 0);
    struct tensorlist_reader *l = p->arg;
    struct tenrec_tensor_desc *t;
    tenrec_error why;

    if (!check_args(p, args))
        return;
    t = l->at < l->to->room ? listed_tensor(l->to, l->at) : &l->beyond;
    tensor_set_storage(p, t, a[0].first);
    t->ndim = a[2].count;
    t->flags = a[4].number ? TENREC_TENSOR_REQUIRES_GRAD : 0;
    read_numbers(p, &a[2], t->shape);
    read_numbers(p, &a[3], t->strides);
    if (p->r.status)
        return;
    if (a[1].number < 0 || __builtin_mul_overflow((uint64_t)a[1].number,
                                                  storage_element_bytes(t->dtype), &t->byte_offset))
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle", "tensor %u: offset %lld", l->at,
                        (long long)a[1].number);
    else if (storage_check_view(t, TENREC_EPROTOCOL, &why))
        fail_tensor(p, TENREC_EPROTOCOL, why.text);
}

static void read_call(struct pickle *p, const struct pickle_value *callable,
                      const struct pickle_value *args, struct pickle_value *ret)
{
    struct tensorlist_reader *l = p->arg;

    switch (callable->tag) {
    case NAME_REBUILD:
        read_tensor(p, args);
        l->at++;
        *ret = (struct pickle_value){ .kind = PICKLE_OBJECTS, .count = 1 };
        return;
    case NAME_ORDERED_DICT:
        if (args->count != 0)
            fail_tensor(p, TENREC_EUNSUPPORTED, "backward hooks");
        *ret = (struct pickle_value){ .kind = PICKLE_OTHER, .tag = OTHER_HOOKS };
        return;
    case NAME_BUILD_LIST:
        if (args->count != 1 || pickle_item(p, args, 0)->kind != PICKLE_LIST)
            break;
        *ret = (struct pickle_value){ .kind = PICKLE_OTHER,
                                      .tag = OTHER_RESULT,
                                      .number = pickle_item(p, args, 0)->count };
        return;
    default:
        break;
    }
    nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle",
                    "\"%.*s\" is called with other arguments "
                    "than torch's",
                    NOP_PRINT(callable->text));
}

tenrec_status tensorlist_read(const void *pickle, size_t len, const struct listed *to,
                              uint32_t *ret_n, tenrec_error *err)
{
    static const struct pickle_user user = { .global = read_global,
                                             .reduce = read_call,
                                             .persistent = read_storage,
                                             .remember = remember_storage,
                                             .recall = recall_storage };
    struct tensorlist_reader list = { .to = to };
    struct pickle_value result;
    struct pickle p;

    *ret_n = 0;
    if (to->n_carried == 0 && tensorlist_is_empty(pickle, len))
        return TENREC_OK;
    nop_reader_init(&p.r, "tensor list", pickle, len, err);
    if (pickle_run(&p, &user, &list, &result))
        return p.r.status;
    if (result.kind != PICKLE_OTHER || result.tag != OTHER_RESULT || result.number != list.at)
        nop_reader_fail(&p.r, TENREC_EPROTOCOL, "pickle", "expected a tensor list");
    else if (list.used != to->n_carried)
        nop_reader_fail(&p.r, TENREC_EPROTOCOL, "pickle",
                        "expected the %u storages that the message carries, got %u", to->n_carried,
                        list.used);
    *ret_n = list.at;
    return p.r.status;
}
