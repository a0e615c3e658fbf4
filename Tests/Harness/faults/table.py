# SPDX-License-Identifier: Apache-2.0
"""The table of results: rows by the name of a fault, kept from run to run, and put into a page."""

import json
import os

COLUMNS = ("fault", "runs", "transitions", "lost", "duplicates", "order inversions", "state regressions",
           "recovered after s", "memory growth KiB", "what must hold", "did it")


def order(name):
    """F1 to F24, then what has no number."""
    return int(name[1:] or 99), name


def cells(name, row):
    def number(key, form="{:,}"):
        return "" if row.get(key) is None else form.format(row[key])

    wrong = row["problems"]
    verdict = "**FAIL**: " + "; ".join(wrong) if wrong else "skipped" if row.get("skipped") else "pass"
    return [f"{name} {row['title']}", number("runs"), number("transitions"), number("lost"), number("duplicates"),
            number("inversions"), number("regressions"), number("recovery", "{:.1f}"), number("growth", "{:+,}"),
            row["limits"], verdict]


def table(rows):
    lines = [COLUMNS, ["---"] * len(COLUMNS)] + [cells(name, rows[name]) for name in sorted(rows, key=order)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def notes(rows):
    """What else was measured, a line a fault."""
    return "\n".join(f"- {name}: {'; '.join(rows[name]['notes'])}." for name in sorted(rows, key=order) if rows[name]["notes"])


def keep(path, rows):
    """Adds rows to those that are kept there; all of them."""
    known = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            known = json.load(file)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(known | rows, file, indent=1)
    return known | rows


def write(page, rows):
    """Puts the table between the marks of a page."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    begin, end = "<!-- table -->\n", "<!-- end of table -->"
    start, stop = text.index(begin) + len(begin), text.index(end)
    with open(page, "w", encoding="utf-8") as file:
        file.write(f"{text[:start]}{table(rows)}\n\n{notes(rows)}\n{text[stop:]}")
