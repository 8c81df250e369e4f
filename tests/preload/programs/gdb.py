# SPDX-License-Identifier: BSD-2-Clause
"""gdb: a batch session with breakpoints, a watchpoint, calls into the program, threads and a crash."""
import re

import harness

SOURCE = r'''
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { int value; struct node *next; };
static struct node *head;
int total;
int note_value(int v) { struct node *n = malloc(sizeof *n); n->value = v; n->next = head; head = n; total += v; return total; }
void *worker(void *arg) { char *p = strdup(arg); note_value((int)strlen(p)); free(p); return NULL; }
int main(int argc, char **argv)
{
    for (int i = 1; i <= 10; i++)
        note_value(i * i);
    pthread_t t;
    pthread_create(&t, NULL, worker, "seven c");
    pthread_join(t, NULL);
    printf("total %d\n", total);
    fflush(stdout);
    if (argc > 1)
        *(volatile int *)8 = 1;
    return 4;
}
'''
ALIKE = re.compile(r'0x[0-9a-f]+|\(?(LWP|process|Thread) [0-9a-fx]+\)?|\[New .*\]|\[Thread .*\]|\[Switching .*\]|^Using host.*$', re.M)
# gdb names the thread that stopped where there are several, and we may have added ours.
WHICH = re.compile(r'^Thread \d+ "[^"]*" hit ', re.M)


def build(cache):
    return harness.built(cache, ('debugged.c', SOURCE), lambda src, out: ['gcc', '-g', '-O0', '-pthread', '-o', out, src])


def prepare(cache):
    harness.need('gdb', 'gcc')
    build(cache)


def session(ctx, commands, *args):
    argv = ['gdb', '-batch', '-nx', '-ex', 'set confirm off', '-ex', 'set debuginfod enabled off']
    for c in commands:
        argv += ['-ex', c]
    got = ctx.run([*argv, '--args', build(ctx.cache), *args], record=None, timeout=240)
    text = ALIKE.sub('#', WHICH.sub('', got.out.decode('utf-8', 'replace'))).replace(ctx.cache, '@CACHE@')
    ctx.record('gdb status', got.status)
    ctx.record('gdb', '\n'.join(ln for ln in text.splitlines() if ln.strip(' #') and 'warning' not in ln))


def run(ctx):
    session(ctx, ['break note_value if v == 49', 'run', 'bt', 'print total', 'print head->value', 'print *head->next', 'finish',
                  'watch total', 'continue', 'continue', 'delete', 'break worker', 'continue', 'print (char *)arg', 'bt',
                  'delete', 'continue'])
    # Calls into the program in a session of their own: after one, some kernels let the creation of a thread crash.
    session(ctx, ['break note_value if v == 81', 'run', 'print note_value(1000)', 'print $_strlen("allocated in the program")',
                  'print (char *)"allocated in the program"', 'print total', 'kill'])
    session(ctx, ['run', 'bt 1', 'print total', 'info registers rip', 'kill'], 'crash')
