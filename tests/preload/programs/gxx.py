# SPDX-License-Identifier: BSD-2-Clause
"""g++ with templates, containers, exceptions and threads; object compared, program run."""
import hashlib

import harness

SOURCE = r'''
#include <algorithm>
#include <cstdio>
#include <future>
#include <map>
#include <memory>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct fib { static const long value = fib<N - 1>::value + fib<N - 2>::value; };
template <> struct fib<0> { static const long value = 0; };
template <> struct fib<1> { static const long value = 1; };
struct node { std::map<std::string, std::shared_ptr<node>> kids; long n = 0; };
static long grow(int seed)
{
    auto root = std::make_shared<node>();
    for (int i = 0; i < 3000; i++) {
        auto at = root;
        for (char c : std::to_string(i * seed))
            at = (at->kids[std::string(1, c)] ? at->kids[std::string(1, c)]
                                              : at->kids[std::string(1, c)] = std::make_shared<node>());
        at->n++;
    }
    return root->kids.size();
}
int main()
{
    std::printf("%ld\n", fib<80>::value);
    std::vector<std::future<long>> jobs;
    for (int i = 1; i <= 6; i++) jobs.push_back(std::async(std::launch::async, grow, i * 31));
    long sum = 0;
    for (auto &j : jobs) sum += j.get();
    std::unordered_map<std::string, std::vector<int>> m;
    for (int i = 0; i < 20000; i++) m[std::to_string(i % 501)].push_back(i);
    for (int i = 0; i < 500; i++) try { throw std::runtime_error(std::string(i, 'x')); }
        catch (const std::exception &e) { sum += std::string(e.what()).size(); }
    std::ostringstream os;
    for (auto &part : {"1", "22", "333"}) os << std::string(part) << ',';
    std::printf("%ld %zu %s\n", sum, m.size(), os.str().c_str());
    struct alignas(64) wide { char c[64]; };
    std::vector<std::unique_ptr<wide>> w;
    for (int i = 0; i < 1000; i++) w.emplace_back(new wide);
    for (auto &p : w) if ((size_t)p.get() % 64) return 1;
    try { std::vector<char> v(static_cast<size_t>(1) << 62); } catch (const std::bad_alloc &) { std::puts("bad_alloc"); }
    return 6;
}
'''


def run(ctx):
    harness.need('g++')
    with open(ctx.path('p.cpp'), 'w', encoding='ascii') as f:
        f.write(SOURCE)
    ctx.run(['g++', '-std=c++17', '-O1', '-frandom-seed=1', '-c', '-o', 'p.o', 'p.cpp'], timeout=300)
    with open(ctx.path('p.o'), 'rb') as f:
        ctx.record('object', hashlib.sha256(f.read()).hexdigest())
    ctx.run(['g++', '-o', 'p', 'p.o', '-pthread'])
    ctx.run(['./p'])
