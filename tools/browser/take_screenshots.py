"""Takes pictures of all pages: python take_screenshots.py --binary EVENKEEL --folder FOLDER"""

import argparse
import base64

from world import World, add_arguments

# Name of the picture, width of the window, colour scheme, forced colours.
LOOKS = [
    ("light", 1280, "light", "none"),
    ("dark", 1280, "dark", "none"),
    ("forced", 1280, "dark", "active"),
    ("wide", 1920, "light", "none"),
    ("narrow", 360, "light", "none"),
]
HEIGHT = 900
# Taller pages are cut off.
HEIGHT_MAX = 4000
PAGE_HEIGHT = "return document.documentElement.scrollHeight"


def file_name(path, look):
    words = path.split("?")[0].strip("/").replace("/", "-") or "overview"
    return f"{words}-{look}.png"


def take(world, path, name):
    chrome = world.chrome
    for look, width, scheme, forced in LOOKS:
        chrome.media(scheme, forced)
        chrome.resize(width, HEIGHT)
        chrome.open(path)
        height = min(max(chrome.run(PAGE_HEIGHT), HEIGHT), HEIGHT_MAX)
        area = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        picture = chrome.command("Page.captureScreenshot", clip=area, captureBeyondViewport=True)
        (world.folder / file_name(name, look)).write_bytes(base64.b64decode(picture["data"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    options = parser.parse_args()
    with World(options.binary, options.folder) as world:
        take(world, "/sign-in", "sign-in")
        world.sign_in("admin")
        for path, name in world.named_pages().items():
            take(world, path, name)


if __name__ == "__main__":
    main()
