"""Small HTTP servers of the tests' own, in front of the API server or of the daemon."""

import contextlib
import http.server
import os
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def listening(handler, port=0, context=None):
    """A server at a port of 127.0.0.1, with TLS if there is a context; what it still answers at the end is left."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    if context is not None:
        # The handshake is the connection's thread's, or one slow client would hold up all.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def kubeconfig_of(server, folder):
    """A file for clients that say nothing of themselves."""
    path = os.path.join(folder, "relay.kubeconfig")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:{server.server_port}'}}}}]\n"
                   "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n")
    return path
