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


# The lightness of each step of the scale, from 0 to 5, as a person without colour vision sees it.
LIGHTNESS = """
const cell = document.querySelector('#heat-map td');
return [0, 1, 2, 3, 4, 5].map(step => {
    cell.className = 'heat-' + step;
    const [r, g, b] = getComputedStyle(cell).backgroundColor.match(/[0-9.]+/g);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
});
"""
BORDERS = """
const cell = document.querySelector('#heat-map td');
return [0, 1, 2, 3, 4, 5].map(step => {
    cell.className = 'heat-' + step;
    return parseFloat(getComputedStyle(cell.querySelector('a')).borderBottomWidth);
});
"""
# Two neighbouring steps differ by at least this part of the range from black to white, 0 to 255.
STEP_MIN = 18


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


def test_steps_differ_in_greyscale(world):
    chrome = world.chrome
    world.sign_in("viewer", "/balance")
    for scheme in ["light", "dark"]:
        chrome.media(scheme)
        found = chrome.run(LIGHTNESS)[1:]
        gaps = [after - before for before, after in zip(found, found[1:])]
        falls, rises = max(gaps) <= -STEP_MIN, min(gaps) >= STEP_MIN
        assert falls if scheme == "light" else rises, f"{scheme}: {found}"


def test_steps_differ_by_borders_in_forced_colours(world):
    world.sign_in("viewer", "/balance")
    world.chrome.media("dark", "active")
    widths = world.chrome.run(BORDERS)
    assert widths == sorted(set(widths)), widths
