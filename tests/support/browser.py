"""A real browser for tests: Debian's chromium, driven by Selenium."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
MISSING = "needs chromium and chromedriver, which are not installed here"
PATIENCE_S = 60.0
_MAX_SEEN = 1_500
_FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic", "--hide-scrollbars",
)  # fmt: skip

T = TypeVar("T")


class Browser:
    """One window."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, address: str) -> None:
        """Load a page and wait until its script has started."""
        self.driver.get(address)
        self.until(lambda: self.run("return document.documentElement.dataset.ready === 'yes'"))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        """The text of the first element; empty when there is none."""
        script = "return document.querySelector(arguments[0])?.textContent ?? ''"
        text: str = self.run(script, selector)
        return text

    def count(self, selector: str) -> int:
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def click(self, selector: str) -> None:
        self.run("arguments[0].scrollIntoView({block: 'center'})", self.find(selector))
        self.find(selector).click()

    def type(self, selector: str, text: str) -> None:
        field = self.find(selector)
        field.clear()
        field.send_keys(text)

    def until(self, condition: Callable[[], T], timeout_s: float = PATIENCE_S) -> T:
        """What `condition` gives once that is true."""
        ignored = (StaleElementReferenceException,)
        waiting = WebDriverWait(self.driver, timeout_s, 0.1, ignored_exceptions=ignored)
        try:
            return waiting.until(lambda _: condition())
        except TimeoutException:
            raise AssertionError(f"not within {timeout_s:g} s; {self._seen()}") from None

    def _seen(self) -> str:
        body = self.find("body").text[:_MAX_SEEN]
        return f"the page {self.driver.current_url} shows: {body}"

    def screen(self, width: int, height: int, *, dark: bool = False) -> None:
        """Take the size of a device, and its colours."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def complaints(self) -> list[str]:
        """What the browser's console says of errors and of broken policies."""
        entries = self.driver.get_log("browser")
        return [each["message"] for each in entries if each["level"] == "SEVERE"]


@contextmanager
def chromium(directory: Path) -> Iterator[Browser]:
    """A browser whose profile and downloads are under `directory`."""
    options = Options()
    options.binary_location = str(CHROMIUM)
    for flag in (*_FLAGS, f"--user-data-dir={directory / 'profile'}"):
        options.add_argument(flag)
    options.add_experimental_option(
        "prefs", {"download.default_directory": str(directory / "downloads")}
    )
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
