/* SPDX-License-Identifier: BSD-2-Clause */
#include "decide/slowdown.h"

#include <errno.h>

/* Q: latency of a medium in use u, over that of an idle one, less 1, is Q u / (1 - u).
 * Experiments with the emulated machine (loaded latency); a queue with one server and
 * short bursts behaves so. */
#define QUEUE 0.15
/* More use than that is not believed when it is counted. */
#define FULL 0.95
/* A write-back delays its thread by a twentieth of the latency: 20 may be under way
 * (emulated machine's common parameters). */
#define WRITE_EXPOSED 0.05
/* Misses that overlap in streams, and independent ones, in the same experiments. */
#define EXPOSED_STREAM 0.10
#define EXPOSED_RANDOM 0.25
/* A superscalar core that misses nothing: two instructions a cycle. */
#define CPI_COMPUTE 0.5
#define LINE        64.0
#define STEPS       40

static double clamp(double v, double lo, double hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* ns that the medium needs for the lines; 10^6 bytes/s are 1e-3 bytes/ns. */
static double service_ns(const struct medium_figures *m, double reads, double writes,
                         double foreseen)
{
    double read_ns =
        LINE * 1000 * (foreseen / m->seq_read_mbs + (1 - foreseen) / m->random_read_mbs);
    double write_ns =
        LINE * 1000 * (foreseen / m->seq_write_mbs + (1 - foreseen) / m->random_write_mbs);

    return reads * read_ns + writes * write_ns;
}

/* Latency of a medium in use, over that of an idle one. */
static double queue_factor(double used)
{
    return 1 + QUEUE * used / (1 - used);
}

struct work_time work_time(const struct machine_figures *f, const struct work *work,
                           double pm_reads, double pm_writes, double threads)
{
    const double reads[HY_TIERS] = {work->reads * (1 - pm_reads), work->reads * pm_reads};
    const double writes[HY_TIERS] = {work->writes * (1 - pm_writes), work->writes * pm_writes};
    double stall[HY_TIERS], service[HY_TIERS], lo, hi;
    struct work_time r;

    for (int t = 0; t < HY_TIERS; t++) {
        const struct medium_figures *m = &f->medium[t];
        stall[t] = work->exposure * reads[t] * m->read_ns + WRITE_EXPOSED * writes[t] * m->write_ns;
        service[t] = service_ns(m, reads[t], writes[t], work->foreseen);
    }
    r.threads_ns = (work->compute_ns + stall[HY_DRAM] + stall[HY_PM]) / threads;
    r.service_ns = HY_MAX(service[HY_DRAM], service[HY_PM]);
    /* The time depends on the use of the media and their use on the time: the more of one,
     * the less of the other, so there is one answer, between these. */
    lo = HY_MAX(r.threads_ns, r.service_ns);
    hi = r.service_ns + 2 * r.threads_ns;
    for (int i = 0; i < STEPS && hi - lo > 1e-9 * hi; i++) {
        double t = (lo + hi) / 2, want = work->compute_ns;
        for (int m = 0; m < HY_TIERS; m++)
            want += stall[m] * queue_factor(service[m] / t);
        if (want / threads > t)
            lo = t;
        else
            hi = t;
    }
    r.total_ns = hi;
    return r;
}

double work_chained(const struct work *k)
{
    double random = 1 - k->foreseen;
    double rest = k->exposure - EXPOSED_STREAM * k->foreseen; /* what streams do not explain */

    if (rest <= 0 || random <= 0)
        return 0;
    return HY_MIN(rest / random, 1) * rest / k->exposure;
}

/* Share of `part` in `all`; by where the data lie if the traffic was not told apart. */
static double share_on_pm(const struct window *w, enum window_field part, enum window_field all)
{
    double pm = window_get(w, WINDOW_pm_bytes), both = pm + window_get(w, WINDOW_dram_bytes);

    if (window_has(w, part) && window_get(w, all) > 0)
        return clamp(window_get(w, part) / window_get(w, all), 0, 1);
    return both > 0 ? pm / both : 0;
}

/* Two or three threads that wait for each miss do not fill a memory, so what fills one has
 * misses that overlap, whatever the stall says, which is mostly waiting for bandwidth. */
static double most_exposed(double used)
{
    return used > 0.9 ? EXPOSED_RANDOM : 1;
}

/* With the exposure what a prefetcher can do is told roughly: a stream waits little. */
static double guess_foreseen(double exposure)
{
    return clamp((EXPOSED_RANDOM - exposure) / (EXPOSED_RANDOM - EXPOSED_STREAM), 0, 1);
}

/* The share of a read's latency that was waited for, given the stall of all threads (< 0:
 * not known), `top` at most. *ret_explained: what of the stall is the memory's. */
static double find_exposure(const struct machine_figures *f, const struct work *k, double stall,
                            bool loaded, double elapsed, double top, double *ret_explained)
{
    const double pm[HY_TIERS] = {1 - k->pm_reads, k->pm_reads};
    const double pm_w[HY_TIERS] = {1 - k->pm_writes, k->pm_writes};
    double full = 0, for_writes = 0, most = 1, exposure;

    for (int t = 0; t < HY_TIERS; t++) {
        const struct medium_figures *m = &f->medium[t];
        double reads = k->reads * pm[t], writes = k->writes * pm_w[t];
        double service = service_ns(m, reads, writes, k->foreseen);
        double factor = loaded ? queue_factor(HY_MIN(service / elapsed, FULL)) : 1;
        full += reads * m->read_ns * factor;
        for_writes += WRITE_EXPOSED * writes * m->write_ns * factor;
        if (loaded)
            most = HY_MIN(most, most_exposed(service / elapsed));
    }
    if (stall < 0)
        stall = HY_MIN(EXPOSED_RANDOM * full + for_writes, k->threads * elapsed);
    exposure = full > 0 ? clamp((stall - for_writes) / full, 0, HY_MIN(most, top)) : 0;
    /* The rest was waiting for bandwidth, if there was too little of it; else hits in the
     * last-level cache, branches and the like, which do not change with the memory. */
    *ret_explained = most < 1 ? stall : HY_MIN(stall, exposure * full + for_writes);
    return exposure;
}

/* The time that threads did not compute, and how that is known. */
static double stall_of(const struct machine_figures *f, const struct window *w, double busy,
                       enum stall_known *ret_known)
{
    if (window_has(w, WINDOW_stall_ns)) {
        *ret_known = window_has(w, WINDOW_wait_ns) ? STALL_IDLE : STALL_LOADED;
        return window_get(w, WINDOW_stall_ns);
    }
    if (window_has(w, WINDOW_instructions) && window_get(w, WINDOW_instructions) > 0) {
        double compute = window_get(w, WINDOW_instructions) * CPI_COMPUTE * f->cycle_ns;
        *ret_known = STALL_CYCLES;
        return HY_MAX(busy - compute, 0);
    }
    *ret_known = STALL_ASSUMED;
    return -1;
}

int work_of_window(const struct machine_figures *f, const struct window *w, struct work *ret,
                   enum stall_known *ret_known)
{
    struct work k = {.reads = window_get(w, WINDOW_reads), .writes = window_get(w, WINDOW_writes)};
    double elapsed = window_get(w, WINDOW_elapsed_ns), busy = window_get(w, WINDOW_busy_ns);
    double stall, top, explained = 0;
    enum stall_known known;
    bool told, guess;

    if (!window_has(w, WINDOW_reads) || elapsed <= 0)
        return -ENODATA;
    if (!window_has(w, WINDOW_busy_ns) && window_has(w, WINDOW_cycles))
        busy = window_get(w, WINDOW_cycles) * f->cycle_ns;
    else if (!window_has(w, WINDOW_busy_ns))
        busy = elapsed * HY_MAX(window_get(w, WINDOW_threads), 1);
    if (busy <= 0)
        return -EAGAIN;
    k.threads = HY_MAX(busy / elapsed, 1e-6);
    k.pm_reads = share_on_pm(w, WINDOW_reads_pm, WINDOW_reads);
    k.pm_writes = share_on_pm(w, WINDOW_writes_pm, WINDOW_writes);
    stall = stall_of(f, w, busy, &known);
    told = window_has(w, WINDOW_foreseen) && k.reads > 0;
    guess = !told && known != STALL_ASSUMED;
    k.foreseen = told ? clamp(window_get(w, WINDOW_foreseen) / k.reads, 0, 1) : 0.5;
    /* What a prefetcher fetches is not waited for longer: more stall is the cache's. */
    top = told && known == STALL_IDLE ? EXPOSED_STREAM * k.foreseen + 1 - k.foreseen : 1;
    /* Without that count each is guessed from the other. */
    for (int i = 0; i < (guess ? 2 : 1); i++) {
        k.exposure = find_exposure(f, &k, stall, known != STALL_IDLE, elapsed, top, &explained);
        if (guess)
            k.foreseen = guess_foreseen(k.exposure);
    }
    k.compute_ns = HY_MAX(busy - explained - window_get(w, WINDOW_wait_ns), 0);
    *ret = k;
    *ret_known = known;
    return 0;
}
