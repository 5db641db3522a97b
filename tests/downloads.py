"""A server on this machine, for tests of downloads."""

import contextlib
import http.server
import threading


def files_below(place):
    return [p for p in place.rglob("*") if p.is_file()]


@contextlib.contextmanager
def served(body, announce=None, status=200):
    """A server on this machine that answers every request with `body`; yields its address and the requests so far."""
    requests = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) if announce is None else announce))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/titanic.csv", requests
        finally:
            server.shutdown()
            thread.join()
