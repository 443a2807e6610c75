"""The gallery's pictures."""
import sys
from pathlib import Path

from labels import CHARACTER, Box, is_plain, place_labels

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "pytorch"))
from chart import COLOURS, Axis, Drawing  # noqa: E402

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 980, 720, 60, 24, 58, 56
FEEDBACK_HEIGHT = 400
HIGHEST_ERROR = 1.2
STRIP = 62  # above the axis: errors beyond it


def colours_of(families):
    return {family: COLOURS[i % len(COLOURS)] for i, family in enumerate(sorted(families))}


def joined(points):
    """Points at one place are one, with all names: [(x, y, names, family)]."""
    places = {}
    for x, y, name, family in points:
        places.setdefault((round(x / 3), round(y / 3)), []).append((x, y, name, family))
    return [(group[0][0], group[0][1], ", ".join(name for _, _, name, _ in group), group[0][3]) for group in places.values()]


def text_box(x, baseline, text, anchor="start"):
    width = 1.1 * CHARACTER * len(text)
    left = x if anchor == "start" else x - width
    return Box(left, baseline - 12, left + width, baseline + 4)


def draw_points(drawing, points, field, obstacles):
    points = joined(points)
    colours = colours_of({family for *_, family in points})
    boxes = place_labels([point[:3] for point in points], field, obstacles)
    for (x, y, name, family), box in zip(points, boxes):
        if box is None:
            sys.exit(f"no room for the name {name} in a picture: make it larger")
        end = box.nearest(x, y)
        if not is_plain(box, (x, y, name), [point[:3] for point in points]):
            drawing.add(f'<path class="line" stroke-width="0.8" d="M{x:.1f} {y:.1f}L{end[0]:.1f} {end[1]:.1f}"/>')
        drawing.text((box.left + box.right) / 2, box.bottom - 3, name, "middle", size=11)
    for x, y, _, family in points:
        drawing.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colours[family]}"/>')
    for i, (family, colour) in enumerate(colours.items()):
        at = LEFT + 110 * i
        drawing.add(f'<circle cx="{at + 5}" cy="14" r="4" fill="{colour}"/>')
        drawing.text(at + 15, 18, family)


def ratio_axis(ratios):
    return Axis(0.8, max(2000, 2 * max(ratios)), LEFT, WIDTH - RIGHT, is_log=True)


def ratio_and_error(rows):
    """rows: [(name, family, ratio, error)]"""
    drawing = Drawing(WIDTH, HEIGHT)
    x, y = ratio_axis([row[2] for row in rows]), Axis(-0.14, HIGHEST_ERROR, HEIGHT - BOTTOM, TOP + STRIP)
    title, beyond, line = "relative error of one step, |x - C(x)| / |x|", "larger errors", TOP + STRIP - 22
    drawing.axes(x, y, "ratio: bytes of the gradient / bytes of the payload", title)
    drawing.add(f'<path class="line" d="M{LEFT} {line}H{WIDTH - RIGHT}" stroke-dasharray="2 4"/>')
    drawing.text(WIDTH - RIGHT, line - 5, beyond, "end", "soft")
    obstacles = [text_box(LEFT, y.end - 8, title), text_box(WIDTH - RIGHT, line - 5, beyond, "end"), Box(LEFT, line - 1, WIDTH - RIGHT, line + 1)]
    points = []
    for name, family, ratio, error in rows:
        is_above = error > HIGHEST_ERROR
        at = TOP + STRIP - 36 if is_above else y.place(error)
        points.append((x.place(ratio), at, f"{name} {error:.0f}" if is_above and error >= 100 else f"{name} {error:.2f}" if is_above else name, family))
    draw_points(drawing, points, Box(LEFT - 40, 24, WIDTH - 6, HEIGHT - BOTTOM + 2), obstacles)
    return drawing.svg()


def time_and_ratio(rows, reading_ms, elements):
    """rows: [(name, family, ratio, milliseconds)]"""
    times = [row[3] for row in rows] + [reading_ms]
    drawing = Drawing(WIDTH, HEIGHT)
    x, y = ratio_axis([row[2] for row in rows]), Axis(0.8 * min(times), 1.3 * max(times), HEIGHT - BOTTOM, TOP, is_log=True)
    title, reading = f"milliseconds to encode {elements / 1e6:.1f} million elements", "plain reading of the gradient"
    drawing.axes(x, y, "ratio: bytes of the gradient / bytes of the payload", title)
    at = y.place(reading_ms)
    drawing.add(f'<path class="line" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" stroke-dasharray="6 4"/>')
    drawing.text(WIDTH - RIGHT, at + 14, reading, "end", "soft")
    obstacles = [text_box(LEFT, y.end - 8, title), text_box(WIDTH - RIGHT, at + 14, reading, "end"), Box(LEFT, at - 1, WIDTH - RIGHT, at + 1)]
    draw_points(drawing, [(x.place(ratio), y.place(ms), name, family) for name, family, ratio, ms in rows],
                Box(LEFT - 40, 24, WIDTH - 6, HEIGHT - BOTTOM + 2), obstacles)
    return drawing.svg()


def panel(drawing, curves, key, left, right, title):
    """curves: {name: {"alone": {key: […]}, "fed": {key: […]}}}"""
    values = [value for curve in curves.values() for side in curve.values() for value in side[key]]
    steps = len(next(iter(curves.values()))["alone"][key])
    x, y = Axis(1, steps, left, right), Axis(0, 1.05 * max(values), FEEDBACK_HEIGHT - BOTTOM, TOP)
    drawing.axes(x, y, "step", title)
    for i, curve in enumerate(curves.values()):
        for side, is_dashed in (("alone", True), ("fed", False)):
            drawing.polyline([(x.place(step + 1), y.place(value)) for step, value in enumerate(curve[side][key])], COLOURS[i], is_dashed)


def feedback(curves):
    drawing = Drawing(WIDTH, FEEDBACK_HEIGHT)
    panel(drawing, curves, "step", LEFT, WIDTH / 2 - 20, "relative error of one step")
    panel(drawing, curves, "sum", WIDTH / 2 + 50, WIDTH - RIGHT, "relative error of the sum of all steps so far")
    for i, name in enumerate(curves):
        at = LEFT + 130 * i
        drawing.polyline([(at, 14), (at + 22, 14)], COLOURS[i])
        drawing.text(at + 28, 18, name)
    drawing.text(WIDTH - RIGHT, 18, "solid: with error_feedback; dashed: without", "end", "soft")
    return drawing.svg()
