/* SPDX-License-Identifier: BSD-2-Clause
 * A program that tells how many CPUs it sees, on command; one line in, one line out.
 *   ask               online, configured, affinity of this thread
 *   kernel            affinity as the kernel says it, past all hooks, and how often it was another
 *                     one while the program looked for 0.2 s
 *   alloc MIB         malloc it and write to it;  free: all of them
 *   threads N ROUNDS  N threads meet at a barrier; the CPUs that they may use, sorted
 *   set CPU,...       own affinity
 *   child HOW         how many CPUs another program sees: fork, vfork, spawn, spawnp, system,
 *                     popen, execl, execlp, execle, execvp (HOW ends in '!': fails first)
 *   pin CPU           start a thread that pins itself and stays;  pinned: its affinity
 *   setpinned CPU,... by sched_setaffinity and its number;  npset CPU,...: by its pthread_t
 *   born CPU,...      affinity of a thread made with an attribute for it
 *   around CPU        as hwloc: keep own affinity, bind to CPU, put back; what it is then
 *   child_set CPU,... affinity of a child process that was set to these, as the child sees it */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define MAX_THREADS 256

static pthread_barrier_t all;
static int rounds;
static cpu_set_t seen[MAX_THREADS];
static void *blocks[64];
static int n_blocks;

static void print_set(const cpu_set_t *s)
{
    const char *comma = "";
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, s)) {
            printf("%s%d", comma, i);
            comma = ",";
        }
}

static void *meet(void *p)
{
    for (int i = 0; i < rounds; i++)
        pthread_barrier_wait(&all);
    pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), p);
    return NULL;
}

static void threads(int n, int r)
{
    pthread_t t[MAX_THREADS];
    rounds = r;
    pthread_barrier_init(&all, NULL, (unsigned)n);
    for (int i = 0; i < n; i++)
        if (pthread_create(&t[i], NULL, meet, &seen[i]) != 0)
            exit(3);
    for (int i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    pthread_barrier_destroy(&all);
    for (int i = 1; i < n; i++)
        if (!CPU_EQUAL(&seen[i], &seen[0])) {
            printf("they differ\n");
            return;
        }
    printf("%d on ", n);
    print_set(&seen[0]);
    printf("\n");
}

static void ask_kernel(void)
{
    cpu_set_t first, now;
    int other = 0;
    CPU_ZERO(&first);
    syscall(SYS_sched_getaffinity, 0, sizeof(first), &first);
    for (int i = 0; i < 200; i++) {
        CPU_ZERO(&now);
        syscall(SYS_sched_getaffinity, 0, sizeof(now), &now);
        other += !CPU_EQUAL(&first, &now);
        usleep(1000);
    }
    print_set(&first);
    printf(" other %d\n", other);
}

static cpu_set_t set_of(const char *list)
{
    cpu_set_t s;
    CPU_ZERO(&s);
    for (; *list; list += *list == ',') {
        char *end;
        CPU_SET((int)strtol(list, &end, 10), &s);
        list = end;
    }
    return s;
}

static cpu_set_t pin_to;
static volatile int pin_ready;
static volatile pid_t pin_tid;
static pthread_t pinned;

static void *pin(void *p)
{
    (void)p;
    if (sched_setaffinity(0, sizeof(pin_to), &pin_to) != 0)
        exit(4);
    pin_tid = gettid();
    pin_ready = 1;
    for (;;)
        pause();
}

/* Without the preload, so that the answer is the kernel's. */
static char *const sh[] = {"sh", "-c", "unset LD_PRELOAD; exec nproc", NULL};

static void run_by_popen(void)
{
    char text[32] = "";
    FILE *f = popen(sh[2], "r");

    if (!f || !fgets(text, sizeof(text), f))
        exit(5);
    pclose(f);
    printf("%s", text);
}

static void run_child(const char *how)
{
    char text[32] = "";
    int fd[2], status;
    pid_t pid = -1;

    if (strcmp(how, "popen") == 0) {
        run_by_popen();
        return;
    }
    if (pipe(fd) != 0)
        exit(5);
    int out = dup(1);
    dup2(fd[1], 1);
    close(fd[1]);
    if (strcmp(how, "system") == 0) {
        if (system(sh[2]) != 0)
            exit(5);
    } else if (strcmp(how, "spawn") == 0) {
        if (posix_spawn(&pid, "/bin/sh", NULL, NULL, sh, environ) != 0)
            exit(5);
    } else if (strcmp(how, "spawnp") == 0) {
        if (posix_spawnp(&pid, "sh", NULL, NULL, sh, environ) != 0)
            exit(5);
    } else if (strcmp(how, "vfork") == 0 || strcmp(how, "vfork!") == 0) {
        pid = vfork();
        if (pid == 0) {
            if (how[5])
                execve("/nonexistent", sh, environ);
            execve("/bin/sh", sh, environ);
            _exit(9);
        }
    } else {
        pid = fork();
        if (pid == 0) {
            if (strcmp(how, "fork") == 0)
                execv("/bin/sh", sh);
            else if (strcmp(how, "execl") == 0)
                execl("/bin/sh", sh[0], sh[1], sh[2], (char *)NULL);
            else if (strcmp(how, "execlp") == 0)
                execlp("sh", sh[0], sh[1], sh[2], (char *)NULL);
            else if (strcmp(how, "execle") == 0)
                execle("/bin/sh", sh[0], sh[1], sh[2], (char *)NULL, environ);
            else if (strcmp(how, "execvp") == 0)
                execvp("sh", sh);
            _exit(9);
        }
    }
    dup2(out, 1);
    close(out);
    if (pid > 0 && (waitpid(pid, &status, 0) != pid || status != 0))
        exit(6);
    if (read(fd[0], text, sizeof(text) - 1) <= 0)
        exit(7);
    close(fd[0]);
    printf("%s", text);
}

static void *tell_mask(void *p)
{
    pthread_getaffinity_np(pthread_self(), sizeof(cpu_set_t), p);
    return NULL;
}

static void born(const char *list)
{
    cpu_set_t s = set_of(list), got;
    pthread_attr_t a;
    pthread_t t;
    pthread_attr_init(&a);
    if (pthread_attr_setaffinity_np(&a, sizeof(s), &s) != 0 ||
        pthread_create(&t, &a, tell_mask, &got) != 0 || pthread_join(t, NULL) != 0)
        exit(9);
    pthread_attr_destroy(&a);
    print_set(&got);
    printf("\n");
}

static void around(const char *list)
{
    cpu_set_t before, s = set_of(list), now;
    if (sched_getaffinity(0, sizeof(before), &before) != 0 ||
        sched_setaffinity(0, sizeof(s), &s) != 0 ||
        sched_setaffinity(0, sizeof(before), &before) != 0 ||
        sched_getaffinity(0, sizeof(now), &now) != 0)
        exit(10);
    print_set(&now);
    printf("\n");
}

/* The child asks the kernel itself. */
static void child_set(const char *list)
{
    cpu_set_t s = set_of(list), got;
    int go[2], back[2];
    pid_t pid;
    if (pipe(go) != 0 || pipe(back) != 0 || (pid = fork()) < 0)
        exit(11);
    if (pid == 0) {
        char c;
        memset(&got, 0, sizeof(got));
        /* Not before fork is over in the child, which begins with all CPUs. */
        if (write(back[1], "", 1) != 1 || read(go[0], &c, 1) != 1 ||
            syscall(SYS_sched_getaffinity, 0, sizeof(got), &got) < 0 ||
            write(back[1], &got, sizeof(got)) != sizeof(got))
            _exit(1);
        _exit(0);
    }
    char ready;
    if (read(back[0], &ready, 1) != 1 || sched_setaffinity(pid, sizeof(s), &s) != 0 ||
        write(go[1], "x", 1) != 1 || read(back[0], &got, sizeof(got)) != sizeof(got) ||
        waitpid(pid, NULL, 0) != pid)
        exit(12);
    for (int i = 0; i < 2; i++) {
        close(go[i]);
        close(back[i]);
    }
    print_set(&got);
    printf("\n");
}

static void ask(void)
{
    cpu_set_t s;
    sched_getaffinity(0, sizeof(s), &s);
    printf("online %ld %d configured %ld affinity ", sysconf(_SC_NPROCESSORS_ONLN), get_nprocs(),
           sysconf(_SC_NPROCESSORS_CONF));
    print_set(&s);
    printf("\n");
}

static void command(char *line)
{
    char *arg = strchr(line, ' ');
    cpu_set_t s;
    if (arg)
        *arg++ = '\0';
    if (strcmp(line, "ask") == 0) {
        ask();
    } else if (strcmp(line, "kernel") == 0) {
        ask_kernel();
    } else if (strcmp(line, "alloc") == 0) {
        size_t n = (size_t)atoi(arg) << 20;
        memset(blocks[n_blocks++] = malloc(n), 1, n);
        printf("ok\n");
    } else if (strcmp(line, "free") == 0) {
        while (n_blocks)
            free(blocks[--n_blocks]);
        printf("ok\n");
    } else if (strcmp(line, "threads") == 0) {
        threads(atoi(arg), atoi(strchr(arg, ' ')));
    } else if (strcmp(line, "set") == 0) {
        s = set_of(arg);
        printf("%s\n", sched_setaffinity(0, sizeof(s), &s) == 0 ? "ok" : strerror(errno));
    } else if (strcmp(line, "child") == 0) {
        run_child(arg);
    } else if (strcmp(line, "pin") == 0) {
        pin_to = set_of(arg);
        pthread_create(&pinned, NULL, pin, NULL);
        while (!pin_ready)
            usleep(1000);
        printf("ok\n");
    } else if (strcmp(line, "pinned") == 0) {
        pthread_getaffinity_np(pinned, sizeof(s), &s);
        print_set(&s);
        printf("\n");
    } else if (strcmp(line, "setpinned") == 0) {
        s = set_of(arg);
        printf("%s\n", sched_setaffinity(pin_tid, sizeof(s), &s) == 0 ? "ok" : strerror(errno));
    } else if (strcmp(line, "npset") == 0) {
        s = set_of(arg);
        printf("%s\n", strerror(pthread_setaffinity_np(pinned, sizeof(s), &s)));
    } else if (strcmp(line, "born") == 0) {
        born(arg);
    } else if (strcmp(line, "around") == 0) {
        around(arg);
    } else if (strcmp(line, "child_set") == 0) {
        child_set(arg);
    } else {
        exit(8);
    }
}

int main(void)
{
    char line[256];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        command(line);
    }
    return 0;
}
