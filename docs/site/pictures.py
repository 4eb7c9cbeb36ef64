# SPDX-License-Identifier: Apache-2.0
"""pictures.py SITE OUT [PAGE ...] - screenshots of pages of a built site by headless Chromium, on a desktop and on a
phone, light and dark; and what is wrong with all pages there: wider than the screen, text without contrast, or a broken script.

Without a PAGE some that show every kind of content. Chromium is driven through its own pipe.
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

SCREENS = {"desktop": (1440, 900, False), "phone": (375, 812, True)}
SCHEMES = ["light", "dark"]
SEARCHED = "tenrec_rpc_sync"
SHOWN = ["index", "first-steps", "concepts", "architecture", "config", "errors", "performance", "reference/index", "reference/rpc", "reference/agent", "search"]
# Wider than the screen: content that pushes the page, not content that scrolls in a box of its own. On a phone innerWidth grows with the page; clientWidth does not.
# Contrast: the colours of text and of the nearest background, by WCAG's formula.
PROBE = """(() => {
  const wrong = [], doc = document.documentElement;
  if (doc.scrollWidth > doc.clientWidth + 1) wrong.push(`is ${doc.scrollWidth} wide on a screen of ${doc.clientWidth}`);
  const rgb = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length < 4 || m[3] > 0.9 ? m : null; };
  const light = m => { const [r, g, b] = m.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const m = rgb(getComputedStyle(e).backgroundColor); if (m) return m; } return [255, 255, 255]; };
  const seen = new Set();
  for (const e of document.querySelectorAll('article *, .sidebar-tree a, .toc-tree a')) {
    if (e.closest('svg') || e.closest('.headerlink') || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(e), front = rgb(style.color), back = behind(e);
    if (!front || style.visibility === 'hidden' || !e.getClientRects().length) continue;
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    const key = e.tagName + '.' + e.className + style.color;
    if (ratio < 4.5 && !seen.has(key)) { seen.add(key); wrong.push(`'${e.textContent.trim().slice(0, 30)}' (${key}) has contrast ${ratio.toFixed(1)} on rgb(${back})`); }
  }
  return wrong;
})()"""


class Browser:
    """A headless Chromium with one page."""

    def __init__(self, profile):
        name = next((n for n in ("chromium", "chromium-browser", "google-chrome") if shutil.which(n)), None)
        if not name:
            sys.exit("pictures: no chromium: script/bootstrap --pictures installs it")
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()
        command = ["sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh", name, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   "--remote-debugging-pipe", "--allow-file-access-from-files", f"--user-data-dir={profile}", "about:blank"]
        self.process = subprocess.Popen(command, pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.number, self.session, self.events = b"", 0, None, []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.read, 1 << 20)
            if not more:
                sys.exit("pictures: Chromium has ended")
            self.rest += more
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        while True:
            got = self.message()
            if got.get("id") == self.number:
                if "error" in got:
                    sys.exit(f"pictures: {method}: {got['error']['message']}")
                return got["result"]
            self.events.append(got)

    def open(self, url):
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self.message())

    def screen(self, width, height, phone, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def value(self, code):
        return self.call("Runtime.evaluate", expression=code, returnByValue=True)["result"].get("value")

    @staticmethod
    def words(details):
        return f"{details['text']} {details.get('exception', {}).get('description', '')} {details.get('url', '')}:{details['lineNumber'] + 1}"

    def errors(self):
        return [self.words(e["params"]["exceptionDetails"]) for e in self.events if e.get("method") == "Runtime.exceptionThrown"]

    def shot(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def search(self, url, where):
        """Asks the search for a function; its own page has to be found, with its kind."""
        self.open(f"{url}?q={SEARCHED}")
        deadline = time.monotonic() + 10
        while not self.value("document.querySelector('ul.search .kind + a[href*=\"reference/rpc.html\"]') !== null"):
            if time.monotonic() > deadline:
                return [f"{where}: does not find {SEARCHED}"]
        return []

    def close(self):
        self.process.kill()
        self.process.wait()


def html_pages(site):
    for folder, _, names in os.walk(site):
        for name in sorted(names):
            if name.endswith(".html"):
                yield os.path.relpath(os.path.join(folder, name), site)


def main():
    site, out = map(os.path.abspath, sys.argv[1:3])
    shown = sys.argv[3:] or SHOWN
    os.makedirs(out, exist_ok=True)
    wrong, shots = [], 0
    with tempfile.TemporaryDirectory(prefix="tenrec-pictures-") as profile:
        browser = Browser(profile)
        try:
            for screen, size in SCREENS.items():
                for scheme in SCHEMES:
                    browser.screen(*size, scheme)
                    for page in html_pages(site):
                        name = page.removesuffix(".html")
                        if sys.argv[3:] and name not in shown:
                            continue
                        browser.open(f"file://{site}/{page}")
                        wrong += [f"{page}, {screen}, {scheme}: {what}" for what in browser.value(PROBE) + browser.errors()]
                        if name == "search":
                            wrong += browser.search(f"file://{site}/{page}", f"{page}, {screen}, {scheme}")
                        if name in shown:
                            browser.shot(f"{out}/{name.replace('/', '-')}-{screen}-{scheme}.png")
                            shots += 1
        finally:
            browser.close()
    for line in wrong:
        print(f"pictures: {line}")
    print(f"pictures: {shots} in {out}, {len(wrong)} faults of pages")
    sys.exit(1 if wrong else 0)


main()
