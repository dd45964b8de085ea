"""A headless Chromium over its debugging pipe: no driver, no port, no package needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


CONTRAST = """
(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => [r, g, b].map((c) => linear(c / 255))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (let at = e; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest("script, :disabled, option")) continue;
    const both = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    const [a, b] = both.sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(e.outerHTML.slice(0, 100));
  }
  return found;
})()
"""
"""Texts of less than 4.5 to 1, the bar of WCAG AA."""


def chromium() -> str | None:
    """Path of the browser, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Page:
    """One page: what it logs, what it asks of the network, how it looks.

    Args:
        width, height: of the view, in CSS pixels.
        dark: the user prefers dark pages.
        calm: the user prefers reduced motion.
        scripts: pages may run scripts.
    """

    def __init__(
        self, width: int, height: int, *, dark: bool, calm: bool = False, scripts: bool = True
    ) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        browser = chromium()
        assert browser is not None

        def as_three_and_four() -> None:
            """Put the pipes where the protocol wants them."""
            # First out of the way: either may be 3 or 4 already.
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)
            for fd in high:
                os.close(fd)

        self._process = subprocess.Popen(
            [browser, *FLAGS, f"--user-data-dir={self._profile.name}"],
            close_fds=False,
            preexec_fn=as_three_and_four,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._read = os.fdopen(ours_in, "rb", buffering=0)
        self._write = os.fdopen(ours_out, "wb", buffering=0)
        self._buffer = b""
        self._id = 0
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.send(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        motion = {"name": "prefers-reduced-motion", "value": "reduce" if calm else "no-preference"}
        self.send("Emulation.setEmulatedMedia", features=[scheme, motion])
        if not scripts:
            self.send("Emulation.setScriptExecutionDisabled", value=True)
        self._size = {"width": width, "height": height}
        phone = width < 600
        self.send(
            "Emulation.setDeviceMetricsOverride",
            **self._size,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait()
        self._read.close()
        self._write.close()
        self._profile.cleanup()

    def open(self, file: Path) -> None:
        """Load a file and wait until its scripts have run and a frame is painted."""
        self.send("Page.navigate", url=file.resolve().as_uri())
        self.evaluate(
            "new Promise(done => { const ready = () => requestAnimationFrame(() => "
            "requestAnimationFrame(done)); document.readyState === 'complete' ? ready() : "
            "addEventListener('load', ready); })"
        )

    def evaluate(self, expression: str) -> Any:
        """Value of a JavaScript expression, awaited."""
        answer = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait_until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true, at most a minute."""
        for _ in range(600):
            if self.evaluate(expression):
                return
            time.sleep(0.1)
        raise AssertionError(f"never true: {expression}")

    def drag(self, x0: float, x1: float, y: float) -> None:
        """Press, move and release the left button."""
        for kind, x in (("mousePressed", x0), ("mouseMoved", x1), ("mouseReleased", x1)):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, code: int) -> None:
        """Press and release a key that has this code in Windows."""
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def screenshot(self, file: Path, height: int = 4000) -> None:
        """The page from its top, as PNG."""
        full = self.evaluate("document.documentElement.scrollHeight")
        clip = {
            "x": 0,
            "y": 0,
            "width": self._size["width"],
            "height": min(full, height),
            "scale": 1,
        }
        shot = self.send("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        file.write_bytes(base64.b64decode(shot["data"]))

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its answer."""
        self._id += 1
        message = {"id": self._id, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._id:
                assert "error" not in answer, answer["error"]
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            chunk = self._read.read(1 << 16)
            assert chunk, "the browser has gone"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
