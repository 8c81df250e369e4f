/* SPDX-License-Identifier: BSD-2-Clause
 * Topology: fake sysfs trees in a temporary folder, and the choice of the PM
 * nodes on machines of many kinds. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/topology.h"
#include "fake_tree.h"

static char top[64], root[80];

static int setup(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "%s", "/tmp/hybrid-topology-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    snprintf(root, sizeof(root), "%s/sys", top);
    return mkdir(root, 0700);
}

static int teardown(void **state)
{
    (void)state;
    return tree_remove(top);
}

static void put(const char *name, const char *text)
{
    tree_put(root, name, text);
}

static void put_node(int id, const char *cpus, unsigned long total_kib, unsigned long free_kib)
{
    char name[128], text[256];
    snprintf(name, sizeof(name), "devices/system/node/node%d/cpulist", id);
    put(name, cpus);
    snprintf(name, sizeof(name), "devices/system/node/node%d/meminfo", id);
    snprintf(text, sizeof(text), "Node %d MemTotal:  %10lu kB\nNode %d MemFree:  %10lu kB\n", id,
             total_kib, id, free_kib);
    put(name, text);
}

static void put_hmat(int id, const char *latency, const char *bandwidth)
{
    static const char *const attribute[] = {"read_latency", "write_latency", "read_bandwidth",
                                            "write_bandwidth"};
    for (unsigned i = 0; i < 4; i++) {
        char name[128];
        snprintf(name, sizeof(name), "devices/system/node/node%d/access0/initiators/%s", id,
                 attribute[i]);
        put(name, i < 2 ? latency : bandwidth);
    }
}

static uint64_t find(struct topology *t, enum topo_why *why)
{
    assert_int_equal(topology_read(root, t), 0);
    return topology_find_pm(t, why);
}

static void one_node_has_no_pm(void **state)
{
    (void)state;
    struct topology t;
    enum topo_why why;
    put("devices/system/node/online", "0\n");
    put_node(0, "0-1\n", 4096, 1024);
    put("devices/virtual/memory_tiering/memory_tier4/nodelist", "0\n");
    assert_int_equal(find(&t, &why), 0);
    assert_true(topology_single_node(root));
    assert_int_equal(why, TOPO_NONE);
    assert_int_equal(t.n_nodes, 1);
    assert_true(t.node[0].has_cpus && t.node[0].has_memory && !t.node[0].is_kmem_dax);
    assert_int_equal(t.node[0].total_bytes, 4096 * 1024);
    assert_int_equal(t.node[0].free_bytes, 1024 * 1024);
    assert_int_equal(t.node[0].memory_tier, 4);
    assert_int_equal(t.node[0].read_latency_ns, 0);
}

/* A virtual machine that gets its memory bit by bit (see topology.c). */
static void the_only_node_has_what_the_machine_has(void **state)
{
    (void)state;
    struct topology t;
    put("devices/system/node/online", "0\n");
    put_node(0, "0-1\n", 5000, 3000);
    put("../proc/meminfo", "MemTotal:  24000 kB\nMemFree: 22000 kB\nMemAvailable: 1 kB\n");
    assert_int_equal(topology_read(root, &t), 0);
    assert_int_equal(topology_bytes(&t, 1, false), 24000 * 1024);
    assert_int_equal(topology_bytes(&t, 1, true), 22000 * 1024);
}

static void kmem_node_of_an_old_kernel(void **state)
{
    (void)state;
    struct topology t;
    enum topo_why why;
    put("devices/system/node/online", "0-1\n");
    assert_false(topology_single_node(root));
    put_node(0, "0-3\n", 1000, 500);
    put_node(1, "\n", 9000, 8000);
    put("bus/dax/drivers/kmem/dax0.0", "");
    put("bus/dax/drivers/kmem/bind", "");
    put("bus/dax/devices/dax0.0/target_node", "1\n");
    put("devices/virtual/memory_tiering/memory_tier4/nodelist", "0\n");
    put("devices/virtual/memory_tiering/memory_tier22/nodelist", "1\n");
    assert_int_equal(find(&t, &why), 2);
    assert_int_equal(why, TOPO_KMEM);
    assert_true(t.node[1].is_kmem_dax);
    assert_int_equal(t.node[1].memory_tier, 22);
    assert_int_equal(topology_dram_mask(&t, 2), 1);
    assert_int_equal(topology_bytes(&t, 2, false), 9000 * 1024);
    assert_int_equal(topology_bytes(&t, 3, true), 8500 * 1024);
}

/* Sapphire Rapids with HBM in flat mode: kmem or not, it is the faster one. */
static void fast_memory_is_never_pm(void **state)
{
    (void)state;
    struct topology t;
    enum topo_why why;
    put("devices/system/node/online", "0-1\n");
    put_node(0, "0-3\n", 1000, 500);
    put_node(1, "\n", 1000, 500);
    put_hmat(0, "100\n", "100000\n");
    put_hmat(1, "130\n", "400000\n");
    assert_int_equal(find(&t, &why), 0);
    put("bus/dax/drivers/kmem/dax0.0", "");
    put("bus/dax/devices/dax0.0/target_node", "1\n");
    assert_int_equal(find(&t, &why), 0);
    /* and by the tier alone */
    put_hmat(1, "", "");
    put("devices/virtual/memory_tiering/memory_tier4/nodelist", "0\n");
    put("devices/virtual/memory_tiering/memory_tier2/nodelist", "1\n");
    assert_int_equal(find(&t, &why), 0);
    assert_int_equal(why, TOPO_NONE);
}

static void slower_tier_by_the_kernel(void **state)
{
    (void)state;
    struct topology t;
    enum topo_why why;
    put("devices/system/node/online", "0-2\n");
    put_node(0, "0-1\n", 1000, 500);
    put_node(1, "2-3\n", 1000, 500);
    put_node(2, "\n", 1000, 500);
    put("devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1\n");
    put("devices/virtual/memory_tiering/memory_tier168/nodelist", "2\n");
    put("devices/virtual/memory_tiering/uevent", "");
    assert_int_equal(find(&t, &why), 4);
    assert_int_equal(why, TOPO_MEMORY_TIER);
    assert_int_equal(topology_dram_mask(&t, 4), 3);
}

static void hmat_names_the_slower_node(void **state)
{
    (void)state;
    struct topology t;
    enum topo_why why;
    put("devices/system/node/online", "0,7\n");
    put_node(0, "0-1\n", 1000, 500);
    put_node(7, "\n", 1000, 500);
    put_hmat(0, "80\n", "100000\n");
    put_hmat(7, "300\n", "10000\n");
    assert_int_equal(find(&t, &why), 0x80);
    assert_int_equal(why, TOPO_HMAT);
    assert_int_equal(t.node[1].id, 7);
    assert_int_equal(t.node[1].read_latency_ns, 300);
    assert_int_equal(t.node[1].write_bandwidth_mbs, 10000);
}

static void node_without_cpus_when_nothing_else_is_told(void **state)
{
    (void)state;
    struct topology t;
    enum topo_why why;
    put("devices/system/node/online", "0-1\n");
    put_node(0, "0-1\n", 1000, 500);
    put_node(1, "\n", 1000, 500);
    /* Linux 6.1 has both in DRAM's tier */
    put("devices/virtual/memory_tiering/memory_tier4/nodelist", "0-1\n");
    assert_int_equal(find(&t, &why), 2);
    assert_int_equal(why, TOPO_NO_CPUS);
    /* told to be as fast: no PM */
    put_hmat(0, "100\n", "100000\n");
    put_hmat(1, "101\n", "99000\n");
    assert_int_equal(find(&t, &why), 0);
}

static void two_sockets_are_one_kind(void **state)
{
    (void)state;
    struct topology t;
    enum topo_why why;
    int bad = -7;
    put("devices/system/node/online", "0-2\n");
    put_node(0, "0-1\n", 1000, 500);
    put_node(1, "2-3\n", 1000, 500);
    put_node(2, "\n", 0, 0); /* memory all offline */
    assert_int_equal(find(&t, &why), 0);
    assert_false(t.node[2].has_memory);
    /* but the user may name the remote socket */
    assert_int_equal(topology_check_mask(&t, 2, &bad), 0);
    assert_int_equal(bad, -7);
    assert_int_equal(topology_check_mask(&t, 4, &bad), -ENODEV);
    assert_int_equal(bad, 2);
    assert_int_equal(topology_check_mask(&t, UINT64_C(1) << 63 | 1, &bad), -ENODEV);
    assert_int_equal(bad, 63);
}

static void something_remains_dram(void **state)
{
    (void)state;
    struct topology t;
    enum topo_why why;
    /* all CPUs on a node without memory: what is left is all there is */
    put("devices/system/node/online", "0-1\n");
    put_node(0, "0-1\n", 0, 0);
    put_node(1, "\n", 1000, 500);
    assert_int_equal(find(&t, &why), 0);
    assert_int_equal(why, TOPO_NONE);
}

static void two_kinds_of_pm_are_both_taken(void **state)
{
    (void)state;
    struct topology t;
    enum topo_why why;
    put("devices/system/node/online", "0-2\n");
    put_node(0, "0-1\n", 1000, 500);
    put_node(1, "\n", 1000, 500);
    put_node(2, "\n", 1000, 500);
    put("bus/dax/drivers/kmem/dax1.0", "");
    put("bus/dax/devices/dax1.0/target_node", "2\n");
    assert_int_equal(find(&t, &why), 6);
    assert_int_equal(why, TOPO_KMEM); /* the best evidence is told */
}

static void no_numa_kernel_means_one_node(void **state)
{
    (void)state;
    struct topology t;
    put("../proc/meminfo", "MemTotal:  2048 kB\nMemFree: 1024 kB\n");
    assert_int_equal(topology_read(root, &t), -ENOENT);
    assert_int_equal(t.n_nodes, 1);
    assert_int_equal(t.node[0].total_bytes, 2048 * 1024);
    assert_true(t.node[0].has_cpus && t.node[0].has_memory);
    enum topo_why why;
    assert_int_equal(topology_find_pm(&t, &why), 0);
}

static void rubbish_is_survived(void **state)
{
    (void)state;
    struct topology t;
    enum topo_why why;
    put("devices/system/node/online", "0-99999999999999999999999,70-80\n");
    assert_int_equal(topology_read(root, &t), 0);
    assert_int_equal(t.n_nodes, TOPO_MAX_NODES);
    assert_int_equal(topology_find_pm(&t, &why), 0); /* none of them has memory */
    put("devices/system/node/online", "x\n");
    assert_int_equal(topology_read(root, &t), -ENODATA);
    assert_int_equal(t.n_nodes, 1);
    put("devices/system/node/online", "0\n");
    put_node(0, "0\n", 1000, 500);
    put("bus/dax/drivers/kmem/dax0.0", "");
    put("bus/dax/devices/dax0.0/target_node", "-1\n");
    put("devices/virtual/memory_tiering/memory_tier/nodelist", "0\n");
    assert_int_equal(topology_read(root, &t), 0);
    assert_false(t.node[0].is_kmem_dax);
    assert_int_equal(t.node[0].memory_tier, -1);
}

/* The machine under the test itself: whatever it is, the kernel's own count of
 * its memory is met. */
static void this_machine(void **state)
{
    (void)state;
    struct topology t;
    int r = topology_read("/sys", &t);
    assert_true(r == 0 || t.n_nodes == 1);
    uint64_t all = topology_bytes(&t, topology_dram_mask(&t, 0), false);
    uint64_t told = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    assert_in_range(all, told / 2, told * 2);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(one_node_has_no_pm),
        CASE(the_only_node_has_what_the_machine_has),
        CASE(kmem_node_of_an_old_kernel),
        CASE(fast_memory_is_never_pm),
        CASE(slower_tier_by_the_kernel),
        CASE(hmat_names_the_slower_node),
        CASE(node_without_cpus_when_nothing_else_is_told),
        CASE(two_sockets_are_one_kind),
        CASE(something_remains_dram),
        CASE(two_kinds_of_pm_are_both_taken),
        CASE(no_numa_kernel_means_one_node),
        CASE(rubbish_is_survived),
        CASE(this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
