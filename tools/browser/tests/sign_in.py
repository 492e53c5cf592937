"""Signing in with a token."""


def test_wrong_token_is_refused_with_a_reason(world):
    chrome = world.chrome
    chrome.open("/sign-in")
    chrome.one("#credential").send_keys("wrong")
    chrome.click_button("Sign in")
    assert chrome.path == "/sign-in"
    assert chrome.one("[role=alert]").text, "the page gives no reason"


def test_visitor_signs_in_and_gets_the_page_that_was_asked_for(world):
    chrome = world.chrome
    chrome.open("/jobs?status=paused")
    assert chrome.path.startswith("/sign-in?next="), chrome.path
    chrome.one("#credential").send_keys(world.server.token)
    chrome.click_button("Sign in")
    assert chrome.path == "/jobs?status=paused", chrome.path
    chrome.wait_for_text("paused-export")
