#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What ties the emulated machine to allocators, movers, samplers and PAPI.

    test_connect.py CONNECT KERNELS LIBHYBRID PLACE CASE

CASE is a function name below, without 'case_'.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

CONNECT, KERNELS, LIBHYBRID, PLACE_SO, CASE = sys.argv[1:6]
ENV = {k: v for k, v in os.environ.items() if not k.startswith('HYBRID_')}
LINE, PAGE = 64, 4096
# pram: the default preset.
MOVE_NS, CALL_NS = 3000, 1000


def environment(settings):
    """Emulator settings in capitals, other variables with a leading underscore."""
    env = dict(ENV)
    for k, v in settings.items():
        env[k[1:] if k[0] == '_' else 'HYBRID_EMU_' + k] = str(v)
    return env


def run(args, **settings):
    """(standard output, JSON report)"""
    with tempfile.TemporaryDirectory() as d:
        env = environment(dict(settings, STATS=d + '/stats'))
        p = subprocess.run([str(a) for a in args], env=env, capture_output=True, text=True,
                           timeout=600)
        if p.returncode == 77:
            print('skipped by', args)
            sys.exit(77)
        assert p.returncode == 0, (p.args, p.returncode, p.stdout, p.stderr)
        with open(d + '/stats') as f:
            return p.stdout, json.loads(f.read().splitlines()[-1])


def values(args, **settings):
    out, stats = run([CONNECT] + args, **settings)
    got = {k: int(v) for k, v in re.findall(r'^(\w+) (-?\d+)$', out, re.M)}
    print(args, settings, got)
    return got, stats


def near(what, value, want, tolerance):
    print(f'{what}: {value:.6g}, expected {want:.6g} within {tolerance:.2%}')
    assert abs(value - want) <= tolerance * want, what


# --- libhybrid's tiers -----------------------------------------------------

def kernel(args, **settings):
    out, stats = run([KERNELS] + args, **settings)
    return int(re.search(r'virtual_us (\d+)', out).group(1)), stats


def hybrid(**more):
    return dict(_LD_PRELOAD=LIBHYBRID, _HYBRID_PM='emulated', _HYBRID_START=0,
                _HYBRID_REGISTRY='none', **more)


def case_tiers():
    """What libhybrid calls PM or DRAM is that, whatever else pages are; the times are those of
    the machine's own placement."""
    for args in (['stream', 1, 3], ['stream', 8, 6], ['chase', 1, 200000], ['chase', 8, 400000]):
        plain = {p: kernel(args, PLACE=p)[0] for p in ('dram', 'pm')}
        under = {}
        for tier, other in (('dram', 'pm'), ('pm', 'dram')):
            under[tier], s = kernel(args, PLACE=other, **hybrid(_HYBRID_POLICY=tier))
            assert s['llc_reads_' + other] < 0.01 * s['llc_reads_' + tier], s
            assert s['writebacks_' + other] < 0.01 * s['writebacks_' + tier], s
            near(f'{args} on {tier}', under[tier], plain[tier], 0.02)
        near(f'{args} ratio', under['pm'] / under['dram'], plain['pm'] / plain['dram'], 0.03)


def case_blocks():
    """Blocks and mappings, small and large, as libhybrid places them."""
    for policy, tier in (('dram', 0), ('pm', 1)):
        for other in ('dram', 'pm'):
            for blocks, kib in ((200, 1), (64, 64), (20, 1024)):
                got, _ = values(['blocks', blocks, kib], PLACE=other,
                                **hybrid(_HYBRID_POLICY=policy))
                assert got[('dram', 'pm')[tier]] == blocks, got
                assert got['mapped'] == got['mapped_end'] == tier, got
                assert got['unmapped'] == (other == 'pm'), got
    got, s = values(['blocks', 20, 1024],
                    **hybrid(_HYBRID_POLICY='first-fit', _HYBRID_DRAM='8M', _HYBRID_MIGRATE='off'))
    assert 7 <= got['dram'] <= 8 and got['dram'] + got['pm'] == 20 and got['mapped'] == 1, got
    near('pages on PM', s['pm_pages'], got['pm'] * 256, 0.02)


def case_budget():
    """first-fit: DRAM as far as the budget goes. Stream's arrays are one block of 32 MiB, which is
    split where the budget ends, as first touch splits it on a machine of so much DRAM."""
    still = {'_HYBRID_POLICY': 'first-fit', '_HYBRID_MIGRATE': 'off'}
    for budget in 'DRAM', 'DRAM_SHARED':
        took, s = kernel(['stream', 2, 3], **hybrid(**still, **{'_HYBRID_' + budget: '8M'}))
        plain, p = kernel(['stream', 2, 3], DRAM='8M', PLACE='first-touch')
        assert s['dram_pages'] <= p['dram_pages'] + 16, (s, p)  # those from before the start
        # Small blocks have pages of their own, charged as a whole.
        near('pages on DRAM', s['dram_pages'], p['dram_pages'], 0.04)
        near('reads of DRAM', s['llc_reads_dram'], p['llc_reads_dram'], 0.04)
        near('time', took, plain, 0.02)
    _, s = kernel(['stream', 2, 3], **hybrid(**still, _HYBRID_DRAM='64M'))
    assert s['llc_reads_pm'] < 0.01 * s['llc_reads_dram'], s
    # Where libhybrid is told none the machine splits the block where its DRAM ends: first touch.
    _, plain = kernel(['stream', 2, 3], DRAM='16M', PLACE='first-touch')
    _, s = kernel(['stream', 2, 3], DRAM='16M', PLACE='first-touch', **hybrid(**still))
    near('reads of DRAM', s['llc_reads_dram'], plain['llc_reads_dram'], 0.01)
    near('reads of PM', s['llc_reads_pm'], plain['llc_reads_pm'], 0.01)


def case_late():
    """Engaged by its own thread at the first growth: that thread is not the program's."""
    settings = dict(hybrid(_HYBRID_POLICY='pm'), _HYBRID_START='1M')
    got, s = values(['late', 10000], **settings)
    assert got['tier'] == 1 and s['threads'] == 1 and s['lost_threads'] == 0, (got, s)
    # A thread that is the only one waits for nobody.
    near('time', got['time'], got['spent'], 0.01)


# --- placements of the machine ---------------------------------------------

def case_first_touch():
    """DRAM while there is some, then PM: a linear mixture in count and between in time."""
    pages = 32768 * 1024 // PAGE
    times = {}
    for share in (0, 4, 8):
        size = max(1, pages * share // 8) * PAGE
        times[share], s = kernel(['stream', 1, 3], PLACE='first-touch', DRAM=size)
        assert s['dram_pages'] <= size // PAGE, s
        near(f'{share}/8 of the reads', 1 + s['llc_reads_dram'],
             1 + (s['llc_reads_dram'] + s['llc_reads_pm']) * share / 8, 0.02 if share else 200)
        near('pages', s['dram_pages'] + s['pm_pages'], pages, 0.01)
    assert times[0] > 1.2 * times[4] > 1.44 * times[8], times


def case_interleave():
    _, s = kernel(['stream', 1, 3], PLACE='interleave:3:1')
    near('reads of DRAM', s['llc_reads_dram'], 3 * s['llc_reads_pm'], 0.01)
    for place in ('interleave:3', 'interleave:x:1', 'first'):
        p = subprocess.run([KERNELS, 'compute', '1', '10'], env=environment({'PLACE': place}),
                           capture_output=True, text=True)
        assert p.returncode == 78 and 'interleave[:D:P]' in p.stderr, (p.returncode, p.stderr)
    p = subprocess.run([KERNELS, 'compute', '1', '10'], env=environment({'PLACE': 'first-touch'}),
                       capture_output=True, text=True)
    assert p.returncode == 78 and 'HYBRID_EMU_DRAM' in p.stderr, p.stderr
    for size in ('0', '-1', '5X', '9999999999999G', '1M1'):
        p = subprocess.run([KERNELS, 'compute', '1', '10'], env=environment({'DRAM': size}),
                           capture_output=True, text=True)
        assert p.returncode == 78 and 'HYBRID_EMU_DRAM' in p.stderr, (size, p.stderr)


def case_capacity():
    """One DRAM for all: what a process leaves, killed or not, the next one has."""
    with tempfile.TemporaryDirectory(dir='/dev/shm') as d:
        settings = dict(PLACE='first-touch', DRAM='4M', MACHINE=d + '/m')

        def hold(pages):
            p = subprocess.Popen([CONNECT, 'hold', str(pages)], env=environment(settings),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            return p, [int(p.stdout.readline().split()[1]) for _ in range(2)]

        first, (dram, pm) = hold(700)
        print('first', dram, pm)
        assert 700 <= dram <= 720 and pm == 0
        second, (dram2, pm2) = hold(700)
        print('second', dram2, pm2)
        assert 1020 <= dram + dram2 <= 1024 and pm2 >= 376  # stdout's buffer comes later
        first.kill()
        first.wait()
        # Who is there already finds it as well.
        second.stdin.write('1')
        second.stdin.flush()
        grown = [int(second.stdout.readline().split()[1]) for _ in range(2)]
        print('second, grown', grown)
        # It looks again when some 130 pages have found DRAM full.
        assert 700 + dram2 - 200 <= grown[0] <= 1024, grown
        second.communicate()
        assert second.returncode == 0
        second, (dram2, pm2) = hold(323)
        # Found when DRAM is full: the newcomer gets what the dead one had.
        third, (dram3, pm3) = hold(700)
        print('third', dram3, pm3)
        assert 1000 <= dram2 + dram3 <= 1024
        second.communicate()
        third.communicate()
        assert second.returncode == 0 and third.returncode == 0
        assert os.listdir(d) == []


def case_room():
    got, _ = values(['room', 600], PLACE='first-touch', DRAM='3M')
    rest = got['none']
    assert rest <= 20 and got['all'] - rest == 600 and got['half'] - rest == 300, got
    assert got['remapped'] - rest == 300, got
    # Each block of libc's takes most of DRAM, which the one before has left.
    assert [got[f'malloc_{i}'] for i in range(3)] == [0, 0, 0], got


# --- moves -----------------------------------------------------------------

def case_move():
    pages = 300
    got, s = values(['move', pages])
    lines = PAGE // LINE
    # Down: DRAM is read as a stream (80 ns / 10), PM written (640 / 20), or PM's bandwidth
    # of 4 GB/s is full. The time may be more by loaded latency, not less.
    down = pages * (MOVE_NS + lines * (80 / 10 + 640 / 20)) + CALL_NS
    up = (pages - 1) * (MOVE_NS + lines * (240 / 10 + 80 / 20)) + CALL_NS
    assert got['moved'] == pages and got['tier'] == 1 and got['again'] == 0, got
    assert down <= got['down_ns'] <= 1.25 * down, (got, down)
    assert up <= got['up_ns'] <= 1.25 * up, (got, up)
    assert got['up_one'] == 1 and got['up'] == pages - 1, got
    assert got['cached_reads'] == 0 and got['moved_reads'] == 64, got
    assert got['ignored_moved'] == 100 and got['bad'] < 0, got
    assert got['ignored_ns'] >= 100 * MOVE_NS, got
    assert s['pages_moved_down'] == pages + 100 and s['pages_moved_up'] == pages, s
    assert got['events'] == s['pages_moved_down'] * 1000000 + s['pages_moved_up'], (got, s)
    near('move_ns', s['move_ns'], got['down_ns'] + got['up_ns'] + got['ignored_ns'], 0.2)
    assert s['threads'] == 1, s  # the ignored one is none of the program's
    # The device has seen them.
    assert s['units_written_pm'] >= (pages + 100) * lines, s
    assert s['units_read_pm'] >= pages * lines, s
    got, s = values(['move', pages], DRAM=(pages // 2) * PAGE)
    assert got['up'] < pages // 2 and s['dram_pages'] == pages // 2, (got, s)


# --- observers -------------------------------------------------------------

def case_hold():
    """The program gets no further than its observer allows, but for what a thread may run ahead
    (a batch and the lookahead), and does not wait for one that is blocked."""
    looks = 40
    got, s = values(['look', looks])
    assert got['looks'] == looks and got['late'] == 0, got
    assert got['furthest'] <= 2 * 20000 + 5000, got
    moved = looks // 4 * 10  # half of them down
    assert s['pages_moved_up'] + s['pages_moved_down'] == moved, s
    near('in_moves', got['in_moves'], s['move_ns'], 0.05)
    assert got['in_moves'] >= moved * MOVE_NS, got
    assert s['threads'] == 1 and s['unseen_blocks'] == 0 == s['lost_runs'], s
    got, s = values(['wait'])
    assert got['behind'] == 1, got
    assert s['threads'] == 1 and s['unseen_blocks'] == 0, s


# --- PAPI ------------------------------------------------------------------

def case_papi():
    """Counts through PAPI, opened privately, of a kernel whose counts are known."""
    lines = 131072  # 8 MiB: four times the LLC
    for threads in (1, 4):
        for place, reads in (('dram', 'LLC_RD_DRAM'), ('pm', 'LLC_RD_PM')):
            got, _ = values(['papi', lines, threads], PLACE=place)
            for when in ('written', 'read'):
                assert lines <= got[f'{when}_{reads}'] <= lines + 20 + 40 * threads, got
                assert got[f'{when}_TOT_INS'] > lines and got[f'{when}_STALL_NS'] > 0, got
                assert got[f'{when}_VTIME_NS'] > 0 and got[f'{when}_TOT_CYC'] > 0, got
            other = 'LLC_RD_PM' if place == 'dram' else 'LLC_RD_DRAM'
            assert got['written_' + other] == 0, got
            if place == 'pm':
                assert lines <= got['written_WB_PM'] <= lines + 20 + 40 * threads, got
                assert got['read_WB_PM'] < 50, got
                assert got['written_PM_UJ'] > got['read_PM_UJ'] > 0, got
            assert got['nothing_' + reads] < 50 and got['nothing_VTIME_NS'] < 10000, got


# --- samples ---------------------------------------------------------------

def case_samples():
    lines, period = 131072, 50
    for threads in (1, 4):
        got, _ = values(['samples', lines, threads, period], PLACE='pm')
        assert got['open'] == 0 and got['busy'] == -16 and got['lost'] == 0, got
        # Four passes over all lines (some hit at the seams of threads), 64 over the hot ones. Of
        # all lines read some are the ring's own.
        near('samples', got['all'], (4 * lines + 64 * 64) / period, 0.02)
        assert got['reads'] >= 0.98 * 4 * lines, got
        hot = (4 + 64) * 64 / period
        assert abs(got['hot'] - hot) < 4 * hot ** 0.5, got
        assert got['stores'] == 0 and got['wrong'] == 0, got
        assert got['pm'] == got['all'] and got['latency'] == 240, got
        assert got['threads'] >= threads, got
        # Every line that turns dirty is a sample at period 1.
        assert got['open_writes'] == 0 and got['dirty_samples'] == got['dirtied'], got
        assert got['dirty_stores'] == got['dirty_all'] >= lines, got
        # Overflow.
        assert got['open_small'] == 0 and got['full_head'] == got['full_slots'] == 128, got
        assert got['full_all'] == got['full_reads'] >= lines and got['wrong_open'] == 1, got


def case_race():
    for threads in (1, 8):
        got, _ = values(['race', threads])
        assert got['taken'] == got['head'] > 0 and got['wrong'] == 0, got


# --- counts by page --------------------------------------------------------

def case_counts():
    pages = 1024  # 4 MiB: twice the LLC
    lines = pages * PAGE // LINE
    got, s = values(['counts', pages], PLACE='pm')
    assert s['pages_written_pm'] >= pages and s['most_page_writes_pm'] == got['most'], s
    mean = s['mean_page_writes_pm']
    near('mean', mean, got['pm_writes'] / pages, 0.02)
    # Without levelling a cell of the worst page: its writes are 1/64 of the page's.
    worst = 10 ** 8 * 64 / got['most'] * s['virtual_ms'] / 1000 / (365.25 * 86400)
    near('worst lifetime', s['pm_lifetime_years_worst_page'], worst, 0.2)
    assert got['off'] == -61 and got['on'] == 0 and got['get'] == 0, got
    assert got['pages'] == pages, got
    # A pass of writes and three of reads, each finding its lines thrown out (LRU); then 64 lines
    # five times.
    near('reads', got['rest_reads'], 4 * (lines - 64), 0.02)
    near('write-backs', got['writebacks'], lines + 5 * 64, 0.001)
    assert got['first_writebacks'] == 6 * 64 == got['most'], got
    assert got['pm_writes'] == got['writebacks'], got
    got, _ = values(['counts', pages], PLACE='dram')
    assert got['pm_writes'] == 0 and got['writebacks'] >= lines, got


# --- the placer ------------------------------------------------------------

def case_placer():
    with tempfile.TemporaryDirectory() as d:
        for digits in ('0', '1'):
            t, s = kernel(['stream', 1, 3], PLACE='pm', PAGE_COUNTS=1, _LD_PRELOAD=PLACE_SO,
                          _HYBRID_PLACE=digits, _HYBRID_PLACE_LIST=d + '/list')
            plain, _ = kernel(['stream', 1, 3], PLACE=('dram', 'pm')[int(digits)])
            near('virtual time', t, plain, 0.01)
            own, other = ('dram', 'pm') if digits == '0' else ('pm', 'dram')
            assert digits == '0' and s['llc_reads_pm'] < 1000 or s['llc_reads_dram'] == 0, s
        with open(d + '/list') as f:
            rows = [r.split() for r in f if not r.startswith('#')]
        assert [r[:3] for r in rows] == [['0', rows[0][1], '0'], ['0', rows[0][1], '1']], rows
        assert 33000000 < int(rows[0][1]) <= 33554432, rows
        near('reads', int(rows[1][3]), s['llc_reads_pm'], 0.01)
        near('write-backs', int(rows[1][4]), s['writebacks_pm'], 0.01)
    for bad in ('', '012', None):
        env = environment({'_LD_PRELOAD': PLACE_SO})
        if bad is not None:
            env['HYBRID_PLACE'] = bad
        p = subprocess.run([KERNELS, 'compute', '1', '10'], env=env, capture_output=True, text=True)
        assert p.returncode == 78 and 'HYBRID_PLACE' in p.stderr, (bad, p.returncode, p.stderr)


globals()['case_' + CASE]()
