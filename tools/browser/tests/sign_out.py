"""After signing out, the browser has nothing left."""

STORED = """
const done = arguments[arguments.length - 1];
Promise.all([indexedDB.databases(), caches.keys(), navigator.serviceWorker.getRegistrations()])
    .then(lists => done(localStorage.length + sessionStorage.length
        + lists.reduce((sum, list) => sum + list.length, 0)), error => done(String(error)));
"""


def test_after_sign_out_back_shows_no_data_and_nothing_is_stored(world):
    chrome, job = world.chrome, world.seeded.failing_job
    world.sign_in("viewer", "/jobs")
    chrome.wait_for_text(job)
    chrome.open(f"/jobs/{job}")
    chrome.wait_for_text(job)
    chrome.sign_out()
    assert chrome.path == "/sign-in", chrome.path
    for _ in range(2):
        chrome.driver.back()
        chrome.wait("the sign-in page", lambda: chrome.path.startswith("/sign-in"))
        chrome.wait_for_text("Token or API key")
        assert job not in chrome.text()
    chrome.open("/sign-in")
    assert chrome.driver.execute_async_script(STORED) == 0
    assert not chrome.driver.get_cookies()
