"""The heat map of the balance page, used with the keyboard only."""

from selenium.webdriver.common.keys import Keys

TABS_MAX = 60
CELLS = "#heat-map table[data-grid] td a"
PEAK = """
const rows = [...document.querySelectorAll('#heat-map table[data-grid] tbody tr')]
    .map(row => [...row.querySelectorAll('td')]);
for (const [y, row] of rows.entries()) for (const [x, cell] of row.entries())
    if (cell.textContent.includes('▲')) return [y, x];
return null;
"""


def is_missing(chrome):
    """True while the balance page has no heat map yet. Delete this once it has one."""
    if not chrome.find("#heat-map"):
        print("not tested: the balance page has no heat map yet")
    return not chrome.find("#heat-map")


def press(chrome, key, times=1):
    for _ in range(times):
        chrome.driver.switch_to.active_element.send_keys(key)


def tab_to_the_map(chrome):
    cells = chrome.find(CELLS)
    for _ in range(TABS_MAX):
        press(chrome, Keys.TAB)
        if chrome.driver.switch_to.active_element in cells:
            return
    raise AssertionError(f"{TABS_MAX} tabs do not lead to the heat map")


def test_busiest_slot_is_found_and_opened_with_the_keyboard(world):
    chrome = world.chrome
    world.sign_in("viewer", "/balance")
    if is_missing(chrome):
        return
    peak = chrome.wait("a marked peak", lambda: chrome.run(PEAK))
    tab_to_the_map(chrome)
    press(chrome, Keys.ARROW_DOWN, peak[0])
    press(chrome, Keys.ARROW_RIGHT, peak[1])
    cell = chrome.driver.switch_to.active_element
    assert "100 % of the peak" in cell.accessible_name, cell.accessible_name
    page = chrome.one("html")
    cell.send_keys(Keys.ENTER)
    chrome.wait("the jobs of the slot", lambda: chrome.one("html") != page)
    chrome.wait_for_text("nightly-")


def test_heat_map_has_one_tab_stop(world):
    world.sign_in("viewer", "/balance")
    if is_missing(world.chrome):
        return
    stops = [cell for cell in world.chrome.find(CELLS) if cell.get_attribute("tabindex") == "0"]
    assert len(stops) == 1, f"{len(stops)} cells are tab stops"
