/* SPDX-License-Identifier: Apache-2.0 */
/* ring.cc - an all-reduce in C++17:
 *
 *     c++ -std=c++17 -o ring ring.cc $(pkg-config --cflags --libs tenrec)
 *     tenrec run -n 4 -- ./ring
 *
 * Each worker has a tensor, and all get the sum. The tensors are cut in as many parts as there are
 * workers. In each of n - 1 steps a worker sends a part to the next and adds the part of the worker
 * before; in n - 1 more the sums go round. Every wait has a deadline. */
#include <algorithm>
#include <cstdio>
#include <tenrec/tenrec.hpp>

namespace
{

using tensor = tenrec::tensor<float>;
constexpr tenrec::milliseconds limit(20000);

class ring
{
  public:
    explicit ring(tenrec::worker &w)
        : w_(w), n_(w.size()), rank_(static_cast<std::size_t>(w.rank()))
    {
    }

    void sum(tensor &x)
    {
        for (std::size_t step = 0; step + 1 < n_; step++)
            pass(x, rank_ + n_ - step, true);
        for (std::size_t step = 0; step + 1 < n_; step++)
            pass(x, rank_ + 1 + n_ - step, false);
    }

  private:
    std::size_t begin(const tensor &x, std::size_t part) const
    {
        return x.size() * part / n_;
    }

    /* Sends a part, and adds the one before it that arrives, or takes it over. */
    void pass(tensor &x, std::size_t part, bool adds)
    {
        const std::size_t out = part % n_, in = (part + n_ - 1) % n_, first = begin(x, in);
        const auto count = begin(x, out + 1) - begin(x, out);
        tensor copy{ static_cast<std::int64_t>(count) };

        std::copy_n(x.data() + begin(x, out), count, copy.begin());
        const auto sent =
            w_.async({ "worker" + std::to_string((rank_ + 1) % n_), limit }, "part", copy);
        auto request = w_.receive("part", limit);
        const auto [got] = request.args<tenrec::tensor<const float>>();

        if (got.size() != begin(x, in + 1) - first)
            throw tenrec::error(TENREC_EPROTOCOL, "a part of another length");
        for (std::size_t i = 0; i < got.size(); i++)
            x[first + i] = got[i] + (adds ? x[first + i] : 0);
        request.reply();
        sent.result(limit);
    }

    tenrec::worker &w_;
    std::size_t n_, rank_;
};

} // namespace

int main()
{
    try {
        tenrec::worker w;

        w.mailbox("part");
        w.init();
        tensor x{ 1001 };
        for (std::size_t i = 0; i < x.size(); i++)
            x[i] = static_cast<float>(w.rank() + 1);
        ring(w).sum(x);
        std::printf("%g %g\n", static_cast<double>(x[0]), static_cast<double>(x[x.size() - 1]));
        w.shutdown();
    } catch (const tenrec::error &e) {
        return tenrec_error_print(&e.get(), "ring");
    }
}
