"""The dashboard in a browser without JavaScript."""

from contextlib import contextmanager


@contextmanager
def no_scripts(chrome):
    chrome.command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        yield
    finally:
        chrome.command("Emulation.setScriptExecutionDisabled", value=False)


def test_pages_and_commands_work_without_scripts(world):
    chrome, name = world.chrome, world.create("no-script")
    with no_scripts(chrome):
        world.sign_in("operator", f"/jobs?q={name}")
        assert not chrome.find("#live:not([hidden])"), "the page promises live updates"
        chrome.click_link(name)
        chrome.click_button("Pause")
        assert "The job is paused." in chrome.notice()
        assert world.job(name)["is_paused"]
        chrome.one(".more > summary").click()
        chrome.click_link("Pauses")
        assert name in chrome.text()


def test_rebalance_works_without_scripts(world):
    chrome = world.chrome
    with no_scripts(chrome):
        world.sign_in("operator", "/balance")
        chrome.click_button("Rebalance Schedule")
        assert "A rebalance would move" in chrome.text()
        chrome.click_link("Cancel")
        assert chrome.path == "/balance"


def test_user_chooses_a_zone_and_signs_out_without_scripts(world):
    chrome = world.chrome
    with no_scripts(chrome):
        world.sign_in("viewer", "/nodes?tz=Asia/Tokyo")
        assert " JST" in chrome.text()
        chrome.fill_zone("UTC")
        assert " JST" not in chrome.text() and " UTC" in chrome.text()
        chrome.sign_out()
        assert chrome.path == "/sign-in", chrome.path
