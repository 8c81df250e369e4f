/* SPDX-License-Identifier: BSD-2-Clause
 * Where the processes meet: one file in shared memory (DESIGN 5), a header and
 * fixed slots. Each slot is written by its owner alone; claims by compare-and-
 * swap; a dead owner's slot is reclaimed by whoever finds it. What other
 * processes wrote is checked before use and is never an address. The file is
 * mapped and its descriptor closed: programs that close every fd do no harm.
 * kill -9 at any instruction leaves it usable. */
#ifndef HYBRID_SERVICE_REGISTRY_H
#define HYBRID_SERVICE_REGISTRY_H

#include "base/types.h"

#define REGISTRY_SLOTS   256
#define REGISTRY_VERSION 2u
#define REGISTRY_BYTES   ((size_t)4096 + (size_t)256 * REGISTRY_SLOTS) /* of the file */
/* CPUs beyond are not told of. */
#define REGISTRY_CPU_WORDS 6
/* Nobody has more; a larger budget is taken as this. */
#define REGISTRY_MAX_BYTES (((uint64_t)1 << 48) - 1)

struct registry; /* opaque; one per process, in memory of ours */

/* What a participant tells of itself, besides the DRAM that it claims. Ratios are in
 * thousandths, 0: not known. */
struct registry_told {
    enum hy_class cls;
    uint32_t threads;
    uint32_t cap;             /* threads at a time, 0: not capped */
    uint32_t confidence;      /* in the class, at most 1000 */
    uint32_t slowdown;        /* predicted time with all data on PM, over all on DRAM */
    uint32_t placed_slowdown; /* the same, as the data lie now */
    uint64_t pm_bytes, wish_bytes, asked_bytes;
    uint64_t promoted_bytes, demoted_bytes; /* moved to DRAM, to PM, since it began */
    uint64_t written_bytes, tracked_bytes;  /* pages that the last look saw written, of all */
};

/* What is told of a participant (a copy, checked). */
struct registry_entry {
    int32_t pid;
    bool is_self;
    uint64_t dram_bytes;
    uint64_t heartbeat_ns; /* CLOCK_MONOTONIC of the last update */
    struct registry_told told;
    uint64_t cpus[REGISTRY_CPU_WORDS]; /* that it is confined to by us; all 0: not confined */
    char name[16];
};

struct registry_view {
    uint64_t dram_budget;
    unsigned n;
    struct registry_entry entry[REGISTRY_SLOTS];
};

/* Default path for this user ("/dev/shm/libhybrid-UID.VERSION": other versions of the library
 * have a file of their own, so none finds one that it cannot use). */
void registry_default_path(char *buf, size_t cap);
/* Open or create (mode 0600). `dram_budget`: shared budget in bytes, used when
 * no participant lives, at the opening and again at the joining; otherwise the
 * file's stays and is returned by registry_view. To share among users an
 * administrator makes a file of REGISTRY_BYTES zeros with mode 0660, not at the
 * default path. 0 or -errno: -EPROTO not a registry / other version / size,
 * -EPERM foreign owner or mode, -EACCES, -EROFS ... */
int registry_open(const char *path, uint64_t dram_budget, struct registry **ret);
/* Look only (hybridctl status): never creates, never writes. */
int registry_open_readonly(const char *path, struct registry **ret);
/* Take a slot for this process; nothing to do if it has one. -ENOSPC when full
 * of living ones, -EALREADY while another thread joins, -EROFS, or what keeps us
 * from knowing ourselves (no /proc). */
int registry_join(struct registry *r, enum hy_class cls);
void registry_leave(struct registry *r);
/* No other thread may be using `r`. */
void registry_close(struct registry *r);
/* In a forked child: forget the parent's slot (not released), not joined. */
void registry_after_fork_child(struct registry *r);
/* False also after somebody who cannot see this process (another PID namespace
 * on the same file) took its slot; joining again is possible, with no bytes. */
bool registry_joined(const struct registry *r);

/* Claim DRAM: adds `bytes` to our slot if the sum over living participants
 * stays within the budget; -ENOSPC otherwise, -ENOTCONN when not joined (then
 * nothing changed). About 0.2 us; safe from any thread. A dead one's bytes are
 * found by a later claim at the latest: looking for them is rationed. Racing
 * claims may both fail where one would fit. */
int registry_claim_dram(struct registry *r, uint64_t bytes);
void registry_return_dram(struct registry *r, uint64_t bytes);
/* Publish the rest of what we tell; also renews the heartbeat. */
void registry_publish(struct registry *r, const struct registry_told *told);
/* The CPUs that this process is confined to, so that others leave them to it. */
void registry_publish_cpus(struct registry *r, const uint64_t cpus[REGISTRY_CPU_WORDS]);
/* A checked copy of all living participants; reclaims dead ones on the way
 * (unless read-only). */
void registry_read(struct registry *r, struct registry_view *ret);

#endif
