"""Charts as SVG, for light and dark screens; `svg` is one of loss against time."""
import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 60, 150, 20, 45
COLOURS = ["#4f7fe0", "#e0a100", "#f2644b", "#3ca951", "#b07552", "#a463f2", "#45b09b", "#ee77a8", "#8a8f98", "#8f9c00", "#5fa3d9", "#c76a1a"]
STYLE = """<style>
.paper{fill:#fff}.ink{fill:#24292f}.soft{fill:#57606a}.grid{stroke:#d8dee4}.line{stroke:#8c959f}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.ink{fill:#e6edf3}.soft{fill:#9198a1}.grid{stroke:#2d333b}.line{stroke:#6e7681}}
</style>"""


class Axis:
    """Values from `low` to `high`, at places from `start` to `end`."""

    def __init__(self, low, high, start, end, is_log=False):
        self.low, self.high, self.start, self.end, self.is_log = low, high, start, end, is_log

    def place(self, value):
        low, high, value = (math.log10(x) if self.is_log else x for x in (self.low, self.high, value))
        return self.start + (value - low) / ((high - low) or 1.0) * (self.end - self.start)

    def ticks(self):
        if self.is_log:
            powers = [10.0 ** i for i in range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)]
            return powers if len(powers) > 2 else sorted(m * p for p in [10.0 ** (round(math.log10(self.low)) - 1), *powers] for m in (1, 2, 5)
                                                         if self.low <= m * p <= self.high)
        span = self.high - self.low
        step = 10.0 ** math.floor(math.log10(span)) / 10 if span > 0 else 1.0
        step = next(step * m for m in (1, 2, 5, 10, 20) if span / (step * m) <= 8)
        first = math.ceil(self.low / step - 1e-9)
        return [round((first + i) * step, 12) for i in range(12) if (first + i) * step <= self.high + 1e-9]


class Drawing:
    def __init__(self, width, height):
        self.width, self.height = width, height
        self.parts = []

    def add(self, part):
        self.parts.append(part)

    def text(self, x, y, text, anchor="start", kind="ink", size=None):
        font = f' font-size="{size}"' if size else ""
        self.add(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{font}>{html.escape(text)}</text>')

    def polyline(self, points, colour, is_dashed=False):
        dashes = ' stroke-dasharray="5 4"' if is_dashed else ""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.add(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')

    def axes(self, x, y, x_title, y_title):
        """Lines and numbers of both axes."""
        for tick in x.ticks():
            at = x.place(tick)
            self.add(f'<path class="grid" d="M{at:.1f} {y.end:.1f}V{y.start:.1f}"/>')
            self.text(at, y.start + 16, f"{tick:g}", "middle", "soft")
        for tick in y.ticks():
            at = y.place(tick)
            self.add(f'<path class="grid" d="M{x.start:.1f} {at:.1f}H{x.end:.1f}"/>')
            self.text(x.start - 6, at + 4, f"{tick:g}", "end", "soft")
        self.text((x.start + x.end) / 2, y.start + 36, x_title, "middle")
        self.text(x.start, y.end - 8, y_title)

    def svg(self):
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" font-family="sans-serif" font-size="12">'
        paper = f'<rect class="paper" width="{self.width}" height="{self.height}"/>'
        return "\n".join([head, STYLE, paper, *self.parts]) + "\n</svg>\n"


def svg(runs, unit):
    """Of the first run of each compressor."""
    firsts = {}
    for run in runs:
        firsts.setdefault(run["compressor"], run["curve"])
    points = [(time, score) for curve in firsts.values() for _, time, score in curve]
    scores = [score for _, score in points]
    x = Axis(0, max(time for time, _ in points) or 1.0, LEFT, WIDTH - RIGHT)
    y = Axis(min(scores), max(scores), HEIGHT - BOTTOM, TOP)
    drawing = Drawing(WIDTH, HEIGHT)
    drawing.axes(x, y, "seconds of training", unit)
    for i, (name, curve) in enumerate(firsts.items()):
        colour = COLOURS[i % len(COLOURS)]
        drawing.polyline([(x.place(time), y.place(score)) for _, time, score in curve], colour)
        drawing.add(f'<rect x="{WIDTH - RIGHT + 12}" y="{TOP + 20 * i}" width="12" height="12" fill="{colour}"/>')
        drawing.text(WIDTH - RIGHT + 30, TOP + 20 * i + 11, name)
    return drawing.svg()
