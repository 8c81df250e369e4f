/* SPDX-License-Identifier: BSD-2-Clause
 * CPUs from sysfs. See cpu_facts.h. */
#include "threads/cpu_facts.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "sys/os.h"

#define MAX_NODES 64

static bool read_text(const char *root, const char *what, unsigned id, const char *attribute,
                      char *text, size_t cap)
{
    char path[256];
    size_t len;
    int n = snprintf(path, sizeof(path), "%s/devices/system/%s%u/%s", root, what, id, attribute);
    return n > 0 && (size_t)n < sizeof(path) && os_read_file(path, text, cap, &len) == 0;
}

/* The n-th number of a line of numbers, 0 if there is none. */
static unsigned nth_number(const char *text, unsigned n)
{
    uint64_t lo, hi;
    do {
        while (*text == ' ')
            text++;
        if (!text_next_range(&text, &lo, &hi))
            return 0;
    } while (n-- > 0);
    return (unsigned)HY_MIN(lo, (uint64_t)UINT16_MAX);
}

/* How many of its core's hyperthreads have a lower number. */
static uint8_t sibling_of(const char *root, unsigned cpu)
{
    char text[256];
    const char *at = text;
    uint64_t lo, hi;
    unsigned before = 0;

    if (!read_text(root, "cpu/cpu", cpu, "topology/thread_siblings_list", text, sizeof(text)))
        return 0;
    while (text_next_range(&at, &lo, &hi))
        if (lo < cpu)
            before += (unsigned)(HY_MIN(hi, (uint64_t)cpu - 1) - lo + 1);
    return (uint8_t)HY_MIN(before, 255u);
}

/* The least distance of a node to one of the PM nodes. The file has one number for each
 * node that is online, so `rank` of the PM node is its place. */
static unsigned distance_of(const char *root, unsigned node, uint64_t pm_nodes, uint64_t online)
{
    char text[512];
    unsigned best = 0, rank = 0;

    if (!read_text(root, "node/node", node, "distance", text, sizeof(text)))
        return 0;
    for (unsigned i = 0; i < MAX_NODES; i++) {
        if (!(online >> i & 1))
            continue;
        if (pm_nodes >> i & 1) {
            unsigned d = nth_number(text, rank);
            if (d > 0 && (best == 0 || d < best))
                best = d;
        }
        rank++;
    }
    return best;
}

static void mark_distances(const char *root, uint64_t pm_nodes, struct cpu_facts *facts)
{
    char text[1024], path[256];
    const char *at = text;
    uint64_t lo, hi, online = 0;
    size_t len;

    int n = snprintf(path, sizeof(path), "%s/devices/system/node/online", root);
    if (n < 0 || (size_t)n >= sizeof(path) || os_read_file(path, text, sizeof(text), &len) < 0)
        return;
    while (text_next_range(&at, &lo, &hi))
        for (uint64_t i = lo; i <= hi && i < MAX_NODES; i++)
            online |= (uint64_t)1 << i;
    for (unsigned node = 0; node < MAX_NODES; node++) {
        unsigned d;
        if (!(online >> node & 1) ||
            !read_text(root, "node/node", node, "cpulist", text, sizeof(text)))
            continue;
        at = text;
        /* distance_of reads into a buffer of its own: `text` stays. */
        d = distance_of(root, node, pm_nodes, online);
        while (text_next_range(&at, &lo, &hi))
            for (uint64_t cpu = lo; cpu <= hi && cpu < HY_CPUS; cpu++)
                facts[cpu].distance = (uint16_t)d;
    }
}

unsigned cpu_facts_read(const char *root, uint64_t pm_nodes, struct cpu_facts facts[HY_CPUS])
{
    char text[1024], path[256];
    const char *at = text;
    uint64_t lo, hi;
    unsigned n = 0;
    size_t len;

    memset(facts, 0, sizeof(*facts) * HY_CPUS);
    int k = snprintf(path, sizeof(path), "%s/devices/system/cpu/online", root);
    if (k < 0 || (size_t)k >= sizeof(path) || os_read_file(path, text, sizeof(text), &len) < 0)
        return 0;
    while (text_next_range(&at, &lo, &hi))
        for (uint64_t cpu = lo; cpu <= hi && cpu < HY_CPUS; cpu++) {
            facts[cpu].sibling = sibling_of(root, (unsigned)cpu);
            n = HY_MAX(n, (unsigned)cpu + 1);
        }
    if (pm_nodes)
        mark_distances(root, pm_nodes, facts);
    return n;
}
