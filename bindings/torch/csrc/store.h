/* SPDX-License-Identifier: Apache-2.0 */
// store.h - a store of Tenrec as one of torch's: its client proves the group secret.
#pragma once

#include "options.h"

#include <chrono>
#include <tenrec/store.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace tenrec_torch
{

// The keys are those of a c10d::TCPStore at the same address. Any thread; a waiting call does not
// block the others. All functions throw std::runtime_error with the reason.
class Store : public c10d::Store
{
  public:
    // Opens `url` with the security of `options`, as tenrec_store_open_with does.
    Store(const Options &options, const std::string &url, std::chrono::milliseconds limit);
    ~Store() override;
    Store(const Store &) = delete;
    Store &operator=(const Store &) = delete;

    // Of torch 2, where it overrides: this store itself, since its calls do not block each other.
    virtual c10::intrusive_ptr<c10d::Store> clone();
    void set(const std::string &key, const std::vector<uint8_t> &value) override;
    std::vector<uint8_t> compareSet(const std::string &key, const std::vector<uint8_t> &expected,
                                    const std::vector<uint8_t> &desired) override;
    // Waits for the key, as torch's stores do.
    std::vector<uint8_t> get(const std::string &key) override;
    int64_t add(const std::string &key, int64_t value) override;
    bool deleteKey(const std::string &key) override;
    bool check(const std::vector<std::string> &keys) override;
    int64_t getNumKeys() override;
    void wait(const std::vector<std::string> &keys) override;
    void wait(const std::vector<std::string> &keys,
              const std::chrono::milliseconds &timeout) override;

  private:
    int64_t limit() const;

    tenrec_store *store_ = nullptr;
};

} // namespace tenrec_torch
