"""A picture of loss against time, as SVG."""
import html

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 60, 150, 20, 45
COLOURS = ["#4269d0", "#efb118", "#ff725c", "#3ca951", "#9c6b4e", "#a463f2", "#6cc5b0", "#ff8ab7", "#9498a0", "#1a1a1a", "#97bbf5", "#b35900"]


def _ticks(least, most):
    step = 10.0 ** len(str(int(most - least))) / 10 if most - least >= 1 else 0.1
    while (most - least) / step > 8:
        step *= 2
    first = int(least / step) * step
    return [first + i * step for i in range(12) if least <= first + i * step <= most]


def svg(runs, unit):
    """Of the first run of each compressor."""
    firsts = {}
    for run in runs:
        firsts.setdefault(run["compressor"], run["curve"])
    points = [(time, score) for curve in firsts.values() for _, time, score in curve]
    right, low, high = max(time for time, _ in points) or 1.0, min(score for _, score in points), max(score for _, score in points)

    def x(time):
        return LEFT + time / right * (WIDTH - LEFT - RIGHT)

    def y(score):
        return TOP + (high - score) / ((high - low) or 1.0) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for tick in _ticks(0, right):
        parts.append(f'<path d="M{x(tick):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/><text x="{x(tick):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
    for tick in _ticks(low, high):
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/><text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">seconds of training</text>')
    parts.append(f'<text x="{LEFT}" y="{TOP - 6}">{html.escape(unit)}</text>')
    for i, (name, curve) in enumerate(firsts.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(f"{x(time):.1f},{y(score):.1f}" for _, time, score in curve)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<rect x="{WIDTH - RIGHT + 12}" y="{TOP + 20 * i}" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 30}" y="{TOP + 20 * i + 11}">{html.escape(name)}</text>')
    return "\n".join(parts) + "\n</svg>\n"
