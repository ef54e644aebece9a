#!/usr/bin/env python3
"""The stack beside the kernel's sockets, over a veth pair between namespaces of its own.

    unshare -n python3 interpose/netstack/bench.py target/release/postern build/netstack.px

Each line: what, who, offloads of both interfaces, value, unit, ratio to the kernel's with the same.
The program under test is the same; its peer always has the kernel's sockets.
"""
import array, fcntl, os, socket, struct, subprocess, sys, tempfile, time

SECONDS = 1.5
OWN, STACK, PEER = "10.78.0.3", "10.78.0.2", "10.78.0.1"


def run(*words):
    subprocess.run(words, check=True)


def offloads(name, on):
    """Sums, segments and merging, by ethtool's requests to set them."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for request in (0x15, 0x17, 0x19, 0x1F, 0x24, 0x2C):
            value = array.array("B", struct.pack("II", request, on))
            asked = struct.pack("16sP16x", name.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(any_socket, 0x8946, asked)
            except OSError:
                pass  # An interface that has no such thing.


def main():
    postern, agent = sys.argv[1:3]
    folder = tempfile.mkdtemp()
    program = os.path.join(folder, "bench")
    run("gcc", "-O2", "-o", program, os.path.join(os.path.dirname(os.path.abspath(__file__)), "bench.c"))
    other = subprocess.Popen(["unshare", "-n", "sleep", "600"])
    while os.readlink("/proc/self/ns/net") == os.readlink(f"/proc/{other.pid}/ns/net"):
        time.sleep(0.01)
    across = ["nsenter", "-n", "-t", str(other.pid)]
    try:
        run("ip", "link", "add", "stack", "type", "veth", "peer", "name", "kernel", "netns", str(other.pid))
        run("ip", "addr", "add", OWN + "/24", "dev", "stack")
        run("ip", "link", "set", "stack", "up")
        run("ip", "link", "set", "lo", "up")
        run(*across, "ip", "addr", "add", PEER + "/24", "dev", "kernel")
        run(*across, "ip", "link", "set", "kernel", "up")
        under = [postern, "interpose", agent, "--interface", "stack", "--address", STACK + "/24", "--"]
        port = iter(range(5000, 9000, 2))
        kernels = {}

        def start(before, *words):
            words = [*before, program, *map(str, words)]
            return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

        def say(what, who, state, value, unit):
            base = kernels.setdefault((what, state), value)
            print(f"{what:24} {who:7} offloads {state:4} {value:9.2f} {unit:7} {value / base:5.2f}", flush=True)

        def pair(first, second, printer, wait):
            """Starts one, then the other; what the first or second has printed."""
            one = start(*first)
            time.sleep(wait)
            two = start(*second)
            text = (one, two)[printer].communicate(timeout=30)[0]
            for process in (one, two):
                process.wait(timeout=30)
            return float(text)

        for state in ("on", "off"):
            offloads("stack", state == "on")
            run(*across, sys.executable, __file__, "--offloads", "kernel", str(int(state == "on")))
            for who, before, address in (("kernel", [], OWN), ("stack", under, STACK)):
                p = next(port)
                got = pair((before, "sink", "-", p, SECONDS), (across, "source", address, p, SECONDS * 2), 0, 1)
                say("TCP, received", who, state, got, "Gbit/s")
                p = next(port)
                got = pair((across, "sink", "-", p, SECONDS), (before, "source", PEER, p, SECONDS * 2), 0, 0.2)
                say("TCP, sent", who, state, got, "Gbit/s")
                p = next(port)
                got = pair((before, "echo", "-", p, 0), (across, "ask", address, p, SECONDS), 1, 1)
                say("TCP, round trip", who, state, got, "us")
        for hogs in (0, 4, 16):
            busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(hogs)]
            try:
                for who, before, address in (("kernel", [], OWN), ("stack", under, STACK)):
                    p = next(port)
                    forward = start(before, "forward", PEER, p, SECONDS + 2.5)
                    time.sleep(1)
                    flood = start(across, "flood", address, p, SECONDS + 1)
                    time.sleep(0.3)
                    count = start(across, "count", "-", p + 1, SECONDS)
                    text = count.communicate(timeout=60)[0]
                    flood.wait(timeout=60)
                    forward.wait(timeout=60)
                    say(f"UDP, forwarded, {hogs} hogs", who, "off", float(text), "Mbit/s")
            finally:
                for process in busy:
                    process.kill()
                    process.wait()
    finally:
        other.kill()
        other.wait()
        os.remove(program)
        os.rmdir(folder)


if sys.argv[1:2] == ["--offloads"]:
    offloads(sys.argv[2], int(sys.argv[3]))
else:
    main()
