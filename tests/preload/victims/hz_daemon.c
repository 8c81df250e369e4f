/* SPDX-License-Identifier: BSD-2-Clause
 * A program that closes every descriptor, becomes a daemon and puts its data on
 * descriptors 0 to 9, 2 among them: nothing but its own bytes may arrive there. */
#include "victim.h"

static void grow(int salt)
{
    char *p[400];
    for (int i = 0; i < 400; i++) {
        size_t n = (size_t)(i * 377 + salt) % 120000 + 1;
        p[i] = malloc(n);
        CHECK(p[i]);
        fill(p[i], n, (uint64_t)i);
    }
    for (int i = 0; i < 400; i++) {
        CHECK(holds(p[i], (size_t)(i * 377 + salt) % 120000 + 1, (uint64_t)i));
        free(p[i]);
    }
}

int main(void)
{
    int done[2];
    CHECK(pipe(done) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        if (fork() > 0)
            _exit(0);
        setsid();
        CHECK(dup2(done[1], 900) == 900);
        for (int fd = 0; fd < 900; fd++)
            close(fd);
        grow(1);
        char name[] = "data-0";
        for (int fd = 0; fd < 10; fd++) {
            name[5] = (char)('0' + fd);
            if (open(name, O_RDWR | O_CREAT | O_TRUNC, 0600) != fd)
                _exit(97);
        }
        grow(2);
        for (int fd = 0; fd < 10; fd++)
            if (write(fd, "mine\n", 5) != 5)
                _exit(97);
        pthread_t t;
        grow(3);
        (void)t;
        if (write(900, "y", 1) != 1)
            _exit(97);
        exit(0); /* reports at exit may not go to fd 2 any more */
    }
    close(done[1]);
    CHECK(reap(pid) == 0);
    char c = 0;
    CHECK(read(done[0], &c, 1) == 1 && c == 'y');
    CHECK(read(done[0], &c, 1) == 0); /* the daemon has ended */
    closefrom(3);
    grow(4);
    for (int fd = 0; fd < 10; fd++) {
        char name[20], text[200] = {0};
        snprintf(name, sizeof name, "data-%d", fd);
        int f = open(name, O_RDONLY);
        CHECK(f >= 0 && read(f, text, sizeof text - 1) >= 0);
        close(f);
        printf("%s: %s", name, text);
    }
    fflush(stdout);
    int f = open("stderr-data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(dup2(f, 2) == 2 && dup2(f, 1) == 1);
    close(f);
    grow(5);
    return 0;
}
