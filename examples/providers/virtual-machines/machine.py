#!/usr/bin/env python3
"""Machines that are virtual machines of this computer: qemu, without hardware support, and a guest that listens.

    create ─▶ qemu, and the guest answers      configure ─▶ cluster and bootstrap data over a serial line
    delete ─▶ qemu ends                        drain ─▶ the guest forgets them

Bootstrap data goes from standard input to the serial line: no file, command line or variable has it.
Every call may come twice; the second finds done what the first did.
"""
import base64
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

ROOT = os.path.join(os.getcwd(), "machines")
NO_STOCK = 69


def folder(question):
    name = question["machine"]
    if "/" in name or name.startswith("."):
        sys.exit(f"{name} cannot be the name of a folder")
    return os.path.join(ROOT, name)


def process(path):
    """The number of the qemu of this folder, if it runs."""
    try:
        with open(os.path.join(path, "pid")) as file:
            number = int(file.read())
        with open(f"/proc/{number}/cmdline", "rb") as file:
            ours = f"guest={os.path.basename(path)}".encode() in file.read().split(b"\0")
        return number if ours else None
    except (FileNotFoundError, ValueError, ProcessLookupError):
        return None


def say(path, request, content=b"", within=30):
    """What the guest answers: the cluster it serves and the sum of its bootstrap data; None if it is silent."""
    mark = os.urandom(4).hex()
    os.chdir(path)  # the name of a socket is short, the name of a folder may not be
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(within)
        try:
            line.connect("line")
            # An empty line ends whatever somebody before us did not finish.
            line.sendall(f"\n{mark} {request}\n".encode() + content)
            for answer in line.makefile(errors="replace"):
                if answer.startswith(mark):
                    return answer.split()[1:]
        except (FileNotFoundError, ConnectionError, TimeoutError):
            pass
    return None


def create(question):
    path, name = folder(question), question["machine"]
    os.makedirs(path, mode=0o700, exist_ok=True)
    with open(os.path.join(path, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if process(path) is None:
            boot(path, name, question["offering"]["instance_type"])
        # What is said before the guest listens is lost, so we ask again; on a busy computer its answer takes a while.
        within = 1
        while say(path, "look", within=within) is None:
            if process(path) is None:
                sys.exit("qemu ended while the guest started")
            within = min(2 * within, 30)
    return {"host": name, "provider_id": f"qemu:///{name}", "node_name": name}


def boot(path, name, instance_type):
    home = os.path.dirname(os.path.abspath(__file__))
    cache = subprocess.run([f"{home}/prepare.py"], check=True, capture_output=True, text=True).stdout.strip()
    memory = {"tiny": "96"}.get(instance_type, "128")
    for stale in ("pid", "line"):
        if os.path.exists(os.path.join(path, stale)):
            os.remove(os.path.join(path, stale))
    # -accel tcg: a /dev/kvm that is there may still not work, and a guest this small does without.
    started = subprocess.run(
        ["qemu-system-x86_64", "-accel", "tcg", "-m", memory, "-nodefaults", "-display", "none", "-no-reboot"]
        + ["-name", f"guest={name}", "-daemonize", "-pidfile", f"{path}/pid"]
        + ["-kernel", f"{cache}/vmlinuz", "-initrd", f"{cache}/initrd"]
        + ["-append", "console=ttyS0 quiet panic=-1"]
        + ["-chardev", "file,id=console,path=console", "-serial", "chardev:console"]
        + ["-chardev", "socket,id=line,path=line,server=on,wait=off", "-serial", "chardev:line"],
        cwd=path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )
    if "Cannot allocate memory" in started.stderr:
        print(started.stderr, file=sys.stderr)
        sys.exit(NO_STOCK)
    if started.returncode:
        sys.exit(started.stderr)


def wire_name(cluster):
    """A cluster's name as one word of a line."""
    return base64.urlsafe_b64encode(cluster.encode()).decode()


def configure(question):
    blob = base64.b64decode(question["bootstrap_blob"])
    request = f"configure {wire_name(question['cluster'])} {len(blob)}"
    expected = [wire_name(question["cluster"]), hashlib.sha256(blob).hexdigest()]
    if say(folder(question), request, blob) != expected:
        sys.exit("the guest did not take its bootstrap data")


def ready(question):
    answer = say(folder(question), "look")
    if answer is None or answer[0] != wire_name(question["cluster"]):
        sys.exit("the guest does not serve its cluster")


def drain(question):
    if say(folder(question), "drain") is None:
        sys.exit("the guest does not answer")


def delete(question):
    path = folder(question)
    number = process(path)
    if number is not None:
        os.kill(number, signal.SIGTERM)
    while process(path) is not None:
        time.sleep(0.02)
    shutil.rmtree(path, ignore_errors=True)


def describe(_question):
    names = sorted(os.listdir(ROOT)) if os.path.isdir(ROOT) else []
    alive = [name for name in names if process(os.path.join(ROOT, name))]
    return {"hosts": [{"machine": it, "host": it, "provider_id": f"qemu:///{it}"} for it in alive]}


if __name__ == "__main__":
    calls = {it.__name__: it for it in (create, configure, ready, drain, delete, describe)}
    answer = calls[sys.argv[1]](json.load(sys.stdin))
    if answer:
        json.dump(answer, sys.stdout)
