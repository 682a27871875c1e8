"""The picture of README: a page of the demo's first question, as chromium draws it.

    python docs/tools/picture.py          writes docs/pages.png

It needs chromium and chromedriver (on Debian: apt-get install chromium chromium-driver) and the extra `test`.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By

from ldp_server.child import safe_command, safe_environment
from ldp_server.testing import ServerProcess
from simulator.demo import listed_question, run, truth_of

TARGET = Path(__file__).parents[1] / "pages.png"
WIDTH, HEIGHT, COLOURS = 1100, 850, 128
USERS, SEED = 500_000, 1


def picture(address: str, link: str, which: str) -> bytes:
    """Return the page of a question as a PNG."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    with webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"))) as browser:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(link)
        browser.get(f"{address}/c/{which}/top?count=14&truth=1&threshold=9000")
        if not browser.find_elements(By.CSS_SELECTOR, "svg.chart"):
            raise SystemExit("the page has no chart")
        return browser.get_screenshot_as_png()


def main() -> None:
    """Run the demo's first question, look at its page, and write the picture."""
    question = listed_question(USERS, "1")
    which = question.collection.id.hex()
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder) / "data") as server:
        run(server, question, USERS, SEED, lambda *_: None)
        truth = Path(folder) / "truth.json"
        truth.write_text(json.dumps({which: truth_of(question, USERS, SEED)}), "utf-8")
        options = ("--listen", "127.0.0.1:0", "--link", "--json", "--until-stdin-closes", "--truth", str(truth))
        command = safe_command("ldp_server", "web", "--data", str(server.data), *options)
        pages = subprocess.Popen(  # noqa: S603 - our own program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=safe_environment({"LDP_SERVER": ""}),
        )
        said = json.loads(pages.stdout.readline() if pages.stdout else "{}")
        data = picture(said["pages"], said["link"], which[:16])
        pages.communicate("")
    image = Image.open(io.BytesIO(data)).convert("RGB").quantize(COLOURS)
    image.save(TARGET, optimize=True)
    sys.stdout.write(f"{TARGET}: {TARGET.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
