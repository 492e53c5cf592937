"""Questions of a new user: each is answered in a sentence, at most two clicks from `/`."""

import re

CLICKS_MAX = 2


class User:
    """Counts the clicks since the first page."""

    def __init__(self, world):
        self.chrome = world.chrome
        world.sign_in("operator")
        self.clicks = 0

    def click_link(self, text):
        self.clicks += 1
        self.chrome.click_link(text)

    def click_button(self, text):
        self.clicks += 1
        self.chrome.click_button(text)

    def reads(self, pattern):
        text = self.chrome.text()
        assert re.search(pattern, text), f"{pattern!r} is not in: {text}"
        assert self.clicks <= CLICKS_MAX, f"the answer took {self.clicks} clicks"


def test_user_finds_which_job_will_be_late_next(world):
    user = User(world)
    job = world.seeded.failing_job
    user.reads(rf"{job} ! WARNING, deadline \d{{4}}-\d\d-\d\d \d\d:\d\d")


def test_user_finds_why_a_job_did_not_run_at_nine(world):
    user, job = User(world), world.seeded.morning_job
    user.click_link("Jobs")
    user.click_link(job)
    field = user.chrome.one("#at")
    field.send_keys("09:00")
    page = user.chrome.one("html")
    field.submit()
    user.chrome.wait("the answer", lambda: user.chrome.one("html") != page)
    message = world.server.get(f"/api/v1/jobs/{job}/explain?at=09:00")["past"]["message"]
    user.reads(re.escape(message))


def test_user_finds_what_failed_since_yesterday(world):
    user = User(world)
    user.click_link("Failures")
    user.reads(re.escape(world.seeded.failure))


def test_user_finds_when_the_cluster_is_busiest(world):
    peak = world.server.get("/api/v1/scheduler/distribution")
    hour, runs = peak["peak_hour"], peak["peak_count"]
    User(world).reads(rf"busiest hour of the next day begins at {hour:02}:00 UTC, with {runs} runs")


def test_user_finds_how_to_move_that_load(world):
    user = User(world)
    user.click_link("See the balance")
    user.click_button("Rebalance Schedule")
    user.reads(r"A rebalance would move [1-9]\d* jobs and skip \d+\. The score would change from")
    user.chrome.button("Confirm Rebalance")
