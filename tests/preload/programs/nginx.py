# SPDX-License-Identifier: BSD-2-Clause
"""nginx with two workers: files of many sizes plain and compressed, a reload, a graceful end."""
import gzip
import hashlib
import os
import signal
import threading

import harness

CONF = '''
{user} worker_processes 2; daemon off; pid {dir}/pid; error_log {dir}/error.log warn;
events {{ worker_connections 64; }}
http {{ access_log {dir}/access.log; gzip on; gzip_min_length 100; gzip_types *; gzip_proxied any;
  client_body_temp_path {dir}/b; proxy_temp_path {dir}/p; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u; scgi_temp_path {dir}/s;
  server {{ listen unix:{dir}/web.sock; root {dir}/www; sendfile {sendfile}; location /again/ {{ proxy_pass http://unix:{dir}/web.sock:/; }} }} }}
'''


def fetch(ctx, path, packed=False):
    s = ctx.connect(ctx.path('web.sock'))
    s.sendall(b'GET %s HTTP/1.0\r\n%s\r\n' % (path.encode(), b'Accept-Encoding: gzip\r\n' if packed else b''))
    got = b''.join(iter(lambda: s.recv(65536), b''))
    s.close()
    head, _, body = got.partition(b'\r\n\r\n')
    return head.split(b'\r\n')[0], gzip.decompress(body) if b'gzip' in head else body


def run(ctx):
    harness.need('nginx')
    os.mkdir(ctx.path('www'))
    files = {}
    for i in range(20):
        files[f'/f{i}'] = (b'line %d of a file\n' % i) * (i ** 4 + 1)
        with open(ctx.path('www' + f'/f{i}'), 'wb') as f:
            f.write(files[f'/f{i}'])
    if os.getuid() == 0:
        os.chmod(ctx.dir, 0o755)
    with open(ctx.path('conf'), 'w', encoding='ascii') as f:
        f.write(CONF.format(dir=ctx.dir, sendfile='off', user='user root;' if os.getuid() == 0 else ''))
    ctx.run(['nginx', '-t', '-c', ctx.path('conf'), '-e', ctx.path('error.log')])
    proc = ctx.popen(['nginx', '-c', ctx.path('conf'), '-e', ctx.path('error.log')])
    errors = []

    def client(offset):
        try:
            for i in range(40):
                path = f'/f{(i + offset) % 20}'
                status, body = fetch(ctx, ('/again' if i % 5 == 0 else '') + path, i % 2)
                if b' 200 ' not in status or body != files[path]:
                    errors.append(f'{path}: {status!r}, {len(body)} bytes of {len(files[path])}')
        except (OSError, harness.Broken) as e:
            errors.append(repr(e))

    for round_ in range(2):
        pool = [threading.Thread(target=client, args=(7 * n,)) for n in range(4)]
        for t in pool:
            t.start()
        for t in pool:
            t.join()
        ctx.check(not errors, f'round {round_}: {errors[:5]}')
        if round_ == 0:
            proc.send_signal(signal.SIGHUP) # new workers, the old ones end
    ctx.record('missing file', fetch(ctx, '/none')[0])
    ctx.record('digest', hashlib.md5(fetch(ctx, '/f19', True)[1]).hexdigest())
    ctx.stop(proc, signal.SIGQUIT, 'nginx')
    with open(ctx.path('error.log'), encoding='utf-8') as f:
        bad = [ln for ln in f if 'alert' in ln or 'emerg' in ln or 'exited on signal' in ln]
    ctx.check(not bad, 'error log: ' + ''.join(bad))
