/* SPDX-License-Identifier: BSD-2-Clause
 * Where the processes meet: one file in shared memory (DESIGN 5), a header and
 * fixed slots. Each slot is written by its owner alone, who holds a lock on it that
 * the kernel drops at death; a dead owner's slot is reclaimed by whoever finds it.
 * What other processes wrote is checked before use and is never an address. The file
 * is not mapped: nothing that others do with it can raise a signal here. kill -9 at
 * any instruction leaves it usable, and nobody waits for one who is stopped.
 *
 * A descriptor stays open (a high number). A program that closes it loses nothing: it is
 * opened again. It costs system calls: for the control thread, not for malloc. */
#ifndef HYBRID_PLACE_REGISTRY_H
#define HYBRID_PLACE_REGISTRY_H

#include "base/cpuset.h"
#include "base/types.h"

#define REGISTRY_SLOTS   256
#define REGISTRY_VERSION 6u
#define REGISTRY_BYTES   ((size_t)4096 + (size_t)512 * REGISTRY_SLOTS) /* of the file */
/* CPUs beyond are not told of. */
#define REGISTRY_CPU_WORDS 6
/* Points of the curve of what DRAM brings. */
#define REGISTRY_CURVE 8
/* Nobody has more; a larger budget is taken as this. */
#define REGISTRY_MAX_BYTES (((uint64_t)1 << 48) - 1)

struct registry; /* opaque; one per process, in memory of ours */

/* Marks: by them others decide whether to begin beside it (rules/admission.h). */
#define REGISTRY_WRITES 1u /* write-intensive */
#define REGISTRY_ON_PM  2u /* most of its data are on PM, or will be */
#define REGISTRY_ASKED  4u /* it was asked to wait: what it starts is not */

/* What a participant does with lines of the last-level cache (llc/rules/share.h). */
enum registry_reuse {
    REGISTRY_REUSE_UNKNOWN, /* not judged: the cache cannot be divided, or nobody counts */
    REGISTRY_REUSES,
    REGISTRY_STREAMS
};

/* What a participant tells of itself, besides the DRAM that it claims. Ratios are in
 * thousandths, 0: not known. */
struct registry_published {
    enum hy_class cls;
    uint32_t threads;
    uint32_t cap;             /* threads at a time, 0: not capped */
    uint32_t confidence;      /* in the class, at most 1000 */
    uint32_t slowdown;        /* predicted time with all data on PM, over all on DRAM */
    uint32_t placed_slowdown; /* the same, as the data lie now */
    uint64_t pm_bytes, wish_bytes, asked_bytes;
    uint64_t promoted_bytes, demoted_bytes; /* moved to DRAM, to PM, since it began */
    uint64_t written_bytes, tracked_bytes;  /* pages that the last look saw written, of all */
    uint64_t arrived_ns; /* waits since then (CLOCK_MONOTONIC) before it begins; 0: it runs */
    uint64_t marks;      /* REGISTRY_WRITES ... */
    /* Traffic of the last window (classify/rules/traffic.h), in thousandths. */
    uint32_t ebw_dram, ebw_pm, pm_written;
    uint32_t writers;      /* threads with a write pending at PM */
    uint32_t writers_free; /* the same, if it were not paced */
    uint32_t held;         /* predicted time beside a PM queue full of writes, over alone */
    uint32_t hindered;     /* the same beside the writers that there are */
    uint32_t paced;        /* threads that it is paced to, 0: not paced; */
    uint32_t own_best;     /* of so many that it would run with otherwise */
    uint32_t paced_for;    /* pid of the one that it held up most, */
    uint64_t paced_since;  /* CLOCK_MONOTONIC ns */
    /* What DRAM would bring it (rules/division.h). */
    uint32_t time_at[REGISTRY_CURVE]; /* with so many eighths of its data there, hottest first */
    uint64_t curve_bytes, curve_dram; /* its data, and what of it is on DRAM, by the pages */
    uint64_t curve_takes;             /* of the rest, so much would come there now */
    uint64_t need_bytes;              /* DRAM and PM together that a profile foresees */
    uint64_t run_ns;                  /* since it began */
    uint64_t move_ns;                 /* what changing one page costs it */
    uint32_t curve_now;               /* its time as the data lie, in the unit of time_at */
    uint32_t weight;                  /* HYBRID_WEIGHT in hundredths */
    uint32_t cache_class;             /* enum registry_reuse */
    uint32_t cache_ways;              /* ways of the last-level cache that it keeps to; 0: all */
};

/* What is told of a participant (a copy, checked). */
struct registry_entry {
    uint32_t slot; /* nobody else's; the pid may be another one's in another PID namespace */
    int32_t pid;
    bool here; /* the pid is of our PID namespace */
    bool is_self;
    uint64_t dram_bytes;
    uint64_t heartbeat_ns; /* CLOCK_MONOTONIC of the last update */
    struct registry_published published;
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
 * administrator makes a file of root, group and mode 0660, empty or of REGISTRY_BYTES
 * zeros. 0 or -errno: -EPROTO not a registry / other version / size, -EPERM
 * somebody else's or writable for others, -EACCES, -EROFS, -ENOSPC no room for it ... */
int registry_open(const char *path, uint64_t dram_budget, struct registry **ret);
/* What such an error means, for messages. */
const char *registry_problem(int error);
/* Look only (hybridctl status): never creates, never writes. */
int registry_open_readonly(const char *path, struct registry **ret);
/* Take a slot for this process; nothing to do if it has one. -EUSERS when full
 * of living ones, -EBUSY when somebody who decides about the budget does not go on,
 * -EROFS, or what registry_open says. */
int registry_join(struct registry *r, enum hy_class cls);
void registry_leave(struct registry *r);
/* No other thread may be using `r`. */
void registry_close(struct registry *r);
/* In a forked child: forget the parent's slot (not released), not joined. */
void registry_after_fork_child(struct registry *r);
/* False also after the file was cut short or the slot was lost (the program closed our
 * descriptor, and somebody took it since); joining again is possible, with no bytes. */
bool registry_joined(struct registry *r);

/* Claim DRAM: adds `bytes` to our slot if the sum over living participants
 * stays within the budget; -ENOSPC otherwise, -ENOTCONN when not joined (then
 * nothing changed). Three system calls; safe from any thread. A dead one's bytes are
 * found by a later claim at the latest: looking for them is rationed. Racing
 * claims may both fail where one would fit. */
int registry_claim_dram(struct registry *r, uint64_t bytes);
void registry_return_dram(struct registry *r, uint64_t bytes);
/* Publish the rest of what we tell; also renews the heartbeat. */
void registry_publish(struct registry *r, const struct registry_published *published);
/* The CPUs that this process is confined to, so that others leave them to it. */
void registry_publish_cpus(struct registry *r, const uint64_t cpus[REGISTRY_CPU_WORDS]);
/* A checked copy of all living participants; reclaims dead ones on the way
 * (unless read-only). */
void registry_read(struct registry *r, struct registry_view *ret);

/* It has told nothing for so long that it is stopped (SIGSTOP, a debugger): nothing is kept for it,
 * and it is asked for nothing. */
bool registry_is_stopped(const struct registry_entry *e, uint64_t now_ns);

/* The CPUs that other participants are confined to. One that is stopped needs none. */
struct cpus_of_others {
    struct hy_cpus all, elders; /* of all that are confined, and of those that came before us */
    unsigned confined;          /* how many they are */
};
void registry_cpus_of_others(const struct registry_view *v, struct cpus_of_others *ret);

#endif
