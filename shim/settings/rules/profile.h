/* SPDX-License-Identifier: BSD-2-Clause
 * Profiles: INI files (parsed by inih) that tell of a program what an earlier
 * run learnt. docs/hybrid-profile.5 describes the format. Pure: text in,
 * struct out, problems as messages (the first few, then a count). */
#ifndef HYBRID_SETTINGS_RULES_PROFILE_H
#define HYBRID_SETTINGS_RULES_PROFILE_H

#include "base/types.h"
#include "settings/rules/options.h"

#define PROFILE_MAX_BYTES    ((size_t)8 << 20)
#define PROFILE_MAX_SITES    1024
#define PROFILE_MAX_FRAMES   8
#define PROFILE_MAX_MESSAGES 8
#define PROFILE_MAX_PHASES   32
#define PROFILE_MAX_TASKS    64
#define PROFILE_MAX_NEEDS    8
#define PROFILE_BEHAVIOURS   8
#define PROFILE_BINS         32
#define PROFILE_HEAT_MOST    9999
#define PROFILE_MAX_MODULES  64
#define PROFILE_TEXT_CAP     96
#define PROFILE_PATH_CAP     152
#define BUILD_ID_MAX         20

struct hy_frame {
    uint8_t build_id[BUILD_ID_MAX]; /* zero-padded */
    uint64_t offset;                /* return address - load base */
};

struct profile_site {
    char name[32];                              /* section name after "site " */
    struct hy_frame frames[PROFILE_MAX_FRAMES]; /* leaf (caller of malloc) first */
    uint8_t n_frames;
    uint8_t nth; /* of the large blocks that these frames have in use, from 0; 0: all but those
                  * with a site of their own */
    bool has_tier;
    enum hy_tier tier;
    uint64_t count, bytes, live_bytes, min_size, max_size, reads, writes;
    /* Of reads and writes, those in each behaviour; none: as all the program's are. */
    uint64_t reads_in[PROFILE_BEHAVIOURS], writes_in[PROFILE_BEHAVIOURS];
    uint8_t n_reads_in, n_writes_in;
    /* What is read and written in each 32nd of its large blocks, in proportion; none: alike. */
    bool has_heat;
    uint16_t heat[PROFILE_BINS];
    double from, until; /* when it held memory: shares of all that the run allocated, before its
                         * first block and at the end of its last; until 0: to the end */
};

/* A stretch of the run in which the program kept its class. */
struct profile_phase {
    uint64_t start_ms;
    enum hy_class cls;
    double slowdown; /* 0 = not known */
};

/* Windows in which the program read and wrote the same call sites at the same rates, whenever they
 * were: programs write in bursts, and what is slow is a burst, not the average. */
struct profile_behaviour {
    double ms;
    uint64_t reads, writes; /* lines, by the counters */
    double slowdown;        /* and the work, as of the whole run below */
    double exposure, foreseen, busy_threads;
};

/* A type of OpenMP tasks: its function, the whole pages of the data that its dependences name, and
 * how long an instance takes with all of them on a tier. */
struct profile_task {
    struct hy_frame code;
    uint8_t needs;
    uint64_t bytes[PROFILE_MAX_NEEDS];
    uint64_t count;        /* instances */
    uint64_t ns[HY_TIERS]; /* 0 = not known */
};

/* [recorded] and [machine]: how the facts were found; for people and for merging. Texts are
 * empty and numbers 0 when not known. */
struct profile_source {
    char method[PROFILE_TEXT_CAP];    /* where the counts came from */
    char libhybrid[PROFILE_TEXT_CAP]; /* version */
    char figures[PROFILE_TEXT_CAP];   /* name of the machine figures */
    uint64_t dram_bytes, pm_bytes;    /* capacities */
    uint32_t cpus;
    uint32_t runs;                   /* that were merged; 0 as 1 */
    uint64_t windows, ms;            /* of counts, and their length in all */
    double confidence;               /* of the class */
    uint64_t reads, writes;          /* lines of the whole run, by the counters */
    char accesses[PROFILE_TEXT_CAP]; /* what told of accesses, for reads and writes of sites */
    uint64_t samples, period;        /* of them; how many lines each stands for */
    double known;                    /* percent of the sampled lines that belong to a site, */
    double mapped;                   /* and to mappings of the program's own, which have none */
};

struct profile {
    /* [app]: how it is recognised; empty = not asked */
    char exe[256];   /* base name of the executable */
    char path[1024]; /* shell pattern of its path (text_glob) */
    uint8_t build_id[BUILD_ID_MAX];
    uint8_t build_id_len;
    char args[512]; /* shell pattern of the arguments, joined by spaces */
    /* what is known of it */
    enum hy_class cls;
    double slowdown;     /* run time on PM / on DRAM, 0 = not known */
    int write_intensive; /* -1 not known, 0, 1 */
    uint64_t footprint;  /* bytes, 0 = not known */
    /* The work behind the counts (struct work); -1 and 0 = not known. */
    double exposure, foreseen, busy_threads;
    /* [threads]: best number with the data on a tier (Algorithm 2), and the most that were
     * seen; 0 = not known */
    uint32_t threads[HY_TIERS], threads_seen;
    struct profile_phase phases[PROFILE_MAX_PHASES];
    unsigned n_phases;
    struct profile_behaviour behaviours[PROFILE_BEHAVIOURS];
    unsigned n_behaviours;
    struct profile_source source;
    /* options set by [options], key -> text; applied below the environment */
    struct {
        enum hy_opt_id id;
        char value[256];
    } option[OPT_COUNT];
    unsigned n_options;
    struct profile_site *sites; /* caller-provided array of PROFILE_MAX_SITES, or
                                 * NULL: sites are not wanted and pass unseen */
    unsigned n_sites;
    struct profile_task tasks[PROFILE_MAX_TASKS];
    unsigned n_tasks;
};

/* Parse `len` bytes (any bytes). 0; -E2BIG over PROFILE_MAX_BYTES; -EINVAL when
 * it is no profile at all (NUL bytes, no known section): *ret is then untouched
 * and diag has the reason. What is wrong inside is told (PROFILE_MAX_MESSAGES,
 * then how many more) and skipped; `name` is the file's name for the messages.
 * ret->sites is the only input; values of [options] are checked by options_set
 * when they are applied. Needs about 8 KiB of stack. */
int profile_parse(const char *text, size_t len, const char *name, struct profile *ret,
                  hy_diag_fn diag, void *ctx);

/* [modules]: where the modules of the frames were. Only tools read it. */
struct profile_module {
    uint8_t id[BUILD_ID_MAX];
    char path[PROFILE_PATH_CAP];
};

struct profile_subject { /* the program at hand */
    const char *exe_path;
    const char *args;
    const uint8_t *build_id;
    unsigned build_id_len;
};
enum profile_fit { PROFILE_FITS, PROFILE_OTHER_PROGRAM, PROFILE_OTHER_BUILD };
/* OTHER_BUILD: same program, other build-id: [app] facts hold, sites are
 * checked module by module. */
enum profile_fit profile_matches(const struct profile *p, const struct profile_subject *who);

/* Text of a build-id and back ("0123abcd...", 2..40 hex digits). */
void build_id_format(const uint8_t *id, unsigned len, char *buf, size_t cap);
int build_id_parse(const char *text, uint8_t *id, unsigned *ret_len);

#endif
