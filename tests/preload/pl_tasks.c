/* SPDX-License-Identifier: BSD-2-Clause
 * OpenMP tasks of every shape: pl_tasks SHAPE prints what the tasks made of their data. The same
 * must come out whoever is preloaded. `plugin FILE` has its tasks in a library (pl_tasks_plugin.c).
 */
#include <dirent.h>
#include <dlfcn.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 16
#define WORDS  32768 /* of a block: 256 KiB */

static uint64_t *data;

static void turn(uint64_t *p, uint64_t salt)
{
    for (int i = 0; i < WORDS; i++)
        p[i] = p[i] * 6364136223846793005u + salt + (uint64_t)i;
}

static uint64_t sum(void)
{
    uint64_t s = 0;
    for (int i = 0; i < BLOCKS * WORDS; i++)
        s = s * 31 + data[i];
    return s;
}

/* A chain on each block, and between neighbours. */
static void dependences(int rounds)
{
#pragma omp parallel
#pragma omp single
    for (int r = 0; r < rounds; r++)
        for (int b = 0; b < BLOCKS; b++) {
            uint64_t *p = data + b * WORDS, *q = data + (b + 1) % BLOCKS * WORDS;
#pragma omp task depend(inout : p[0]) depend(in : q[0]) firstprivate(p, q, r)
            turn(p, q[r] + (uint64_t)r);
        }
}

static void untied_and_mergeable(void)
{
#pragma omp parallel
#pragma omp single
    for (int r = 0; r < 8; r++)
        for (int b = 0; b < BLOCKS; b++) {
            uint64_t *p = data + b * WORDS;
#pragma omp task untied mergeable priority(b) depend(inout : p[0]) firstprivate(p, r)
            {
                turn(p, (uint64_t)r);
#pragma omp taskyield
                p[0]++;
            }
        }
}

/* Undeferred, and final with all below it. */
static void at_once(void)
{
    int kept = 0;
#pragma omp parallel
#pragma omp single
    for (int r = 0; r < 8; r++)
        for (int b = 0; b < BLOCKS; b++) {
            uint64_t *p = data + b * WORDS;
#pragma omp task if (0) depend(inout : p[0]) shared(kept)
            {
                turn(p, (uint64_t)r);
                kept++;
            }
#pragma omp task final(b & 1) depend(inout : p[0]) firstprivate(p, r)
            {
#pragma omp task depend(inout : p[1]) firstprivate(p, r)
                turn(p, (uint64_t)r);
#pragma omp taskwait
            }
        }
    printf("kept %d\n", kept);
}

static uint64_t fib(int n)
{
    uint64_t a, b;
    if (n < 2)
        return (uint64_t)n;
#pragma omp task shared(a) depend(out : a)
    a = fib(n - 1);
#pragma omp task shared(b) depend(out : b)
    b = fib(n - 2);
#pragma omp taskwait
    return a + b;
}

static void nested(void)
{
    uint64_t r = 0;
#pragma omp parallel
#pragma omp single
    r = fib(18);
    printf("fib %lu\n", (unsigned long)r);
}

static void loops(void)
{
    uint64_t s = 0;
#pragma omp parallel
#pragma omp single
    {
#pragma omp taskloop grainsize(2)
        for (int b = 0; b < BLOCKS; b++)
            turn(data + b * WORDS, (uint64_t)b);
#pragma omp taskloop num_tasks(5) reduction(+ : s)
        for (unsigned long long i = 0; i < BLOCKS * WORDS; i++)
            s += data[i];
        /* Within a task, at once, unwaited, backwards, and with copies of a size not known before.
         */
        for (int r = 0; r < 4; r++) {
            uint64_t *p = data, salt[300];
            memset(salt, r, sizeof(salt));
#pragma omp task depend(inout : p[0]) firstprivate(p, r)
            {
#pragma omp taskloop if (r & 1) untied
                for (int b = 0; b < BLOCKS; b++)
                    turn(p + b * WORDS, (uint64_t)b);
            }
#pragma omp taskwait
#pragma omp taskgroup
            {
#pragma omp taskloop nogroup firstprivate(salt)
                for (int b = BLOCKS - 1; b >= 0; b -= 3)
                    turn(p + b * WORDS, salt[r]);
            }
#pragma omp taskloop collapse(2) mergeable
            for (unsigned long long i = 7; i < BLOCKS; i += 2)
                for (int k = 0; k < 2; k++)
                    data[i * WORDS + k]++;
#pragma omp taskloop
            for (int b = 0; b < (int)s - (int)s; b++)
                abort();
        }
    }
    printf("loops %lu\n", (unsigned long)s);
}

static void detached(void)
{
#pragma omp parallel
#pragma omp single
    for (int b = 0; b < BLOCKS; b++) {
        uint64_t *p = data + b * WORDS;
        omp_event_handle_t event;
#pragma omp task detach(event) depend(inout : p[0]) firstprivate(p)
        {
            turn(p, 1);
            omp_fulfill_event(event);
        }
#pragma omp task depend(inout : p[0]) firstprivate(p)
        turn(p, 2);
    }
}

/* Dependences of all kinds, by objects as well, and more of them than are watched. */
static void kinds(void)
{
    uint64_t *p = data, *q = data + WORDS, both = 0;
    omp_depend_t object;
#pragma omp depobj(object) depend(inout : q[0])
#pragma omp parallel
#pragma omp single
    for (int r = 0; r < 8; r++) {
#pragma omp task depend(depobj : object) depend(out : p[0])
        turn(q, (uint64_t)r);
#pragma omp task depend(mutexinoutset : both) depend(in : p[0])
        both += 3;
#pragma omp task depend(mutexinoutset : both) depend(in : p[0])
        both += 5;
#pragma omp task depend(iterator(int i = 0 : BLOCKS), inout : data[i * WORDS])
        turn(p, both);
    }
#pragma omp depobj(object) destroy
    printf("both %lu\n", (unsigned long)both);
}

/* Large blocks of arguments, aligned ones, and private copies. */
static void arguments(void)
{
    struct {
        char text[3000];
        uint64_t n;
    } big;
    struct {
        _Alignas(128) uint64_t n;
    } wide = {7};
    memset(&big, 'x', sizeof(big));
    big.n = 5;
#pragma omp parallel
#pragma omp single
    for (int b = 0; b < BLOCKS; b++) {
        uint64_t *p = data + b * WORDS;
#pragma omp task depend(inout : p[0]) firstprivate(big, wide, p)
        {
            turn(p, big.n + wide.n + (uint64_t)big.text[2999] + (uintptr_t)&wide % 128);
            big.n++;
        }
        big.n++;
        wide.n++;
    }
}

/* Between tasks, and in the midst of them. */
static void forks(void)
{
    dependences(2);
#pragma omp parallel
#pragma omp single
    for (int b = 0; b < BLOCKS; b++) {
        uint64_t *p = data + b * WORDS;
#pragma omp task depend(inout : p[0]) firstprivate(p, b)
        {
            if (b % 4 == 0) {
                pid_t child = fork();
                if (child == 0)
                    _exit((int)(p[1] & 0x3f));
                int status = 0;
                if (child < 0 || waitpid(child, &status, 0) != child)
                    abort();
                p[0] += (uint64_t)WEXITSTATUS(status);
            }
            turn(p, 9);
        }
    }
    pid_t child = fork();
    if (child == 0) {
        /* libgomp's threads are not here: this one alone. */
        turn(data, 1);
        printf("child %lu\n", (unsigned long)sum());
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    dependences(2);
}

/* Teams in teams: threads that come and go. */
static void teams(void)
{
    omp_set_max_active_levels(3);
    for (int r = 0; r < 4; r++) {
#pragma omp parallel num_threads(2)
        {
            uint64_t *half = data + (size_t)omp_get_thread_num() * (BLOCKS / 2) * WORDS;
#pragma omp parallel num_threads(2)
#pragma omp single
            for (int b = 0; b < BLOCKS / 2; b++) {
                uint64_t *p = half + b * WORDS;
#pragma omp task depend(inout : p[0]) firstprivate(p)
                turn(p, 3);
            }
        }
    }
}

static void tiny(long n)
{
    uint64_t *p = data;
#pragma omp parallel
#pragma omp single
    for (long i = 0; i < n; i++) {
#pragma omp task depend(inout : p[i % 64]) firstprivate(p, i)
        p[i % 64] += (uint64_t)i;
    }
}

/* The library comes, makes tasks, and goes; and again. */
static void plugin(const char *file)
{
    for (int i = 0; i < 3; i++) {
        void *h = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        void (*run)(uint64_t *, int, int) = NULL;
        if (h)
            *(void **)&run = dlsym(h, "plugin_tasks");
        if (!run) {
            printf("plugin: %s\n", dlerror());
            exit(1);
        }
        run(data, BLOCKS, WORDS);
        dlclose(h);
    }
}

/* PL_TASKS_MS: how long who is preloaded gets to begin, and in the end to read what it was told. */
static void rest(void)
{
    const char *ms = getenv("PL_TASKS_MS");
    usleep(getenv("PL_TASKS_WAIT") ? 1000 * (useconds_t)(ms ? atoi(ms) : 300) : 0);
}

/* PL_TASKS_WAIT=N: until so many threads are there, those of who is preloaded. */
static void wait_for_threads(void)
{
    const char *n = getenv("PL_TASKS_WAIT");
    for (int i = 0, seen = 0; n && seen < atoi(n) && i < 5000; i++) {
        DIR *d = opendir("/proc/self/task");
        seen = 0;
        for (struct dirent *e; d && (e = readdir(d)) != NULL;)
            seen += e->d_name[0] != '.';
        if (d)
            closedir(d);
        usleep(2000);
    }
    rest();
}

int main(int argc, char **argv)
{
    const char *shape = argc > 1 ? argv[1] : "";
    long n = argc > 2 ? atol(argv[2]) : 0;

    if (posix_memalign((void **)&data, 64, sizeof(*data) * BLOCKS * WORDS) != 0)
        return 1;
    for (int i = 0; i < BLOCKS * WORDS; i++)
        data[i] = (uint64_t)i;
    wait_for_threads();
    if (strcmp(shape, "dependences") == 0)
        dependences(n ? (int)n : 40);
    else if (strcmp(shape, "untied") == 0)
        untied_and_mergeable();
    else if (strcmp(shape, "at-once") == 0)
        at_once();
    else if (strcmp(shape, "nested") == 0)
        nested();
    else if (strcmp(shape, "loops") == 0)
        loops();
    else if (strcmp(shape, "detached") == 0)
        detached();
    else if (strcmp(shape, "kinds") == 0)
        kinds();
    else if (strcmp(shape, "arguments") == 0)
        arguments();
    else if (strcmp(shape, "forks") == 0)
        forks();
    else if (strcmp(shape, "teams") == 0)
        teams();
    else if (strcmp(shape, "tiny") == 0)
        tiny(n ? n : 100000);
    else if (strcmp(shape, "plugin") == 0 && argc > 2)
        plugin(argv[2]);
    else
        return 2;
    rest();
    printf("%s %016lx\n", shape, (unsigned long)sum());
    return 0;
}
