"""The rebalance: preview, confirmation, progress, undo."""

from server import wait_until

SCORE = "/api/v1/scheduler/distribution"


def next_runs(world):
    jobs = world.server.get("/api/v1/jobs?name_prefix=nightly-&limit=1000")["jobs"]
    return {job["name"]: job["next_run_at"] for job in jobs}


def rebalance(world):
    """Returns the rebalance that the page shows."""
    id = world.chrome.path.split("rebalance=")[1].split("&")[0]
    return world.server.get(f"/api/v1/scheduler/rebalance/{id}")


def wait_for_the_end(world, moved):
    chrome = world.chrome
    assert "The rebalance is " in chrome.notice(), chrome.notice()
    chrome.wait("the end of the rebalance", lambda: "The rebalance is done" in chrome.notice())
    assert f"moved {moved} of {moved} jobs" in chrome.notice(), chrome.notice()


def test_rebalance_is_previewed_confirmed_and_undone(world):
    chrome, before = world.chrome, next_runs(world)
    score = world.server.get(SCORE)["distribution_score"]
    world.sign_in("operator", "/balance")
    chrome.click_button("Rebalance Schedule")
    plan = rebalance(world)
    moves = plan["planned_total"]
    assert plan["state"] == "planned" and moves > 0, plan
    assert f"A rebalance would move {moves} jobs and skip" in chrome.text()
    titles = [chart.get_attribute("aria-label") for chart in chrome.find(".side-by-side svg")]
    assert titles == ["Current distribution", "Projected distribution"], titles
    assert next_runs(world) == before, "the preview moved jobs"
    chrome.click_button("Confirm Rebalance")
    wait_for_the_end(world, moves)
    assert rebalance(world)["moved_total"] == moves
    assert world.server.get(SCORE)["distribution_score"] > score
    assert next_runs(world) != before
    chrome.click_button("Undo")
    wait_for_the_end(world, moves)
    assert rebalance(world)["undoes"]
    wait_until("the old times", lambda: next_runs(world) == before)
    chrome.open("/balance")
    assert "✓ done, undone" in chrome.text() and "an undo" in chrome.text(), chrome.text()


def test_plan_that_is_out_of_date_offers_a_new_preview(world):
    chrome = world.chrome
    world.sign_in("operator", "/balance")
    chrome.click_button("Rebalance Schedule")
    for name in next_runs(world):
        world.server.call("PATCH", f"/api/v1/jobs/{name}", {"schedule": "12h"})
    chrome.click_button("Confirm Rebalance")
    # The server may refuse the plan, or skip the jobs that have changed.
    text = chrome.text()
    assert "The rebalance did not start" in text or "skipped" in text, text
    for name in next_runs(world):
        world.server.call("PATCH", f"/api/v1/jobs/{name}", {"schedule": "24h"})
