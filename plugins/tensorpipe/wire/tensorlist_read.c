/* tensorlist_read.c - the tensor list out of torch's pickle. */
#include "wire/pickle.h"
#include "wire/storage.h"
#include "wire/tensorlist.h"

enum name_tag { NAME_BUILD_LIST, NAME_REBUILD, NAME_ORDERED_DICT, NAME_STORAGE_CLASS };
enum other_tag { OTHER_STORAGE, OTHER_HOOKS, OTHER_RESULT };

struct list {
    char *tensors;
    uint32_t n, tensor_size;
    uint32_t at; /* the tensor that is being read */
    /* Of the storage that was named last. */
    struct tenrec_dtype dtype;
};

static void fail_tensor(struct pickle *p, tenrec_status code, const char *text)
{
    const struct list *l = p->arg;

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

/* ("storage", class, key, device, elements) */
static void read_storage(struct pickle *p, const struct pickle_value *id, struct pickle_value *ret)
{
    static const enum pickle_kind kinds[5] = { PICKLE_STRING, PICKLE_GLOBAL, PICKLE_STRING,
                                               PICKLE_STRING, PICKLE_INT };
    struct list *l = p->arg;
    const struct pickle_value *item = pickle_item(p, id, 0);

    for (uint32_t i = 0; i < 5; i++)
        if (id->count != 5 || item[i].kind != kinds[i]) {
            fail_tensor(p, TENREC_EPROTOCOL, "expected a storage of 5 parts");
            return;
        }
    if (!nop_bytes_is(item[0].text, "storage") || item[1].tag != NAME_STORAGE_CLASS) {
        fail_tensor(p, TENREC_EPROTOCOL, "expected a storage with its class");
        return;
    }
    if (!is_key(item[2].text, l->at)) {
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle",
                        "tensor %u: expected its own number as key, got \"%.*s\"", l->at,
                        NOP_PRINT(item[2].text));
        return;
    }
    l->dtype = (struct tenrec_dtype){ (uint8_t)(item[1].number >> 32),
                                      (uint8_t)(item[1].number >> 16), (uint16_t)item[1].number };
    *ret = (struct pickle_value){ .kind = PICKLE_OTHER,
                                  .tag = OTHER_STORAGE,
                                  .number = item[4].number };
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
    const struct list *l = p->arg;

    if (args->count != 6 || a[0].kind != PICKLE_OTHER || a[0].tag != OTHER_STORAGE ||
        a[1].kind != PICKLE_INT || a[2].kind != PICKLE_TUPLE || a[3].kind != PICKLE_TUPLE ||
        a[4].kind != PICKLE_BOOL || a[5].kind != PICKLE_OTHER || a[5].tag != OTHER_HOOKS)
        fail_tensor(p, TENREC_EPROTOCOL,
                    "expected storage, offset, sizes, strides, requires_grad and hooks");
    else if (l->at >= l->n)
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle",
                        "more tensors than the %u that the message carries", l->n);
    else if (a[2].count > TENREC_MAX_DIMS)
        nop_reader_fail(&p->r, TENREC_ETOOBIG, "pickle",
                        "tensor %u: %u dimensions; the limit is %d", l->at, a[2].count,
                        TENREC_MAX_DIMS);
    else if (a[2].count != a[3].count)
        fail_tensor(p, TENREC_EPROTOCOL, "expected as many strides as sizes");
    return !p->r.status;
}

static void read_tensor(struct pickle *p, const struct pickle_value *args)
{
    const struct pickle_value *a = pickle_item(p, args, 0);
    struct list *l = p->arg;
    struct tenrec_tensor_desc *t;
    uint32_t element = storage_element_bytes(l->dtype);
    uint64_t bytes;
    tenrec_error why;

    if (!check_args(p, args))
        return;
    t = (struct tenrec_tensor_desc *)(void *)(l->tensors + (size_t)l->at * l->tensor_size);
    t->dtype = l->dtype;
    t->ndim = a[2].count;
    t->flags = a[4].number ? TENREC_TENSOR_REQUIRES_GRAD : 0;
    read_numbers(p, &a[2], t->shape);
    read_numbers(p, &a[3], t->strides);
    if (p->r.status)
        return;
    if (a[0].number < 0 || __builtin_mul_overflow((uint64_t)a[0].number, element, &bytes) ||
        bytes > t->bytes)
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle",
                        "tensor %u: %lld elements of %u bytes in a storage of %llu", l->at,
                        (long long)a[0].number, element, (unsigned long long)t->bytes);
    else if (a[1].number < 0 ||
             __builtin_mul_overflow((uint64_t)a[1].number, element, &t->byte_offset))
        nop_reader_fail(&p->r, TENREC_EPROTOCOL, "pickle", "tensor %u: offset %lld", l->at,
                        (long long)a[1].number);
    else if (storage_check_view(t, TENREC_EPROTOCOL, &why))
        fail_tensor(p, TENREC_EPROTOCOL, why.text);
}

static void read_call(struct pickle *p, const struct pickle_value *callable,
                      const struct pickle_value *args, struct pickle_value *ret)
{
    struct list *l = p->arg;

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

tenrec_status tensorlist_read(const void *pickle, size_t len, struct tenrec_tensor_desc *tensors,
                              uint32_t n, uint32_t tensor_size, tenrec_error *err)
{
    static const struct pickle_user user = { .global = read_global,
                                             .reduce = read_call,
                                             .persistent = read_storage };
    struct list list = { .tensors = (char *)tensors, .n = n, .tensor_size = tensor_size };
    struct pickle_value result;
    struct pickle p;

    if (n == 0 && tensorlist_is_empty(pickle, len))
        return TENREC_OK;
    nop_reader_init(&p.r, "tensor list", pickle, len, err);
    if (pickle_run(&p, &user, &list, &result))
        return p.r.status;
    if (result.kind != PICKLE_OTHER || result.tag != OTHER_RESULT)
        nop_reader_fail(&p.r, TENREC_EPROTOCOL, "pickle", "expected a tensor list");
    else if (result.number != n || list.at != n)
        nop_reader_fail(&p.r, TENREC_EPROTOCOL, "pickle",
                        "expected %u tensors, as many as the message carries, got %lld", n,
                        (long long)result.number);
    return p.r.status;
}
