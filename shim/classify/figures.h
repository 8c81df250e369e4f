/* SPDX-License-Identifier: BSD-2-Clause
 * The machine's figures: which ones hold here, and why. In this order: the file or the
 * technology that HYBRID_MACHINE names; with auto a file of `hybridctl calibrate`
 * ($XDG_CONFIG_HOME or ~/.config, then /etc, below it libhybrid/machine.ini) if it belongs to
 * this user or root, nobody else may write to it, and it was measured on this machine; the
 * emulated machine's preset; the firmware's table (HMAT); a technology, by what PM is.
 * Part of the core, as hybridctl asks as well. */
#ifndef HYBRID_CLASSIFY_FIGURES_H
#define HYBRID_CLASSIFY_FIGURES_H

#include "classify/rules/machine_figures.h"
#include "core/topology.h"

#define FIGURES_FILE "libhybrid/machine.ini"

/* Where they are asked for. */
struct figures_query {
    const char *sys, *etc; /* "/sys" and "/etc" outside tests */
    const struct topology *topo;
    enum hy_pm_kind backend; /* NODE, FILE, EMULATED, or NONE */
    uint64_t dram_mask, pm_mask;
};

struct figures_found {
    struct machine_figures figures;
    /* "measured 2026-11-21 (FILE)", "HMAT, the rest as optane", "defaults of optane" */
    char said[HY_PATH_MAX + 64];
};

/* As libhybrid would find it with this HYBRID_PM (`topo` stays in use); NONE: no PM here. */
void figures_query(const struct hy_pm_spec *pm, const struct topology *topo,
                   struct figures_query *ret);
void figures_identify(const struct figures_query *p, struct figures_identity *ret);
/* `machine` is HYBRID_MACHINE. What is wrong with a file is told, one line each; something
 * is found always. 8 KiB of stack; not from malloc. */
void figures_find(const char *machine, const struct figures_query *p, struct figures_found *ret,
                  hy_diag_fn diag, void *ctx);
/* A machine file, `trusted` as in os_map_copy. -EBADMSG: it is none, and diag has the reasons. */
int figures_read(const char *path, bool trusted, struct machine_figures *ret, hy_diag_fn diag,
                 void *ctx);
/* The file of this user; -ENOENT: neither XDG_CONFIG_HOME nor HOME is an absolute path. */
int figures_own_path(char *buf, size_t cap);

/* figures_here.c, not in the core: of the running process, found at the first call (and
 * told then), once. After engagement, by the control thread. */
const struct machine_figures *figures_here(void);
const char *figures_here_said(void); /* "" before */

#endif
