/* SPDX-License-Identifier: BSD-2-Clause
 * Between the files of the runtime. */
#ifndef HYBRID_RUNTIME_INTERNAL_H
#define HYBRID_RUNTIME_INTERNAL_H

#include "base/cpuset.h"
#include "decide/options.h"
#include "decide/profile.h"
#include "runtime/runtime.h"
#include "service/registry.h"
#include "service/topology.h"

/* --- settings.c: environment and profile, read once in the constructor ------ */

struct runtime_config { /* what every start touches comes first, in as few pages as it needs */
    struct hy_settings set;
    bool have_profile;
    unsigned errors; /* configuration errors told */
    char profile_file[HY_PATH_MAX];
    struct profile profile; /* exe "" and n_sites 0 without one */
} __attribute__((aligned(4096)));
extern struct runtime_config hy_config;
/* Reads everything, tells what is wrong; true if any HYBRID_ variable is set. */
bool settings_load(void);
void settings_echo(void); /* HYBRID_VERBOSE */
/* More configuration errors that only show at the machine (nodes, directory). */
void settings_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
enum hy_class settings_class(void);

/* --- engage.c: from settings to heaps ----------------------------------------- */

struct runtime_machine {
    struct topology topo;
    enum hy_pm_kind backend; /* NODE, FILE or EMULATED once engaged; NONE before */
    uint64_t pm_mask, dram_mask;
    bool pin_dram;                 /* PM nodes have CPUs: DRAM must be asked for as well */
    uint64_t dram_bytes, pm_bytes; /* capacities */
    char why[128];                 /* why passive, or how PM was found */
};
extern struct runtime_machine hy_machine;

/* From one state to another; false when the state was not `from` (another thread
 * was first): then nothing changed. */
bool runtime_change_state(enum hy_state from, enum hy_state to);
/* Make the heaps and go to STEERING, or to PASSIVE with a reason. */
void engage_now(void);
/* From whatever state before STEERING. */
void runtime_go_passive(const char *why);
/* In a forked child whose parent's locks may be held by threads that it does not
 * have: blocks of the heaps stay where they are, the next allocator serves. */
void runtime_freeze(void);

/* --- the tables of allocation functions ---------------------------------------- */

extern const struct alloc_ops watch_ops;      /* watch.c */
extern const struct alloc_ops steer_ops;      /* steer.c */
extern const struct alloc_ops steer_site_ops; /* steer.c: small sites of a profile */
extern const struct alloc_ops frozen_ops;     /* steer.c: a child that cannot use the heaps */
extern const struct alloc_ops steer_next_ops; /* steer_next.c: DRAM from the next allocator */
void runtime_set_ops(const struct alloc_ops *ops);
/* Growth by mappings of the program. Only counted: an allocator of the program
 * may be making the call with its locks held, and starting our thread allocates. */
void watch_note(size_t bytes);
/* Act on it; from malloc's hooks, and from pthread_create's for programs with an
 * allocator of their own. */
void watch_look(void);
/* DRAM use by measurement, for steer_next_ops. */
void steer_next_measure(void);

/* steer.c, shared with steer_next.c */
void *steer_malloc(size_t n);
void steer_free(void *p);
void *steer_calloc(size_t count, size_t size);
void *steer_realloc(void *p, size_t n);
void *steer_memalign(size_t align, size_t n);
size_t steer_usable_size(void *p);
void steer_enable_sites(size_t unwind_from);

/* --- mmaps.c: the program's own mappings ------------------------------------------ */

void mmaps_init(void); /* before any is placed */

/* --- policy.c: limits, the shared budget, the tier in favour -------------------- */

struct policy_view {
    enum hy_policy policy;
    enum hy_class cls;
    enum hy_tier favour;
    uint64_t used[HY_TIERS], limit[HY_TIERS], peak[HY_TIERS];
    uint64_t refused[HY_TIERS]; /* requests turned away for lack of room */
    uint64_t forced_bytes;      /* DRAM beyond its limit, as PM was full too */
    uint64_t wish, asked, claimed;
    uint64_t dram_shared;
    bool in_registry;
    char registry[HY_PATH_MAX], registry_error[96];
};
void policy_init(const struct hy_settings *s, const struct runtime_machine *m);
bool policy_charge(enum hy_tier t, size_t bytes, bool force);
void policy_discharge(enum hy_tier t, size_t bytes);
void policy_account(enum hy_tier t, int64_t delta);
/* DRAM use found by measurement replaces what was charged (steer_next.c);
 * false: over the limit. */
bool policy_set_dram_used(uint64_t bytes);
uint64_t policy_used(void); /* charged to both tiers */
/* What the limit leaves; the others' claims are not asked. */
uint64_t policy_room(enum hy_tier t);
/* Nobody is given the last so many bytes of the DRAM limit: they are kept for what comes. */
void policy_keep_dram(uint64_t bytes);
/* DRAM that this process may have in all, as things are: its limit, and what the others leave.
 * Takes locks: not from malloc. */
uint64_t policy_dram_share(void);
/* This process would have so many bytes more on DRAM if others left them: its wish, until the
 * next call. Programs that nobody hears (Algorithm 1) wish in vain. */
void policy_want(uint64_t bytes);
void policy_tick(void);
/* What the counters say; the user's word and the profile's come before it. */
void policy_set_class(enum hy_class cls);
/* What the next tick tells the others: cap, confidence, slowdowns, moves, written pages.
 * Class, bytes and threads are the policy's own. */
void policy_tell(const struct registry_told *told);
struct cpus_of_others {
    struct hy_cpus all, elders; /* of all that are confined, and of those that came before us */
    unsigned confined;          /* how many they are */
};
/* Tell the others which CPUs this process is confined to (none: not confined), and learn theirs. */
void policy_exchange_cpus(const struct hy_cpus *mine, struct cpus_of_others *ret);
/* Theirs, before this process takes part. false: there are no others. */
bool policy_peek_cpus(struct cpus_of_others *ret);
void policy_get(struct policy_view *ret);
void policy_leave(void);
void policy_prefork(void);
void policy_postfork(bool child);

/* --- control.c: the one control thread ------------------------------------------- */

/* Start it to engage (WATCH -> ENGAGING); not from the constructor. */
void control_engage(void);
/* In the constructor, after engage_now: a program that is recorded has the thread from the
 * start, and main begins when its counters are open. */
void control_begin(void);
/* From slow paths: starts the thread once the process is worth it. */
void control_poke(void);
bool control_running(void);
/* A thread of ours: detached, all signals blocked, unseen by the hooks. */
bool control_start_thread(void *(*fn)(void *), size_t stack);
/* Threads of this process without ours; 0 unknown. */
unsigned runtime_program_threads(void);
void control_prefork(void);
void control_postfork_parent(void);
/* Loading is over and the heaps' fork handlers are there: let waiting forks go on,
 * and wait for those that began without the handlers. A fork still busy with
 * handlers of the program cannot be seen yet: hence a moment's grace. */
void control_loaded(void);
/* Until no fork is under way. */
void control_wait_for_forks(void);
void control_postfork_child(void);

/* --- fork.c, report.c --------------------------------------------------------------- */

void fork_install(void);
int fork_install_locks(void); /* after memkind is loaded; 0 or -errno */
void report_at_exit(void);
/* %p in a file's name is the process id. */
void report_expand_name(const char *spec, char *path, size_t cap);

#endif
