/* SPDX-License-Identifier: BSD-2-Clause */
#include "classify/rules/slowdown.h"

#include <errno.h>

/* Q: latency of a medium in use u, over that of an idle one, less 1, is Q u / (1 - u).
 * Experiments with the emulated machine (loaded latency); a queue with one server and
 * short bursts behaves so. */
#define QUEUE 0.15
/* More than 1 + sqrt(QUEUE): a run of all that idle memory needs, times this, waits for no more. */
#define QUEUED 1.4
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
/* Threads at PM beyond these do not make DRAM slower, and beside so many of them figures tell what
 * is left of it: 10 threads, less the one that suffers (004 section V). */
#define PM_QUEUE     WORK_PM_QUEUE
#define STEPS_INSIDE 16

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

/* Share of the time for which threads find that others use a medium. Who asks is none of those
 * before him (arrival theorem of closed queues); so one thread alone never waits for itself. */
static double used_by_others(double used, double threads)
{
    return threads > 1 ? HY_MIN(used, 1) * (threads - 1) / threads : 0;
}

/* Latency of a medium in use, over that of an idle one. */
static double queue_factor(double used)
{
    used = HY_MIN(used, FULL);
    return 1 + QUEUE * used / (1 - used);
}

static double stream_ns(const struct medium_figures *m)
{
    return m->stream_ns > 0 ? m->stream_ns : EXPOSED_STREAM * m->read_ns;
}

/* Wait for idle memory that these lines cost. Of the exposure, EXPOSED_STREAM for each line
 * foreseen is the streams' part: how well prefetching hides it is the medium's. */
static double stall_ns(const struct medium_figures *m, const struct work *k, double reads,
                       double writes)
{
    double streams = HY_MIN(k->exposure, EXPOSED_STREAM * k->foreseen);

    return reads *
               (streams / EXPOSED_STREAM * stream_ns(m) + (k->exposure - streams) * m->read_ns) +
           WRITE_EXPOSED * writes * m->write_ns;
}

/* What work asks of the media, in ns. */
struct demand {
    double compute, threads;
    double stall[HY_TIERS];                 /* of all threads, idle memory */
    double read[HY_TIERS], write[HY_TIERS]; /* service: the medium moves the lines */
    double pending_read, pending_write;     /* thread time with a request at an idle PM */
    double hold_read, hold_write, pm_yield; /* interference: see hindered() */
};

static double service(const struct demand *d, enum hy_tier t)
{
    return d->read[t] + d->write[t];
}

/* How much slower than alone; full: what is left of 100 beside a saturated neighbour. */
static double loss(double left)
{
    return left > 0 && left < 100 ? 100 / left - 1 : 0;
}

static struct demand demand_of(const struct machine_figures *f, const struct work *k,
                               double pm_reads, double pm_writes, double threads)
{
    const double reads[HY_TIERS] = {k->reads * (1 - pm_reads), k->reads * pm_reads};
    const double writes[HY_TIERS] = {k->writes * (1 - pm_writes), k->writes * pm_writes};
    const struct medium_figures *pm = &f->medium[HY_PM];
    struct demand d = {.compute = k->compute_ns, .threads = threads};

    for (int t = 0; t < HY_TIERS; t++) {
        const struct medium_figures *m = &f->medium[t];
        d.stall[t] = stall_ns(m, k, reads[t], writes[t]);
        d.read[t] = service_ns(m, reads[t], 0, k->foreseen);
        d.write[t] = service_ns(m, 0, writes[t], k->foreseen);
    }
    d.pending_read = HY_MAX(d.read[HY_PM], reads[HY_PM] * stream_ns(pm));
    d.pending_write = HY_MAX(d.write[HY_PM], writes[HY_PM] * WRITE_EXPOSED * pm->write_ns);
    d.hold_read = loss(f->dram_read_left) / (PM_QUEUE * PM_QUEUE);
    d.hold_write = loss(f->dram_write_left) / (PM_QUEUE * PM_QUEUE);
    d.pm_yield = loss(f->pm_left);
    return d;
}

/* For which part of its requests a thread has those of the other direction under way. */
static double beside(double own, double other)
{
    return own >= other ? own > 0 : own / other;
}

/* Threads of the others that have such requests at PM: Little's law. */
static double others_at_pm(const struct demand *d, double pending, double t)
{
    double q = HY_MIN(pending / t, d->threads) * (d->threads - 1) / d->threads;

    return hy_clamp(q, 0, PM_QUEUE);
}

/* Thread time for which the threads are held up, DRAM being `slow` times slower; less the waiting
 * for bandwidth. */
static double thread_ns(const struct demand *d, double t, double slow, double yield)
{
    const double factor[HY_TIERS] = {slow, yield};
    double sum = d->compute;

    for (int m = 0; m < HY_TIERS; m++) {
        double used = service(d, (enum hy_tier)m) * factor[m] / t;
        sum += d->stall[m] * factor[m] * queue_factor(used_by_others(used, d->threads));
    }
    return sum;
}

/* DRAM beside the program's own traffic at PM, over DRAM alone: a request to PM holds its place in
 * the controller for as long as PM takes, and the delay grows with the square of the threads
 * that have one there (004 section V: 1 to 10 writers). */
static double hindered(const struct demand *d, double t, double yield)
{
    double both = HY_MIN(service(d, HY_DRAM), service(d, HY_PM)), lo = 1, hi;

    if (both <= 0 || d->threads <= 1 || d->hold_read + d->hold_write <= 0)
        return 1;
    hi = 1 + (d->hold_read + d->hold_write) * PM_QUEUE * PM_QUEUE;
    /* The slower DRAM is, the less the threads wait at PM. */
    for (int i = 0; i < STEPS_INSIDE; i++) {
        double slow = (lo + hi) / 2;
        double wait = service(d, HY_PM) * yield * d->threads - thread_ns(d, t, slow, yield);
        double w = HY_MAX(wait, 0), r_pm = d->read[HY_PM], w_pm = d->write[HY_PM];
        double r = others_at_pm(d, d->pending_read + beside(r_pm, w_pm) * w, t);
        double v = others_at_pm(d, d->pending_write + beside(w_pm, r_pm) * w, t);
        double found = 1 + beside(d->read[HY_DRAM], d->write[HY_DRAM]) * d->hold_read * r * r +
                       beside(d->write[HY_DRAM], d->read[HY_DRAM]) * d->hold_write * v * v;
        if (found > slow)
            lo = slow;
        else
            hi = slow;
    }
    return (lo + hi) / 2;
}

double work_most_slowdown(const struct machine_figures *f)
{
    const struct medium_figures *d = &f->medium[HY_DRAM], *p = &f->medium[HY_PM];
    const double ratio[] = {p->read_ns / d->read_ns,
                            p->write_ns / d->write_ns,
                            stream_ns(p) / stream_ns(d),
                            d->seq_read_mbs / p->seq_read_mbs,
                            d->seq_write_mbs / p->seq_write_mbs,
                            d->random_read_mbs / p->random_read_mbs,
                            d->random_write_mbs / p->random_write_mbs};
    double most = 1;

    for (size_t i = 0; i < HY_ARRAY_SIZE(ratio); i++)
        most = HY_MAX(most, ratio[i]);
    /* Idle PM takes `most` times as long at most. A run QUEUED times as long leaves it unused for
     * so long that the queue adds less than that. */
    return most * QUEUED;
}

/* The time that is needed if the media are used as in a run of `t`. */
static double needed_ns(const struct demand *d, double t)
{
    double used = used_by_others(service(d, HY_DRAM) / t, d->threads);
    double yield = service(d, HY_PM) > 0 ? 1 + d->pm_yield * used : 1;
    double slow = hindered(d, t, yield);
    double held = thread_ns(d, t, slow, yield) / d->threads;
    double served = HY_MAX(service(d, HY_DRAM) * slow, service(d, HY_PM) * yield);

    return HY_MAX(held, served);
}

struct work_time work_time(const struct machine_figures *f, const struct work *work,
                           double pm_reads, double pm_writes, double threads)
{
    struct demand d = demand_of(f, work, pm_reads, pm_writes, threads);
    struct work_time r;
    double lo, hi;

    r.threads_ns = (d.compute + d.stall[HY_DRAM] + d.stall[HY_PM]) / threads;
    r.service_ns = HY_MAX(service(&d, HY_DRAM), service(&d, HY_PM));
    /* The time depends on the use of the media and their use on the time: the more of one,
     * the less of the other, so there is one answer, between these. */
    lo = HY_MAX(r.threads_ns, r.service_ns);
    hi = lo > 0 ? needed_ns(&d, lo) : 0;
    for (int i = 0; i < STEPS && hi - lo > 1e-9 * hi; i++) {
        double t = (lo + hi) / 2;
        if (needed_ns(&d, t) > t)
            lo = t;
        else
            hi = t;
    }
    r.total_ns = hi;
    return r;
}

double work_pm_writers(const struct machine_figures *f, const struct work *k, double elapsed_ns)
{
    struct demand d = demand_of(f, k, k->pm_reads, k->pm_writes, k->threads);
    double wait = service(&d, HY_PM) * d.threads - thread_ns(&d, elapsed_ns, 1, 1);

    if (d.write[HY_PM] <= 0)
        return 0;
    /* Who waits because others fill PM holds its place in the controller as well. */
    wait = HY_MAX(wait,
                  k->waited_ns * service(&d, HY_PM) / (service(&d, HY_PM) + service(&d, HY_DRAM)));
    wait = HY_MAX(wait, 0) * beside(d.write[HY_PM], d.read[HY_PM]);
    return HY_MIN((d.pending_write + wait) / elapsed_ns, d.threads);
}

double work_dram_beside_writers(const struct machine_figures *f, const struct work *k)
{
    struct demand d = demand_of(f, k, k->pm_reads, k->pm_writes, k->threads);

    return 1 + beside(d.write[HY_DRAM], d.read[HY_DRAM]) * d.hold_write * PM_QUEUE * PM_QUEUE;
}

/* A slope is taken over this share of the lines. */
#define SLOPE 0.02

struct line_worth work_line_worth(const struct machine_figures *f, const struct work *k,
                                  double pm_reads, double pm_writes)
{
    struct line_worth w = {0, 0};
    double r = HY_MAX(pm_reads, SLOPE), v = HY_MAX(pm_writes, SLOPE);
    double here = work_time(f, k, r, v, k->threads).total_ns;

    if (k->reads > 0)
        w.read_ns = (here - work_time(f, k, r - SLOPE, v, k->threads).total_ns) / SLOPE / k->reads;
    if (k->writes > 0)
        w.write_ns =
            (here - work_time(f, k, r, v - SLOPE, k->threads).total_ns) / SLOPE / k->writes;
    w.read_ns = HY_MAX(w.read_ns, 0);
    w.write_ns = HY_MAX(w.write_ns, 0);
    return w;
}

double work_dram_line(const struct machine_figures *f, const struct work *k)
{
    struct work more = *k;
    double lines = SLOPE * k->reads;

    if (k->reads <= 0)
        return 0;
    more.reads += lines;
    more.writes += lines;
    double pm_writes = k->writes * k->pm_writes / more.writes;
    double there = work_time(f, &more, k->pm_reads / (1 + SLOPE), pm_writes, k->threads).total_ns;
    double here = work_time(f, k, k->pm_reads, k->pm_writes, k->threads).total_ns;
    return HY_MAX(there - here, 0) / lines;
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
        return hy_clamp(window_get(w, part) / window_get(w, all), 0, 1);
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
    return hy_clamp((EXPOSED_RANDOM - exposure) / (EXPOSED_RANDOM - EXPOSED_STREAM), 0, 1);
}

/* The exposure, given the stall of all threads (< 0: not known). *ret_explained: what of the
 * stall is the memory's. */
static double find_exposure(const struct machine_figures *f, const struct work *k, double stall,
                            bool loaded, double elapsed, double top, double *ret_explained)
{
    const double pm[HY_TIERS] = {1 - k->pm_reads, k->pm_reads};
    const double pm_w[HY_TIERS] = {1 - k->pm_writes, k->pm_writes};
    double full = 0, streams = 0, for_writes = 0, most = 1, exposure, rest;

    for (int t = 0; t < HY_TIERS; t++) {
        const struct medium_figures *m = &f->medium[t];
        double reads = k->reads * pm[t], writes = k->writes * pm_w[t];
        double used = service_ns(m, reads, writes, k->foreseen) / elapsed;
        double factor = loaded ? queue_factor(used_by_others(used, k->threads)) : 1;
        full += reads * m->read_ns * factor;
        streams += reads * k->foreseen * stream_ns(m) * factor;
        for_writes += WRITE_EXPOSED * writes * m->write_ns * factor;
        if (loaded)
            most = HY_MIN(most, most_exposed(used));
    }
    if (stall < 0)
        stall = HY_MIN(EXPOSED_RANDOM * full + for_writes, k->threads * elapsed);
    rest = HY_MAX(stall - for_writes, 0);
    if (rest < streams)
        exposure = EXPOSED_STREAM * k->foreseen * rest / streams;
    else
        exposure = full > 0 ? EXPOSED_STREAM * k->foreseen + (rest - streams) / full : 0;
    if (exposure > HY_MIN(most, top)) {
        exposure = HY_MIN(most, top);
        rest = HY_MIN(exposure, EXPOSED_STREAM * k->foreseen) / EXPOSED_STREAM;
        rest = k->foreseen > 0 ? rest / k->foreseen * streams : 0;
        rest += HY_MAX(exposure - EXPOSED_STREAM * k->foreseen, 0) * full;
    }
    /* The rest was waiting for bandwidth, if there was too little of it; else caches, branches
     * and the like, which do not change with the memory. */
    *ret_explained = most < 1 ? stall : HY_MIN(stall, rest + for_writes);
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

static double running_at_most(const struct window *w)
{
    double threads = window_get(w, WINDOW_threads), cap = window_get(w, WINDOW_cap);

    return cap > 0 ? HY_MIN(threads, cap) : threads;
}

int work_of_window(const struct machine_figures *f, const struct window *w, struct work *ret,
                   enum stall_known *ret_known)
{
    struct work k = {.reads = window_get(w, WINDOW_reads), .writes = window_get(w, WINDOW_writes)};
    double elapsed = window_get(w, WINDOW_elapsed_ns), busy = window_get(w, WINDOW_busy_ns);
    double stall, top, explained = 0;
    enum stall_known known;
    bool measured, guess;

    if (!window_has(w, WINDOW_reads) || elapsed <= 0)
        return -ENODATA;
    if (!window_has(w, WINDOW_busy_ns) && window_has(w, WINDOW_cycles))
        busy = window_get(w, WINDOW_cycles) * f->cycle_ns;
    else if (!window_has(w, WINDOW_busy_ns))
        busy = elapsed * HY_MAX(running_at_most(w), 1);
    if (busy <= 0)
        return -EAGAIN;
    k.threads = HY_MAX(busy / elapsed, 1e-6);
    k.pm_reads = share_on_pm(w, WINDOW_reads_pm, WINDOW_reads);
    k.pm_writes = share_on_pm(w, WINDOW_writes_pm, WINDOW_writes);
    stall = stall_of(f, w, busy, &known);
    measured = window_has(w, WINDOW_foreseen) && k.reads > 0;
    guess = !measured && known != STALL_ASSUMED;
    k.foreseen = measured ? hy_clamp(window_get(w, WINDOW_foreseen) / k.reads, 0, 1) : 0.5;
    /* What a prefetcher fetches is not waited for longer: more stall is the cache's. */
    top = measured && known == STALL_IDLE ? EXPOSED_STREAM * k.foreseen + 1 - k.foreseen : 1;
    /* Without that count each is guessed from the other. */
    for (int i = 0; i < (guess ? 2 : 1); i++) {
        k.exposure = find_exposure(f, &k, stall, known != STALL_IDLE, elapsed, top, &explained);
        if (guess)
            k.foreseen = guess_foreseen(k.exposure);
    }
    k.waited_ns = HY_MIN(window_get(w, WINDOW_wait_ns), busy);
    k.compute_ns = HY_MAX(busy - explained - k.waited_ns, 0);
    *ret = k;
    *ret_known = known;
    return 0;
}
