# SPDX-License-Identifier: BSD-2-Clause
"""python3 with every object from malloc (PYTHONMALLOC=malloc), the heaviest user of small blocks."""
from programs import python


def run(ctx):
    python.run(ctx, {'PYTHONMALLOC': 'malloc'})
