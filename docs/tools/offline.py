"""Check that the built site fetches nothing from elsewhere when it is read: `python docs/tools/offline.py site`.

Links that a reader may follow are fine. Scripts, styles, fonts, images and frames must come from the site itself.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

FETCHED = {
    "script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset"), "video": ("src",),
    "audio": ("src",), "embed": ("src",), "object": ("data",), "link": ("href",), "use": ("href", "xlink:href"),
}  # fmt: skip
ELSEWHERE = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"(?:url\(|@import)\s*['\"]?\s*((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)
NOT_FETCHED = {"canonical", "next", "prev", "alternate", "author", "license"}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag == "link" and set(values.get("rel", "").split()) <= NOT_FETCHED:
            return
        for name in FETCHED.get(tag, ()):
            if ELSEWHERE.match(values.get(name, "")):
                self.found.append(values[name])
        self.found += IN_STYLES.findall(values.get("style", ""))
        if "mermaid" in values.get("class", "").split():
            self.found.append("mermaid: the theme would fetch its program")


def fetched(site: Path) -> list[str]:
    """One line for each thing that a page would fetch from elsewhere."""
    lines = []
    for file in sorted(site.rglob("*")):
        if file.suffix == ".html":
            page = _Page()
            page.feed(file.read_text("utf-8"))
            lines += [f"{file}: {what}" for what in page.found + IN_STYLES.findall(file.read_text("utf-8"))]
        elif file.suffix in {".css", ".svg"}:
            lines += [f"{file}: {what}" for what in IN_STYLES.findall(file.read_text("utf-8"))]
    return lines


def main() -> int:
    """Print what was found; the exit code is 1 if anything was, or if there is no site."""
    site = Path(sys.argv[1])
    if not list(site.rglob("*.html")):
        sys.stderr.write(f"{site} holds no pages: build the site first\n")
        return 1
    lines = fetched(site)
    for line in lines:
        sys.stderr.write(f"fetched from elsewhere: {line}\n")
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main())
