/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/value.hpp - errors, owners of handles, tensors, and arguments and results of calls for C++17
 * and later: the part of tenrec/tenrec.hpp that needs no worker.
 */
#ifndef TENREC_VALUE_HPP
#define TENREC_VALUE_HPP

#include <complex>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tenrec/link.h>
#include <tenrec/profiler.h>
#include <tenrec/region.h>
#include <tenrec/store.h>
#include <tenrec/tenrec.h>
#include <tenrec/weights.h>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if defined(__has_include) && __cplusplus >= 202002L
#if __has_include(<span>)
#include <span>
#endif
#endif

namespace tenrec
{

/* ---- errors --------------------------------------------------------------- */

class error : public std::runtime_error
{
  public:
    explicit error(const tenrec_error &e) : std::runtime_error(e.text), raw_(e) {}

    error(tenrec_status status, const std::string &text) : std::runtime_error(text)
    {
        tenrec_fail(&raw_, status, "%s", text.c_str());
    }

    tenrec_status status() const noexcept { return raw_.code; }
    /* The name of the worker that failed, or "". */
    const char *worker() const noexcept { return raw_.worker_name; }
    const tenrec_error &get() const noexcept { return raw_; }

  private:
    tenrec_error raw_;
};

/* Throws if `st` is an error, which `e` describes. */
inline void check(tenrec_status st, const tenrec_error &e)
{
    if (st != TENREC_OK)
        throw error(e);
}

/* ---- owners --------------------------------------------------------------- */

template <auto drop> struct dropper {
    template <class T> void operator()(T *p) const noexcept { drop(p); }
};
template <class T, auto drop> using handle = std::unique_ptr<T, dropper<drop>>;

using config = handle<tenrec_config, &tenrec_config_drop>;
using group_view = handle<tenrec_group_view, &tenrec_group_view_drop>;
using link = handle<tenrec_link, &tenrec_link_drop>;
using object = handle<tenrec_object, &tenrec_object_drop>;
using profiler = handle<tenrec_profiler, &tenrec_profiler_drop>;
using region = handle<tenrec_region, &tenrec_region_drop>;
using rref = handle<tenrec_rref, &tenrec_rref_drop>;
using store = handle<tenrec_store, &tenrec_store_close>;
using store_server = handle<tenrec_store_server, &tenrec_store_server_drop>;
using value = handle<tenrec_value, &tenrec_value_drop>;
using weights = handle<tenrec_weights, &tenrec_weights_close>;

/* Makes a handle by a C function whose last parameters are its result and the error:
 *
 *     auto s = tenrec::make<tenrec::store>(tenrec_store_open, "memory://", 1000); */
template <class H, class F, class... A> H make(F fn, A &&...args)
{
    typename H::pointer p = nullptr;
    tenrec_error e;

    check(fn(std::forward<A>(args)..., &p, &e), e);
    return H(p);
}

/* ---- tensors -------------------------------------------------------------- */

#if defined(__cpp_lib_span)
template <class T> using span = std::span<T>;
#else
template <class T> class span
{
  public:
    span(T *data, std::size_t n) noexcept : data_(data), n_(n) {}
    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return n_; }
    bool empty() const noexcept { return n_ == 0; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + n_; }
    T &operator[](std::size_t i) const noexcept { return data_[i]; }

  private:
    T *data_;
    std::size_t n_;
};
#endif

template <class T> constexpr tenrec_dtype dtype_of()
{
    using E = std::remove_const_t<T>;
    constexpr auto bits = static_cast<std::uint8_t>(8 * sizeof(E));

    if constexpr (std::is_same_v<E, bool>)
        return tenrec_dtype{ TENREC_DTYPE_BOOL, bits, 1 };
    else if constexpr (std::is_same_v<E, std::complex<float>> ||
                       std::is_same_v<E, std::complex<double>>)
        return tenrec_dtype{ TENREC_DTYPE_COMPLEX, bits, 1 };
    else if constexpr (std::is_same_v<E, float> || std::is_same_v<E, double>)
        return tenrec_dtype{ TENREC_DTYPE_FLOAT, bits, 1 };
    else if constexpr (std::is_integral_v<E> && std::is_signed_v<E>)
        return tenrec_dtype{ TENREC_DTYPE_INT, bits, 1 };
    else {
        static_assert(std::is_integral_v<E>, "no element type of tensors; use tenrec_tensor_new");
        return tenrec_dtype{ TENREC_DTYPE_UINT, bits, 1 };
    }
}

/* A share of a tensor of any type. */
class any_tensor
{
  public:
    any_tensor() noexcept = default;
    any_tensor(const any_tensor &o) noexcept : t_(o.t_ ? tenrec_tensor_share(o.t_) : nullptr) {}
    any_tensor(any_tensor &&o) noexcept : t_(std::exchange(o.t_, nullptr)) {}
    any_tensor &operator=(any_tensor o) noexcept
    {
        std::swap(t_, o.t_);
        return *this;
    }
    ~any_tensor() { tenrec_tensor_drop(t_); }

    static any_tensor take(tenrec_tensor *t) noexcept
    {
        any_tensor r;
        r.t_ = t;
        return r;
    }
    static any_tensor share(tenrec_tensor *t) noexcept { return take(tenrec_tensor_share(t)); }

    tenrec_tensor *get() const noexcept { return t_; }
    const struct tenrec_tensor_desc &desc() const noexcept { return *tenrec_tensor_desc(t_); }
    tenrec_dtype dtype() const noexcept { return desc().dtype; }
    span<const std::int64_t> shape() const noexcept { return { desc().shape, desc().ndim }; }
    explicit operator bool() const noexcept { return t_ != nullptr; }

  private:
    tenrec_tensor *t_ = nullptr;
};

/* A row-major tensor of T in host memory. Only with a const T may it be read-only, like mapped
 * tensors (TENREC_SHARED); otherwise such a tensor is refused. */
template <class T> class tensor : public any_tensor
{
  public:
    /* Elements are undefined. */
    explicit tensor(std::initializer_list<std::int64_t> shape)
        : tensor(shape.begin(), static_cast<std::uint32_t>(shape.size()))
    {
    }
    tensor(const std::int64_t *shape, std::uint32_t ndim)
    {
        tenrec_tensor *t = nullptr;
        tenrec_error e;

        check(tenrec_tensor_new(dtype_of<T>(), ndim, shape, &t, &e), e);
        *this = tensor(any_tensor::take(t));
    }
    /* Shares `t`. Throws EINVAL for another type or layout, or other than `ndim` dimensions. */
    explicit tensor(any_tensor t, int ndim = -1) : any_tensor(std::move(t))
    {
        tenrec_error e;

        check(tenrec_tensor_expect(get(), dtype_of<T>(), ndim, &data_, &n_, &e), e);
        if (!std::is_const_v<T> && desc().flags & TENREC_TENSOR_READ_ONLY)
            throw error(TENREC_EINVAL,
                        "the tensor is read-only: take it as const elements, or copy it");
    }

    T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return n_; }
    T *begin() const noexcept { return data_; }
    T *end() const noexcept { return data_ + n_; }
    T &operator[](std::size_t i) const noexcept { return data_[i]; }
#if !defined(__cpp_lib_span) /* std::span takes any range */
    operator tenrec::span<T>() const noexcept { return { data_, n_ }; }
#endif

  private:
    T *data_ = nullptr;
    std::size_t n_ = 0;
};

/* ---- values of C++ as arguments and results ------------------------------- */

template <class T> struct is_tensor : std::false_type {
};
template <class T> struct is_tensor<tensor<T>> : std::true_type {
};
template <class T> struct is_vector : std::false_type {
};
template <class T> struct is_vector<std::vector<T>> : std::true_type {
};
template <class T> struct is_tuple : std::false_type {
};
template <class... T> struct is_tuple<std::tuple<T...>> : std::true_type {
};

/* A C value made from a C++ value, which it borrows. Lists keep their items here. */
class argument
{
  public:
    argument() : v_(tenrec_value_nil()) {}
    template <class T> argument(const T &x) : v_(tenrec_value_nil()) // NOLINT: implicit
    {
        if constexpr (std::is_same_v<T, bool>)
            v_ = tenrec_value_bool(x);
        else if constexpr (std::is_integral_v<T>) {
            if (std::is_unsigned_v<T> && static_cast<std::uint64_t>(x) > INT64_MAX)
                throw error(TENREC_EINVAL, "an argument is larger than an int64_t holds");
            v_ = tenrec_value_int(static_cast<std::int64_t>(x));
        } else if constexpr (std::is_floating_point_v<T>)
            v_ = tenrec_value_double(static_cast<double>(x));
        else if constexpr (std::is_convertible_v<const T &, std::string_view>) {
            const std::string_view text(x);
            v_ = tenrec_value_of(TENREC_VALUE_TEXT, text.size());
            v_.u.text = text.data();
        } else if constexpr (std::is_base_of_v<any_tensor, T>)
            v_ = tenrec_value_tensor(x.get());
        else if constexpr (std::is_same_v<T, rref>)
            v_ = tenrec_value_rref(x.get());
        else if constexpr (std::is_same_v<T, object>)
            v_ = tenrec_value_object(x.get());
        else if constexpr (std::is_same_v<T, tenrec_region_ref>)
            v_ = tenrec_value_region(&x);
        else if constexpr (std::is_same_v<T, tenrec_value>)
            v_ = x;
        else if constexpr (std::is_same_v<T, value>)
            v_ = x ? *x : tenrec_value_nil();
        else if constexpr (is_vector<T>::value) {
            for (const auto &item : x)
                add(argument(static_cast<const typename T::value_type &>(item)));
            fix();
        } else {
            static_assert(is_tuple<T>::value, "no type of arguments and results");
            std::apply([this](const auto &...item) { (add(argument(item)), ...); }, x);
            fix();
        }
    }
    const tenrec_value &get() const noexcept { return v_; }

  private:
    void add(argument &&a)
    {
        lists_.push_back(std::move(a.items_));
        for (auto &l : a.lists_)
            lists_.push_back(std::move(l));
        items_.push_back(a.v_); /* vectors that move keep their memory */
    }
    void fix() { v_ = tenrec_value_array(items_.data(), items_.size()); }

    tenrec_value v_;
    std::vector<tenrec_value> items_;
    std::vector<std::vector<tenrec_value>> lists_;
};

[[noreturn]] inline void refuse_type(const tenrec_value &v, const char *wanted)
{
    throw error(TENREC_EINVAL,
                std::string("is ") + tenrec_value_type_name(v.type) + ", expected " + wanted);
}

template <class T, std::size_t... I>
T read_items(const tenrec_value *v, std::size_t n, const char *what, std::index_sequence<I...>);

/* Reads a C value. std::string_view and const tenrec_value * borrow from it. */
template <class T> T read(const tenrec_value &v)
{
    const auto want = [&v](tenrec_value_type type) {
        if (v.type != static_cast<std::uint32_t>(type))
            refuse_type(v, tenrec_value_type_name(type));
    };

    if constexpr (std::is_void_v<T>)
        return;
    else if constexpr (std::is_same_v<T, bool>) {
        want(TENREC_VALUE_BOOL);
        return v.u.boolean;
    } else if constexpr (std::is_integral_v<T>) {
        want(TENREC_VALUE_INT);
        if (static_cast<std::int64_t>(static_cast<T>(v.u.integer)) != v.u.integer ||
            (std::is_unsigned_v<T> && v.u.integer < 0))
            throw error(TENREC_EINVAL, "is out of range: " + std::to_string(v.u.integer));
        return static_cast<T>(v.u.integer);
    } else if constexpr (std::is_floating_point_v<T>) {
        if (v.type == TENREC_VALUE_INT)
            return static_cast<T>(v.u.integer);
        want(TENREC_VALUE_DOUBLE);
        return static_cast<T>(v.u.number);
    } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
        if (v.type != TENREC_VALUE_BYTES)
            want(TENREC_VALUE_TEXT);
        return T(v.n ? v.u.text : "", static_cast<std::size_t>(v.n));
    } else if constexpr (std::is_same_v<T, any_tensor>) {
        want(TENREC_VALUE_TENSOR);
        return any_tensor::share(v.u.tensor);
    } else if constexpr (is_tensor<T>::value) {
        return T(read<any_tensor>(v));
    } else if constexpr (std::is_same_v<T, rref>) {
        want(TENREC_VALUE_RREF);
        return rref(tenrec_rref_share(v.u.rref));
    } else if constexpr (std::is_same_v<T, tenrec_region_ref>) {
        want(TENREC_VALUE_REGION);
        return *v.u.region;
    } else if constexpr (std::is_same_v<T, value>) {
        return make<value>(tenrec_value_copy, &v);
    } else if constexpr (std::is_same_v<T, const tenrec_value *>) {
        return &v;
    } else if constexpr (is_vector<T>::value) {
        T list;

        want(TENREC_VALUE_ARRAY);
        for (std::uint64_t i = 0; i < v.n; i++)
            list.push_back(read<typename T::value_type>(v.u.array[i]));
        return list;
    } else {
        static_assert(is_tuple<T>::value, "no type of arguments and results");
        want(TENREC_VALUE_ARRAY);
        return read_items<T>(v.u.array, static_cast<std::size_t>(v.n), "item",
                             std::make_index_sequence<std::tuple_size_v<T>>());
    }
}

template <class T> T read_at(const tenrec_value &v, const char *what, std::size_t i)
{
    try {
        return read<T>(v);
    } catch (const error &e) {
        throw error(e.status(), std::string(what) + " " + std::to_string(i + 1) + ": " + e.what());
    }
}

/* A tuple of n values in a row. */
template <class T, std::size_t... I>
T read_items(const tenrec_value *v, std::size_t n, const char *what, std::index_sequence<I...>)
{
    if (n != sizeof...(I))
        throw error(TENREC_EINVAL, "takes " + std::to_string(sizeof...(I)) + " " + what +
                                       (sizeof...(I) == 1 ? "" : "s") + ", got " +
                                       std::to_string(n));
    return T{ read_at<std::tuple_element_t<I, T>>(v[I], what, I)... };
}

} // namespace tenrec

#endif
