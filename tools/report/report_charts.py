# SPDX-License-Identifier: BSD-2-Clause
"""Pictures for hybridctl report: curves, bars, strips and maps as inline SVG and PNG, each with
the table of its numbers behind it. Drawings stretch with the page, so their labels are HTML.
All text that comes in is escaped here."""
import base64
import html
import math
import struct
import zlib

TABLE_ROWS = 40

# Maps: colours from `nothing` to `most`, for light and dark pages; (r, g, b) each.
HEAT = {
    'light': ((238, 240, 244), (250, 205, 120), (233, 120, 50), (150, 25, 40)),
    'dark': ((38, 40, 46), (110, 50, 60), (220, 100, 50), (255, 220, 130))
}
TIER = {'light': ((55, 120, 210), (235, 145, 50)), 'dark': ((80, 150, 235), (240, 150, 60))}
DOMAIN = {
    'light': ((238, 240, 244), (120, 165, 215), (250, 215, 160), (240, 155, 75), (190, 55, 30)),
    'dark': ((38, 40, 46), (60, 105, 160), (125, 85, 45), (210, 130, 50), (255, 200, 125))
}


def e(s):
    return html.escape(str(s), quote=True)


# --- numbers --------------------------------------------------------------------------


def size(v):
    """12.5 GiB"""
    units = ('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB')
    u = 0
    while abs(v) >= 1024 and u < len(units) - 1:
        v /= 1024
        u += 1
    return ('%.0f %s' if u == 0 or abs(v) >= 100 else '%.3g %s') % (v, units[u])


def rate(v):
    return size(v) + '/s'


def duration(s):
    for unit, name in ((3600, 'h'), (60, 'min')):
        if s >= 2 * unit:
            return '%.3g %s' % (s / unit, name)
    for unit, name in ((1, 's'), (1e-3, 'ms'), (1e-6, 'us')):
        if s >= unit:
            return '%.3g %s' % (s / unit, name)
    return '0 s' if s <= 0 else '%.3g ns' % (s * 1e9)


def count(v):
    return '%.3g' % v if 0 < v < 100 and v != int(v) else '{:,}'.format(round(v))


def percent(v):
    return '%.3g %%' % (100 * v)


def times(v):
    return '%.3g' % v


def nice(most, base=10):
    """Marks from 0 to at least `most`, about four of them."""
    unit = 1
    while base == 1024 and most >= 1024 * unit:
        unit *= 1024
    if most <= 0:
        return [0, 1]
    step = 10**math.floor(math.log10(most / unit / 4)) * unit
    step *= next(f for f in (1, 2, 5, 10) if step * f * 4 >= most * 0.999)
    return [i * step for i in range(max(1, math.ceil(most / step * 0.999)) + 1)]


# --- the frame ------------------------------------------------------------------------


def table(head, rows):
    """`rows`: [(x seconds or None, [cells])]; only so many are shown."""
    if len(rows) > TABLE_ROWS:
        step = (len(rows) - 1) / (TABLE_ROWS - 1)
        rows = [rows[round(i * step)] for i in range(TABLE_ROWS)]
    out = ['<div class="scroll"><table><thead><tr>']
    out += ['<th scope="col">%s</th>' % e(h) for h in head]
    out.append('</tr></thead><tbody>')
    for x, cells in rows:
        mark = '' if x is None else ' data-x="%.9g"' % x
        out.append('<tr%s>%s</tr>' % (mark, ''.join('<td>%s</td>' % e(c) for c in cells)))
    out.append('</tbody></table></div>')
    return ''.join(out)


def legend(entries):
    return '<div class="legend">%s</div>' % ''.join('<span><i class="%s"></i>%s</span>' %
                                                    (e(cls), e(name))
                                                    for name, cls in entries) if entries else ''


def x_labels(begin, end):
    span = end - begin
    marks = [m for m in nice(span) if m <= span * 1.0001] if span > 0 else [0]
    out = []
    for m in marks:
        at = 100 * m / span if span > 0 else 0
        edge = ' first' if at < 4 else ' last' if at > 94 else ''
        out.append(
            '<span class="x%s" style="left:%.2f%%">%s</span>' % (edge, at, e(duration(begin + m))))
    return '<div class="xs">%s</div>' % ''.join(out)


def figure(title, note, inner, begin, end, y_labels='', keys='', data='', low=False):
    return (
        '<figure class="chart%s" data-begin="%.9g" data-end="%.9g"><figcaption><b>%s</b> '
        '%s</figcaption>%s'
        '<div class="frame"><div class="ys">%s</div><div class="plot">%s</div><div></div>%s</div>'
        '<details><summary>Numbers</summary>%s</details></figure>') % (
            ' low' if low else '', begin, end, e(title), '<span class="note">%s</span>' %
            e(note) if note else '', keys, y_labels, inner, x_labels(begin, end), data)


def y_axis(marks, form):
    top = marks[-1] or 1
    labels = ''.join(
        '<span style="bottom:%.2f%%">%s</span>' % (100 * m / top, e(form(m))) for m in marks)
    grid = ''.join(
        '<line class="grid" x1="0" x2="1000" y1="{0:.1f}" y2="{0:.1f}"/>'.format(1000 -
                                                                                 1000 * m / top)
        for m in marks)
    return labels, grid, top


def svg(title, body):
    return (
        '<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" role="img" '
        'aria-label="%s">%s</svg>'
        % (e(title), body))


# --- charts -----------------------------------------------------------------------------


def points(series, begin, span, top, step):
    out, y0 = [], None
    for x, v in series:
        px, py = 1000 * (x - begin) / span, 1000 - 1000 * min(max(v, 0), top) / top
        if step and y0 is not None:
            out.append('%.1f,%.1f' % (px, y0))
        out.append('%.1f,%.1f' % (px, py))
        y0 = py
    return out


def curves(title, note, series, begin, end, form, base=10, step=False, least=0.0):
    """`series`: [(name, class, [(x, y)])]. Classes ending in `-area` are filled."""
    series = [s for s in series if s[2]]
    if not series or end <= begin:
        return ''
    top_value = max([least] + [v for _, _, s in series for _, v in s])
    labels, grid, top = y_axis(nice(top_value, base), form)
    body = [grid]
    for _, cls, s in series:
        p = points(s + [(end, s[-1][1])] if step else s, begin, end - begin, top, step)
        body.append('<polyline class="line %s" points="%s"/>' % (e(cls), ' '.join(p)))
    xs = sorted({x for _, _, s in series for x, _ in s})
    return figure(
        title, note, svg(title, ''.join(body)), begin, end, labels,
        legend([(n, c) for n, c, _ in series]),
        table(['time'] + [n for n, _, _ in series],
              [(x, [duration(x)] +
                [form(v) if v is not None else '' for v in (value_at(s, x) for _, _, s in series)])
               for x in xs]))


def value_at(series, x):
    """The last value up to x."""
    lo, hi = 0, len(series)
    while lo < hi:
        mid = (lo + hi) // 2
        if series[mid][0] <= x:
            lo = mid + 1
        else:
            hi = mid
    return series[lo - 1][1] if lo else None


def stacked(title, note, series, begin, end, form, base=10):
    """Areas above each other; all series have the same xs."""
    if not series or not series[0][2] or end <= begin:
        return ''
    xs = [x for x, _ in series[0][2]]
    sums = [0] * len(xs)
    labels, grid, top = y_axis(
        nice(max(sum(s[i][1] for _, _, s in series) for i in range(len(xs))), base), form)
    body = []
    for _, cls, s in series:
        lower = list(sums)
        sums = [a + v for a, (_, v) in zip(sums, s)]
        up = points(list(zip(xs, sums)) + [(end, sums[-1])], begin, end - begin, top, True)
        down = points(list(zip(xs, lower)) + [(end, lower[-1])], begin, end - begin, top, True)
        body.append('<polygon class="area %s" points="%s"/>' % (e(cls), ' '.join(up + down[::-1])))
    body.append(grid)
    return figure(
        title, note, svg(title, ''.join(body)), begin, end, labels,
        legend([(n, c) for n, c, _ in series][::-1]),
        table(
            ['time'] + [n for n, _, _ in series],
            [(x, [duration(x)] + [form(s[i][1]) for _, _, s in series]) for i, x in enumerate(xs)]))


def up_and_down(title, note, names, ups, downs, begin, end, form):
    """Two rates, one above and one below the axis. [(from, to, value)]"""
    most = max([v for _, _, v in ups + downs] or [0])
    if end <= begin or most <= 0:
        return ''
    marks = nice(most, 1024)
    top = marks[-1]
    both = sorted({-m for m in marks} | set(marks))
    labels = ''.join('<span style="bottom:%.2f%%">%s</span>' % (50 + 50 * m / top, e(form(abs(m))))
                     for m in (-top, 0, top))
    body = [
        '<line class="grid" x1="0" x2="1000" y1="{0:.1f}" y2="{0:.1f}"/>'.format(500 -
                                                                                 500 * m / top)
        for m in both
    ]
    for values, cls, sign in ((ups, 'dram', 1), (downs, 'pm', -1)):
        for a, b, v in values:
            h = 500 * v / top
            if h > 0:
                body.append(
                    '<rect class="bar %s" x="%.1f" width="%.1f" y="%.1f" height="%.1f"/>' %
                    (cls, 1000 * (a - begin) /
                     (end - begin), max(1.5, 1000 * (b - a) /
                                        (end - begin) - 1), 500 - h if sign > 0 else 500, h))
    rows = [(a, [duration(a), form(v), form(w)]) for (a, _, v), (_, _, w) in zip(ups, downs)
            if v or w]
    return figure(title, note, svg(title, ''.join(body)), begin, end, labels,
                  legend([(names[0], 'dram'), (names[1], 'pm')]), table(['from'] + list(names),
                                                                        rows))


def strip(title, note, spans, names, begin, end):
    """Which of several things was so, when: [(from, to, class)]."""
    if not spans or end <= begin:
        return ''
    body = ''.join(
        '<rect class="bar c-%s" x="%.1f" width="%.1f" y="0" height="1000"/>' %
        (e(c), 1000 * (a - begin) / (end - begin), max(1, 1000 * (b - a) / (end - begin)))
        for a, b, c in spans)
    seen = [c for c in names if any(s[2] == c for s in spans)]
    return figure(
        title, note, svg(title, body), begin, end, '', legend([(names[c], 'c-' + c) for c in seen]),
        table(['from', 'to', 'class'],
              [(a, [duration(a), duration(b), names.get(c, c)]) for a, b, c in spans]), low=True)


def bars(title, note, values, form):
    """[(name, class, value)] lying down, with their numbers: no table needed."""
    top = max(v for _, _, v in values) or 1
    rows = ''.join(
        '<div class="hbar"><span>%s</span><span class="track"><i class="%s" style="width:%.2f%%">'
        '</i>'
        '</span><b>%s</b></div>' % (e(n), e(c), 100 * v / top, e(form(v))) for n, c, v in values)
    return ('<figure class="chart"><figcaption><b>%s</b> <span class="note">%s</span>'
            '</figcaption>%s</figure>') % (
        e(title), e(note), rows)


# --- maps -------------------------------------------------------------------------------


def ramp(colours, steps):
    out = []
    for i in range(steps):
        at = i * (len(colours) - 1) / (steps - 1)
        k = min(int(at), len(colours) - 2)
        out.append(tuple(round(a + (b - a) * (at - k)) for a, b in zip(colours[k], colours[k + 1])))
    return out


def png(cells, palette):
    """Columns of rows, the lowest row first; index into the palette or None: see-through."""
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack(
            '>I', zlib.crc32(kind + data))

    width, height = len(cells), len(cells[0])
    none = len(palette)
    rows = b''.join(b'\0' + bytes(none if c[y] is None else c[y] for c in cells)
                    for y in range(height - 1, -1, -1))
    return (b'\x89PNG\r\n\x1a\n' +
            chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 3, 0, 0, 0)) +
            chunk(b'PLTE', b''.join(bytes(c) for c in palette) + b'\0\0\0') +
            chunk(b'tRNS', b'\xff' * none + b'\0') + chunk(b'IDAT', zlib.compress(rows, 9)) +
            chunk(b'IEND', b''))


def data_uri(data):
    return 'data:image/png;base64,' + base64.b64encode(data).decode()


def css(colour):
    return 'rgb(%d %d %d)' % colour


def page_map(title, note, cells, palettes, keys, begin, end, labels, data):
    """`palettes`: {'light': [...], 'dark': [...]}; `keys`: [(name, index)]."""
    if not cells or not cells[0]:
        return ''
    light, dark = (data_uri(png(cells, palettes[p])) for p in ('light', 'dark'))
    inner = (
        '<picture><source media="(prefers-color-scheme: dark)" srcset="%s"><img class="map" '
        'alt="%s" src="%s">'
        '</picture>') % (dark, e('%s: see the numbers below' % title), light)
    key = ''.join('<span><i class="key" style="--l:%s;--d:%s"></i>%s</span>' %
                  (css(palettes['light'][i]), css(palettes['dark'][i]), e(n)) for n, i in keys)
    return figure(title, note, inner, begin, end, labels, '<div class="legend">%s</div>' % key,
                  data)
