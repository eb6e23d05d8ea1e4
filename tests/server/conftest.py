"""A real browser: Debian's Chromium, driven by Playwright."""

import os
import shutil

import pytest


@pytest.fixture(scope="module")
def browser():
    chromium = shutil.which("chromium")
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("chromium is not installed, and CI is set")
        pytest.skip("chromium is not installed")
    from playwright.sync_api import sync_playwright

    from browsing import ARGUMENTS

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def page(browser):
    """A page on which nothing may go wrong, neither loudly nor in the console."""
    from browsing import SECONDS

    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(SECONDS)
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))

    def heard(message):
        if message.type == "error":
            wrong.append(f"{message.text} {message.location.get('url', '')}")

    page.on("console", heard)
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.wrong = wrong
    yield page
    context.close()
    assert wrong == []
