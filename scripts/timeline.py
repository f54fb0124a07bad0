#!/usr/bin/env python3
"""A picture (SVG) of a timeline that dmath has written with the option trace.

    DMATH_TRACE=trace.json ./program
    scripts/timeline.py trace.json -o picture.svg                 # all of it
    scripts/timeline.py trace.json -o picture.svg --from 1200 --us 400

Times are microseconds from the first event. Rows: the programs, the groups and the lanes of each worker; arrows lead from a push to
the arrival of its payload. docs/pictures/pipelines.svg was made by

    dmath bench groups -w 4 --size 192 --repeats 2 --warmup 1 -O link_gbps=0.5 -O trace=trace.json
"""
import argparse
import json
from xml.sax.saxutils import escape

WIDTH, LEFT, ROW, GAP, TOP = 1100, 170, 18, 10, 34
COLOURS = ["#4e79a7", "#59a14f", "#e15759", "#f28e2b", "#76b7b2", "#b07aa1", "#9c755f", "#edc948"]
FIXED = {"push": "#8cb9e0", "expect": "#cfe3f5"}


def read(path):
    with open(path) as file:
        events = json.load(file)
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    arrows = [(starts[e["id"]], e) for e in events if e["ph"] == "f" and e["id"] in starts]
    return names, spans, arrows


def step_of(name):
    return name.rsplit(" ", 1)[-1]


def colour(name, known):
    step = step_of(name)
    if step in FIXED:
        return FIXED[step]
    key = " ".join(name.split(" ")[:2]) if name.startswith("program ") and " run " in name else step
    return known.setdefault(key, COLOURS[len(known) % len(COLOURS)])


def rank(name):
    """Programs and groups come before lanes, the master last."""
    row = name.split(" ", 2)[2] if name.startswith("worker") else name
    order = ["programs", "group", "compute", "send", "receive"]
    return next((i for i, word in enumerate(order) if row.startswith(word)), len(order))


class Picture:
    def __init__(self, begin, length):
        self.begin, self.length, self.lines, self.known = begin, length, [], {}

    def x(self, us):
        return LEFT + (min(max(us - self.begin, 0), self.length)) * (WIDTH - LEFT - 10) / self.length

    def span(self, e, y):
        x, width = self.x(e["ts"]), max(self.x(e["ts"] + e["dur"]) - self.x(e["ts"]), 0.4)
        text = escape(f"{e['name']}, {e['dur']:.1f} µs")
        self.lines.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 4}" fill="{colour(e["name"], self.known)}">'
                          f"<title>{text}</title></rect>")
        if width > 6.2 * len(e["name"]):
            ink = "#333" if step_of(e["name"]) in FIXED else "#fff"
            self.lines.append(f'<text x="{x + 3:.1f}" y="{y + ROW - 8}" fill="{ink}">{escape(e["name"])}</text>')

    def axis(self, bottom):
        step = 10 ** max(len(str(int(self.length))) - 1, 0)
        step = step / 2 if self.length / step < 4 else step
        at = 0.0
        while at <= self.length:
            x = self.x(self.begin + at)
            self.lines.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}" stroke="#ddd"/>'
                              f'<text x="{x:.1f}" y="{TOP - 14}" text-anchor="middle">{at:g} µs</text>')
            at += step


def draw(names, spans, arrows, begin, length):
    picture = Picture(begin, length)
    seen = [e for e in spans if e["ts"] < begin + length and e["ts"] + e["dur"] > begin]
    tracks = sorted({e["tid"] for e in seen}, key=lambda t: (names[t].startswith("master"), t // 64, rank(names[t]), t))
    rows, y, before = {}, TOP, None
    for track in tracks:
        y += GAP if before is not None and track // 64 != before else 0
        before = track // 64
        rows[track] = y
        y += ROW
    picture.axis(y)
    for track, at in rows.items():
        picture.lines.append(f'<text x="{LEFT - 8}" y="{at + ROW - 8}" text-anchor="end">{escape(names[track])}</text>')
    for e in seen:
        picture.span(e, rows[e["tid"]])
    for start, end in arrows:
        if start["tid"] in rows and end["tid"] in rows and begin <= start["ts"] and end["ts"] <= begin + length:
            points = [picture.x(start["ts"]), rows[start["tid"]] + ROW / 2 - 2, picture.x(end["ts"]), rows[end["tid"]] + ROW / 2 - 2]
            picture.lines.append('<line x1="{:.1f}" y1="{}" x2="{:.1f}" y2="{}" stroke="#333" stroke-width="0.7" '
                                 'marker-end="url(#tip)"/>'.format(*points))
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 8}" font-family="sans-serif" font-size="11">'
            '<defs><marker id="tip" markerWidth="6" markerHeight="6" refX="5" refY="2.5" orient="auto">'
            '<path d="M0,0 L5,2.5 L0,5 z" fill="#333"/></marker></defs><rect width="100%" height="100%" fill="#fff"/>')
    return "\n".join([head, *picture.lines, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("trace")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--from", dest="begin", type=float, default=0, metavar="US")
    parser.add_argument("--us", type=float, default=0, help="length; 0: to the end")
    options = parser.parse_args()
    names, spans, arrows = read(options.trace)
    if not spans:
        parser.error(f"{options.trace} has no events")
    first = min(e["ts"] for e in spans) + options.begin
    length = options.us or max(e["ts"] + e["dur"] for e in spans) - first
    with open(options.output, "w") as file:
        file.write(draw(names, spans, arrows, first, max(length, 0.001)))


if __name__ == "__main__":
    main()
