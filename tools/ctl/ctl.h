/* SPDX-License-Identifier: BSD-2-Clause
 * hybridctl: what its subcommands share. An ordinary program (unlike shim/, it
 * may use stdio and malloc); it uses the library's core for options, topology
 * and the registry, so both always agree. */
#ifndef HYBRID_TOOLS_CTL_H
#define HYBRID_TOOLS_CTL_H

#include <limits.h>
#include <stdio.h>

#include "core/topology.h"
#include "settings/rules/options.h"

/* Exit statuses of hybridctl itself; those of `run` follow env(1) and the shell. */
enum {
    CTL_OK = 0,
    CTL_PASSIVE = 1,      /* doctor: nothing to steer; status: no registry */
    CTL_USAGE = 2,        /* wrong option, value or subcommand */
    CTL_FAILED = 125,     /* run: hybridctl cannot do it (no libhybrid.so) */
    CTL_CANNOT_RUN = 126, /* run: found, but not to be run under the library */
    CTL_NOT_FOUND = 127,
};

int ctl_run(int argc, char **argv);
int ctl_status(int argc, char **argv);
int ctl_doctor(int argc, char **argv);
int ctl_explain(int argc, char **argv);
int ctl_options(int argc, char **argv);
int ctl_tune(int argc, char **argv);
int ctl_batch(int argc, char **argv);
int ctl_top(int argc, char **argv);
int ctl_report(int argc, char **argv);
int ctl_record(int argc, char **argv);
int ctl_calibrate(int argc, char **argv);

/* One line on stderr: "hybridctl: ...". */
void ctl_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Print a subcommand's help, which belongs to the table in hybridctl.c. */
void ctl_help(const char *command, FILE *to);
/* The candidate nearest to a misspelt name, NULL when none is close. */
const char *ctl_nearest(const char *name, const char *const *candidates, unsigned n);

/* The option of an environment name or a key, in any case; else OPT_COUNT and
 * one line on stderr, which begins with `prefix`. */
enum hy_opt_id ctl_find_option(const char *name, const char *prefix);

/* "12.5 GiB" */
const char *ctl_size(uint64_t bytes, char *buf, size_t cap);
/* At most five columns: 1023M, 12.5G; nothing is "-". */
const char *ctl_short_size(uint64_t bytes, char buf[16]);
/* In lines of up to `width` columns, each indented. */
void ctl_print_wrapped(const char *text, unsigned indent, unsigned width);
/* The same, where the first line stands at its indent already. */
void ctl_print_wrapped_from(const char *text, unsigned indent, unsigned width);
/* Set to what the terminal says, where standard output is one that knows. */
void ctl_screen_size(unsigned *width, unsigned *height);
bool ctl_use_colour(void);

/* --- JSON ---------------------------------------------------------------- */

/* Written as it comes; key NULL inside an array. Bytes that are no UTF-8 are
 * written as U+FFFD, so that what a file name holds cannot break a reader. */
struct ctl_json {
    FILE *to;
    unsigned depth;
    bool first;
};
void ctl_json_open(struct ctl_json *j, const char *key, char bracket);
void ctl_json_close(struct ctl_json *j, char bracket);
void ctl_json_text(struct ctl_json *j, const char *key, const char *value); /* NULL: null */
void ctl_json_number(struct ctl_json *j, const char *key, uint64_t value);
/* Text that is JSON already. */
void ctl_json_literal(struct ctl_json *j, const char *key, const char *value);
void ctl_json_bool(struct ctl_json *j, const char *key, bool value);

/* --- the machine --------------------------------------------------------- */

/* Result of looking for the PM that the settings ask for. */
struct ctl_pm {
    bool usable;
    bool is_error;                /* the settings name something that is not there */
    char what[HY_PATH_MAX + 256]; /* a sentence: which, and why; or why not */
};
void ctl_find_pm(const struct hy_pm_spec *spec, const struct topology *t, struct ctl_pm *ret);
/* "0,2-3" of a node mask. */
const char *ctl_node_list(uint64_t mask, char *buf, size_t cap);
/* The value of --machine: a technology, or a machine file, with its full path. CTL_OK, or
 * CTL_USAGE and one line on stderr. */
int ctl_machine_option(const char *name, char ret[PATH_MAX]);
/* How many seccomp filters are in force, if none of them kills for the calls of the library; else
 * 0. Forks. */
unsigned ctl_harmless_filters(void);
/* The same to programs started from here (HYBRID_SECCOMP). */
void ctl_tell_filters(void);
/* Settings as a program started here would see them: the environment, and the
 * profile if one is named. Number of errors told (each is a line on stderr). */
int ctl_load_settings(struct hy_settings *s, const char *exe_path, const char *args);

/* libhybrid.so: `asked`, else HYBRIDCTL_LIBRARY, else beside this build, else installed.
 * CTL_OK, or a status and one line on stderr. */
int ctl_find_library(const char *asked, char ret[PATH_MAX]);
/* Become a script of ours, with --library LIBRARY (NULL: without) before the arguments. Returns on
 * failure. */
int ctl_run_script(const char *name, const char *library, int argc, char **argv);

/* --- programs ------------------------------------------------------------ */

struct ctl_program {
    bool is_elf, is_64bit, is_dynamic; /* is_dynamic: has an interpreter (ld.so) */
    uint16_t machine;
    char interpreter[256]; /* of an ELF file, or after "#!" */
    uint8_t build_id[32];
    unsigned build_id_len;
};
/* 0 or -errno; a file that is neither ELF nor "#!" has all fields 0. */
int ctl_inspect_program(const char *path, struct ctl_program *ret);

#endif
