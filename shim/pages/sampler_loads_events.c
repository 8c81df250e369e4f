/* SPDX-License-Identifier: BSD-2-Clause
 * Which events of this machine tell addresses of loads and stores: sampler_loads.def and sysfs. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "pages/sampler_rings.h"

static const struct row {
    bool stores;
    const char *pmu, *file, *text;
    struct load_event e;
} table[] = {
#define ROW(stores, pmu, file, text, config, config1, config2, precise, user_only, filter, unit,   \
            period, meaning)                                                                       \
    {stores,                                                                                       \
     pmu,                                                                                          \
     file,                                                                                         \
     text,                                                                                         \
     {{0, config, config1, config2, precise, user_only}, SAMPLE_##filter, unit, period, meaning}},
#define HY_LOADS(pmu, file, text, name, ...)  ROW(false, pmu, file, text, __VA_ARGS__)
#define HY_STORES(pmu, file, text, name, ...) ROW(true, pmu, file, text, __VA_ARGS__)
#include "pages/sampler_loads.def"
#undef HY_STORES
#undef HY_LOADS
};

static bool read_file(const char *root, const char *pmu, const char *file, char *text, size_t cap)
{
    char path[256];
    size_t len;
    int n = snprintf(path, sizeof(path), "%s/bus/event_source/devices/%s/%s", root, pmu, file);
    if (n < 0 || (size_t)n >= sizeof(path) || os_read_file(path, text, cap, &len) != 0)
        return false;
    while (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';
    return true;
}

static unsigned events(bool stores, const char *root, struct load_event *ret, unsigned cap)
{
    unsigned n = 0;
    for (size_t i = 0; i < HY_ARRAY_SIZE(table) && n < cap; i++) {
        const struct row *r = &table[i];
        char text[128];
        uint64_t type;
        if (r->stores != stores || !read_file(root, r->pmu, r->file, text, sizeof(text)) ||
            (r->text[0] && strcmp(text, r->text) != 0) ||
            !read_file(root, r->pmu, "type", text, sizeof(text)))
            continue;
        const char *at = text;
        uint64_t hi;
        if (!text_next_range(&at, &type, &hi) || type > UINT32_MAX)
            continue;
        ret[n] = r->e;
        ret[n++].os.type = (uint32_t)type;
    }
    return n;
}

unsigned load_events(const char *root, struct load_event *ret, unsigned cap)
{
    return events(false, root, ret, cap);
}

unsigned store_events(const char *root, struct load_event *ret, unsigned cap)
{
    return events(true, root, ret, cap);
}
