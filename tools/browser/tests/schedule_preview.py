"""The preview of a schedule on the form for a new job, in zones that differ from UTC in odd ways."""

from selenium.webdriver.support.ui import Select


def preview(world, expression, zone):
    """Returns the next times that the form shows for a cron expression."""
    chrome = world.chrome
    world.sign_in("operator", "/jobs/new")
    Select(chrome.one("[name='schedule.kind']")).select_by_value("cron")
    for field, text in [("schedule.value", expression), ("timezone", zone)]:
        element = chrome.one(f"[name='{field}']")
        element.clear()
        element.send_keys(text)
    chrome.click_button("Preview")
    chrome.wait_for_text(f"times in {zone}:")
    return [item.text for item in chrome.find("ol.times li")]


def test_times_in_kolkata_have_half_an_hour_in_their_offset(world):
    times = preview(world, "0 9 * * *", "Asia/Kolkata")
    assert len(times) == 10, times
    assert all("09:00:00 +05:30" in time for time in times), times


def test_time_that_berlin_skips_in_spring_is_marked(world):
    times = preview(world, "30 2 25-31 3 *", "Europe/Berlin")
    # Ten times in a week of March reach into the next year, which has a change of its own.
    marked = [time for time in times if "daylight saving skips the scheduled time" in time]
    assert marked and all("03:00:00 +02:00" in time for time in marked), times
    assert any("02:30:00 +01:00" in time for time in times if time not in marked), times


def test_time_that_berlin_repeats_in_autumn_is_marked(world):
    times = preview(world, "30 2 25-31 10 *", "Europe/Berlin")
    marked = [time for time in times if "this local time occurs twice" in time]
    assert marked and all("02:30:00 +02:00" in time for time in marked), times
