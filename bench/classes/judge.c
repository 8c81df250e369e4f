/* SPDX-License-Identifier: BSD-2-Clause
 * What the library's classifier says of a recording: class by window, and the time that the
 * counted work takes with its data elsewhere. JSON on stdout, for classes.py.
 *
 * usage: classes-judge FIGURES FROM TO [READS WRITES] < RECORDING
 *
 * FIGURES: a technology or a machine file. FROM, TO: windows that lie between, in ns of the
 * windows' clock, are the work; those before them are judged as well, as a program's past is
 * known to the library. READS, WRITES: shares on PM of another placement. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "classify/rules/classes.h"
#include "classify/rules/recording.h"

static char text[8 << 20], file[FIGURES_MAX_BYTES];

static void complain(void *ctx, const char *message)
{
    fprintf(stderr, "classes-judge: %s\n", message);
    *(int *)ctx = 1;
}

static int load_figures(const char *name, struct machine_figures *f)
{
    int wrong = 0;
    FILE *in;
    size_t n;

    if (figures_default(name, f) == 0)
        return 0;
    in = fopen(name, "r");
    if (!in)
        return -1;
    n = fread(file, 1, sizeof(file), in);
    fclose(in);
    return figures_parse(file, n, name, f, complain, &wrong);
}

/* Sums over the windows of the work. */
struct sums {
    double elapsed, dram, pm, there, other;
    double reads, reads_pm, writes, writes_pm, compute, exposed, foreseen, threads;
};

static void add(struct sums *s, const struct machine_figures *f, const struct window *w,
                const double other[2])
{
    enum stall_known known;
    struct work k;

    if (work_of_window(f, w, &k, &known) < 0)
        return;
    s->elapsed += window_get(w, WINDOW_elapsed_ns);
    s->dram += work_time(f, &k, 0, 0, k.threads).total_ns;
    s->pm += work_time(f, &k, 1, 1, k.threads).total_ns;
    s->there += work_time(f, &k, k.pm_reads, k.pm_writes, k.threads).total_ns;
    s->other += work_time(f, &k, other[0], other[1], k.threads).total_ns;
    s->reads += k.reads;
    s->reads_pm += k.reads * k.pm_reads;
    s->writes += k.writes;
    s->writes_pm += k.writes * k.pm_writes;
    s->compute += k.compute_ns;
    s->exposed += k.exposure * k.reads;
    s->foreseen += k.foreseen * k.reads;
    s->threads += k.threads * window_get(w, WINDOW_elapsed_ns);
}

int main(int argc, char **argv)
{
    struct class_rules rules = class_rules_default();
    double other[2] = {0, 0}, from, to;
    struct machine_figures f;
    struct classifier c;
    struct recording r;
    struct sums s = {0};
    struct window w;
    const char *sep = "";
    int wrong = 0;

    if (argc != 4 && argc != 6) {
        fputs("usage: classes-judge FIGURES FROM TO [READS WRITES] < RECORDING\n", stderr);
        return 2;
    }
    from = atof(argv[2]);
    to = atof(argv[3]);
    for (int i = 4; i < argc; i++)
        other[i - 4] = atof(argv[i]);
    if (load_figures(argv[1], &f) < 0 ||
        recording_open(&r, text, fread(text, 1, sizeof(text), stdin), complain, &wrong) < 0)
        return 1;
    classifier_init(&c, &rules);
    printf("{\"windows\": [");
    while (recording_next(&r, &w, complain, &wrong) == 1) {
        double end = window_get(&w, WINDOW_end_ns), begin = end - window_get(&w, WINDOW_elapsed_ns);
        bool inside = begin >= from && end <= to;
        classifier_feed(&c, &f, &w);
        if (inside)
            add(&s, &f, &w, other);
        printf("%s[%.0f, \"%s\", %.3f, %.3f, %d, %d]", sep, end, hy_class_name(c.now.cls),
               c.now.confidence, c.now.slowdown, c.now.write_intensive, inside);
        sep = ", ";
    }
    printf("], \"elapsed\": %.0f, \"dram\": %.0f, \"pm\": %.0f, \"there\": %.0f, "
           "\"other\": %.0f, ",
           s.elapsed, s.dram, s.pm, s.there, s.other);
    printf("\"reads\": %.0f, \"reads_pm\": %.0f, \"writes\": %.0f, \"writes_pm\": %.0f, "
           "\"compute\": %.0f, \"exposure\": %.4f, \"foreseen\": %.4f, \"threads\": %.3f}\n",
           s.reads, s.reads_pm, s.writes, s.writes_pm, s.compute,
           s.reads > 0 ? s.exposed / s.reads : 0, s.reads > 0 ? s.foreseen / s.reads : 0,
           s.elapsed > 0 ? s.threads / s.elapsed : 0);
    return wrong;
}
