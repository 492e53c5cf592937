"""API keys: created and revoked on the page Access; a session ends with its key."""

import time

# A session ends within 5 s of its key. A busy machine may take longer to show it.
PROMISE = 5


def wait_for_sign_in(chrome, since):
    """Waits until the shown page has led to the sign-in page by itself."""
    chrome.wait("the sign-in page", lambda: chrome.path.startswith("/sign-in"))
    print(f"measured: the session ended {time.monotonic() - since:.1f} s later (promise: {PROMISE} s)")


def test_key_is_created_used_and_revoked(world):
    chrome = world.chrome
    world.sign_in("admin", "/access")
    chrome.fill({"name": "browser-test", "role": "operator"})
    chrome.click_button("Create")
    assert "Copy the key now." in chrome.notice()
    key = chrome.text_of("main pre").strip()
    with world.second_browser() as other:
        other.sign_in(key, "/jobs")
        chrome.open("/access")
        row = "//tr[th='browser-test']//a[.='Revoke…']"
        chrome.click(lambda: chrome.driver.find_element("xpath", row))
        assert chrome.heading() == "Revoke the key browser-test?"
        assert other.path == "/jobs", "the question revoked the key"
        chrome.click_button("Revoke the key")
        wait_for_sign_in(other, time.monotonic())
    assert "The key browser-test is revoked." in chrome.notice()
    keys = world.server.get("/api/v1/api-keys")["api_keys"]
    assert next(key for key in keys if key["name"] == "browser-test")["revoked_at"]
    assert world.server.status("/api/v1/jobs", key) == 401


def test_session_ends_with_a_key_that_expires(world):
    key = world.server.post("/api/v1/api-keys",
                            {"name": "short", "role": "viewer", "expires_in": "4s"})["key"]
    expires_at = time.monotonic() + 4
    world.chrome.sign_in(key, "/jobs")
    assert world.chrome.path == "/jobs"
    wait_for_sign_in(world.chrome, expires_at)
