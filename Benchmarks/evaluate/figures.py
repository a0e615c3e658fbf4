# SPDX-License-Identifier: Apache-2.0
"""Curves as SVG, with nothing but text."""

import math

WIDTH, HEIGHT, LEFT, BOTTOM = 640, 400, 70, 50
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#666666"]


def curves(path, title, x_label, y_label, series, floor=None):
    """Draws (name, points, is_line) on two logarithmic axes; a count of 0 is drawn on the `floor`."""
    points = [point for _, values, _ in series for point in values]
    floor = floor or min(y for _, y in points if y > 0) / 3
    x_low, x_high = bounds([max(x, 0.1) for x, _ in points])
    y_low, y_high = bounds([max(y, floor) for _, y in points])

    def place(x, y):
        x = (math.log10(max(x, 0.1)) - x_low) / (x_high - x_low)
        y = (math.log10(max(y, floor)) - y_low) / (y_high - y_low)
        return LEFT + x * (WIDTH - LEFT - 20), HEIGHT - BOTTOM - y * (HEIGHT - BOTTOM - 40)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="20" text-anchor="middle" font-size="14">{title}</text>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">{x_label}</text>',
        f'<text transform="translate(16,{HEIGHT / 2}) rotate(-90)" text-anchor="middle">{y_label}</text>',
    ]
    for power in range(math.floor(x_low), math.ceil(x_high) + 1):
        if x_low <= power <= x_high:
            x, _ = place(10**power, floor)
            parts.append(f'<line x1="{x:.1f}" y1="40" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}" stroke="#ddd"/>')
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{10**power:g}</text>')
    for power in range(math.floor(y_low), math.ceil(y_high) + 1):
        if y_low <= power <= y_high:
            _, y = place(1, 10**power)
            parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - 20}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10**power:g}</text>')
    for number, (name, values, is_line) in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        spots = [place(x, y) for x, y in values if not math.isnan(x)]
        if is_line:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in spots if not is_line]
        parts.append(f'<text x="{WIDTH - 24}" y="{56 + 16 * number}" text-anchor="end" fill="{colour}">{name}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts + ["</svg>"]) + "\n")


def bounds(values):
    return math.floor(math.log10(min(values)) * 2) / 2, math.ceil(math.log10(max(values)) * 2) / 2 + 1e-9
