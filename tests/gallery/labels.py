"""Places for the names of points, none over another name or point."""
import math

CHARACTER, LINE = 6.6, 13.0  # of text of size 11: widths are of its wider letters
RINGS = (8, 14, 22, 32, 44, 58, 74, 92, 112, 134, 160, 190, 225, 265, 310)
ORDERS = 12
ANGLES = [2 * math.pi * i / 24 for i in range(24)]


class Box:
    def __init__(self, left, top, right, bottom):
        self.left, self.top, self.right, self.bottom = left, top, right, bottom

    def meets(self, other):
        return self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom

    def is_within(self, other):
        return self.left >= other.left and self.right <= other.right and self.top >= other.top and self.bottom <= other.bottom

    def is_crossed(self, a, b):
        """By the line from a to b: what lies between two sides at a time is a part of it."""
        first, last = 0.0, 1.0
        for start, end, low, high in ((a[0], b[0], self.left, self.right), (a[1], b[1], self.top, self.bottom)):
            if start == end:
                if not low < start < high:
                    return False
                continue
            enter, leave = sorted(((low - start) / (end - start), (high - start) / (end - start)))
            first, last = max(first, enter), min(last, leave)
        return first < last

    def nearest(self, x, y):
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


def box_at(x, y, radius, angle, text):
    """A text whose nearest edge is so far from the point."""
    width, away = CHARACTER * len(text), (radius * math.cos(angle), radius * math.sin(angle))
    centre = x + away[0] + 0.5 * width * max(-1.0, min(1.0, 1.6 * math.cos(angle)))
    middle = y + away[1] + 0.5 * LINE * math.sin(angle)
    return Box(centre - width / 2, middle - LINE / 2, centre + width / 2, middle + LINE / 2)


def crowd(point, points):
    return sum(math.dist(point[:2], other[:2]) < 60 for other in points)


def is_plain(box, point, points):
    """Whether a reader sees without a line which point the name is of."""
    away = math.dist(point[:2], box.nearest(*point[:2]))
    return away < 12 and all(other == point or math.dist(other[:2], box.nearest(*other[:2])) > away + 4 for other in points)


class Placing:
    """Names that were given places, and how good these are."""

    def __init__(self, points, field, obstacles):
        self.points, self.field, self.obstacles = points, field, obstacles
        self.dots = [Box(x - 6, y - 5, x + 6, y + 5) for x, y, _ in points]
        self.placed, self.leads, self.badness = {}, [], {}

    def crossings(self, box, x, y):
        """0: the line to the name is its own; 1: it passes other points; 2: it crosses names or lines of others."""
        lead = ((x, y), box.nearest(x, y))
        if any(box.is_crossed(*other) for other in self.leads) or any(other.is_crossed(*lead) for other in self.placed.values()):
            return 2
        return int(any(dot.is_crossed(*lead) for dot in self.dots if math.dist(dot.nearest(x, y), (x, y)) > 4))

    def place(self, i):
        x, y, text = self.points[i]
        best, best_crossings = None, 3
        for radius in RINGS:
            for angle in ANGLES:
                box = box_at(x, y, radius, angle, text)
                if not box.is_within(self.field) or any(box.meets(other) for other in (*self.placed.values(), *self.dots, *self.obstacles)):
                    continue
                crossings = self.crossings(box, x, y)
                if crossings < best_crossings:
                    best, best_crossings = box, crossings
                if crossings == 0:
                    break
            if best_crossings == 0:
                break
        if best is not None:
            self.placed[i] = best
            self.leads.append(((x, y), best.nearest(x, y)))
            away = math.dist((x, y), best.nearest(x, y)) + (0 if is_plain(best, self.points[i], self.points) else 30)
            self.badness[i] = away + 200 * best_crossings


def place_labels(points, field, obstacles):
    """points: [(x, y, text)]. A Box for each, in their order, within `field` and off `obstacles`; None where there is no room. Of several
    orders that which gives the best places; each begins with what the one before placed worst."""
    order = sorted(range(len(points)), key=lambda i: (-crowd(points[i], points), points[i]))
    best, best_badness = None, math.inf
    for _ in range(ORDERS):
        placing = Placing(points, field, obstacles)
        for i in order:
            placing.place(i)
        badness = [placing.badness.get(i, 10000) for i in range(len(points))]
        if sum(badness) < best_badness:
            best, best_badness = placing, sum(badness)
        order.sort(key=lambda i: -badness[i] if badness[i] > 100 else 0)  # the others stay in their order
    return [best.placed.get(i) for i in range(len(points))]
