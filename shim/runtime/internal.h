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
    bool told_bad[OPT_COUNT];
    char profile_file[HY_PATH_MAX];
    struct profile profile; /* exe "" and n_sites 0 without one */
} __attribute__((aligned(4096)));
extern struct runtime_config hy_config;
/* Reads everything, tells what is wrong; true if any HYBRID_ variable is set. */
bool settings_load(void);
void settings_echo(void); /* HYBRID_VERBOSE */
/* More configuration errors that only show at the machine (nodes, directory). */
void settings_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same of one option, only the first time. */
void settings_error_once(enum hy_opt_id id, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* What is wrong with the settings, unless the parent process has told it. */
void settings_warn(const char *message);
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
/* Placement begins: which memory is PM, limits, sites; to STEERING, or to PASSIVE with a
 * reason. By the control thread, or in the constructor. */
void engage_now(void);
/* Open memkind, or ready so much PM. By the control thread, or in the constructor. */
int engage_pm(size_t bytes);
/* From BOOT: the next allocator serves. Later: our heap goes on serving. */
void runtime_go_passive(const char *why);

/* --- the tables of allocation functions ---------------------------------------- */

extern const struct alloc_ops steer_ops;      /* steer.c */
extern const struct alloc_ops steer_site_ops; /* steer.c: small sites of a profile */
extern const struct alloc_ops steer_next_ops; /* steer_next.c: DRAM from the next allocator */
void runtime_set_ops(const struct alloc_ops *ops);
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
/* With the floor (floor.h) DRAM refuses only what others have asked for. */
bool policy_charge(enum hy_tier t, size_t bytes, bool force);
void policy_discharge(enum hy_tier t, size_t bytes);
/* Count a refusal; policy_charge does, but for those that control_await may turn into a yes. */
void policy_turned_away(enum hy_tier t);
void policy_account(enum hy_tier t, int64_t delta);
/* DRAM use found by measurement replaces what was charged (steer_next.c);
 * false: over the limit. */
bool policy_set_dram_used(uint64_t bytes);
uint64_t policy_used(void);  /* charged to both tiers */
uint64_t policy_grown(void); /* of it, what is not from the process that forked us */
/* The registry costs system calls. Threads of ours ask it; those of the program only live on what
 * is claimed: one whose charge was refused for want of a claim is short of this much, once. */
void policy_thread_is_ours(void);
uint64_t policy_short_of(void);
enum claim_answer { CLAIM_OPEN, CLAIM_MADE, CLAIM_DENIED };
enum claim_answer policy_claim_answer(uint64_t need);
/* By the control thread, or in the constructor: take part in the registry. */
void policy_join(void);
/* Is there one to join? */
bool policy_has_registry(void);
/* By the control thread: claim what is needed, give back what is not. false: nothing was. */
bool policy_refresh(void);
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
void policy_postfork(void);
void policy_child(void); /* before policy_postfork, in a forked child */

/* --- control.c: the one control thread ------------------------------------------- */

/* In the constructor, after engage_now: a program that is recorded has the thread from the
 * start, and main begins when its counters are open. */
void control_begin(void);
/* In the constructor: the control thread joins the registry, whose file shall stand in its own
 * table of descriptors, and is waited for, not long. false: no thread, or tables are not apart. */
bool control_joins(void);
/* From slow paths, with no lock held: starts the thread once the process is worth it. */
void control_poke(void);
/* It has something to do before its next tick. From anywhere. */
void control_wake(void);
/* struct heap_host's await: PM is short, or the claim for DRAM. Waits for it, but not for long. */
void control_note_short(void);
bool control_await(enum hy_tier t, size_t bytes);
bool control_running(void);
/* How often to look now: HYBRID_INTERVAL at most. */
uint64_t control_interval_ns(void);
/* After a pause (pause.h). */
void control_begin_again(void);
/* A thread of ours: detached, all signals blocked, unseen by the hooks. */
bool control_start_thread(void *(*fn)(void *), size_t stack);
/* Threads of this process without ours; 0 unknown. */
unsigned runtime_program_threads(void);
void control_prefork(void);
void control_postfork_parent(void);
/* Around the loading of memkind, after which the gate's fork handlers are there: forks wait for
 * it, and it for forks. A fork still busy with handlers of the program cannot be seen yet: hence
 * a moment's grace. */
void control_load_begins(void);
void control_load_ends(void);
bool control_loading(void);
void control_postfork_child(void);

/* --- fork.c, report.c --------------------------------------------------------------- */

void fork_install(void);
int fork_install_gate(void); /* after memkind is loaded; 0 or -errno */
bool report_wanted(void);
void report_at_exit(void);
/* %p in a file's name is the process id. */
void report_expand_name(const char *spec, char *path, size_t cap);

#endif
