# SPDX-License-Identifier: BSD-2-Clause
"""maxima as Debian has it, on GCL: a malloc of its own that is not for threads and not ready before main."""
import harness

SCRIPT = ('factor(x^30-1); integrate(1/(1+x^4),x); fpprec:200$ bfloat(%pi); s:0$ for i thru 20000 do s:s+1/i$ '
          'float(s); quit();')


def run(ctx):
    harness.need('maxima')
    ctx.run(['maxima', '--very-quiet', '-r', SCRIPT])
