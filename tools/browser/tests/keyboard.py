"""The dashboard without a mouse: shortcuts, the palette, visible focus."""

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

# How the focused element differs from its look without focus.
FOCUS = """
const it = document.activeElement, style = getComputedStyle(it);
const box = it.getBoundingClientRect();
return {tag: it.outerHTML.slice(0, 100), isBody: it === document.body, style: style.outlineStyle,
    width: parseFloat(style.outlineWidth), isShown: box.width > 1 && box.height > 1 && box.right > 0};
"""
TABS_MAX = 200


def follow(chrome, *keys):
    """Presses keys that lead to another page."""
    page = chrome.one("html")
    chrome.press(*keys)
    chrome.wait("the next page", lambda: chrome.one("html") != page)
    chrome.wait("its content", lambda: chrome.run("return document.readyState") == "complete")


def test_slash_moves_to_the_search_field(world):
    chrome = world.chrome
    world.sign_in("viewer", "/jobs")
    chrome.press("/")
    assert chrome.focused().get_attribute("id") == "q"
    chrome.press("nightly-07")
    follow(chrome, Keys.ENTER)
    assert "q=nightly-07" in chrome.path and "nightly-07" in chrome.text()


def test_question_mark_lists_all_shortcuts(world):
    chrome = world.chrome
    world.sign_in("viewer")
    chrome.press("?")
    listed = chrome.text_of("dialog[open]")
    assert "Search" in listed and "Go to Jobs" in listed and "Ctrl+K" in listed, listed
    chrome.press(Keys.ESCAPE)
    chrome.wait("the end of the dialog", lambda: not chrome.find("dialog[open]"))


def test_g_and_a_letter_open_a_page(world):
    chrome = world.chrome
    world.sign_in("viewer")
    chrome.press("?")
    keys = dict(zip([it.text for it in chrome.find("dialog dd")], [it.text for it in chrome.find("dialog dt")]))
    chrome.press(Keys.ESCAPE)
    for name, path in [("Jobs", "/jobs"), ("Balance", "/balance"), ("Overview", "/")]:
        g, letter = keys[f"Go to {name}"].split()
        assert g == "g"
        follow(chrome, "g", letter)
        assert chrome.path == path, chrome.path


def test_j_and_k_move_between_rows(world):
    chrome = world.chrome
    world.sign_in("viewer", "/jobs?name_prefix=nightly-0")
    names = [link.text for link in chrome.find("tbody tr th a")]
    assert len(names) == 10, names
    for keys, name in [("j", names[0]), ("jj", names[2]), ("k", names[1])]:
        chrome.press(*keys)
        assert chrome.focused().text == name
    follow(chrome, Keys.ENTER)
    assert names[1] in chrome.heading()


def test_palette_goes_to_pages_and_finds_jobs(world):
    chrome = world.chrome
    world.sign_in("viewer")
    open_palette = lambda: ActionChains(chrome.driver).key_down(Keys.CONTROL).send_keys("k") \
        .key_up(Keys.CONTROL).perform()
    open_palette()
    chrome.press("dead")
    follow(chrome, Keys.ARROW_DOWN, Keys.ENTER)
    assert chrome.path == "/dead-letters", chrome.path
    open_palette()
    chrome.press("nightly-07")
    follow(chrome, Keys.ENTER)
    assert chrome.path == "/jobs?q=nightly-07", chrome.path


def test_shortcuts_of_one_key_can_be_switched_off(world):
    chrome = world.chrome
    world.sign_in("viewer", "/jobs")
    chrome.press("?")
    chrome.one("dialog input[type=checkbox]").click()
    chrome.press(Keys.ESCAPE)
    chrome.wait("the end of the dialog", lambda: not chrome.find("dialog[open]"))
    chrome.press("/")
    assert chrome.focused().get_attribute("id") != "q"
    chrome.open("/jobs")
    chrome.press("?")
    assert not chrome.find("dialog[open]")


def test_every_tab_stop_is_visible(world):
    chrome = world.chrome
    world.sign_in("operator")
    job = world.create("keyboard")
    for path in ["/", "/jobs", f"/jobs/{job}", "/balance", "/jobs/new", "/queue"]:
        chrome.open(path)
        seen = tab_through(chrome)
        assert len(seen) > 5, f"{path} has only the tab stops {seen}"
        unclear = [it for it in seen if it["style"] == "none" or it["width"] < 2 or not it["isShown"]]
        assert not unclear, f"the focus is not visible on {path}: {unclear}"


def tab_through(chrome):
    """Returns how each tab stop of the page looks with focus."""
    seen = []
    for _ in range(TABS_MAX):
        chrome.press(Keys.TAB)
        found = chrome.run(FOCUS)
        if found["isBody"] or (seen and found["tag"] == seen[0]["tag"] and "skip" in found["tag"]):
            return seen
        seen.append(found)
    return seen


def test_first_tab_stop_skips_the_navigation(world):
    chrome = world.chrome
    world.sign_in("viewer", "/jobs")
    chrome.press(Keys.TAB)
    assert chrome.focused().text == "Skip to the content"
    chrome.press(Keys.ENTER)
    assert chrome.driver.current_url.endswith("#main")
    chrome.press(Keys.TAB)
    assert chrome.run("return document.querySelector('main').contains(document.activeElement)")


def test_menu_opens_and_closes_with_the_keyboard(world):
    chrome = world.chrome
    world.sign_in("viewer", "/jobs")
    menu = chrome.one(".more > summary")
    chrome.run("arguments[0].focus()", menu)
    chrome.press(Keys.ENTER)
    assert chrome.link("Dead letters").is_displayed()
    chrome.press(Keys.TAB)
    assert chrome.focused().text == "Dead letters"
    chrome.press(Keys.ESCAPE)
    assert not chrome.find(".more[open]") and chrome.focused() == menu
    chrome.press(Keys.ENTER)
    chrome.one("h1").click()
    assert not chrome.find(".more[open]"), "a click elsewhere leaves the menu open"
