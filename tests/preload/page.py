# SPDX-License-Identifier: BSD-2-Clause
"""Pages of hybridctl report: well formed, with nothing from outside and no script but ours."""
import html.parser
import json

from viewed import Case, ctl


class Checker(html.parser.HTMLParser):
    """Tags close in order; nothing comes from outside; no script but ours."""
    VOID = ('meta', 'img', 'source', 'br', 'input', 'link')
    CLOSED = ('line', 'rect', 'polyline', 'polygon')

    def __init__(self, case):
        super().__init__(convert_charrefs=True)
        self.case, self.scripts = case, 0
        self.stack, self.text, self.ids, self.links = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.look(tag, attrs)
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.look(tag, attrs)
        self.case.assertIn(tag, self.CLOSED)

    def look(self, tag, attrs):
        self.case.assertNotIn(
            tag, ('link', 'iframe', 'object', 'embed', 'base', 'form', 'image', 'use', 'b>'))
        self.scripts += tag == 'script'
        names = [n for n, _ in attrs]
        self.case.assertEqual(len(names), len(set(names)), tag)
        for name, value in attrs:
            self.case.assertFalse(name.startswith('on'), (tag, name))
            if name in ('src', 'srcset'):
                self.case.assertTrue(value.startswith('data:image/png;base64,'), value[:60])
            elif name == 'href':
                self.case.assertTrue(value.startswith('#'), value)
                self.links.append(value[1:])
            elif name == 'id':
                self.ids.append(value)

    def handle_endtag(self, tag):
        self.case.assertTrue(self.stack, tag)
        self.case.assertEqual(self.stack.pop(), tag)

    def handle_data(self, data):
        if self.stack and self.stack[-1] == 'style':
            self.case.assertNotIn('url(', data)
            self.case.assertNotIn('@import', data)
        elif self.stack and self.stack[-1] != 'script':
            self.text.append(data)

    @property
    def words(self):
        return ' '.join(' '.join(self.text).split())


class PageCase(Case):
    def well_formed(self, page):
        c = Checker(self)
        c.feed(page)
        c.close()
        self.assertEqual(c.stack, [])
        self.assertEqual(c.scripts, 1)
        self.assertTrue(set(c.links) <= set(c.ids))
        self.assertEqual(len(c.ids), len(set(c.ids)))
        self.assertNotIn('http://', page)
        self.assertNotIn('https://', page)
        return c

    def page(self, *files):
        out = self.dir + '/out.html'
        done = ctl('report', '-o', out, *files)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(out, encoding='utf-8') as f:
            return self.well_formed(f.read())


def lines_of(path):
    with open(path, encoding='utf-8') as f:
        return [json.loads(line) for line in f.read().splitlines()]
