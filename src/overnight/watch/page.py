"""A run as one HTML page: the picture, the summary, the command that goes on.

Self-contained: no script, nothing loaded from elsewhere, and a policy in the head that
would refuse both. Everything that tasks wrote is made visible and escaped.
"""

from __future__ import annotations

from html import escape

from overnight.core.estimate import duration_text
from overnight.core.summary import headline
from overnight.core.summary.text import measures, where_text
from overnight.core.summary.words import memory_text, visible
from overnight.watch.picture_file import MADE_BY
from overnight.watch.svg import svg_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from overnight.core.summary import Summary
    from overnight.core.summary.causes import Cause, Named
    from overnight.watch.scene import Scene

_STYLE = """
:root{color-scheme:light dark;--ground:#fff;--ink:#18222d;--quiet:#56636f;--line:#dde3e8;
--bad:#b83503}
@media(prefers-color-scheme:dark){:root{--ground:#14191f;--ink:#eef2f6;--quiet:#9aa7b3;
--line:#2c363f;--bad:#ff8a5f}}
body{margin:2rem auto;max-width:75rem;padding:0 1rem;background:var(--ground);
color:var(--ink);font:15px/1.45 system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
svg{width:100%;height:auto}
figure{margin:0 0 1rem}
h2{font-size:1.05rem;margin:1.8rem 0 .4rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:0}
dt{color:var(--quiet)}dd{margin:0}
table{border-collapse:collapse;width:100%}
td{padding:.2rem 1rem .2rem 0;border-top:1px solid var(--line);vertical-align:top}
td:first-child{text-align:right;white-space:nowrap;width:1%}td:nth-child(2){white-space:nowrap;
width:1%}
code,pre{font:13px/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;
overflow-wrap:anywhere;white-space:pre-wrap}
pre{margin:.3rem 0;padding:.6rem .8rem;border:1px solid var(--line);border-radius:4px}
.cause{margin:.8rem 0}.cause strong{color:var(--bad)}.cause ul{margin:.2rem 0;padding-left:1.2rem}
.quiet{color:var(--quiet)}
""".strip()

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page_text(
    scene: Scene, summary: Summary, rerun: str, notes: Sequence[str],
    clock: Callable[[float], str],
) -> str:
    """The page.

    Args:
        scene: The picture.
        summary: What is told beside it.
        rerun: Command that runs the failed tasks again; empty where it is not the time for it.
        notes: What could not be read of the records.
        clock: Says a Unix time as the reader's clock has it.
    """
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        f'<head><meta charset="utf-8"><meta name="generator" content="{MADE_BY}">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width">',
        f"<title>{_text(scene.title)}: {_text(headline(summary))}</title>",
        f"<style>{_STYLE}</style></head>",
        "<body>",
        f"<figure>{svg_text(scene)}</figure>",
        *_measures(summary, clock),
        *_causes(summary.causes.by_count()),
        *_rerun(summary, rerun),
        *_notables("The slowest", summary.slowest.ranked, duration_text),
        *_notables("The most memory", summary.large, memory_text),
        *(f'<p class="quiet">{_text(note)}</p>' for note in notes),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _measures(summary: Summary, clock: Callable[[float], str]) -> Iterable[str]:
    yield "<dl>"
    for name, value in measures(summary, clock):
        yield f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>"
    yield "</dl>"


def _causes(causes: Sequence[Cause]) -> Iterable[str]:
    if causes:
        yield "<h2>What went wrong, by cause</h2>"
    for cause in causes:
        yield (
            f'<div class="cause"><strong>{cause.count:,} × {_text(cause.ending)}</strong>'
            f'<span class="quiet">{_text(where_text(cause))}</span>'
        )
        if cause.words:
            yield f"<pre>{_text(cause.words)}</pre>"
        yield "<ul>"
        for named in cause.examples:
            yield f"<li>{_text(named.place)}: <code>{_text(named.command)}</code></li>"
        if cause.count > len(cause.examples):
            yield f'<li class="quiet">and {cause.count - len(cause.examples):,} more</li>'
        yield "</ul></div>"


def _rerun(summary: Summary, rerun: str) -> Iterable[str]:
    if rerun and (summary.failed or summary.cut_off):
        yield "<h2>Run the failed ones again</h2>"
        yield f'<pre class="rerun">{_text(rerun)}</pre>'


def _notables(
    title: str, ranked: Sequence[tuple[float, Named]], words: Callable[[float], str]
) -> Iterable[str]:
    if not ranked:
        return
    yield f"<h2>{title}</h2><table>"
    for measure, named in ranked:
        yield (
            f"<tr><td>{_text(words(measure))}</td><td>{_text(named.place)}</td>"
            f"<td><code>{_text(named.command)}</code></td></tr>"
        )
    yield "</table>"


def _text(text: str) -> str:
    return escape(visible(text))
