"""Takes pictures of all pages: python take_screenshots.py --binary EVENKEEL --folder FOLDER [NAME ...]

The folder `demo` gets the pages of a server with sample jobs, `hostile` those of a server with hostile
text. With names, only pages whose name contains one of them are taken.
"""

import argparse
import base64
import shutil
import time

from chrome import Chrome
from demo import demo_pages
from server import Server
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
# The sample jobs have runs, failures and a late job after this time.
DEMO_SECONDS = 20


def file_name(name, look):
    words = name.split("?")[0].strip("/").replace("/", "-") or "overview"
    return f"{words}-{look}.png"


def take(chrome, path, name, folder, looks=LOOKS):
    for look, width, scheme, forced in looks:
        chrome.media(scheme, forced)
        chrome.resize(width, HEIGHT)
        chrome.open(path)
        height = min(max(chrome.run(PAGE_HEIGHT), HEIGHT), HEIGHT_MAX)
        area = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        picture = chrome.command("Page.captureScreenshot", clip=area, captureBeyondViewport=True)
        (folder / file_name(name, look)).write_bytes(base64.b64decode(picture["data"]))


def take_all(chrome, pages, folder, names):
    folder.mkdir(exist_ok=True)
    for path, name in pages.items():
        if not names or any(it in name for it in names):
            take(chrome, path, name, folder)


def take_demo(binary, folder, names):
    folder.mkdir()
    server = Server(binary, folder, ["--demo"])
    try:
        chrome = Chrome(server, folder)
        try:
            chrome.sign_in(server.token)
            time.sleep(DEMO_SECONDS)
            pages = {path: path for path in chrome.navigation()}
            take_all(chrome, pages | demo_pages(server), folder.parent / "demo", names)
        finally:
            chrome.quit()
    finally:
        server.stop()


def take_hostile(binary, folder, names):
    with World(binary, folder) as world:
        take_all(world.chrome, {"/sign-in": "sign-in"}, folder.parent / "hostile", names)
        world.sign_in("admin")
        take_all(world.chrome, world.named_pages(), folder.parent / "hostile", names)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    take_demo(options.binary, folder / "demo-server", options.names)
    take_hostile(options.binary, folder / "hostile-server", options.names)
    # The data of the servers and the profiles of the browsers are of no use to a reader.
    for name in ["demo-server", "hostile-server"]:
        shutil.rmtree(folder / name, ignore_errors=True)


if __name__ == "__main__":
    main()
