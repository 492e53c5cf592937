"""The timeline: past and expected runs on one axis, or bars if there are too many of them."""

from contextlib import contextmanager

from accessibility import violations
from server import wait_until

BUSY_TENANT = "timeline"
# One script reads all texts, because a live update may replace the page between two reads.
NAMES = "return [...document.querySelectorAll(arguments[0])].map(it => it.textContent)"
PERIOD = "from=2026-11-18T09:00:00Z&to=2026-11-18T11:00:00Z"


def marks(chrome, start):
    """The names of the marks that lead to addresses with this start."""
    return chrome.wait("marks", lambda: chrome.run(NAMES, f"a.mark[href^='{start}'] title"))


def ticks(chrome):
    return chrome.run(NAMES, ".axis text.time")


@contextmanager
def busy_tenant(server):
    """A tenant with a job that runs every second."""
    token = server.create_token("admin", BUSY_TENANT)
    job = {"name": "often", "executor_type": "noop", "schedule": "1s"}
    job = server.call("POST", "/api/v1/jobs", job, token)
    try:
        yield token
    finally:
        server.call("DELETE", f"/api/v1/jobs/{job['id']}", token=token)


def test_past_and_expected_runs_are_marks(world):
    chrome = world.chrome
    world.sign_in("viewer", "/timeline")
    past = marks(chrome, "/runs/")
    assert any(name.startswith("archive-backup: failed, ") for name in past), past
    expected = marks(chrome, "/jobs/")
    assert all(": expected, " in name for name in expected), expected
    assert chrome.one(".axis .now text").text == "now"
    details = chrome.one("main details")
    details.find_element("css selector", "summary").click()
    chrome.wait("the rows", lambda: len(chrome.find("main details tbody tr")) > 1)
    chrome.wait_for_text("archive-backup")


def test_mark_leads_to_its_run_and_to_its_job(world):
    chrome = world.chrome
    path = f"/timeline?job={world.seeded.failing_job}"
    world.sign_in("viewer", path)
    for start, heading in [("/runs/", "Run"), ("/jobs/", world.seeded.failing_job)]:
        chrome.open(path)
        mark = lambda: chrome.one(f"a.mark[href^='{start}']")
        target = mark().get_dom_attribute("href")
        chrome.click(mark)
        assert chrome.path == target, f"{target} led to {chrome.path}"
        assert heading in chrome.one("h1").text, chrome.one("h1").text


def test_periods_and_lanes_are_chosen_by_links(world):
    chrome = world.chrome
    world.sign_in("viewer", f"/timeline?{PERIOD}")
    for link, hours in [("Later ▶", ("11:00", "13:00")), ("Zoom out", ("10:00", "14:00")),
                        ("Zoom in", ("11:00", "13:00")), ("◀ Earlier", ("09:00", "11:00"))]:
        chrome.click_link(link)
        shown = chrome.one("main p").text
        assert all(f"{hour}:00 UTC" in shown for hour in hours), f"{link}: {shown}"
    chrome.click_link("node")
    assert "by=node" in chrome.path, chrome.path
    chrome.click_link("Now")
    assert "by=node" in chrome.path, chrome.path
    chrome.wait_for_text("no node yet")


def test_axis_is_in_the_zone_of_the_page(world):
    chrome = world.chrome
    job = f"&job={world.seeded.morning_job}"
    # The job runs every morning, so the axis is drawn.
    period = "from=2026-11-18T00:00:00Z&to=2026-11-25T00:00:00Z".replace("2026", "2031")
    world.sign_in("viewer", f"/timeline?{period}{job}&tz=UTC")
    utc = ticks(chrome)
    assert utc[0] == "00:00 UTC", utc
    chrome.open(f"/timeline?from=2031-11-18T07:00:00Z&to=2031-11-18T09:00:00Z{job}&tz=Asia%2FKolkata")
    found = ticks(chrome)
    # Each hour of UTC is a half hour in Kolkata.
    assert (found[0], found[2], found[4]) == ("12:30 IST", "13:00", "13:30"), found
    assert "Asia/Kolkata (UTC+05:30)" in chrome.text(), chrome.text()
    # The job runs at 9 in Berlin.
    assert marks(chrome, "/jobs/") == ["morning-report: expected, 2031-11-18 13:30:00 IST"]


def test_period_with_too_many_runs_shows_bars(world):
    chrome, server = world.chrome, world.server
    with busy_tenant(server) as token:
        def has_past():
            steps = server.get("/api/v1/timeline", token)["density"]
            return any((step["past"] or {}).get("completed") for step in steps)
        wait_until("the activity of the job", has_past)
        world.sign_in("viewer", "/timeline", BUSY_TENANT)
        chrome.wait_for_text("too many runs to show each of them")
        names = marks(chrome, "/timeline?from=")
        assert any(" completed, " in name for name in names), names
        assert any("900 expected" in name for name in names), names
        assert not chrome.find("use"), "density has no marks"
        for scheme in ["light", "dark"]:
            chrome.media(scheme)
            assert not violations(chrome), violations(chrome)
        chrome.resize(360, 800)
        wide = chrome.run("return document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{wide} pixels too wide"
        chrome.resize(1280, 900)
        chrome.click(lambda: chrome.find("a.mark")[-1])
        chrome.wait_for_text("900 expected runs")
        assert len(marks(chrome, "/jobs/")) == 900
