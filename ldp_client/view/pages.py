"""The user's page as HTML. It needs no script, and nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from ldp_client.view.content import ReportLine, ShownQuestion, UserView

__all__ = ["ICON", "STYLE", "page", "plain_page"]

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#1b5aa6"/>'
    '<path d="M4 8h8M8 4v8" stroke="#fff" stroke-width="2"/></svg>'
)

STYLE = """
:root{color-scheme:light dark;--bg:#f6f7f9;--paper:#fff;--ink:#1d2733;--minor:#535f6d;--line:#d9dee4;--accent:#1b5aa6;
--on-accent:#fff;--warn:#a3221b;--warn-bg:#fdeeec;--good:#0b6234;--good-bg:#e4f4ea;--code:#eef1f4}
@media (prefers-color-scheme:dark){:root{--bg:#12161b;--paper:#1a2027;--ink:#e6eaef;--minor:#a5b0bc;--line:#333d48;
--accent:#7fb3ee;--on-accent:#0d1722;--warn:#ff9a90;--warn-bg:#3b1f1d;--good:#6fd29b;--good-bg:#173425;--code:#232b34}}
*{box-sizing:border-box}
html{font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;background:var(--bg);color:var(--ink)}
body{margin:0;overflow-wrap:anywhere}
main{max-width:56rem;margin:0 auto;padding:1rem}
h1{font-size:1.6rem;line-height:1.25}
h2{font-size:1.25rem;margin-top:2rem}
h3{font-size:1.05rem;margin:.2rem 0}
.skip{position:absolute;left:-99rem}
.skip:focus{position:static}
a{color:var(--accent)}
article,.box{background:var(--paper);border:1px solid var(--line);border-radius:10px;padding:.8rem 1rem;margin:.8rem 0}
.problem{background:var(--warn-bg);color:var(--warn);border-radius:10px;padding:.7rem 1rem}
.state{font-weight:650}
.stopped{background:var(--warn-bg);color:var(--warn)}
.running{background:var(--good-bg);color:var(--good)}
.minor,footer{color:var(--minor);font-size:.9rem}
code{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.92em;background:var(--code);padding:0 .25em}
button{font:inherit;font-weight:600;padding:.5rem 1rem;border-radius:8px;border:1px solid var(--accent);
background:var(--accent);color:var(--on-accent);cursor:pointer}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
.reports{padding-left:1.2rem}
.reports li{margin:.5rem 0}
table{border-collapse:collapse;margin:.3rem 0}
caption{text-align:left;color:var(--minor);font-size:.9rem}
th,td{text-align:left;padding:.15rem .8rem .15rem 0;border-top:1px solid var(--line);font-weight:400}
@media print{form{display:none}}
"""


def page(view: UserView, csrf: str) -> str:
    """Return the whole page; `csrf` goes into the form of its one button."""
    parts = (
        "<h1>What this device sends</h1>",
        *(f'<p class="problem" role="alert">{_text(line)}</p>' for line in view.problems),
        _stop(view, csrf),
        _section("Spent and left", (*view.spent, *view.statement)),
        _section("Who asks", view.asks),
        "<h2>Questions</h2>",
        *(_question(one) for one in view.questions),
        "" if view.questions else "<p>This device has answered no question yet.</p>",
        _section("Volunteered to a curator", view.volunteered) if view.volunteered else "",
        _section("Waiting, sent, refused", view.waiting),
        _section("What this page cannot show", view.limits),
        f'<footer><p>As of {_text(view.at)}. <a href="view.json">The same as JSON</a>.</p></footer>',
    )
    return _document("What this device sends", "\n".join(parts))


def plain_page(title: str, line: str) -> str:
    """Return a page that says one thing."""
    return _document(title, f"<h1>{_text(title)}</h1><p>{_text(line)}</p>", links=False)


def _document(title: str, body: str, *, links: bool = True) -> str:
    head = '<link rel="stylesheet" href="style.css"><link rel="icon" href="icon.svg">' if links else ""
    skip = '<a class="skip" href="#content">To the contents</a>' if links else ""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1">{head}</head>'
        f'<body>{skip}<main id="content" tabindex="-1">{body}</main></body></html>\n'
    )


def _stop(view: UserView, csrf: str) -> str:
    if view.stopped:
        since = f" since {_text(view.stopped_since)}" if view.stopped_since else ""
        words = f"Stopped{since}. This device makes no report, sends nothing and fetches nothing."
        return _button("stopped", words, "resume", "Resume reports", csrf)
    words = "Reports are on. If you stop them, this device makes no report, sends nothing and fetches nothing any more."
    return _button("running", words, "stop", "Stop all reports", csrf)


def _button(state: str, words: str, action: str, label: str, csrf: str) -> str:
    return (
        f'<section class="box {state}" aria-label="Stop or resume"><p class="state">{words}</p>'
        f'<form method="post" action="{action}"><input type="hidden" name="csrf" value="{_text(csrf)}">'
        f"<button>{label}</button></form></section>"
    )


def _section(title: str, lines: Iterable[str]) -> str:
    return f"<h2>{_text(title)}</h2>" + "".join(f"<p>{_text(line)}</p>" for line in lines)


def _question(one: ShownQuestion) -> str:
    count = "not answered on this device"
    if one.answers:
        count = f"{one.answers:,} report{'s' if one.answers > 1 else ''} made, epsilon {one.spent} spent"
    says = "What a report says at best:" if one.answers else "What would be sent:"
    return "".join(
        (
            f"<article><h3>{_text(one.question)}</h3><p>{_text(count[0].upper() + count[1:])}.</p>",
            *(f"<p>{_text(line)}</p>" for line in one.terms),
            f"<p>{says}</p><ul>",
            *(f"<li>{_text(line)}</li>" for line in one.says),
            "</ul>",
            *_reports(one),
            f'<p class="minor">Question <code>{one.question_id}</code>, ',
            f"collection <code>{one.collection_id}</code>.</p>",
            "</article>",
        )
    )


def _reports(one: ShownQuestion) -> Iterator[str]:
    if not one.reports:
        return
    part = "Reports"
    if len(one.reports) < one.answers:
        part = f"The newest {len(one.reports)} of {one.answers:,} reports"
    yield f"<p>{part}:</p><ol class=reports>"
    yield from (f"<li>{_report(line)}</li>" for line in one.reports)
    yield "</ol>"


def _report(line: ReportLine) -> str:
    said = f"made {_text(line.made)}, epsilon {_text(line.epsilon)}, {_text(line.state)}: <code>{line.bytes}</code>"
    if not line.says:
        return said
    rows = "".join(f'<tr><th scope="row">{_text(name)}</th><td>{_text(chance)}</td></tr>' for name, chance in line.says)
    caption = "How likely just these bytes are, for each answer that a device may have"
    return f"{said}<table><caption>{caption}</caption>{rows}</table>"


def _text(words: str) -> str:
    """Text for HTML. What does not print, or would turn the direction of writing, is shown as its code."""
    return escape("".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in words))
