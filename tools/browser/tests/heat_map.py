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


def tab_to_the_map(chrome):
    cells = chrome.find(CELLS)
    for _ in range(TABS_MAX):
        chrome.press(Keys.TAB)
        if chrome.focused() in cells:
            return
    raise AssertionError(f"{TABS_MAX} tabs do not lead to the heat map")


def test_busiest_slot_is_found_and_opened_with_the_keyboard(world):
    chrome = world.chrome
    world.sign_in("viewer", "/balance")
    row, column = chrome.run(PEAK)
    tab_to_the_map(chrome)
    chrome.press(*[Keys.ARROW_DOWN] * row, *[Keys.ARROW_RIGHT] * column)
    assert "100 % of the peak" in chrome.focused().accessible_name, chrome.focused().accessible_name
    page = chrome.one("html")
    chrome.press(Keys.ENTER)
    chrome.wait("the jobs of the slot", lambda: chrome.one("html") != page)
    chrome.wait_for_text("nightly-")


def test_arrow_keys_stay_inside_the_map(world):
    chrome = world.chrome
    world.sign_in("viewer", "/balance")
    tab_to_the_map(chrome)
    first = chrome.focused()
    chrome.press(Keys.ARROW_UP, Keys.ARROW_LEFT)
    assert chrome.focused() == first
    chrome.press(Keys.END, Keys.ARROW_RIGHT)
    last = chrome.focused()
    assert ", 23:00" in last.accessible_name, last.accessible_name
    chrome.press(Keys.HOME)
    assert chrome.focused() == first


def test_heat_map_has_one_tab_stop(world):
    world.sign_in("viewer", "/balance")
    cells = "return [...document.querySelectorAll(arguments[0])].filter(it => it.tabIndex === 0).length"
    assert world.chrome.run(cells, CELLS) == 1
