// SPDX-License-Identifier: Apache-2.0
// NAME.cc - a store that only this process reaches, to begin with: NAME://WORD is shared by all
// stores of that word. No exception may leave a function that the core calls.
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <tenrec/store_plugin.h>

namespace
{

struct Options {
    int64_t most;
};

std::mutex lock; // guards all that follows, and what is in it
std::condition_variable changed;

struct Keys {
    std::map<std::string, std::string> value;
    int64_t most = 0;
};

std::map<std::string, std::weak_ptr<Keys>> all;

struct Store {
    std::shared_ptr<Keys> keys;
    std::string name;
};

Store &store_of(const tenrec_plugin_store *self)
{
    return *static_cast<Store *>(self->impl);
}

// Runs `body` with the lock held.
template <typename Body>
tenrec_status with_keys(tenrec_plugin_store *self, tenrec_error *err, Body body)
{
    try {
        std::unique_lock<std::mutex> guard(lock);

        return body(*store_of(self).keys, guard);
    } catch (const std::bad_alloc &) {
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a key");
    }
}

tenrec_status put(Keys &keys, const char *key, const void *data, size_t len, tenrec_error *err)
{
    const auto found = keys.value.find(key);
    std::string value(static_cast<const char *>(data), len);

    if (found == keys.value.end() && static_cast<int64_t>(keys.value.size()) >= keys.most)
        return tenrec_fail(err, TENREC_ETOOBIG, "it has %lld keys already",
                           static_cast<long long>(keys.most));
    if (found == keys.value.end())
        keys.value.emplace(key, std::move(value));
    else
        found->second = std::move(value);
    changed.notify_all();
    return TENREC_OK;
}

const char *name(tenrec_plugin_store *self)
{
    return store_of(self).name.c_str();
}

tenrec_status set(tenrec_plugin_store *self, const char *key, const void *data, size_t len,
                  uint64_t, tenrec_error *err)
{
    return with_keys(self, err, [&](Keys &keys, auto &) { return put(keys, key, data, len, err); });
}

bool read_number(const std::string &text, int64_t *ret)
{
    char *end;

    if (text.empty() || text.size() > 20 || text.find('\0') != text.npos)
        return false;
    errno = 0;
    *ret = std::strtoll(text.c_str(), &end, 10);
    return *end == '\0' && errno == 0;
}

tenrec_status add(tenrec_plugin_store *self, const char *key, int64_t delta, uint64_t, int64_t *ret,
                  tenrec_error *err)
{
    return with_keys(self, err, [&](Keys &keys, auto &) {
        const auto found = keys.value.find(key);
        int64_t sum = 0;

        if ((found != keys.value.end() && !read_number(found->second, &sum)) ||
            __builtin_add_overflow(sum, delta, &sum))
            return tenrec_fail(err, TENREC_EINVAL,
                               "cannot add to key \"%s\": no number, or too large", key);
        const std::string text = std::to_string(sum);
        const tenrec_status st = put(keys, key, text.data(), text.size(), err);

        if (st == TENREC_OK)
            *ret = sum;
        return st;
    });
}

tenrec_status compare_set(tenrec_plugin_store *self, const char *key, const void *expected,
                          size_t expected_len, const void *desired, size_t desired_len, uint64_t,
                          tenrec_store_value_fn *fn, void *arg, tenrec_error *err)
{
    return with_keys(self, err, [&](Keys &keys, auto &) {
        const std::string old(static_cast<const char *>(expected), expected_len);
        auto found = keys.value.find(key);
        tenrec_status st = TENREC_OK;

        if (found == keys.value.end() ? old.empty() : found->second == old)
            st = put(keys, key, desired, desired_len, err);
        if (st != TENREC_OK)
            return st;
        found = keys.value.find(key);
        const std::string &now = found == keys.value.end() ? old : found->second;

        return fn(arg, 0, now.data(), now.size(), err);
    });
}

uint32_t find_missing(const Keys &keys, const char *const *key, uint32_t n, bool *ret_missing)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++)
        count += ret_missing[i] = keys.value.count(key[i]) == 0;
    return count;
}

tenrec_status get(tenrec_plugin_store *self, const char *const *key, uint32_t n,
                  uint64_t deadline_ns, tenrec_store_value_fn *fn, void *arg, bool *ret_missing,
                  tenrec_error *err)
{
    return with_keys(self, err, [&](Keys &keys, std::unique_lock<std::mutex> &guard) {
        const std::chrono::steady_clock::time_point until{ std::chrono::nanoseconds(deadline_ns) };
        const auto complete = [&] { return find_missing(keys, key, n, ret_missing) == 0; };
        tenrec_status st = TENREC_OK;

        if (deadline_ns == TENREC_STORE_NEVER)
            changed.wait(guard, complete);
        else if (!changed.wait_until(guard, until, complete))
            return TENREC_ETIMEDOUT;
        for (uint32_t i = 0; st == TENREC_OK && fn && i < n; i++) {
            const std::string &value = keys.value.at(key[i]);

            st = fn(arg, i, value.data(), value.size(), err);
        }
        return st;
    });
}

tenrec_status check(tenrec_plugin_store *self, const char *const *key, uint32_t n, uint64_t,
                    bool *ret_missing, tenrec_error *err)
{
    return with_keys(self, err, [&](Keys &keys, auto &) {
        find_missing(keys, key, n, ret_missing);
        return TENREC_OK;
    });
}

tenrec_status remove(tenrec_plugin_store *self, const char *const *key, uint32_t n, uint64_t,
                     uint32_t *ret, tenrec_error *err)
{
    return with_keys(self, err, [&](Keys &keys, auto &) {
        *ret = 0;
        for (uint32_t i = 0; i < n; i++)
            *ret += static_cast<uint32_t>(keys.value.erase(key[i]));
        return TENREC_OK;
    });
}

tenrec_status num_keys(tenrec_plugin_store *self, uint64_t, int64_t *ret, tenrec_error *err)
{
    return with_keys(self, err, [&](Keys &keys, auto &) {
        *ret = static_cast<int64_t>(keys.value.size());
        return TENREC_OK;
    });
}

void close(tenrec_plugin_store *self, uint64_t)
{
    const std::lock_guard<std::mutex> guard(lock);

    delete &store_of(self);
}

const tenrec_store_ops ops = {
    .size = sizeof ops,
    .name = name,
    .set = set,
    .add = add,
    .compare_set = compare_set,
    .get = get,
    .check = check,
    .remove = remove,
    .num_keys = num_keys,
    .close = close,
};

const tenrec_option options[] = {
    { .key = "most",
      .type = TENREC_OPT_INT,
      .offset = offsetof(Options, most),
      .def = "1000000",
      .min = 1,
      .max = INT64_MAX,
      .help = "Keys that find room in a store." },
};

std::shared_ptr<Keys> keys_find(const std::string &word, int64_t most)
{
    const std::lock_guard<std::mutex> guard(lock);
    std::shared_ptr<Keys> keys = all[word].lock();

    if (!keys) {
        keys = std::make_shared<Keys>();
        keys->most = most;
        all[word] = keys;
    }
    return keys;
}

} // namespace

tenrec_status tenrec_construct_options(void *, tenrec_error *)
{
    return TENREC_OK; // no rule spans several options
}

tenrec_status tenrec_init_store(const tenrec_store_init *in, tenrec_plugin_store *self,
                                tenrec_error *err)
try {
    const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/";
    const std::string url = in->url, word = url.substr(url.find("://") + 3);

    // The word appears in errors, a password may not be: no '@'.
    if (word.empty() || word.size() > 64 || word.find_first_not_of(letters) != word.npos)
        return tenrec_fail(err, TENREC_EINVAL,
                           "expected NAME://WORD, of 1 to 64 letters, digits, '_', '-' or '/'");
    self->impl = new Store{ keys_find(word, static_cast<const Options *>(in->options)->most),
                            "NAME \"" + word + "\"" };
    self->ops = &ops;
    return TENREC_OK;
} catch (const std::bad_alloc &) {
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
}

const struct tenrec_plugin tenrec_plugin = {
    TENREC_STORE_PLUGIN_HEADER,
    .name = "NAME",
    .version = "1.0",
    .summary = "Keeps keys in the memory of this process.",
    TENREC_PLUGIN_OPTIONS(options, Options),
};
