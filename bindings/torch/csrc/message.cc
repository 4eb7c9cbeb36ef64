// SPDX-License-Identifier: Apache-2.0
#include "message.h"

#include "compat.h"
#include "payload.h"

#include <ATen/EmptyTensor.h>
#include <tenrec/tensor.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/jit/serialization/pickler.h>
#include <torch/csrc/jit/serialization/storage_context.h>
#include <torch/csrc/jit/serialization/unpickler.h>
#include <unordered_map>

namespace tenrec_torch
{

namespace
{

// A view of a part of a larger storage is sent without the rest.
constexpr size_t WHOLE_BELOW = 8192;

struct DtypePair {
    at::ScalarType torch;
    tenrec_dtype tenrec;
};

constexpr DtypePair DTYPES[] = {
    { at::kFloat, { TENREC_DTYPE_FLOAT, 32, 1 } },
    { at::kLong, { TENREC_DTYPE_INT, 64, 1 } },
    { at::kDouble, { TENREC_DTYPE_FLOAT, 64, 1 } },
    { at::kInt, { TENREC_DTYPE_INT, 32, 1 } },
    { at::kHalf, { TENREC_DTYPE_FLOAT, 16, 1 } },
    { at::kBFloat16, { TENREC_DTYPE_BFLOAT, 16, 1 } },
    { at::kByte, { TENREC_DTYPE_UINT, 8, 1 } },
    { at::kChar, { TENREC_DTYPE_INT, 8, 1 } },
    { at::kShort, { TENREC_DTYPE_INT, 16, 1 } },
    { at::kBool, { TENREC_DTYPE_BOOL, 8, 1 } },
    { at::kComplexFloat, { TENREC_DTYPE_COMPLEX, 64, 1 } },
    { at::kComplexDouble, { TENREC_DTYPE_COMPLEX, 128, 1 } },
};

const DtypePair *find(at::ScalarType type)
{
    for (const DtypePair &pair : DTYPES)
        if (pair.torch == type)
            return &pair;
    return nullptr;
}

const DtypePair *find(const tenrec_dtype &type)
{
    for (const DtypePair &pair : DTYPES)
        if (memcmp(&pair.tenrec, &type, sizeof type) == 0)
            return &pair;
    return nullptr;
}

// ---- sending -----------------------------------------------------------------

// Returns true if a descriptor can express the tensor.
bool is_plain(const at::Tensor &t)
{
    return t.defined() && t.layout() == at::kStrided && t.has_storage() && !t.is_nested() &&
           !t.is_quantized() && t.dim() <= TENREC_MAX_DIMS && find(t.scalar_type());
}

// Throws for a tensor that torch cannot pickle.
void check_kind(const at::Tensor &t)
{
    if (!t.defined())
        return;
    TORCH_CHECK(!t.is_nested(), "a nested tensor cannot be sent: send the list of its parts, "
                                "t.unbind(), or t.to_padded_tensor(0)");
    TORCH_CHECK(t.layout() == at::kStrided || t.layout() == at::kSparse ||
                    t.layout() == at::kSparseCsr,
                "a tensor of layout ", t.layout(),
                " cannot be sent: send t.to_dense(), or "
                "t.to_sparse()");
}

// Returns true if the storage is borrowed from an owner that may free it at any time.
bool is_borrowed(const at::Tensor &t)
{
    return t.storage().nbytes() > 0 && !t.storage().data_ptr().get_context();
}

// Returns the tensor to send: itself, or a copy without the rest of a large storage.
at::Tensor to_send(const at::Tensor &t)
{
    const size_t whole = t.storage().nbytes();
    const at::NoGradGuard no_grad;

    if (t._is_zerotensor()) // it has no memory
        return at::zeros(t.sizes(), t.options()).requires_grad_(t.requires_grad());
    if (is_borrowed(t) || t.is_conj() || t.is_neg() ||
        (whole >= WHOLE_BELOW && t.nbytes() * 2 <= whole))
        return t.detach().resolve_conj().resolve_neg().clone().requires_grad_(t.requires_grad());
    return t;
}

std::vector<tenrec_device> targets_of(const Message &message, const rpc::DeviceMap &map)
{
    std::vector<tenrec_device> targets;

    for (const at::Tensor &t : message.tensors())
        targets.push_back(device_target(t, map, message.isRequest()));
    return targets;
}

void describe(Descriptor &d, const at::Tensor &t, tenrec_device target, SendStreams &streams)
{
    d.data = compat_memory(t.storage());
    d.bytes = t.storage().nbytes();
    d.target = target;
    streams.describe(d, t.storage());
    // An empty view may begin beyond its storage.
    d.byte_offset = t.numel() ? (uint64_t)t.storage_offset() * t.element_size() : 0;
    d.dtype = find(t.scalar_type())->tenrec;
    d.ndim = (uint32_t)t.dim();
    d.flags = t.requires_grad() ? TENREC_TENSOR_REQUIRES_GRAD : 0;
    for (uint32_t i = 0; i < d.ndim; i++) {
        d.shape[i] = t.size(i);
        d.strides[i] = t.stride(i);
    }
}

// Returns true if the receiver may map a copy of the tensor.
bool stays_in_host(const Descriptor &d)
{
    return d.device.kind == TENREC_CPU && d.target.kind == TENREC_CPU;
}

void describe_bytes(Descriptor &d, const void *data, uint64_t bytes)
{
    d.data = const_cast<void *>(data);
    d.bytes = bytes;
    d.device = d.target = { TENREC_CPU, 0 };
    d.dtype = { TENREC_DTYPE_UINT, 8, 1 };
    d.ndim = 1;
    d.shape[0] = (int64_t)bytes;
    d.strides[0] = 1;
}

// Maps each storage to the first tensor of a message that has it. Holds all storages until
// the last lookup: otherwise the next tensor's copy could get the address of a freed one.
class FirstViews
{
  public:
    explicit FirstViews(size_t n) : n_(n)
    {
    }

    // Returns the number of the first tensor with the storage of `t`, which may be `i`, the
    // number of `t`.
    size_t find(const at::Tensor &t, size_t i)
    {
        if (n_ == 1)
            return i;
        const auto known = first_.try_emplace(t.storage().unsafeGetStorageImpl(), i);
        if (known.second)
            storages_.push_back(t.storage());
        return known.first->second;
    }

  private:
    const size_t n_;
    std::unordered_map<const c10::StorageImpl *, size_t> first_;
    std::vector<c10::Storage> storages_;
};

void write_plain(Outgoing &out, const std::vector<at::Tensor> &tensors,
                 const std::vector<tenrec_device> &targets, const Way &way)
{
    FirstViews views(tensors.size());
    std::vector<at::Tensor> sent;
    SendStreams streams;

    for (const at::Tensor &t : tensors)
        sent.push_back(
            to_send(t)); // copies are queued before the streams wait for the current ones
    out.descs.resize(tensors.size());
    for (size_t i = 0; i < tensors.size(); i++) {
        const at::Tensor &t = sent[i];
        const size_t first = views.find(t, i);
        Descriptor &d = out.descs[i];
        tenrec_tensor *copy;

        describe(d, t, targets[i], streams);
        if (first != i) { // sent once, as torch's own agent does
            d.data = out.descs[first].data;
            d.same_storage = first + 1;
            continue;
        }
        copy = way.agent && stays_in_host(d)
                   ? tenrec_chain_copy_for(way.agent, way.to, way.route, &d)
                   : nullptr;
        if (copy) {
            d.data = tenrec_tensor_desc(copy)->data;
            out.copies.emplace_back(copy);
        } else {
            out.storages.push_back(t.storage());
        }
    }
}

// Returns the whole storage of `t`, from whose start its offset counts: a copy if it is borrowed.
c10::Storage storage_to_send(const at::Tensor &t)
{
    const c10::Storage &whole = t.storage();

    if (!is_borrowed(t))
        return whole;
    c10::Storage copy(c10::Storage::use_byte_size_t(), whole.nbytes(), c10::GetAllocator(c10::kCPU),
                      false);
    if (whole.data())
        memcpy(compat_memory(copy), whole.data(), whole.nbytes());
    else // zeros of more dimensions than a descriptor has
        memset(compat_memory(copy), 0, whole.nbytes());
    return copy;
}

void write_pickled(Outgoing &out, const std::vector<at::Tensor> &tensors, const Way &way)
{
    SendStreams streams;
    c10::List<at::Tensor> list;
    torch::jit::Pickler pickler(
        [&](const char *data, size_t n) { out.pickle.insert(out.pickle.end(), data, data + n); });

    for (const at::Tensor &t : tensors)
        list.push_back(is_plain(t) ? to_send(t) : t);
    pickler.protocol();
    pickler.pushIValue(list);
    pickler.stop();
    for (const at::Tensor &t : pickler.tensorData())
        out.storages.push_back(storage_to_send(t));
    out.descs.resize(1 + out.storages.size());
    describe_bytes(out.descs[0], out.pickle.data(), out.pickle.size());
    out.descs[0].flags = TENREC_TENSOR_REQUIRES_GRAD;
    for (size_t i = 0; i < out.storages.size(); i++) {
        Descriptor &d = out.descs[1 + i];
        describe_bytes(d, out.storages[i].data(), out.storages[i].nbytes());
        d.target =
            device_target(pickler.tensorData()[i], way.map, out.msg.type & TENREC_MSG_REQUEST_BIT);
        streams.describe(d, out.storages[i]);
    }
}

void on_release(tenrec_msg *msg)
{
    reinterpret_cast<Outgoing *>(msg)->drop();
}

// ---- receiving ---------------------------------------------------------------

void drop_tensor(void *tensor)
{
    tenrec_tensor_drop(static_cast<tenrec_tensor *>(tensor));
}

// What reads a message.
struct Reader {
    tenrec_msg *msg;
    const Devices &devices;
    const std::vector<c10::Stream> &streams;
};

// Returns the storage of tensor `i`, which then outlives the message.
c10::Storage take_storage(const Reader &from, uint32_t i)
{
    tenrec_msg *msg = from.msg;
    if (tenrec_msg_tensor(msg, i)->device.kind != TENREC_CPU)
        return from.devices.takeStorage(msg, i, from.streams);
    tenrec_tensor *t = tenrec_msg_take_tensor(msg, i);

    TORCH_CHECK(t, "tensor ", i, " of a message has no memory");
    return { c10::Storage::use_byte_size_t(), tenrec_tensor_desc(t)->bytes,
             c10::DataPtr(tenrec_tensor_desc(t)->data, t, drop_tensor, c10::Device(c10::kCPU)),
             nullptr, false };
}

// Returns the storage of tensor `i`, which may be that of an earlier one in `before`.
c10::Storage read_storage(const Reader &from, uint32_t i, const std::vector<at::Tensor> &before)
{
    const Descriptor &d = *tenrec_msg_tensor(from.msg, i);

    if (d.same_storage && d.same_storage <= before.size())
        return before[d.same_storage - 1].storage();
    return take_storage(from, i);
}

at::Tensor read_tensor(const Reader &from, uint32_t i, const std::vector<at::Tensor> &before)
{
    const Descriptor &d = *tenrec_msg_tensor(from.msg, i);
    const DtypePair *dtype = find(d.dtype);

    TORCH_CHECK(dtype, "tensor ", i, " of a message is ", tenrec_dtype_name(d.dtype),
                ", which this version of torch does not have");
    c10::Storage storage = read_storage(from, i, before);
    const c10::DispatchKey key =
        storage.device().is_cpu() ? c10::DispatchKey::CPU : c10::DispatchKey::CUDA;
    at::Tensor t = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(key), c10::scalarTypeToTypeMeta(dtype->torch));
    t.unsafeGetTensorImpl()->set_sizes_and_strides(
        { d.shape, d.ndim }, { d.strides, d.ndim },
        (int64_t)(d.byte_offset / c10::elementSize(dtype->torch)));
    if (d.flags & TENREC_TENSOR_REQUIRES_GRAD)
        t.set_requires_grad(true);
    return t;
}

bool is_pickled(const tenrec_msg *msg)
{
    const Descriptor *d = msg->n_tensors > 0 ? tenrec_msg_tensor(msg, 0) : nullptr;

    return d && (d->flags & TENREC_TENSOR_REQUIRES_GRAD) && d->dtype.code == TENREC_DTYPE_UINT;
}

// The storages after the pickle by their names there, with the received sizes: the unpickler
// would trust the sizes in the pickle.
std::shared_ptr<torch::jit::DeserializationStorageContext> take_storages(const Reader &from)
{
    auto all = std::make_shared<torch::jit::DeserializationStorageContext>();

    for (uint32_t i = 1; i < from.msg->n_tensors; i++)
        all->addStorage(std::to_string(i - 1), take_storage(from, i));
    return all;
}

// The tensors with storages of which `t` consists.
std::vector<at::Tensor> parts(const at::Tensor &t)
{
    if (t.layout() == at::kSparse)
        return { t._indices(), t._values() };
    if (t.layout() == at::kSparseCsr)
        return { t.crow_indices(), t.col_indices(), t.values() };
    if (t.is_quantized() &&
        (t.qscheme() == at::kPerChannelAffine || t.qscheme() == at::kPerChannelAffineFloatQParams))
        return { t, t.q_per_channel_scales(), t.q_per_channel_zero_points() };
    return { t };
}

// Throws unless all elements of `t` are inside its storage, which the unpickler does not check.
void check_extent(const at::Tensor &t)
{
    const auto is_negative = [](int64_t n) { return n < 0; };
    const c10::Storage &whole = t.storage();
    size_t end = 0;

    TORCH_CHECK(t.storage_offset() >= 0 &&
                    std::none_of(t.sizes().begin(), t.sizes().end(), is_negative) &&
                    std::none_of(t.strides().begin(), t.strides().end(), is_negative),
                "a tensor of a message has a size, stride or offset below 0");
    end = at::detail::computeStorageNbytes(t.sizes(), t.strides(), t.element_size(),
                                           (size_t)t.storage_offset());
    TORCH_CHECK(end <= (whole.data() ? whole.nbytes() : 0), "a tensor of a message ends at byte ",
                end, " of a storage of ", whole.nbytes());
}

std::vector<at::Tensor> read_pickled(const Reader &from)
{
    const Descriptor *d = tenrec_msg_tensor(from.msg, 0);
    const char *at = static_cast<const char *>(d->data), *end = at + d->bytes;
    std::vector<at::Tensor> tensors;
    torch::jit::Unpickler unpickler(
        [&](char *to, size_t n) {
            n = std::min(n, (size_t)(end - at));
            memcpy(to, at, n);
            at += n;
            return n;
        },
        nullptr, nullptr,
        [](const std::string &) -> at::DataPtr {
            throw std::runtime_error("a tensor of a message names a missing storage");
        },
        c10::nullopt, true /* tensors are where their storages are */,
        torch::jit::Unpickler::defaultTypeParser, take_storages(from));

    for (at::Tensor t : unpickler.parse_ivalue().toTensorList()) {
        if (t.defined())
            for (const at::Tensor &part : parts(t))
                check_extent(part);
        tensors.push_back(std::move(t));
    }
    return tensors;
}

// Returns true if freeing the storage may run foreign code.
bool is_foreign(const c10::Storage &s)
{
    const c10::DeleterFnPtr deleter = s.data_ptr().get_deleter();

    return s.use_count() == 1 && deleter != c10::GetAllocator(c10::kCPU)->raw_deleter() &&
           deleter != drop_tensor && deleter != c10::detail::deleteNothing;
}

struct Farewell : Pool::Task {
    explicit Farewell(Outgoing *out) : out(out)
    {
    }

    void run() override
    {
        out.reset();
    }

    std::unique_ptr<Outgoing> out;
};

struct Released {
    tenrec_msg *msg;

    ~Released()
    {
        msg->release(msg);
    }
};

} // namespace

Outgoing *Outgoing::make(c10::intrusive_ptr<Message> message, int64_t id, const Way &way)
{
    std::unique_ptr<Outgoing> out = std::make_unique<Outgoing>();
    const std::vector<at::Tensor> &tensors = message->tensors();

    for (const at::Tensor &t : tensors)
        check_kind(t);
    const std::vector<tenrec_device> targets = targets_of(*message, way.map);
    out->way = way;
    out->msg = {};
    out->msg.size = sizeof out->msg;
    out->msg.type = message->type();
    out->msg.id = id;
    // A caller that may retry keeps the request; a response is sent once.
    if (message.use_count() == 1 || message->isResponse())
        out->payload = std::move(message->payload());
    else
        out->payload = message->payload();
    out->msg.payload = out->payload.data();
    out->msg.payload_len = out->payload.size();
    out->msg.key_len = (uint32_t)std::min(out->payload.size(), (size_t)UINT32_MAX);
    out->msg.release = on_release;
    if (std::all_of(tensors.begin(), tensors.end(), is_plain))
        write_plain(*out, tensors, targets, way);
    else
        write_pickled(*out, tensors, way);
    out->msg.n_tensors = (uint32_t)out->descs.size();
    out->msg.tensor_size = sizeof(Descriptor);
    out->msg.tensors = out->descs.data();
    return out.release();
}

void Outgoing::drop()
{
    if (shares.fetch_sub(1) != 1)
        return;
    if (std::none_of(storages.begin(), storages.end(), is_foreign))
        delete this;
    else
        way.pool->run(Pool::ANSWERS, std::make_unique<Farewell>(this));
}

c10::intrusive_ptr<Message> read_message(tenrec_msg *msg, const Devices &devices,
                                         const std::vector<c10::Stream> &streams)
{
    const Released released{ msg };
    const Reader from{ msg, devices, streams };
    std::vector<at::Tensor> tensors;

    if (is_pickled(msg)) {
        tensors = read_pickled(from);
    } else {
        tensors.reserve(msg->n_tensors);
        for (uint32_t i = 0; i < msg->n_tensors; i++)
            tensors.push_back(read_tensor(from, i, tensors));
    }
    return c10::make_intrusive<Message>(
        take_payload(msg), std::move(tensors),
        static_cast<torch::distributed::rpc::MessageType>(msg->type), msg->id);
}

} // namespace tenrec_torch
