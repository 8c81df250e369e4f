/* SPDX-License-Identifier: BSD-2-Clause
 * A program with one thread that gives up rights, or enters namespaces: every call succeeds as if
 * there were one thread, and no thread keeps what the program has given up. */
#include "victim.h"

#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int capset(cap_user_header_t header, const cap_user_data_t data);

/* Large and old enough for whatever runs beside it to be there. */
static void grow(void)
{
    static void *kept[300];
    for (int i = 0; i < 300; i++) {
        free(kept[i]);
        kept[i] = malloc(100000);
        memset(kept[i], i, 100000);
    }
    nap_us(300000);
    for (int i = 0; i < 100; i++) {
        free(kept[i]);
        kept[i] = malloc(100000);
        memset(kept[i], i, 100000);
        nap_us(1000);
    }
}

/* What all threads have behind `key`; a difference ends the program. */
static unsigned long long of_all(const char *key)
{
    char line[256], path[300];
    unsigned long long v = 0;
    int seen = 0;
    DIR *d = opendir("/proc/self/task");
    CHECK(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "r");
        if (!f) /* it has ended */
            continue;
        while (fgets(line, sizeof line, f))
            if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':') {
                unsigned long long here = strtoull(line + strlen(key) + 1, NULL, 16);
                CHECK(seen++ == 0 || here == v);
                v = here;
            }
        fclose(f);
    }
    closedir(d);
    CHECK(seen > 0);
    return v;
}

static void set_caps(unsigned caps, int by_number)
{
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[2] = {{caps, caps, 0}};
    CHECK((by_number ? (int)syscall(SYS_capset, &h, d) : capset(&h, d)) == 0);
    CHECK(of_all("CapEff") == caps);
}

static void drop(int by_number)
{
    unsigned keep = 1u << CAP_SETUID | 1u << CAP_CHOWN;
    set_caps(keep, by_number);
    grow();
    CHECK(of_all("CapEff") == keep);
    set_caps(0, by_number);
    grow();
    CHECK(of_all("CapPrm") == 0);
    CHECK(setuid(0) == 0);
}

/* As daemons do that keep one capability as another user. */
static void keep_caps(void)
{
    CHECK(prctl(PR_SET_KEEPCAPS, 1) == 0);
    CHECK(setgroups(0, NULL) == 0 && setuid(1000) == 0);
    CHECK(of_all("CapEff") == 0 && of_all("CapPrm") != 0);
    set_caps(1u << CAP_SETUID, 1);
    CHECK(setuid(2000) == 0 && getuid() == 2000);
    grow();
    CHECK(of_all("Uid") == 0x2000); /* read as if it were hexadecimal */
}

static void no_new(void)
{
    CHECK(of_all("NoNewPrivs") == 0);
    pid_t pid = vfork();
    if (pid == 0)
        _exit(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(reap(pid) == 0 && of_all("NoNewPrivs") == 0);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && of_all("NoNewPrivs") == 1);
    grow();
    CHECK(of_all("NoNewPrivs") == 1);
}

static volatile int stop;

static void *busy(void *arg)
{
    uint64_t s = (uintptr_t)arg;
    while (!stop) {
        size_t n = random_size(&s);
        char *p = malloc(n + 1);
        p[n] = 1;
        free(p);
    }
    return NULL;
}

/* Often, beside threads that allocate and a child now and then. */
static void often(void)
{
    pthread_t t[2];
    for (uintptr_t i = 0; i < 2; i++)
        CHECK(pthread_create(&t[i], NULL, busy, (void *)(i + 5)) == 0);
    for (int i = 0; i < 400; i++) {
        CHECK(prctl(PR_SET_KEEPCAPS, i & 1) == 0);
        CHECK(prctl(PR_GET_KEEPCAPS) == (i & 1));
        errno = 0;
        CHECK(syscall(SYS_setresuid, -1, -1, getuid()) == 0);
        CHECK(unshare(0) == 0);
        errno = 77;
        CHECK(setns(-1, 0) == -1 && errno == EBADF);
        if (i % 100 == 50) {
            pid_t pid = fork();
            if (pid == 0) {
                CHECK(prctl(PR_SET_KEEPCAPS, 1) == 0);
                grow();
                _exit(unshare(CLONE_FS));
            }
            CHECK(reap(pid) == 0);
        }
        if (i % 40 == 0)
            nap_us(20000);
    }
    stop = 1;
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(t[i], NULL) == 0);
}

static void namespaces(void)
{
    int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    int r = setns(fd, CLONE_NEWNS);
    printf("setns %d %s\n", r, r ? strerror(errno) : "");
    grow();
    r = unshare(CLONE_NEWUSER);
    printf("unshare %d %s\n", r, r ? strerror(errno) : "");
    grow();
    r = (int)syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWUTS);
    printf("again %d %s\n", r, r ? strerror(errno) : "");
}

/* All threads but this one have the usual policy, also if placement begins in a real-time program.
 */
static void real_time(char *self)
{
    struct sched_param p = {.sched_priority = 1};
    if (sched_getscheduler(0) == SCHED_OTHER && sched_setscheduler(0, SCHED_FIFO, &p) == 0)
        execl("/proc/self/exe", self, "f", (char *)NULL);
    grow();
    DIR *d = opendir("/proc/self/task");
    CHECK(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        int tid = atoi(e->d_name);
        if (tid > 0 && tid != (int)getpid()) {
            int policy = sched_getscheduler(tid);
            CHECK(policy == SCHED_OTHER || (policy < 0 && errno == ESRCH));
        }
    }
    closedir(d);
}

int main(int argc, char **argv)
{
    CHECK(argc > 1);
    if (argv[1][0] == 'f') {
        real_time(argv[0]);
        puts("ok");
        return 0;
    }
    grow();
    switch (argv[1][0]) {
    case 'c':
        drop(argv[1][1] == '#');
        break;
    case 'k':
        keep_caps();
        break;
    case 'n':
        no_new();
        break;
    case 'o':
        often();
        break;
    default:
        namespaces();
    }
    grow();
    puts("ok");
    return 0;
}
