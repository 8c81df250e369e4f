// SPDX-License-Identifier: BSD-2-Clause
// Every form of operator new and delete, bad_alloc, the new handler.
#include "victim.h"

#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct alignas(256) Wide {
    char c[256];
    Wide() { fill(c, sizeof c, 5); }
    ~Wide() { CHECK(holds(c, sizeof c, 5)); }
};

static int handled;
static void handler()
{
    if (++handled == 3)
        std::set_new_handler(nullptr);
}

int main()
{
    for (size_t n = 0; n < 200000; n = n * 2 + 1) {
        void *p[8];
        p[0] = ::operator new(n);
        p[1] = ::operator new[](n);
        p[2] = ::operator new(n, std::nothrow);
        p[3] = ::operator new[](n, std::nothrow);
        p[4] = ::operator new(n, std::align_val_t(512));
        p[5] = ::operator new[](n, std::align_val_t(4096));
        p[6] = ::operator new(n, std::align_val_t(64), std::nothrow);
        p[7] = ::operator new[](n, std::align_val_t(1 << 16), std::nothrow);
        for (int i = 0; i < 8; i++) {
            CHECK(p[i]);
            fill(p[i], n, (uint64_t)i);
        }
        CHECK((uintptr_t)p[4] % 512 == 0 && (uintptr_t)p[5] % 4096 == 0 && (uintptr_t)p[7] % (1 << 16) == 0);
        for (int i = 0; i < 8; i++)
            CHECK(holds(p[i], n, (uint64_t)i));
        ::operator delete(p[0]);
        ::operator delete[](p[1], n);
        ::operator delete(p[2], std::nothrow);
        ::operator delete[](p[3], std::nothrow);
        ::operator delete(p[4], n, std::align_val_t(512));
        ::operator delete[](p[5], std::align_val_t(4096));
        ::operator delete(p[6], std::align_val_t(64), std::nothrow);
        ::operator delete[](p[7], std::align_val_t(1 << 16), std::nothrow);
    }
    ::operator delete(nullptr);
    std::vector<std::unique_ptr<Wide>> w;
    for (int i = 0; i < 2000; i++)
        w.emplace_back(new Wide);
    w.clear();
    std::unique_ptr<Wide[]> many(new Wide[100]);
    many.reset();
    bool thrown = false;
    try {
        ::operator delete(::operator new(OPAQUE((size_t)1 << 62)));
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown);
    CHECK(::operator new(OPAQUE((size_t)1 << 62), std::nothrow) == nullptr);
    std::set_new_handler(handler);
    thrown = false;
    try {
        ::operator delete(::operator new(OPAQUE((size_t)1 << 62)));
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown && handled == 3);
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < 20000; i++)
        m[std::to_string(i % 777)].push_back(i);
    CHECK(m.size() == 777);
    puts("ok");
    return 0;
}
