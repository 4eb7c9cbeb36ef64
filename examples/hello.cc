/* SPDX-License-Identifier: Apache-2.0 */
/* hello.cc - hello.c in C++17:
 *
 *     c++ -std=c++17 -o hello hello.cc $(pkg-config --cflags --libs tenrec)
 *     tenrec run -n 3 -- ./hello
 */
#include <cstdint>
#include <cstdio>
#include <tenrec/tenrec.hpp>

int main()
{
    try {
        tenrec::worker w;

        w.on("add", [](std::int64_t a, std::int64_t b) { return a + b; });
        w.init();
        const int sum = w.call<int>("worker0", "add", 40, 2);
        w.shutdown();
        std::printf("worker0 says %d\n", sum);
    } catch (const tenrec::error &e) {
        return tenrec_error_print(&e.get(), "hello");
    }
}
