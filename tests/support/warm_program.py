"""The program `sapwood`, started from a process that has its modules in memory already.

Imports take most of the time of a short command. `serving` starts one server per module of tests,
which imports everything once and forks for each command. It writes an executable `sapwood` that
hands its arguments, environment, folder, standard streams and signals to the server.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from sapwood.cli import _start_quickly, main

STREAMS = 3
PRELOADED = (
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "sapwood.cli.app",
    "sapwood.cli.command",
    "sapwood.plot",
    "sapwood.report",
)
CLIENT = """#!{python} -SE
import json, os, signal, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    job = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(server, [len(job).to_bytes(8, "big")], [0, 1, 2])
    server.sendall(job)
    answers = server.makefile()
    process = int(answers.readline())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os.kill(process, number))
    code = answers.readline()
sys.exit(int(code) if code else 1)
"""


@contextmanager
def serving(folder: Path):
    """Serve the program while the block runs; return the folder that belongs into PATH."""
    address = str(folder / "socket")
    program = folder / "sapwood"
    program.write_text(CLIENT.format(python=sys.executable, address=address), encoding="utf-8")
    program.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, __file__, address], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    try:
        assert server.stdout.readline() == b"ready\n"
        yield folder
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def serve(address: str) -> None:
    """Fork for each command that arrives."""
    _start_quickly()
    for name in PRELOADED:
        __import__(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # processes that have answered need no wait
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("ready", flush=True)
    while True:
        client, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            answer(client)
            os._exit(0)
        client.close()


def answer(client: socket.socket) -> None:
    """Run a command in a process, and send its number and its exit code to the client."""
    size, streams, _, _ = socket.recv_fds(client, 8, STREAMS)
    job = json.loads(client.makefile("rb").read(int.from_bytes(size, "big")))
    process = os.fork()
    if process == 0:
        client.close()
        run(*job, streams)
    for stream in streams:
        os.close(stream)
    client.sendall(f"{process}\n".encode())
    _, status = os.waitpid(process, 0)
    client.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def run(arguments: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    """Run the program as the client would have run it, and end this process."""
    for place, stream in enumerate(streams):
        os.dup2(stream, place)
        os.close(stream)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace")
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["sapwood", *arguments]
    try:
        main()  # which ends the process
    finally:
        os._exit(1)


if __name__ == "__main__":
    serve(sys.argv[1])
