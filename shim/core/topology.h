/* SPDX-License-Identifier: BSD-2-Clause
 * The machine's memories as the kernel describes them: NUMA nodes, memory
 * tiers, HMAT attributes. Read from sysfs below `root` (tests give a fake
 * tree); choosing the PM nodes is a pure function of the result. */
#ifndef HYBRID_CORE_TOPOLOGY_H
#define HYBRID_CORE_TOPOLOGY_H

#include "base/types.h"

#define TOPO_MAX_NODES 64

struct topo_node {
    int id;
    bool has_cpus;
    bool has_memory;
    uint64_t total_bytes, free_bytes;
    int memory_tier; /* N of memory_tierN, -1 unknown */
    /* HMAT access class 0, from the best initiator; 0 = not told */
    uint32_t read_latency_ns, write_latency_ns;
    uint32_t read_bandwidth_mbs, write_bandwidth_mbs;
    bool is_kmem_dax; /* Persistent or CXL memory given to the system by kmem, */
    bool is_nvdimm;   /* and of these persistent */
};

struct topology {
    unsigned n_nodes;
    struct topo_node node[TOPO_MAX_NODES];
};

/* root: "/sys" outside tests. 0, or -errno when the kernel tells of no nodes:
 * then *ret is one assumed node with CPUs and the memory of /proc/meminfo
 * beside `root` (0 bytes if that is missing too). Uses ~8 KiB of stack. */
int topology_read(const char *root, struct topology *ret);

/* Which nodes there are, by one small file and with little stack. 0 or -errno. */
int topology_nodes(const char *root, uint64_t *ret);
/* Is there one node only, so that there can be no second memory? false when sysfs does not tell. */
bool topology_single_node(const char *root);

enum topo_why { TOPO_NONE, TOPO_KMEM, TOPO_MEMORY_TIER, TOPO_HMAT, TOPO_NO_CPUS };
/* Nodes to use as PM with HYBRID_PM=auto (bit mask), and which rule found them;
 * 0 when this machine has one kind of memory. */
uint64_t topology_find_pm(const struct topology *t, enum topo_why *ret_why);
/* Nodes that are DRAM: have memory and are not in pm_mask. */
uint64_t topology_dram_mask(const struct topology *t, uint64_t pm_mask);
/* 0 if every node of the mask exists and has memory; else -ENODEV and the first bad one. */
int topology_check_mask(const struct topology *t, uint64_t mask, int *ret_bad);
uint64_t topology_bytes(const struct topology *t, uint64_t mask, bool only_free);
const char *topo_why_text(enum topo_why why);

#endif
