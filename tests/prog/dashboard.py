#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: dashboard.py PROMETHEUS DASHBOARD SINCE - ask every query of a dashboard for the time
since then, in seconds since 1970; a line for each: "N series, N values: panel, query". A query
without any value, or that Prometheus refuses, makes the exit status 1.
usage: dashboard.py ... PICTURE - and let gnuplot draw it, as a PNG"""
import json
import math
import subprocess
import sys
import time
import urllib.parse
import urllib.request

WINDOW = 10  # seconds, of a rate: ten scrapes
COLORS = {"green": "#37872d", "red": "#c4162a", "orange": "#e0752d", "blue": "#1f60c4"}
FORMATS = {"bytes": "%.0s %cB"}
WIDTH, ROW = 1500, 32  # pixels of the picture, and of a unit of height


def get(server, path, **arguments):
    url = f"{server}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]["result"]
    except urllib.error.HTTPError as error:
        return sys.exit(f"{error}: {error.read().decode()}")


def values(server, expr, since, now):
    """[(labels, [(time, value)])], without what is no number"""
    for name, value in (("$job", ".*"), ("$instance", ".*"), ("$__rate_interval", f"{WINDOW}s"),
                        ("$__range", f"{math.ceil(now - since)}s")):
        expr = expr.replace(name, value)
    if "$" in expr:
        sys.exit(f"an unknown variable in {expr}")
    series = get(server, "query_range", query=expr, start=since, end=now, step=1)
    found = [(s["metric"], [(t, float(v)) for t, v in s["values"] if math.isfinite(float(v))])
             for s in series]
    return [(labels, points) for labels, points in found if points]


def legend(target, labels):
    text = target.get("legendFormat", "")
    for name, value in labels.items():
        text = text.replace("{{%s}}" % name, value)
    return text


def span(value, unit):
    if unit == "s" and value >= 120:
        return f"{value / 60:.0f} min"
    return f"{value:.0f}" + (" s" if unit == "s" else "")


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', "'") + '"'


def place(panel, height):
    """gnuplot's commands for the place of a panel: its origin is at the bottom left"""
    grid = panel["gridPos"]
    return (f"set origin {grid['x'] / 24},{1 - (grid['y'] + grid['h']) / height}\n"
            f"set size {grid['w'] / 24},{grid['h'] / height}\n")


def draw_text(panel, text, color, height, font):
    grid = panel["gridPos"]
    x = (grid["x"] + (grid["w"] / 2 if color else 0.2)) / 24
    y = 1 - (grid["y"] + grid["h"] / 2) / height
    out = ""
    if color:
        left, right = (grid["x"] + 0.1) / 24, (grid["x"] + grid["w"] - 0.1) / 24
        top, bottom = 1 - (grid["y"] + 0.1) / height, 1 - (grid["y"] + grid["h"] - 0.1) / height
        out += (f"set object rectangle from screen {left},{bottom} to screen {right},{top} "
                f'fillcolor rgb "{color}" fillstyle solid noborder behind\n')
    align = "center" if color else "left"
    white = ' textcolor rgb "#ffffff"' if color else ""
    for offset, line in zip((0.9, -0.6) if color else (0,), text):
        size = font if offset <= 0 else 11
        out += (f"set label {quoted(line)} at screen {x},{y + offset / height} {align} "
                f'font ",{size}" noenhanced{white}\n')
    return out


def draw_stat(panel, results, height):
    defaults = panel["fieldConfig"]["defaults"]
    value = results[0][0][1][-1][1]
    color = [s["color"] for s in defaults["thresholds"]["steps"]
             if s["value"] is None or value >= s["value"]][-1]
    return draw_text(panel, (panel["title"], span(value, defaults["unit"])), COLORS[color], height,
                     22)


def draw_series(panel, results, height, since):
    out, plots = place(panel, height), []
    out += f"set title {quoted(panel['title'])} noenhanced\n"
    unit = panel["fieldConfig"]["defaults"]["unit"]
    out += f"set format y {quoted(FORMATS.get(unit, '%g'))}\n"
    if not any(value for found in results for _, points in found for _, value in points):
        out += "set yrange [0:1]\n"  # gnuplot has no range for a line at 0
    for target, found in zip(panel["targets"], results):
        for labels, points in found:
            name = f"$D{panel['id']}_{len(plots)}"
            out += f"{name} << EOD\n"
            last = None
            for moment, value in points:
                if last is not None and moment - last > 1.5:
                    out += "\n"  # a gap
                out += f"{moment - since} {value}\n"
                last = moment
            out += "EOD\n"
            plots.append(f"{name} using 1:2 with lines linewidth 2 "
                         f"title {quoted(legend(target, labels))} noenhanced")
    return out + "plot " + ", ".join(plots) + "\nset yrange [0:*]\n"


def draw(panels, picture, since):
    height = max(p["gridPos"]["y"] + p["gridPos"]["h"] for p, _ in panels)
    labels, plots = "", ""
    for number, (panel, results) in enumerate(panels):
        panel["id"] = number
        if panel["type"] == "row":
            labels += draw_text(panel, (panel["title"],), None, height, 14)
        elif panel["type"] == "stat":
            labels += draw_stat(panel, results, height)
        else:
            plots += draw_series(panel, results, height, since)
    script = (f"set terminal pngcairo size {WIDTH},{height * ROW} font ',9'\n"
              f"set output {quoted(picture)}\nset multiplot\n"
              # an empty plot carries the labels of the whole picture
              f"unset border\nunset tics\nunset key\n{labels}set yrange [0:1]\nplot [0:1] -1\n"
              "unset label\nunset object\nset border\nset tics\nset key below\nset grid\n"
              # a line at the top is none of the frame's
              "set offsets 0,0,graph 0.08,0\nset yrange [0:*]\n"
              f"set xrange [0:{math.ceil(time.time() - since)}]\n"
              f"{plots}unset multiplot\n")
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def main():
    server, path, since = sys.argv[1], sys.argv[2], float(sys.argv[3])
    with open(path, encoding="utf-8") as file:
        dashboard = json.load(file)
    now, bad, panels = time.time(), 0, []
    for panel in dashboard["panels"]:
        results = [values(server, t["expr"], since, now) for t in panel.get("targets", [])]
        for target, found in zip(panel.get("targets", []), results):
            points = sum(len(p) for _, p in found)
            bad += not points
            print(f"{len(found)} series, {points} values: {panel['title']}, {target['expr']}")
        panels.append((panel, results))
    if bad:
        return 1
    if len(sys.argv) > 4:
        draw(panels, sys.argv[4], since)
    return 0


sys.exit(main())
