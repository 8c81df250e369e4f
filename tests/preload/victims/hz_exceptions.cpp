// SPDX-License-Identifier: BSD-2-Clause
// C++ exceptions through C callbacks and threads; the unwinder is still libgcc's
// (a linked libunwind takes over and makes a throw thirty times dearer); static
// and thread-local objects are constructed and destroyed as ever.
#include "victim.h"

#include <dlfcn.h>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

struct Static {
    std::map<int, std::string> m;
    Static()
    {
        for (int i = 0; i < 1000; i++)
            m[i] = std::string(static_cast<size_t>(i), 's');
    }
    ~Static() { std::printf("static %zu\n", m.size()); }
};
static Static global;

struct Local {
    std::vector<std::string> v;
    ~Local()
    {
        for (int i = 0; i < 100; i++)
            v.push_back(std::string(1000, 'x'));
        CHECK(v.back()[999] == 'x');
    }
};
static thread_local Local local;

static int compare(const void *a, const void *b)
{
    if (*static_cast<const int *>(a) == 42)
        throw std::runtime_error(std::string(500, 'q'));
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static int deep(int n)
{
    std::string s(static_cast<size_t>(n), 'd');
    if (n == 0)
        throw n;
    return deep(n - 1) + s[0];
}

static int work()
{
    int caught = 0;
    local.v.push_back("in a thread");
    for (int i = 0; i < 300; i++) {
        std::vector<int> v(200);
        for (int k = 0; k < 200; k++)
            v[static_cast<size_t>(k)] = (k * 37 + 5) % 200;
        try {
            qsort(v.data(), v.size(), sizeof(int), compare);
        } catch (const std::runtime_error &e) {
            caught += std::string(e.what()).size() == 500;
        }
        try {
            deep(30);
        } catch (int) {
            caught++;
        }
    }
    return caught;
}

int main()
{
    Dl_info who;
    void *f = dlsym(RTLD_DEFAULT, "_Unwind_RaiseException");
    CHECK(f && dladdr(f, &who) && strstr(who.dli_fname, "libgcc_s"));
    std::vector<std::thread> t;
    int sum[4] = {0};
    for (int i = 0; i < 4; i++)
        t.emplace_back([i, &sum] { sum[i] = work(); });
    for (auto &x : t)
        x.join();
    std::printf("caught %d\n", work() + sum[0] + sum[1] + sum[2] + sum[3]);
    return 0;
}
