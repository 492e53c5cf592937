"""A web site of another origin: it links to the dashboard, attacks it, and can be crawled.

The site is reached as `localhost`, the dashboard as `127.0.0.1`. Browsers regard these as different
sites, but not two ports of one host.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class OtherSite:
    """Serves the HTML of `pages` by path, with the headers and the status of the path, if any."""

    def __init__(self):
        self.pages, self.headers, self.statuses = {}, {}, {}
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                html = site.pages.get(self.path)
                status = 200 if html is not None else 404
                self.send_response(site.statuses.get(self.path, status))
                self.send_header("Content-Type", "text/html; charset=utf-8")
                for name, value in site.headers.get(self.path, {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write((html or "").encode())

            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.do_GET()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://localhost:{self.port}{path}"

    def address(self, path):
        """The URL for the crawler, which may call only the addresses of `--allow-network`."""
        return f"http://127.0.0.1:{self.port}{path}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
