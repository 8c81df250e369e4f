# SPDX-License-Identifier: BSD-2-Clause
"""LibreOffice: a table is read, computed and written as csv by the office without its windows."""
import harness


def run(ctx):
    harness.need('soffice')
    rows = ''.join(f'{i},{i * 7919 % 1000},"text {i % 37}",=B{i}*2+A{i}\n' for i in range(1, 4001))
    with open(ctx.path('table.csv'), 'w', encoding='ascii') as f:
        f.write(rows)
    office = ['soffice', '-env:UserInstallation=file://' + ctx.path('profile'), '--headless', '--norestore']
    for source, to in (('table.csv', 'ods'), ('table.ods', 'fods'), ('table.ods', 'csv')):
        ctx.run([*office, '--infilter=CSV:44,34,76,1,,0,false,true,true' if source.endswith('csv') else '--nologo',
                 '--convert-to', to, '--outdir', ctx.dir if to != 'csv' else ctx.path('out'), ctx.path(source)],
                record='status', timeout=240)
    with open(ctx.path('out', 'table.csv'), encoding='utf-8') as f:
        text = f.read()
    ctx.check(len(text.splitlines()) == 4000, 'the table was not written')
    ctx.record('table', text)
