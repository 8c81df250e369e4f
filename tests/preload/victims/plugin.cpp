// SPDX-License-Identifier: BSD-2-Clause
// A plugin as programs load them: allocates in constructors, throws, keeps TLS.
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

static std::map<int, std::string> *table = [] {
    auto *t = new std::map<int, std::string>;
    for (int i = 0; i < 300; i++)
        (*t)[i] = std::string(static_cast<size_t>(i), 'p');
    return t;
}();
static std::vector<char> global(200000, 'g');
static thread_local std::vector<int> *local;

__attribute__((destructor)) static void end()
{
    delete table;
}

extern "C" char *plugin_make(unsigned long n)
{
    if (!local)
        local = new std::vector<int>(100);
    char *p = static_cast<char *>(std::malloc(n));
    std::memset(p, 'm', n);
    return p;
}

extern "C" void plugin_done(void)
{
    delete local;
    local = nullptr;
}

extern "C" int plugin_throw(int depth)
{
    if (depth == 0)
        throw std::runtime_error(std::string(1000, 't'));
    std::vector<char> frame(static_cast<size_t>(depth) * 10);
    return plugin_throw(depth - 1) + frame[0];
}

extern "C" int plugin_catch(int depth)
{
    try {
        return plugin_throw(depth);
    } catch (const std::exception &e) {
        return static_cast<int>(std::strlen(e.what())) + (global[199999] == 'g');
    }
}
