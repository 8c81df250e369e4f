/* SPDX-License-Identifier: BSD-2-Clause
 * The registry's file: layout, states, owners, and the only ways to touch it. Private to
 * registry*.c and their tests.
 *
 * The file is never mapped: whoever truncates a mapped file kills those who touch it. It is
 * read and written by calls that fail instead. A slot is written only by who holds the lock of
 * its byte, which the kernel drops at death and exec; so a slot has one writer at a time, and
 * one write changes it as a whole. Nobody ever waits for the lock of a slot.
 *
 *   state     holds                          leaves by
 *   FREE      nothing                        join: whoever gets the lock writes CLAIMING
 *   CLAIMING  a name tag, no bytes           owner: writes LIVE
 *                                            anybody, owner dead: lock, look again, FREE
 *   LIVE      a participant, bytes count     owner's leave: FREE
 *                                            anybody, owner dead: as above
 *
 *   killed while        what is left                  who repairs it
 *   creating the file   zeros and some constants      next opener writes the same
 *   joining             CLAIMING of a dead process    join, read, a short claim
 *   deciding the budget old or new, both complete     nobody needs to
 *   claiming, returning LIVE of a dead process with   as joining; its bytes count
 *                       the bytes that it had         until then
 *   publishing          old or new values             nobody reads a dead one's
 *   leaving, reclaiming LIVE or FREE                  as joining
 *
 * Fields of a slot are not cleared when it becomes FREE: nobody reads them then, and the next
 * owner sets them all with CLAIMING. */
#ifndef HYBRID_PLACE_REGISTRY_FILE_H
#define HYBRID_PLACE_REGISTRY_FILE_H

#include "base/types.h"
#include "place/registry.h"
#include "sys/os.h"

#define REG_PAGE_SLOTS 8 /* a page */
#define REG_SLOT_PAGES (REGISTRY_SLOTS / REG_PAGE_SLOTS)

struct reg_header {
    uint64_t magic; /* written last */
    uint32_t version, header_bytes, slot_bytes, n_slots, total_bytes, reserved[9];
    uint64_t budget; /* written only by who holds the locks of all slots */
    /* A byte for each page of slots: 1 since before the first of them was written, for ever. What
     * is 0 there need not be read. */
    uint8_t used[REG_SLOT_PAGES];
    uint8_t unused[HY_PAGE - 72 - REG_SLOT_PAGES];
};

struct reg_slot {
    uint64_t word; /* state and identity of the owner */
    uint64_t dram; /* tag << 48 | bytes; each owner has another tag */
    uint64_t heartbeat_ns;
    uint64_t pm, wish, asked, promoted, demoted, written, tracked;
    uint32_t cls, threads, cap, confidence, slowdown, placed_slowdown;
    uint64_t name[2];
    uint64_t cpus[REGISTRY_CPU_WORDS]; /* confined to these; all 0: not confined */
    uint64_t pidns;                    /* PID namespace of the owner; 0: as the reader's */
    uint32_t ebw_dram, ebw_pm, pm_written, writers, writers_free, held, hindered, paced, own_best,
        paced_for;
    uint64_t paced_since;
    uint64_t arrived; /* waits for admission since then (CLOCK_MONOTONIC); 0: it runs */
    uint64_t marks;   /* REGISTRY_WRITES ... */
    uint64_t curve_bytes, curve_dram, need, run_ns;
    uint32_t time_at[REGISTRY_CURVE];
    uint32_t curve_now, weight, move_ns, cache_class, cache_ways, spare;
    uint64_t curve_takes;
    uint64_t reserved[22];
};

struct reg_file {
    struct reg_header head;
    struct reg_slot slot[REGISTRY_SLOTS];
};

enum reg_state { REG_FREE = 0, REG_CLAIMING = 1, REG_LIVE = 2 };

static inline enum reg_state reg_state(uint64_t word)
{
    return (enum reg_state)(word & 3);
}

/* The two packed words: 48 bits of bytes below 16 of generation or tag. */
static inline uint64_t reg_low48(uint64_t w)
{
    return w & REGISTRY_MAX_BYTES;
}

static inline uint64_t reg_high16(uint64_t w)
{
    return w & ~REGISTRY_MAX_BYTES;
}

static inline uint64_t reg_next16(uint64_t w)
{
    return reg_high16(w) + REGISTRY_MAX_BYTES + 1;
}

/* Owner's identity as in a slot's word, with the state bits 0. */
uint64_t reg_identity(const struct os_proc_id *id);
int32_t reg_pid(uint64_t word);

/* BLANK: nobody finished creating it, maybe because he was killed. */
enum reg_content { REG_READY, REG_BLANK, REG_FOREIGN };
enum reg_content reg_inspect(const struct reg_file *f);

/* --- access: 0 or -errno ------------------------------------------------ */

/* A process that cannot tell its PID namespace: only locks say whether it lives. */
#define REG_NS_UNKNOWN UINT64_MAX

struct reg_access {
    int fd; /* -1: not open */
    bool readonly;
    struct os_file_id id;  /* the program may close our descriptor and use its number */
    struct reg_file *seen; /* private memory: what reg_refresh() last read */
    int slots;             /* so many of its slots: the others were never used */
    uint64_t pidns;        /* of this process */
    char path[4096];
};

int reg_open(struct reg_access *a, const char *path, bool readonly);
void reg_close(struct reg_access *a);
/* In a forked child, where the descriptor is the parent's or somebody else's. */
void reg_drop_descriptor(struct reg_access *a);
/* Open it again if the descriptor was lost; *ret_lost: it was, and with it all locks. */
int reg_ensure_open(struct reg_access *a, bool *ret_lost);
/* -EPROTO: somebody has cut it short. */
int reg_refresh(struct reg_access *a);
int reg_refresh_slot(struct reg_access *a, int i);
int reg_put_slot(struct reg_access *a, int i, const struct reg_slot *s);
int reg_put_budget(struct reg_access *a, uint64_t budget);
/* Blank to ready. Every opener writes the same constants: several may do it. */
int reg_make_ready(struct reg_access *a);
/* -EAGAIN: held by somebody else. */
int reg_lock_slots(struct reg_access *a, int first, int n);
void reg_unlock_slots(struct reg_access *a, int first, int n);
/* Has the owner of slot `i`, as last seen, gone? Our own slots are not asked for. */
bool reg_slot_dead(struct reg_access *a, int i);

#endif
