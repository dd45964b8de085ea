# SPDX-License-Identifier: MIT OR Apache-2.0
"""Programs for both ends of a path: `far.py serve` at the far one, `far.py TEST N` at the near.

The server answers UDP datagrams on one port; notes those on another, and says on a connection
which came; and takes bytes on a connection, whose number and SHA-256 it sends back.
"""

import hashlib
import json
import os
import socket
import struct
import sys
import threading
import time

ECHO, NOTE, ASK, TAKE = range(9001, 9005)
PAYLOAD_BYTES = 1000
PATIENCE_S = 30
#: Of struct tcp_info (linux/tcp.h): tcpi_delivered, and tcpi_delivered_ce behind it.
DELIVERED_AT = 192


def serve() -> None:
    noted: list[int] = []

    def datagrams(port: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        sock.bind(("", port))
        return sock

    def echo(sock: socket.socket) -> None:
        while True:
            sock.sendto(*sock.recvfrom(65536))

    def note(sock: socket.socket) -> None:
        while True:
            noted.append(int.from_bytes(sock.recv(65536)[:4], "big"))

    def tell(listener: socket.socket) -> None:
        while True:
            with listener.accept()[0] as connection:
                connection.sendall(json.dumps(noted).encode())

    for work, sock in [(echo, datagrams(ECHO)), (note, datagrams(NOTE))]:
        threading.Thread(target=work, args=(sock,)).start()
    ask = socket.create_server(("", ASK))
    threading.Thread(target=tell, args=(ask,)).start()
    with socket.create_server(("", TAKE)) as listener:
        while True:
            with listener.accept()[0] as connection:
                digest, count = hashlib.sha256(), 0
                while data := connection.recv(1 << 20):
                    digest.update(data)
                    count += len(data)
                connection.sendall(json.dumps([count, digest.hexdigest()]).encode())


def answer(port: int, payload: bytes = b"") -> object:
    with socket.create_connection((os.environ["LFN_FAR"], port), PATIENCE_S) as connection:
        connection.settimeout(PATIENCE_S)
        if payload:
            connection.sendall(payload)
        connection.shutdown(socket.SHUT_WR)
        return json.loads(connection.makefile("rb").read())


def ping(count: int) -> list[float]:
    """Round-trip times in seconds, one after the other."""
    times_s = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(PATIENCE_S)
        sock.connect((os.environ["LFN_FAR"], ECHO))
        for _ in range(count):
            began = time.monotonic()
            sock.send(b"x")
            sock.recv(16)
            times_s.append(time.monotonic() - began)
    return times_s


def burst(count: int) -> object:
    """Numbers of the datagrams of a burst that arrive, as they arrive."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        sock.connect((os.environ["LFN_FAR"], NOTE))
        for number in range(count):
            sock.send(number.to_bytes(4, "big").ljust(PAYLOAD_BYTES, b"."))
    # A connection follows on the same path; by its second round trip all that came has been noted.
    answer(ASK)
    return answer(ASK)


def transfer(size_bytes: int) -> dict[str, object]:
    payload = os.urandom(size_bytes)
    began = time.monotonic()
    count, digest = answer(TAKE, payload)
    return {
        "intact": count == size_bytes and digest == hashlib.sha256(payload).hexdigest(),
        "duration_s": time.monotonic() - began,
    }


def marked(size_bytes: int) -> list[int]:
    """Segments delivered under dctcp, and of those the marked ones, as its sender counts them."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_TCP, socket.TCP_CONGESTION, b"lfn_dctcp")
        sock.settimeout(PATIENCE_S)
        sock.connect((os.environ["LFN_FAR"], TAKE))
        sock.sendall(bytes(size_bytes))
        sock.shutdown(socket.SHUT_WR)
        sock.makefile("rb").read()
        info = sock.getsockopt(socket.SOL_TCP, socket.TCP_INFO, DELIVERED_AT + 8)
    return list(struct.unpack_from("2I", info, DELIVERED_AT))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        print(json.dumps(globals()[sys.argv[1]](*map(int, sys.argv[2:]))))
