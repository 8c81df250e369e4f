/* SPDX-License-Identifier: BSD-2-Clause
 * What the two memories of a machine can do: latency, bandwidth, knee and how PM
 * traffic slows DRAM. Measured ones come from a machine file (INI, below); without
 * one there are defaults for each technology, with their sources, which are good
 * for classes and poor for absolute times. Pure.
 *
 *     [machine]                        what it is; all lines of a section in any order
 *     version = 1                      must be there
 *     name = ...                       up to 63 printable characters, as the next three
 *     source = measured|hmat|default
 *     measured = 2026-11-21            when
 *     cpu, pm                          what it was measured on, see struct figures_identity
 *     dram-mib, pm-mib                 the same; what is not given is not compared
 *     cycle-ns = 0.4                   of a core
 *     [dram] and [pm]
 *     read-ns, write-ns                idle latency of a dependent load; of a line written, of
 *                                      which a chain of loads waits a twentieth
 *     seq-read-mbs, seq-write-mbs      10^6 bytes a second, all threads together; writes without
 *                                      the reads that stores begin with
 *     random-read-mbs, random-write-mbs      in lines of 64 bytes; default: sequential
 *     read-knee, write-knee            threads that saturate it; default 0: not known
 *     stream-ns                        wait of one thread for each line that it reads in order;
 *                                      default: a tenth of read-ns
 *     [interference]
 *     dram-read-left, dram-write-left  percent of DRAM's bandwidth beside saturated PM
 *     pm-left                          percent of PM's beside saturated DRAM
 *     [curve dram seq-read] ...        N = MB/s with N threads; checked and left at that: for
 *                                      people and pictures
 *
 * '#' and ';' at the start of a line begin a comment. A file is taken wholly or not
 * at all: half a machine would be no machine. */
#ifndef HYBRID_CLASSIFY_RULES_MACHINE_FIGURES_H
#define HYBRID_CLASSIFY_RULES_MACHINE_FIGURES_H

#include "base/types.h"
#include "settings/rules/options.h"

#define FIGURES_VERSION      1
#define FIGURES_MAX_BYTES    ((size_t)64 << 10)
#define FIGURES_MAX_MESSAGES 8
#define FIGURES_NAME_CAP     64

struct medium_figures {
    double read_ns, write_ns;
    double seq_read_mbs, seq_write_mbs, random_read_mbs, random_write_mbs;
    double read_knee, write_knee;
    double stream_ns; /* 0: a tenth of read_ns */
};

/* What figures belong to. Empty or 0: not known, fits anything. */
struct figures_identity {
    char cpu[FIGURES_NAME_CAP]; /* vendor, family, model as the kernel writes them */
    char pm[FIGURES_NAME_CAP];  /* "node", "file", "emulated", "emulated machine PRESET" */
    double dram_mib, pm_mib;
};

enum figures_source { FIGURES_DEFAULT, FIGURES_HMAT, FIGURES_MEASURED };

struct machine_figures {
    enum figures_source source;
    char name[FIGURES_NAME_CAP];
    double cycle_ns;
    struct medium_figures medium[HY_TIERS];
    double dram_read_left, dram_write_left, pm_left; /* percent */
    char measured[FIGURES_NAME_CAP];                 /* a date; "" when not */
    struct figures_identity of;
};

/* The defaults, by technology; the first is taken when nothing is known. */
size_t figures_count(void);
const char *figures_name(size_t i);                                 /* NULL beyond the last */
int figures_default(const char *name, struct machine_figures *ret); /* -ENOENT */

/* Any bytes. -EINVAL, -E2BIG: *ret is untouched and diag has the reasons (the first
 * few); `name` is the file's name for them. */
int figures_parse(const char *text, size_t len, const char *name, struct machine_figures *ret,
                  hy_diag_fn diag, void *ctx);
/* NULL if figures of `file` are of the machine that is `here` (sizes may differ by a tenth:
 * kernels reserve some), else why not, in `buf`. *ret_other_pm (may be NULL): because it is
 * another kind of PM. */
const char *figures_mismatch(const struct figures_identity *file,
                             const struct figures_identity *here, char *buf, size_t cap,
                             bool *ret_other_pm);
/* What the firmware's table says of a medium; 0: nothing. */
struct hmat_figures {
    uint32_t read_ns, write_ns, read_mbs, write_mbs;
};
/* Figures of the firmware, and of `technology` what it does not tell: knees, random access
 * beside sequential, interference. -ENODATA: no latency or bandwidth of one of the media. */
int figures_hmat(const struct hmat_figures hmat[HY_TIERS], const char *technology,
                 struct machine_figures *ret);
const char *figures_source_name(enum figures_source s);

#endif
