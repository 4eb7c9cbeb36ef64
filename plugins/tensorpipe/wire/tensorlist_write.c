/* SPDX-License-Identifier: Apache-2.0 */
/* tensorlist_write.c - the tensor list in torch's pickle. Only a list in which tensors
 * share storages has a memo: torch reads a storage a second time from there alone. */
#include "wire/little_endian.h"
#include "wire/storage.h"
#include "wire/tensorlist.h"

/* Text with its NUL left out. */
#define WRITE_TEXT(w, text) nop_write_raw(w, text, sizeof(text) - 1)

static const char list_begin[] = "\x80\x02"
                                 "ctorch.jit._pickle\nbuild_tensorlist\n"
                                 "q\x00"
                                 "(](";
static const char list_end[] = "etR.";

static const char tensor_begin[] = "ctorch._utils\n_rebuild_tensor_v2\n"
                                   "(";
static const char storage_begin[] = "("
                                    "X\x07\x00\x00\x00storagec";
static const char tensor_end[] = "ccollections\nOrderedDict\n)RtR";

bool tensorlist_is_empty(const void *pickle, size_t len)
{
    const size_t begin = sizeof list_begin - 1;

    return len == TENSORLIST_EMPTY_LEN && memcmp(pickle, list_begin, begin) == 0 &&
           memcmp((const char *)pickle + begin, list_end, len - begin) == 0;
}

/* The plugin's byte writer serves as well: raw bytes with a bound. */
static void write_u32(struct nop_writer *w, uint32_t value)
{
    unsigned char bytes[4];

    put_le32(bytes, value);
    nop_write_raw(w, bytes, sizeof bytes);
}

/* The smallest of K, M, J and LONG1, as torch does. */
static void write_number(struct nop_writer *w, uint64_t value)
{
    unsigned char op[2] = { (unsigned char)value, (unsigned char)(value >> 8) };

    if (value <= UINT8_MAX) {
        WRITE_TEXT(w, "K");
        nop_write_raw(w, op, 1);
    } else if (value <= UINT16_MAX) {
        WRITE_TEXT(w, "M");
        nop_write_raw(w, op, 2);
    } else if (value <= INT32_MAX) {
        WRITE_TEXT(w, "J");
        write_u32(w, (uint32_t)value);
    } else {
        WRITE_TEXT(w, "\x8a\x08");
        write_u32(w, (uint32_t)value);
        write_u32(w, (uint32_t)(value >> 32));
    }
}

static void write_string(struct nop_writer *w, const char *text)
{
    size_t len = strlen(text);

    WRITE_TEXT(w, "X");
    write_u32(w, (uint32_t)len);
    nop_write_raw(w, text, len);
}

static void write_numbers(struct nop_writer *w, const int64_t *values, uint32_t n)
{
    WRITE_TEXT(w, "(");
    for (uint32_t i = 0; i < n; i++)
        write_number(w, (uint64_t)values[i]);
    WRITE_TEXT(w, "t");
}

static bool device_text(struct tenrec_device device, char ret[24])
{
    if (device.kind == TENREC_CPU)
        snprintf(ret, 24, "cpu");
    else if (device.kind == TENREC_CUDA)
        snprintf(ret, 24, "cuda:%d", (int)device.index);
    else
        return false;
    return true;
}

/* Checks that the peer can read the tensor, and that torch has a form for the view. */
static tenrec_status tensorlist_write_check(const struct tenrec_tensor_desc *tensor,
                                            bool torch_class, bool to_tenrec, tenrec_error *err)
{
    uint32_t element = storage_element_bytes(tensor->dtype);
    const struct tenrec_dtype *d = &tensor->dtype;

    if (element == 0 || (!torch_class && !to_tenrec))
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "%s cannot carry dtype code %u, %u bits, %u lanes",
                           element == 0 ? "the wire" : "a torch peer", (unsigned int)d->code,
                           (unsigned int)d->bits, (unsigned int)d->lanes);
    if (tensor->ndim > TENREC_MAX_DIMS)
        return tenrec_fail(err, TENREC_EINVAL, "%u dimensions; the limit is %d", tensor->ndim,
                           TENREC_MAX_DIMS);
    if (tensor->byte_offset % element != 0)
        return tenrec_fail(err, TENREC_EINVAL, "offset %llu is not a multiple of %u bytes",
                           (unsigned long long)tensor->byte_offset, element);
    return storage_check_view(tensor, TENREC_EINVAL, err);
}

/* One of the two operations on the memo, with its long operand: storage of tensor `i`. */
static void write_memo(struct nop_writer *w, const char *op, uint32_t i)
{
    nop_write_raw(w, op, 1);
    write_u32(w, i + 1); /* 0 is the name of the list */
}

/* errors   EUNSUPPORTED (device without a name) */
static tenrec_status write_storage(struct nop_writer *w, const struct tenrec_tensor_desc *tensor,
                                   uint32_t index, tenrec_error *err)
{
    char class[STORAGE_CLASS_MAX], key[12], device[24];
    const char *module;

    if (!device_text(tensor->device, device))
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "the wire has no name for device kind %d",
                           (int)tensor->device.kind);
    storage_class(tensor->dtype, &module, class);
    snprintf(key, sizeof key, "%u", index);
    WRITE_TEXT(w, storage_begin);
    nop_write_raw(w, module, strlen(module));
    WRITE_TEXT(w, "\n");
    nop_write_raw(w, class, strlen(class));
    WRITE_TEXT(w, "\n");
    write_string(w, key);
    write_string(w, device);
    write_number(w, tensor->bytes / storage_element_bytes(tensor->dtype));
    WRITE_TEXT(w, "tQ");
    return TENREC_OK;
}

static void write_view(struct nop_writer *w, const struct tenrec_tensor_desc *tensor)
{
    write_number(w, tensor->byte_offset / storage_element_bytes(tensor->dtype));
    write_numbers(w, tensor->shape, tensor->ndim);
    write_numbers(w, tensor->strides, tensor->ndim);
    nop_write_raw(w, tensor->flags & TENREC_TENSOR_REQUIRES_GRAD ? "\x88" : "\x89", 1);
}

/* What is being written: tensor `at`, of `carried` storages so far. */
struct tensorlist_writer {
    const char *tensors;
    uint32_t tensor_size;
    uint32_t at, carried;
    bool shared; /* some tensors have the storage of an earlier one */
};

static tenrec_status list_write_tensor(struct tensorlist_writer *l, struct nop_writer *w,
                                       bool to_tenrec, tenrec_error *err)
{
    const struct tenrec_tensor_desc *t =
        (const void *)(l->tensors + (size_t)l->at * l->tensor_size);
    char class[STORAGE_CLASS_MAX];
    const char *module;
    tenrec_status status =
        tensorlist_write_check(t, storage_class(t->dtype, &module, class), to_tenrec, err);

    WRITE_TEXT(w, tensor_begin);
    if (!status && t->same_storage) {
        write_memo(w, "j", (uint32_t)t->same_storage - 1);
    } else if (!status) {
        status = write_storage(w, t, l->carried++, err);
        if (l->shared)
            write_memo(w, "r", l->at);
    }
    if (status)
        return status;
    write_view(w, t);
    WRITE_TEXT(w, tensor_end);
    return TENREC_OK;
}

static bool any_shares(const char *tensors, uint32_t n, uint32_t tensor_size)
{
    for (uint32_t i = 0; i < n; i++, tensors += tensor_size)
        if (((const struct tenrec_tensor_desc *)(const void *)tensors)->same_storage)
            return true;
    return false;
}

tenrec_status tensorlist_write(void *buf, size_t cap, const struct tenrec_tensor_desc *tensors,
                               uint32_t n, uint32_t tensor_size, bool to_tenrec, size_t *ret_len,
                               tenrec_error *err)
{
    struct tensorlist_writer list = { .tensors = (const char *)tensors,
                                      .tensor_size = tensor_size };
    tenrec_status status = TENREC_OK;
    struct nop_writer w;

    list.shared = any_shares(list.tensors, n, tensor_size);
    nop_writer_init(&w, buf, cap);
    WRITE_TEXT(&w, list_begin);
    for (; list.at < n && !status; list.at++) {
        status = list_write_tensor(&list, &w, to_tenrec, err);
        if (status)
            tenrec_error_prefix(err, "tensor %u", list.at);
    }
    WRITE_TEXT(&w, list_end);
    if (status)
        return status;
    if (w.len > cap)
        return tenrec_fail(err, TENREC_ETOOBIG, "the tensor list takes %zu bytes; there are %zu",
                           w.len, cap);
    *ret_len = w.len;
    return TENREC_OK;
}
