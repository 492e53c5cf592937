"""Pages in a window of 360 pixels."""

SCROLLS = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"


WIDEST = """
const right = it => it.getBoundingClientRect().right;
// Tables scroll on their own.
const found = [...document.querySelectorAll('main *, header *')].filter(it => !it.closest('table'))
    .sort((a, b) => right(b) - right(a));
return found.slice(0, 3).map(it => it.outerHTML.slice(0, 120)).join(' | ');
"""


def test_no_page_scrolls_horizontally_in_a_narrow_window(world):
    chrome = world.chrome
    world.sign_in("admin")
    paths = world.pages()
    chrome.resize(360, 800)
    wide = []
    for path in paths:
        chrome.open(path)
        if chrome.run(SCROLLS) > 0:
            wide.append(f"{path} by {chrome.run(SCROLLS)} pixels: {chrome.run(WIDEST)}")
    assert not wide, "these pages are wider than the window:\n" + "\n".join(wide)
