# SPDX-License-Identifier: Apache-2.0
"""store_proxy.py - what stands between a store plugin and its server in a test."""
import socket
import threading

from store_tool import LIMIT_S


class Proxy:
    """Between a client and a server: gives answers of its own, cuts what comes back, or holds a
    request that has `hold` in it until it is released."""

    def __init__(self, port):
        self.port_behind, self.cut, self.greeting, self.n = port, None, [], 0
        self.hold, self.held, self.released, self.passed = None, threading.Event(), threading.Event(), threading.Event()
        self.answers = b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.n += 1
            if self.greeting:
                client.recv(4096)
                client.sendall(self.greeting.pop(0))
                client.close()
                continue
            behind = socket.create_connection(("127.0.0.1", self.port_behind))
            threading.Thread(target=self.forward, args=(client, behind), daemon=True).start()
            threading.Thread(target=self.back, args=(behind, client), daemon=True).start()

    def forward(self, client, behind):
        asked = b""
        while True:
            try:
                data = client.recv(65536)
            except OSError:
                data = b""
            if not data:
                break
            asked = (asked + data)[-65536:]
            if self.cut and self.cut in asked:
                self.asked = asked
            if self.hold and self.hold in data:
                self.hold = None
                self.held.set()
                self.released.wait(LIMIT_S)
                behind.sendall(data)
                self.passed.wait(LIMIT_S)  # the client may have gone: no end before the answer
                continue
            behind.sendall(data)
        self.end(behind)

    def back(self, behind, client):
        while True:
            try:
                data = behind.recv(65536)
            except OSError:
                data = b""
            if not data:
                break
            if self.cut and self.cut in getattr(self, "asked", b""):
                self.cut = None  # the next time it goes through
                break
            self.answers = (self.answers + data)[-65536:]
            try:
                client.sendall(data)
            except OSError:
                pass
            if self.released.is_set():
                self.passed.set()
        self.end(client)
        self.end(behind)

    @staticmethod
    def end(link):
        try:
            link.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
