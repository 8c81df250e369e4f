/* SPDX-License-Identifier: BSD-2-Clause
 * Types shared by every layer: tiers, classes, small helpers. No state, no I/O. */
#ifndef HYBRID_BASE_TYPES_H
#define HYBRID_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HY_LIKELY(x)   __builtin_expect(!!(x), 1)
#define HY_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define HY_COLD        __attribute__((noinline, cold))
/* The shared object hides everything; only hooks carry this mark. */
#define HY_EXPORT __attribute__((visibility("default")))
/* On declarations: without it other files find a variable by way of the GOT. */
#define HY_HIDDEN __attribute__((visibility("hidden")))

#define HY_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define HY_MIN(a, b)     ((a) < (b) ? (a) : (b))
#define HY_MAX(a, b)     ((a) > (b) ? (a) : (b))

#define HY_KIB  ((uint64_t)1 << 10)
#define HY_MIB  ((uint64_t)1 << 20)
#define HY_GIB  ((uint64_t)1 << 30)
#define HY_PAGE ((size_t)4096)

static inline size_t hy_align_up(size_t n, size_t a)
{
    return (n + a - 1) & ~(a - 1);
}

static inline double hy_clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* In thousandths, as ratios are told and reported; 0 for what is no number, or negative. */
static inline uint32_t hy_milli(double v)
{
    return v > 0 ? (uint32_t)(HY_MIN(v, 1e6) * 1000 + 0.5) : 0;
}

/* The two memories of the machine (DESIGN 3). */
enum hy_tier { HY_DRAM = 0, HY_PM = 1, HY_TIERS = 2 };

/* Program class (papers/DIGEST.md, 004): what limits it. */
enum hy_class {
    HY_CLASS_UNKNOWN = 0,
    HY_CLASS_CPU,
    HY_CLASS_BANDWIDTH,
    HY_CLASS_LATENCY,
    HY_CLASS_MAX
};

/* How the PM tier is had (HYBRID_PM). */
enum hy_pm_kind { HY_PM_AUTO, HY_PM_NONE, HY_PM_NODE, HY_PM_FILE, HY_PM_EMULATED };

static inline const char *hy_tier_name(enum hy_tier t)
{
    return t == HY_DRAM ? "dram" : "pm";
}

static inline const char *hy_class_name(enum hy_class c)
{
    static const char *const names[HY_CLASS_MAX] = {"unknown", "cpu", "bandwidth", "latency"};
    return (unsigned)c < HY_CLASS_MAX ? names[c] : "unknown";
}

#endif
