"""Hostile text in names, payloads, outputs and titles appears as text."""

from seed import HOSTILE, HOSTILE_NAME

MARKUP = "return document.querySelectorAll('img[src=x], main script, [onerror]').length"


def check(chrome, path):
    chrome.open(path)
    assert chrome.run(MARKUP) == 0, f"hostile markup appeared on {path}"
    assert not chrome.run("return window.hostile"), f"a hostile script ran on {path}"
    assert not chrome.console(), f"the browser reports errors on {path}"


def test_no_page_shows_hostile_text_as_markup(world):
    chrome = world.chrome
    world.sign_in("admin")
    for path in world.pages():
        check(chrome, path)


def test_hostile_text_can_be_read(world):
    chrome = world.chrome
    world.sign_in("admin", "/jobs")
    chrome.wait_for_text(HOSTILE_NAME)
    check(chrome, f"/jobs/{world.seeded.hostile_job}")
    assert HOSTILE_NAME in chrome.one("h1").text
    check(chrome, f"/runs/{world.seeded.hostile_run}")
    assert HOSTILE in chrome.text()


def test_hostile_search_appears_as_text(world):
    chrome = world.chrome
    world.sign_in("admin", "/jobs")
    chrome.one("#q").send_keys(HOSTILE)
    chrome.click_button("Show")
    assert chrome.one("#q").get_attribute("value") == HOSTILE
    assert chrome.run(MARKUP) == 0 and not chrome.run("return window.hostile")
