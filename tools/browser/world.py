"""All that a test needs: a server with data, a browser and another site."""

import shutil
from pathlib import Path

import seed
from chrome import Chrome
from other_site import OtherSite
from server import Server


def add_arguments(parser):
    parser.add_argument("--binary", required=True, help="the evenkeel program")
    parser.add_argument("--folder", required=True, type=Path, help="is emptied and gets all files")


class World:
    """Starts everything on entry and stops it on exit."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder.resolve()
        self.parts = []

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        try:
            self.site = self._keep(OtherSite(), OtherSite.stop)
            self.server = self._keep(Server(self.binary, self.folder), Server.stop)
            self.seeded = seed.fill(self.server, self.site)
            self.chrome = self._keep(Chrome(self.server, self.folder), Chrome.quit)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _keep(self, part, stop):
        self.parts.append((part, stop))
        return part

    def __exit__(self, *_):
        while self.parts:
            part, stop = self.parts.pop()
            stop(part)

    def sign_in(self, role="admin", path="/", tenant="default"):
        self.chrome.sign_in(self.server.create_token(role, tenant), path)

    def pages(self):
        """The paths of all pages for the role of the session."""
        return list(self.named_pages())

    def named_pages(self):
        """The paths of the pages in the navigation, of a job and of a run, with their names."""
        paths = self.chrome.navigation()
        assert "/jobs" in paths, f"the navigation has only {paths}"
        pages = {path: path for path in paths}
        pages[f"/jobs/{self.seeded.hostile_job}"] = "job"
        pages[f"/jobs/{self.seeded.failing_job}?at=09:00"] = "job-at-nine"
        pages[f"/runs/{self.seeded.hostile_run}"] = "run"
        return pages
