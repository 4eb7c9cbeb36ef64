# SPDX-License-Identifier: Apache-2.0
"""table.py - rows of a comparison (verdict.py) as text or as Markdown."""

HEAD = ["work", "tenrec", "peer", "ratio", "min..max", "reach", ""]


def number_text(value, figure):
    if figure == "calls_per_s":
        return f"{value / 1e6:.2f} M/s" if value >= 1e6 else f"{value / 1e3:.1f} k/s"
    if figure == "gb_per_s":
        return f"{value:.1f} GB/s"
    if figure == "rss_kib":
        return f"{value / 1024:.1f} MiB"
    if figure == "init_s":
        return f"{value * 1e3:.1f} ms"
    if value >= 1000:
        return f"{value / 1e3:.2f} ms"
    return f"{value:.2f} us" if value < 10 else f"{value:.1f} us"


def limit_line(row):
    sign = "=" if row["exact"] else "<="
    found = ", ".join(f"{key} {'?' if value is None else format(value, 'g')}"
                      for key, value in row["found"].items())
    wanted = ", ".join(f"{key} {sign} {limit:g}" for key, limit in row["limits"].items())
    return [row["work"], found, "", "", "", wanted, row["verdict"]]


def spread_text(row):
    """The interval of a row that is judged by it; of other rows the smallest and largest ratio."""
    low, high = row["interval"] if row["verdict"] in ("slower", "as fast") else (min(row["ratios"]), max(row["ratios"]))
    return f"{low:.2f}..{high:.2f}"


def pair_line(row):
    name = row["work"] + (" (CPU of a call)" if row["figure"] == "cpu_us_per_call" else "")
    if "shared memory" in name and row["transports"] == ["uv"]:
        name += ", over uv"
    reach = "" if row["reach"] is None else f"{'>=' if row['at_least'] else '<='} {row['reach']:g}x"
    if not row["ratios"]:
        return [name, "", row["peer"], "", "", reach, "not measured"]
    return [name, number_text(row["tenrec_median"], row["figure"]),
            f"{row['peer']} {number_text(row['peer_median'], row['figure'])}", f"{row['ratio']:.2f}x",
            spread_text(row), reach, row["verdict"]]


def lines_of(rows):
    return [limit_line(row) if "limits" in row else pair_line(row) for row in rows]


def failures_of(rows):
    return dict.fromkeys(f"{row['work']}: {why}" for row in rows for why in row["failures"])


def as_text(rows):
    lines = [HEAD] + lines_of(rows)
    # The text of a limit spans the columns that it leaves empty.
    pairs = [line for line in lines if line[2]]
    widths = [max(len(line[i]) for line in (lines if i in (0, 5, 6) else pairs)) for i in range(len(HEAD))]
    out = []
    for line in lines:
        if line[2]:
            cells = [cell.ljust(width) for cell, width in zip(line, widths)]
        else:
            cells = [line[0].ljust(widths[0]), line[1].ljust(sum(widths[1:5]) + 6),
                     line[5].ljust(widths[5]), line[6]]
        out.append("  ".join(cells).rstrip())
    return "\n".join(out + [f"  {text}" for text in failures_of(rows)])


def judged_markdown(rows):
    """One row for each work with a limit."""
    out = ["| work | Tenrec | judged by | ratio | held to | |", "|---|---|---|---|---|---|"]
    for row, line in zip(rows, lines_of(rows)):
        if "limits" in row or row["reach"] is not None:
            ratio = f"{line[3]} ({line[4]})" if line[3] else ""
            out.append("| " + " | ".join([line[0], line[1], line[2], ratio, line[5], line[6]]) + " |")
    return out


def peer_text(row):
    if not row["ratios"]:
        return f"{row['peer']} not measured"
    layer = f"; {row['layer_ns']:.0f} ns per layer and message" if "layer_ns" in row else ""
    return f"{row['peer']} {number_text(row['peer_median'], row['figure'])} ({row['ratio']:.2f}x{layer})"


def peers_markdown(rows):
    """All peers of a work in one row, judged or not, in the order of the table."""
    works = {}
    for row in rows:
        if "limits" not in row:
            works.setdefault(pair_line(row)[0], []).append(row)
    out = ["| work | Tenrec | peers (Tenrec's figure over theirs) |", "|---|---|---|"]
    for name, same in works.items():
        medians = [row["tenrec_median"] for row in same if row["ratios"]]
        ours = number_text(medians[0], same[0]["figure"]) if medians else ""
        out.append(f"| {name} | {ours} | {', '.join(map(peer_text, same))} |")
    return out


def as_markdown(rows):
    return "\n".join(judged_markdown(rows) + [""] + peers_markdown(rows))
