# SPDX-License-Identifier: BSD-2-Clause
"""Two MPI processes of HPCC (linear algebra, transpose, FFT, RandomAccess, STREAM); its own checks must pass."""
import os
import re

import harness

INPUT = '''HPLinpack benchmark input file
test
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
400          Ns
1            # of NBs
40           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
'''


def run(ctx):
    harness.need('mpirun', 'hpcc')
    with open(ctx.path('hpccinf.txt'), 'w', encoding='ascii') as f:
        f.write(INPUT)
    argv = ['mpirun', '--oversubscribe', '-np', '2', '--mca', 'btl', 'self,vader', '--mca', 'btl_base_warn_component_unused', '0',
            '--mca', 'mpi_yield_when_idle', '1', '--mca', 'plm_rsh_agent', 'false']
    root = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'} if os.getuid() == 0 else {}
    ctx.run([*argv, 'hpcc'], env=dict(root, OMP_NUM_THREADS='1'), timeout=240, record='status')
    with open(ctx.path('hpccoutf.txt'), encoding='ascii', errors='replace') as f:
        text = f.read()
    verdicts = re.findall(r'PASSED|FAILED|^Success=\d|^\d+ tests with.*$|Found \d+ errors', text, re.M)
    ctx.check('Success=1' in verdicts and 'PASSED' in verdicts and 'FAILED' not in verdicts, f'HPCC verdicts: {verdicts}')
    # How often each test is repeated depends on its speed.
    ctx.record('verdicts', ' '.join(sorted(set(verdicts))))
