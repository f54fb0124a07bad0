"""The documents and the public headers as a folder of HTML pages. docs_html.py ROOT FOLDER (see docs.sh).

Pages lie as their sources do. A link to another file of the repository is a link to a copy of it, a link to a folder one to a list of
what is in it. At the end every link is followed; one that leads nowhere is an error."""
import re
import shutil
import sys
from html import escape
from pathlib import Path

import markdown

from docs_reference import entry_html, read_header, text_html

STYLE = """body{font:16px/1.5 sans-serif;margin:0;display:flex;color:#222}nav{width:15em;flex:none;padding:1em;background:#f4f5f7;
font-size:14px;min-height:100vh;box-sizing:border-box}nav a{display:block;color:#234}main{max-width:60em;padding:1em 2em;min-width:0}
pre{background:#f6f8fa;padding:.7em;overflow-x:auto;font-size:13px}code{background:#f6f8fa;font-size:90%}pre code{background:none}
table{border-collapse:collapse}td,th{border:1px solid #ccd;padding:.2em .6em;text-align:left;vertical-align:top}img{max-width:100%}
.entry{border-top:1px solid #dde;margin-top:1em}nav b{display:block;margin-top:1em}.code{border-left:3px solid #4e79a7}
@media(max-width:50em){body{display:block}nav{width:auto;min-height:0}}"""


def slug(text, separator="-"):
    """As GitHub makes them."""
    return re.sub(r"[^\w\- ]", "", re.sub(r"<[^>]*>", "", text).strip().lower()).replace(" ", separator)


class Site:
    def __init__(self, root, out):
        self.root, self.out = root, out
        self.headers = sorted((root / "include/dmath").glob("*.h"))
        names = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "blas/README.md", "tests/README.md", "examples/data/README.md"]
        self.documents = [root / name for name in names if (root / name).exists()]
        self.documents += sorted((root / "docs").rglob("*.md"))
        self.calls = {}  # name: page and anchor
        self.titles = {}

    def page_of(self, source):
        """Where the page of a source is, from the root of the site; None: it has no page."""
        name = source.relative_to(self.root).as_posix()
        if source in self.headers:
            return f"reference/{source.stem}.html"
        if source in self.documents:
            return "index.html" if name == "README.md" else name[:-len(".md")] + ".html"
        return None

    def up(self, page):
        return "../" * page.count("/")

    def navigation(self, page):
        def item(source, title):
            target = self.page_of(source)
            return f'<a href="{self.up(page)}{target}">{escape(title)}</a>'

        first = [d for d in self.documents if "adr" not in d.parts]
        lines = ["<b>dmath</b>", *[item(d, self.titles[d]) for d in first], "<b>Reference</b>",
                 f'<a href="{self.up(page)}reference/all.html">All calls</a>',
                 *[item(h, f"<dmath/{h.name}>") for h in self.headers],
                 f'<b>Decisions</b><a href="{self.up(page)}docs/adr/index.html">List</a>']
        return "\n".join(lines)

    def write(self, page, title, body):
        path = self.out / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
                        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><nav>{self.navigation(page)}</nav>\n"
                        f"<main>{body}</main></body></html>\n")

    # --- links

    def copy(self, source):
        name = source.relative_to(self.root).as_posix()
        target = self.out / name
        if source.is_dir():
            if not (target / "index.html").exists():
                names = sorted(p.name + "/" * p.is_dir() for p in source.iterdir() if not p.name.startswith((".", "build")))
                self.write(f"{name}/index.html", name, f"<h1>{escape(name)}</h1><ul>" + "".join(f"<li>{escape(n)}</li>" for n in names) + "</ul>")
            return f"{name}/index.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return name

    def resolve(self, document, page, target):
        """A link of a document, as the page has it."""
        if re.match(r"[a-z]+:|#", target):
            return target
        path, _, anchor = target.partition("#")
        source = (document.parent / path).resolve()
        if not source.exists() or self.root not in [source, *source.parents]:
            return target  # the check says so
        if source == self.root:
            return self.up(page) + "index.html"
        return self.up(page) + (self.page_of(source) or self.copy(source)) + ("#" + anchor if anchor else "")

    def link_calls(self, page):
        def one(match):
            where = self.calls.get(match[0])
            return f'<a href="{self.up(page)}{where}">{match[0]}</a>' if where else match[0]

        return lambda html: re.sub(r"\bdm_\w+|\bDM_[A-Z_]+\b", one, html)

    # --- pages

    def write_document(self, document):
        page = self.page_of(document)
        made = markdown.Markdown(extensions=["tables", "fenced_code", "sane_lists", "toc"],
                                 extension_configs={"toc": {"slugify": slug, "permalink": False}})
        html = made.convert(document.read_text())
        html = re.sub(r'(href|src)="([^"]*)"', lambda m: f'{m[1]}="{self.resolve(document, page, m[2])}"', html)
        link = self.link_calls(page)
        html = re.sub(r"(?<!<pre>)<code>(dm_\w+)</code>", lambda m: "<code>" + link(m[1]) + "</code>", html)
        self.write(page, self.titles[document], html)

    def write_header(self, header, intro, entries):
        page, seen = self.page_of(header), set()
        link = self.link_calls(page)
        body = [f"<h1>&lt;dmath/{header.name}&gt;</h1>", text_html(intro, link)]
        body += [entry_html(entry, link, seen) for entry in entries]
        self.write(page, f"dmath/{header.name}", "\n".join(body))

    def build(self):
        read = {header: read_header(header) for header in self.headers}
        for header, (_, entries) in read.items():
            for name in [n for entry in entries for n in entry.names()]:
                self.calls.setdefault(name, f"{self.page_of(header)}#{name}")
        for document in self.documents:
            title = re.search(r"^# (.*)$", document.read_text(), re.M)
            self.titles[document] = title[1] if title else document.stem
        for document in self.documents:
            self.write_document(document)
        for header, (intro, entries) in read.items():
            self.write_header(header, intro, entries)
        calls = sorted(name for name in self.calls if name.startswith("dm_"))
        self.write("reference/all.html", "All calls", "<h1>All calls</h1><p>" +
                   ", ".join(f'<a href="../{self.calls[name]}"><code>{name}</code></a>' for name in calls) + "</p>")
        decisions = [d for d in self.documents if "adr" in d.parts]
        self.write("docs/adr/index.html", "Decisions", "<h1>Decisions</h1><ul>" + "".join(
            f'<li><a href="../../{self.page_of(d)}">{escape(self.titles[d])}</a></li>' for d in decisions) + "</ul>")
        return len(calls)


def declared(root):
    """Names of the calls that the headers declare, by a way of its own."""
    names = set()
    for header in (root / "include/dmath").glob("*.h"):
        text = header.read_text()
        names |= set(re.findall(r"DM_API[A-Z_ ]*[\w ]+?\*?\s?\b(dm_[a-z0-9_]+)\(", text))
        names |= {"dm_" + name for name in re.findall(r"^    X[123]?\((\w+)\) +/\*", text, re.M)}
    return names


def broken_links(out):
    pages = {path: path.read_text() for path in out.rglob("*.html")}
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    for path, text in pages.items():
        for target in re.findall(r'(?:href|src)="([^"]*)"', text):
            if re.match(r"(https?|mailto):", target):
                continue
            name, _, anchor = target.partition("#")
            where = (path.parent / name).resolve() if name else path
            if not where.is_file() or (anchor and anchor not in anchors.get(where, set())):
                yield f"{path.relative_to(out)}: {target}"


def main():
    root, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    if out.exists() and not (out / "reference").is_dir() and any(out.iterdir()):
        sys.exit(f"docs: {out} has other files")
    shutil.rmtree(out, ignore_errors=True)
    site = Site(root, out)
    calls = site.build()
    problems = sorted(set(broken_links(out)))
    problems += [f"reference: {name} is declared and has no entry" for name in sorted(declared(root) - set(site.calls))]
    for problem in problems:
        print(f"docs: {problem}", file=sys.stderr)
    print(f"docs: {len(list(out.rglob('*.html')))} pages, {calls} calls and types: {out}/index.html")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
