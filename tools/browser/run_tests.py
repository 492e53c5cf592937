"""Tests the dashboard in Chromium: python run_tests.py --binary EVENKEEL --folder FOLDER [NAME ...]

Runs all tests, or those whose name contains one of the given texts. The last line of the output has
the counts. The folder gets the logs, and a picture of the page of each test that fails.
"""

import argparse
import importlib
import sys
import time
import traceback

from world import World, add_arguments

# The modules in `tests`, in the order in which they run. Each has functions `test_…(world)`.
MODULES = ["sign_in", "pages", "hostile_text", "other_origin", "api_cookie", "sign_out", "tenants",
           "roles", "new_user", "heat_map", "keyboard", "schedule_preview", "time_zones",
           "narrow_window", "without_script", "job_commands", "job_form", "many_jobs", "api_keys",
           "live_updates", "ten_tabs", "rebalance", "timeline"]


def tests(names):
    for module_name in MODULES:
        module = importlib.import_module(f"tests.{module_name}")
        for name, test in vars(module).items():
            full_name = f"{module_name}::{name.removeprefix('test_')}"
            if name.startswith("test_") and (not names or any(it in full_name for it in names)):
                yield full_name, test


def passes(world, name, test):
    began = time.monotonic()
    try:
        world.chrome.reset()
        test(world)
        error = None
    except Exception:
        error = traceback.format_exc()
    print(f"{'ok' if error is None else 'FAILED'} {name} ({time.monotonic() - began:.1f} s)")
    if error is not None:
        print(error)
        picture = world.folder / f"{name.replace('::', '-')}.png"
        world.chrome.driver.save_screenshot(str(picture))
    sys.stdout.flush()
    return error is None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_arguments(parser)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    with World(options.binary, options.folder) as world:
        results = [passes(world, name, test) for name, test in tests(options.names)]
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
