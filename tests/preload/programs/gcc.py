# SPDX-License-Identifier: BSD-2-Clause
"""gcc, as, ld and make: objects are compared byte for byte, the program runs."""
import hashlib

import harness


def unit(n):
    body = '\n'.join(f'static int f{i}(int x) {{ int a[{i % 9 + 2}] = {{0}}; for (int k = 0; k < x % 50; k++) '
                     f'a[k % {i % 9 + 2}] += k * {i}; return a[1] ^ {i * n}; }}' for i in range(90))
    calls = ' + '.join(f'f{i}(x + {i})' for i in range(90))
    return f'#include <stdio.h>\n#include <stdlib.h>\n{body}\nint unit{n}(int x) {{ return {calls}; }}\n'


def run(ctx):
    harness.need('gcc', 'make')
    for n in range(3):
        with open(ctx.path(f'u{n}.c'), 'w', encoding='ascii') as f:
            f.write(unit(n))
    with open(ctx.path('main.c'), 'w', encoding='ascii') as f:
        f.write('#include <stdio.h>\nint unit0(int), unit1(int), unit2(int);\n'
                'int main(void) { printf("%d\\n", unit0(7) + unit1(8) + unit2(9)); return 3; }\n')
    with open(ctx.path('Makefile'), 'w', encoding='ascii') as f:
        f.write('prog: main.o u0.o u1.o u2.o\n\t@gcc -flto -O2 -o $@ $^\n%.o: %.c\n\t@gcc -O2 -g -flto -c -o $@ $<\n')
    ctx.run(['make', '-s', '-j2'])
    ctx.run(['./prog'])
    ctx.run(['gcc', '-O3', '-Wall', '-c', '-frandom-seed=1', '-o', 'plain.o', 'u0.c'])
    with open(ctx.path('plain.o'), 'rb') as f:
        ctx.record('object', hashlib.sha256(f.read()).hexdigest())
    ctx.run(['gcc', '-c', '-x', 'c', '-'], stdin=b'int main( { return undeclared; }\n')
