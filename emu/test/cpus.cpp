// SPDX-License-Identifier: BSD-2-Clause
// What a program learns about the CPUs of the emulated machine and how it confines itself.
// Prints one line for each question; the test knows the answers.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <set>
#include <string>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static std::string list(const cpu_set_t &s)
{
    std::string out;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &s))
            out += (out.empty() ? "" : ",") + std::to_string(i);
    return out;
}

static cpu_set_t cpus(std::initializer_list<int> of)
{
    cpu_set_t s;
    CPU_ZERO(&s);
    for (int i : of)
        CPU_SET(i, &s);
    return s;
}

static std::string mine()
{
    cpu_set_t s;
    return sched_getaffinity(0, sizeof(s), &s) == 0 ? list(s) : strerror(errno);
}

static void counts()
{
    unsigned cpu = 9999, node = 9999;
    printf("counts %ld %ld %d %d %u %d\n", sysconf(_SC_NPROCESSORS_ONLN),
           sysconf(_SC_NPROCESSORS_CONF), get_nprocs(), get_nprocs_conf(),
           std::thread::hardware_concurrency(), omp_get_num_procs());
    printf("page %ld\n", sysconf(_SC_PAGESIZE));
    int r = getcpu(&cpu, &node);
    printf("getcpu %d %d node %u\n", r, static_cast<int>(cpu) == sched_getcpu(), node);
}

static void errors()
{
    cpu_set_t s = cpus({}), big = cpus({1000});
    char small[4];
    // In braces, as the order matters.
    int r[6] = {sched_setaffinity(0, sizeof(s), &s),
                errno,
                sched_setaffinity(0, sizeof(big), &big),
                errno,
                sched_getaffinity(0, sizeof(small), reinterpret_cast<cpu_set_t *>(small)),
                errno};
    printf("errors %d %d %d %d %d %d\n", r[0], r[1] == EINVAL, r[2], r[3] == EINVAL, r[4],
           r[5] == EINVAL);
    int none = sched_getaffinity(0x3ffffff, sizeof(s), &s);
    printf("nobody %d %d\n", none, errno == ESRCH);
    printf("pthread %d\n", pthread_setaffinity_np(pthread_self(), sizeof(big), &big) == EINVAL);
}

static void *show(void *what)
{
    printf("%s %s cpu %d\n", static_cast<const char *>(what), mine().c_str(), sched_getcpu());
    return nullptr;
}

static void *wait_and_show(void *barrier)
{
    pthread_barrier_wait(static_cast<pthread_barrier_t *>(barrier));
    pthread_barrier_wait(static_cast<pthread_barrier_t *>(barrier));
    printf("moved %s\n", mine().c_str());
    return nullptr;
}

static void threads()
{
    pthread_attr_t a;
    pthread_t t;
    pthread_barrier_t b;
    cpu_set_t s = cpus({15});
    char created[] = "created", child[] = "thread";

    pthread_attr_init(&a);
    pthread_attr_setaffinity_np(&a, sizeof(s), &s);
    pthread_attr_setstacksize(&a, 1 << 20);
    if (pthread_create(&t, &a, show, created) == 0)
        pthread_join(t, nullptr);
    s = cpus({1000});
    pthread_attr_setaffinity_np(&a, sizeof(s), &s);
    printf("attribute %d\n", pthread_create(&t, &a, show, created) == EINVAL);
    pthread_attr_destroy(&a);

    s = cpus({2, 3, 999});
    sched_setaffinity(0, sizeof(s), &s);
    pthread_create(&t, nullptr, show, child);
    pthread_join(t, nullptr);

    pthread_barrier_init(&b, nullptr, 2);
    pthread_create(&t, nullptr, wait_and_show, &b);
    pthread_barrier_wait(&b);
    s = cpus({17, 19});
    printf("set %d\n", pthread_setaffinity_np(t, sizeof(s), &s));
    s = cpus({});
    int r = pthread_getaffinity_np(t, sizeof(s), &s);
    printf("get %d %s\n", r, list(s).c_str());
    pthread_barrier_wait(&b);
    pthread_join(t, nullptr);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, nullptr, _IONBF, 0);
    printf("start %s\n", mine().c_str());
    if (argc > 1)
        return 0;
    counts();
    errors();

    std::set<int> places;
#pragma omp parallel num_threads(8)
    {
        int cpu = sched_getcpu();
#pragma omp critical
        places.insert(cpu);
    }
    printf("places %zu\n", places.size());
    threads();

    pid_t pid = fork();
    if (pid == 0) {
        printf("child %s\n", mine().c_str());
        _exit(0);
    }
    waitpid(pid, nullptr, 0);
    cpu_set_t s;
    sched_getaffinity(0, sizeof(s), &s);
    printf("parent %s\n", list(s).c_str());
    execl(argv[0], argv[0], "again", static_cast<char *>(nullptr));
    return 1;
}
