"""Times in the zone of the user's choice, and days of 23 and 25 hours."""

import re


def test_zone_in_the_address_is_used(world):
    chrome = world.chrome
    world.sign_in("viewer", "/jobs?name_prefix=nightly-0&tz=Asia/Kolkata")
    times = [it.text for it in chrome.find("tbody time")]
    assert times and all(it.endswith("IST") for it in times), times
    utc = [it.get_attribute("datetime") for it in chrome.find("tbody time")]
    # Kolkata is 5 h 30 min before UTC all year.
    assert all(minutes(shown) == (minutes(at) + 330) % 1440 for shown, at in zip(times, utc)), times


def minutes(text):
    """The minute of the day of a time such as 2026-11-18 09:00:00 or 2026-11-18T09:00:00Z."""
    hour, minute = re.search(r"[ T](\d\d):(\d\d)", text).groups()
    return int(hour) * 60 + int(minute)


def test_zone_of_the_browser_is_offered_and_remembered_for_other_pages(world):
    chrome = world.chrome
    chrome.command("Emulation.setTimezoneOverride", timezoneId="Asia/Kolkata")
    try:
        world.sign_in("viewer", "/nodes")
        # Chromium has the older name of the zone.
        chrome.fill_zone("Asia/Calcutta (browser)")
        assert "tz=Asia%2FCalcutta" in chrome.path, chrome.path
        assert " IST" in chrome.text()
        chrome.open("/targets")
        times = [it.text for it in chrome.find("main time")]
        assert times and all(it.endswith("IST") for it in times), times
    finally:
        chrome.command("Emulation.setTimezoneOverride", timezoneId="")


def quarters_of(world, day):
    """The hours of a day in Berlin, as the heat map shows them, with the number of quarters."""
    chrome = world.chrome
    world.sign_in("viewer", f"/balance?day={day}&tz=Europe/Berlin")
    rows = chrome.run("""
        const tables = document.querySelectorAll('#heat-map table');
        return [...tables[tables.length - 1].querySelectorAll('tbody tr')].map(row =>
            [row.querySelector('th').innerText, row.querySelectorAll('td a').length]);""")
    assert all(count == 4 for _, count in rows), rows
    return [name for name, _ in rows]


def test_day_of_23_hours_has_no_skipped_hour(world):
    hours = quarters_of(world, "2027-03-28")
    assert len(hours) == 23 and hours[1:3] == ["01 CET", "03 CEST"], hours


def test_day_of_25_hours_has_the_repeated_hour_twice(world):
    hours = quarters_of(world, "2026-10-25")
    assert len(hours) == 25 and hours[2:4] == ["02 CEST", "02 CET"], hours


def test_days_of_kolkata_begin_at_half_past_the_hour_of_utc(world):
    world.sign_in("viewer", "/balance?tz=Asia/Kolkata")
    links = world.chrome.run("return [...document.querySelectorAll('#heat-map td a')].map(it => it.href)")
    starts = {re.search(r"T\d\d%3A(\d\d)", link).group(1) for link in links}
    assert starts == {"30"}, starts
