/* SPDX-License-Identifier: BSD-2-Clause
 * The registry's file: layout, states and owners. Private to registry.c and its
 * tests. All shared fields are touched by atomic operations only.
 *
 *   state     holds                          leaves by
 *   FREE      nothing                        join: CAS to CLAIMING
 *   CLAIMING  a name tag, no bytes; only     owner: CAS to LIVE
 *             the owner writes the fields    anybody, owner dead: CAS to FREE
 *   LIVE      a participant, bytes count     owner's leave: CAS to FREE
 *                                            anybody, owner dead: CAS to FREE
 *
 *   killed while        what is left                  who repairs it
 *   creating the file   zeros and some constants      next opener writes the same
 *   joining             CLAIMING of a dead process    join, read, a short claim
 *   deciding the budget old or new, both complete     nobody needs to
 *   claiming, returning LIVE of a dead process with   as joining; its bytes count
 *                       the bytes that it had         until then
 *   publishing          old and new values mixed      nobody reads a dead one's
 *   leaving, reclaiming LIVE or FREE                  as joining
 *
 * Fields of a slot are not cleared when it becomes FREE: nobody reads them
 * then, and the next owner sets them all while CLAIMING. */
#ifndef HYBRID_SERVICE_REGISTRY_FILE_H
#define HYBRID_SERVICE_REGISTRY_FILE_H

#include "base/types.h"
#include "service/registry.h"
#include "sys/os.h"

#define REG_LOAD(p)     __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define REG_STORE(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)

struct reg_header {
    uint64_t magic; /* written last */
    uint32_t version, header_bytes, slot_bytes, n_slots, total_bytes, reserved[9];
    /* generation << 48 | bytes. Each join raises the generation, so that whoever
     * found the file empty and sets a budget fails if somebody joined since. */
    uint64_t budget;
    uint8_t unused[HY_PAGE - 72];
};

struct reg_slot {
    uint64_t word; /* state and identity of the owner */
    uint64_t dram; /* tag << 48 | bytes; each owner has another tag, so that a late
                    * thread of a former owner cannot change it */
    uint64_t heartbeat_ns;
    uint64_t pm, wish, asked, promoted, demoted, written, tracked;
    uint32_t cls, threads, cap, confidence, slowdown, placed_slowdown;
    uint64_t name[2];
    uint64_t cpus[REGISTRY_CPU_WORDS]; /* confined to these; all 0: not confined */
    uint64_t reserved[11];
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

static inline bool reg_cas(uint64_t *p, uint64_t from, uint64_t to)
{
    return __atomic_compare_exchange_n(p, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Owner's identity as in a slot's word, with the state bits 0. */
uint64_t reg_identity(const struct os_proc_id *id);
uint64_t reg_owner(uint64_t word);
int32_t reg_pid(uint64_t word);
/* Has the process image named by `word` gone? Costs a read of /proc. When the
 * kernel does not tell, it is taken to live. */
bool reg_owner_gone(uint64_t word);

/* BLANK: nobody finished creating it, maybe because he was killed. */
enum reg_content { REG_READY, REG_BLANK, REG_FOREIGN };
enum reg_content reg_inspect(const struct reg_file *f);
/* Blank to ready. Every opener writes the same constants: several may do it. */
void reg_make_ready(struct reg_file *f);

#endif
