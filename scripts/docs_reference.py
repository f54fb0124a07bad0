"""The public headers as pages: each comment with the declarations behind it, in the header's order."""
import re
from html import escape

GUARDS = re.compile(r"#(ifndef|define) DM[A-Z_]*_H$|#include |extern \"C\"|#undef |#error")
MADE = re.compile(r"#define DM_[A-Z]+_\d\(|^DM_[A-Z_]+\(|^DMATH_|^}$")
LABELS = re.compile(r"(?:^|(?<=[.;)] ))(Errors(?: of all(?: calls)?| that [a-z ]+| and costs?)?|Costs?(?: of [a-z ]+)?|Blocking|Types(?: and cost)?|"
                    r"Shapes(?:, types and cost)?|Layouts|Algorithms|Source)(?=:)")


class Entry:
    """Declarations that share a comment; title: of a section, with no declarations."""

    def __init__(self, text, title=None):
        self.text, self.title, self.code, self.rows = text, title, [], []

    def names(self):
        code = "\n".join(self.code)
        found = [name for _, name, _ in self.rows]
        found += re.findall(r"^DM_API[^;(]*?\b(\w+)\(", code, re.M)
        found += re.findall(r"^#define (DM_\w+|dm_\w+)", code, re.M)
        found += re.findall(r"^} (\w+);", code, re.M) + re.findall(r"^typedef struct \w+ (\w+);", code, re.M)
        found += re.findall(r"^typedef [^{;]*\(\*(\w+)\)", code, re.M) + re.findall(r"static inline [\w ]+?(\w+)\(", code)
        found += re.findall(r"^\s*(DM_[A-Z0-9_]+) = ", code, re.M)
        return list(dict.fromkeys(found))


def comment_lines(block):
    lines = block.strip()[2:-2].split("\n")
    return [re.sub(r"^ \*( |$)", "", line).rstrip() for line in [lines[0][1:], *lines[1:]]]


def blocks_of(text):
    """Comments and declarations, with an empty string where the header has an empty line."""
    lines, at = text.split("\n"), 0
    while at < len(lines):
        line = lines[at]
        end = at
        if line.startswith("/*"):
            while "*/" not in lines[end]:
                end += 1
        elif line.startswith("#"):
            while lines[end].endswith("\\"):
                end += 1
        elif line.strip() and not line.startswith('extern "C"'):
            while end + 1 < len(lines) and (sum(s.count("{") - s.count("}") + s.count("(") - s.count(")") for s in lines[at:end + 1])
                                            or not re.search(r"[;})]\s*(/\*.*\*/)?$", lines[end])):
                end += 1
        yield "\n".join(lines[at:end + 1])
        at = end + 1


def list_rows(block):
    """The lines X(name) /* text */ of a list that declares calls."""
    return [("dm_", name, text.strip()) for name, text in re.findall(r"^\s*X\d?\((\w+)\)\s*/\* (.*?) \*/", block, re.M)]


def read_header(path):
    """The introduction, and the entries."""
    intro, entries, pending, depth = None, [], None, 0
    for block in blocks_of(path.read_text()):
        if block.startswith("/*") and block.strip().endswith("*/"):
            lines = comment_lines(block)
            section = re.match(r"-{4,} (.*?) -{4,}$", lines[0])
            if intro is None:
                intro = lines
            elif section:
                entries.append(Entry(lines[1:], section[1]))
                pending = None
            elif depth <= 1:
                pending = Entry(lines)
                entries.append(pending)
        elif block.startswith("#if"):
            depth += 1
        elif block.startswith("#endif"):
            depth -= 1
        elif not block.strip():
            pending = None
        elif depth <= 1 and not GUARDS.match(block) and not block.startswith(("#el", "__attribute__")):
            rows = list_rows(block)
            if not rows and MADE.match(block):
                continue
            if pending is None:
                pending = Entry([])
                entries.append(pending)
            if rows:
                pending.rows += [(prefix, prefix + name, text) for prefix, name, text in rows]
            else:
                pending.code.append(block)
    return intro or [], entries


def paragraphs(lines):
    """(kind, lines) in order: of text, of code, of a point of a list."""
    out = []
    for line in lines:
        point = re.match(r" ?- ", line)
        kind = "point" if point else "code" if line.startswith("    ") and (not out or out[-1] is None or out[-1][0] != "point") else "text"
        if not line.strip():
            out.append(None)
        elif out and out[-1] and not point and (out[-1][0] == kind or (out[-1][0] == "point" and line.startswith("  "))):
            out[-1][1].append(line)
        else:
            out.append((kind, [line]))
    return [block for block in out if block]


def text_html(lines, link):
    html = []
    for kind, block in paragraphs(lines):
        if kind == "code":
            html.append("<pre>" + link(escape("\n".join(line[4:] for line in block), quote=False)) + "</pre>")
            continue
        text = escape(re.sub(r"  +", " ", " ".join(line.strip() for line in block)), quote=False)
        if kind == "point":
            html.append("<ul><li>" + link(text.removeprefix("- ")) + "</li></ul>")
            continue
        parts = LABELS.split(text)
        html += ["<p>" + link(parts[0]) + "</p>"] if parts[0].strip() else []
        html += [f"<p><b>{label}</b>{link(rest)}</p>" for label, rest in zip(parts[1::2], parts[2::2])]
    return "\n".join(html).replace("</li></ul>\n<ul><li>", "</li>\n<li>")


def entry_html(entry, link, seen):
    if entry.title:
        slug = re.sub(r"[^a-z0-9]+", "-", entry.title.lower()).strip("-")
        return f'<h2 id="{slug}">{escape(entry.title)}</h2>\n' + text_html(entry.text, link)
    names = [name for name in entry.names() if name not in seen]
    seen.update(names)
    anchors = "".join(f'<a id="{name}"></a>' for name in names if not any(name == row[1] for row in entry.rows))
    html = [f'<div class="entry">{anchors}']
    if entry.code:
        html.append("<pre class=\"code\">" + escape("\n".join(entry.code).replace("DM_API DM_CHECKED ", "").replace("DM_API ", "")) + "</pre>")
    html.append(text_html(entry.text, link))
    if entry.rows:
        html.append("<table><tr><th>call</th><th></th></tr>")
        html += [f'<tr id="{name}"><td><code>{name}</code></td><td>{link(escape(text))}</td></tr>' for _, name, text in entry.rows]
        html.append("</table>")
    html.append("</div>")
    return "\n".join(html)
