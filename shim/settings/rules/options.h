/* SPDX-License-Identifier: BSD-2-Clause
 * The settings of one process, and the one table (options.def) they come from:
 * name, type, default, limits, unit, help. Precedence: built-in < profile <
 * environment. Pure: values come in as strings, problems go out as messages. */
#ifndef HYBRID_SETTINGS_RULES_OPTIONS_H
#define HYBRID_SETTINGS_RULES_OPTIONS_H

#include <stdarg.h>

#include "base/types.h"

enum hy_policy { HY_POLICY_AUTO, HY_POLICY_DRAM, HY_POLICY_PM, HY_POLICY_FIRST_FIT, HY_POLICY_OFF };
enum hy_dram_alloc { HY_DRAM_MEMKIND, HY_DRAM_NEXT };
enum hy_migrate { HY_MIGRATE_AUTO, HY_MIGRATE_OFF, HY_MIGRATE_LAZY, HY_MIGRATE_EAGER };
enum hy_tristate { HY_AUTO, HY_OFF, HY_ON };

/* The most threads while the data are on PM. */
struct hy_thread_spec {
    bool off;       /* never cap */
    uint32_t count; /* 0: from the profile, or found out */
};

/* An amount of memory: bytes, or a percentage of a node (resolved later). */
struct hy_amount {
    bool is_percent;
    uint64_t value; /* bytes, or 0..100 */
};

#define HY_PATH_MAX 1024

struct hy_pm_spec {
    enum hy_pm_kind kind;
    uint64_t nodes;        /* HY_PM_NODE: bit i = node i */
    uint64_t bytes;        /* HY_PM_EMULATED: capacity, 0 = as large as DRAM */
    char dir[HY_PATH_MAX]; /* HY_PM_FILE */
};

enum hy_source { HY_FROM_DEFAULT, HY_FROM_PROFILE, HY_FROM_ENV };

/* One enumerator per option, in the order of options.def: OPT_POLICY, ... */
enum hy_opt_id {
#define HY_OPT(id, ...) OPT_##id,
#include "settings/rules/options.def"
#undef HY_OPT
    OPT_COUNT
};

#define HY_TEXTS 9
/* Texts point to a literal, or to their copy in `text`. */
struct hy_settings {
    enum hy_policy policy;
    enum hy_class cls;
    struct hy_amount dram;        /* limit of this process */
    struct hy_amount dram_shared; /* limit of all participants of the registry */
    enum hy_dram_alloc dram_allocator;
    struct {
        const char *profile;      /* name or path, "" = none given ("none") */
        const char *profile_path; /* directories, ':' between them */
        const char *registry;     /* "auto", "none" or a path */
        const char *stats;        /* "0", "1" or a file (%p = pid) */
        const char *trace;        /* the same */
        const char *counters;     /* "auto", ..., "replay:FILE" */
        const char *cache;        /* "auto", "off" or "group:DIR" */
        const char *machine;      /* "auto", a technology, or a machine file */
        const char *record;       /* "0", "1" or a file (%p = pid) */
    };
    struct hy_thread_spec threads;
    uint64_t admission;    /* ns to wait at most, 0: off */
    uint64_t interval;     /* ns between two looks of the control thread */
    uint64_t class_period; /* ns */
    double class_slowdown, class_writes, class_threads; /* struct class_rules */
    uint64_t start; /* resident bytes from which steering starts; 0: at once */
    enum hy_migrate migrate;
    uint64_t migrate_interval; /* ns */
    uint64_t migrate_rate;     /* bytes a second */
    double migrate_core;       /* percent of one core */
    int tasks;                 /* 1: the data of OpenMP tasks are staged */
    uint64_t mmap_min;         /* smallest program mmap that is steered */
    enum hy_tristate sites;    /* call-site accounting */
    enum hy_tristate pace;     /* never HY_ON */
    double weight;             /* when DRAM is divided */
    uint64_t site_min;         /* every allocation of at least this is unwound */
    uint64_t site_sample;      /* mean bytes between unwound smaller ones */
    double seccomp;            /* filters that do not kill: a whole number */
    int verbose;
    bool strict;
    enum hy_source source[OPT_COUNT];
    /* From here on a start with defaults touches nothing but the kind of `pm`. */
    struct hy_pm_spec pm;
    char text[HY_TEXTS][HY_PATH_MAX];
};

/* One problem or note: a complete sentence without newline. */
typedef void (*hy_diag_fn)(void *ctx, const char *message);

void options_defaults(struct hy_settings *s);
/* The same of settings that are all zero: no page is touched for texts. */
void options_begin(struct hy_settings *s);
/* Set one option from text. -EINVAL and one diag line (naming variable, value,
 * what is allowed and what is used) on a bad value, which leaves the setting as
 * it was. A source never overrides a higher one (the value is still checked),
 * so the order of calls does not matter; of equal sources the last call wins. */
int options_set(struct hy_settings *s, enum hy_opt_id id, const char *value, enum hy_source from,
                hy_diag_fn diag, void *ctx);
/* Option of an environment name ("HYBRID_DRAM") or a profile key ("dram", '-'
 * counts as '_'); OPT_COUNT if none. */
enum hy_opt_id options_by_env(const char *name, size_t len);
enum hy_opt_id options_by_key(const char *key);
/* The option that a misspelt name of either form probably means; OPT_COUNT if
 * none is close. */
enum hy_opt_id options_nearest(const char *name, size_t len);
/* Tell that an environment name is no option of ours, with the nearest one. */
void options_unknown_env(const char *name, size_t len, hy_diag_fn diag, void *ctx);
/* Put a message together for `diag`, which may be NULL; 1: so many were told. */
int options_tell(hy_diag_fn diag, void *ctx, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same of a line of a file (0: of all of it): "machine file NAME, line N: ...". */
void options_tell_at(hy_diag_fn diag, void *ctx, const char *kind, const char *file, unsigned line,
                     const char *fmt, va_list ap) __attribute__((format(printf, 6, 0)));
/* Cross-option checks, all in one place; number of problems told (hints that
 * are no error are told but not counted). */
int options_check(const struct hy_settings *s, hy_diag_fn diag, void *ctx);
/* Current value as text, as the user would write it. */
void options_format(const struct hy_settings *s, enum hy_opt_id id, char *buf, size_t cap);
uint64_t hy_amount_bytes(struct hy_amount a, uint64_t node_bytes);

struct hy_opt_info {
    const char *env, *key, *dflt, *allowed;
    uint8_t dflt_len;
    bool env_only;     /* refused in a profile */
    uint64_t min, max; /* of sizes, in bytes; both 0: no limits */
};
const struct hy_opt_info *options_info(enum hy_opt_id id);

#endif
