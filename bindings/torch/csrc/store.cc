// SPDX-License-Identifier: Apache-2.0
#include "store.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <stdexcept>

namespace tenrec_torch
{

namespace
{

int64_t to_limit(std::chrono::milliseconds timeout)
{
    return timeout == c10d::Store::kNoTimeout ? TENREC_TIMEOUT_NONE
                                              : std::max<int64_t>(timeout.count(), 0);
}

void check_status(tenrec_status st, const tenrec_error &err)
{
    if (st != TENREC_OK)
        throw std::runtime_error(err.text);
}

// Frees `data`.
std::vector<uint8_t> take_value(void *data, size_t len)
{
    const std::unique_ptr<void, decltype(&std::free)> held(data, std::free);
    const auto *bytes = static_cast<const uint8_t *>(data);

    return { bytes, bytes + len };
}

std::vector<const char *> texts(const std::vector<std::string> &keys)
{
    std::vector<const char *> all;

    all.reserve(keys.size());
    for (const std::string &key : keys)
        all.push_back(key.c_str());
    return all;
}

} // namespace

Store::Store(const Options &options, const std::string &url, std::chrono::milliseconds limit)
{
    tenrec_error err;

    check_status(tenrec_store_open_with(options.get(), url.c_str(), to_limit(limit), &store_, &err),
                 err);
}

Store::~Store()
{
    tenrec_store_close(store_);
}

c10::intrusive_ptr<c10d::Store> Store::clone()
{
    return c10::intrusive_ptr<c10d::Store>::unsafe_reclaim_from_nonowning(this);
}

int64_t Store::limit() const
{
    return to_limit(timeout_);
}

void Store::set(const std::string &key, const std::vector<uint8_t> &value)
{
    tenrec_error err;

    check_status(tenrec_store_set(store_, key.c_str(), value.data(), value.size(), limit(), &err),
                 err);
}

std::vector<uint8_t> Store::compareSet(const std::string &key, const std::vector<uint8_t> &expected,
                                       const std::vector<uint8_t> &desired)
{
    tenrec_error err;
    size_t len = 0;
    void *now;

    check_status(tenrec_store_compare_set(store_, key.c_str(), expected.data(), expected.size(),
                                          desired.data(), desired.size(), limit(), &now, &len,
                                          &err),
                 err);
    return take_value(now, len);
}

std::vector<uint8_t> Store::get(const std::string &key)
{
    tenrec_error err;
    size_t len = 0;
    void *value;

    check_status(tenrec_store_get(store_, key.c_str(), limit(), &value, &len, &err), err);
    return take_value(value, len);
}

int64_t Store::add(const std::string &key, int64_t value)
{
    tenrec_error err;
    int64_t sum = 0;

    check_status(tenrec_store_add(store_, key.c_str(), value, limit(), &sum, &err), err);
    return sum;
}

bool Store::deleteKey(const std::string &key)
{
    tenrec_error err;
    bool existed = false;

    check_status(tenrec_store_delete(store_, key.c_str(), limit(), &existed, &err), err);
    return existed;
}

bool Store::check(const std::vector<std::string> &keys)
{
    tenrec_error err;
    bool all = false;

    check_status(tenrec_store_check(store_, texts(keys).data(), keys.size(), limit(), &all, &err),
                 err);
    return all;
}

int64_t Store::getNumKeys()
{
    tenrec_error err;
    int64_t n = 0;

    check_status(tenrec_store_num_keys(store_, limit(), &n, &err), err);
    return n;
}

void Store::wait(const std::vector<std::string> &keys)
{
    wait(keys, timeout_);
}

void Store::wait(const std::vector<std::string> &keys, const std::chrono::milliseconds &timeout)
{
    tenrec_error err;

    check_status(
        tenrec_store_wait(store_, texts(keys).data(), keys.size(), to_limit(timeout), &err), err);
}

} // namespace tenrec_torch
