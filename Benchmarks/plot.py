# SPDX-License-Identifier: Apache-2.0
"""A small plot as SVG: lines over logarithmic axes, readable on a light and on a dark page."""

import math
from html import escape

WIDTH, HEIGHT = 360, 240
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 34, 44


def decades(values):
    """The powers of ten around the values."""
    low = math.floor(math.log10(min(values)) + 1e-9)
    high = math.ceil(math.log10(max(values)) - 1e-9)
    return low, max(high, low + 1)


def panel(x, title, across, up, points):
    """One plot at x: points of (number, value), both above zero."""
    numbers, values = [point[0] for point in points], [point[1] for point in points]
    (x_low, x_high), (y_low, y_high) = decades(numbers), decades(values)

    def place(number, value):
        return (x + LEFT + (math.log10(number) - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT),
                HEIGHT - BOTTOM - (math.log10(value) - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM))

    parts = [f'<text x="{x + WIDTH / 2}" y="18" text-anchor="middle" class="title">{escape(title)}</text>']
    for power in range(x_low, x_high + 1):
        at = place(10**power, 10**y_low)
        parts.append(f'<line x1="{at[0]:.1f}" y1="{TOP}" x2="{at[0]:.1f}" y2="{at[1]:.1f}" class="grid"/>')
        parts.append(f'<text x="{at[0]:.1f}" y="{at[1] + 14:.1f}" text-anchor="middle">{10**power:,}</text>')
    for power in range(y_low, y_high + 1):
        at = place(10**x_low, 10.0**power)
        parts.append(f'<line x1="{at[0]:.1f}" y1="{at[1]:.1f}" x2="{x + WIDTH - RIGHT}" y2="{at[1]:.1f}" class="grid"/>')
        parts.append(f'<text x="{at[0] - 5:.1f}" y="{at[1] + 4:.1f}" text-anchor="end">{10.0**power:,g}</text>')
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in (place(*point) for point in points))
    parts.append(f'<polyline points="{line}" class="line"/>')
    for number, value in points:
        a, b = place(number, value)
        parts.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3"><title>{number:,}: {value:,.4g}</title></circle>')
        parts.append(f'<text x="{a:.1f}" y="{b - 8:.1f}" text-anchor="middle">{value:,.3g}</text>')
    middle = x + (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">{escape(across)}</text>')
    parts.append(
        f'<text transform="translate({x + 14},{(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{escape(up)}'
        "</text>")
    return "\n".join(parts)


def write(path, panels):
    """Panels of (title, label across, label up, points) side by side."""
    body = "\n".join(panel(number * WIDTH, *each) for number, each in enumerate(panels))
    width = WIDTH * len(panels)
    style = """text { font: 11px sans-serif; fill: #6a737d } .title { font-size: 13px; font-weight: bold }
.grid { stroke: #6a737d; stroke-opacity: 0.25 } .line { fill: none; stroke: #2f81f7; stroke-width: 2 }
circle { fill: #2f81f7 }"""
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}" viewBox="0 0 {width} {HEIGHT}">\n'
            f"<style>{style}</style>\n{body}\n</svg>\n")
