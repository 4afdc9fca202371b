#!/usr/bin/env python3
"""Machines that are processes of this computer: each writes a heartbeat, and is lost when it is killed.

    create ─▶ a daemon in a session of its own    configure ─▶ told its cluster, over a socket
    delete ─▶ told to end                         drain ─▶ told to leave it

Bootstrap data stays in the memory of the daemon: no file, command line or variable has it.
Every call may come twice; the second finds done what the first did.
"""
import base64
import fcntl
import json
import os
import shutil
import socket
import sys
import time

ROOT = os.path.join(os.getcwd(), "machines")
TRY_LATER, REFUSED = 75, 64


def folder(question):
    name = question["machine"]
    if "/" in name or name.startswith("."):
        sys.exit(f"{name} cannot be the name of a folder")
    return os.path.join(ROOT, name)


def tell(path, message):
    """What the machine in this folder answers; None if nobody is there."""
    try:
        os.chdir(path)  # the name of a socket is short, the name of a folder may not be
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(10)
            line.connect("socket")
            line.sendall(json.dumps(message).encode() + b"\n")
            return json.loads(line.makefile().readline())
    except (FileNotFoundError, ConnectionError, json.JSONDecodeError, TimeoutError):
        return None


def live(name):
    """The machine itself: answers on its socket, and writes its heartbeat once a second."""
    cluster, blob = "", b""
    door = socket.socket(socket.AF_UNIX)
    door.bind("socket")
    door.listen(64)
    door.settimeout(1)
    while True:
        with open("heartbeat.new", "w") as file:
            beat = {"machine": name, "pid": os.getpid(), "at": time.strftime("%FT%TZ", time.gmtime())}
            json.dump(beat | {"cluster": cluster, "bootstrap_bytes": len(blob)}, file)
        os.rename("heartbeat.new", "heartbeat")
        try:
            line, _ = door.accept()
        except TimeoutError:
            continue
        with line:
            line.settimeout(10)
            try:
                asked = json.loads(line.makefile().readline())
                if asked["call"] == "configure":
                    cluster, blob = asked["cluster"], base64.b64decode(asked["bootstrap_blob"])
                elif asked["call"] == "drain":
                    cluster, blob = "", b""
                answer = {"pid": os.getpid(), "cluster": cluster}
                line.sendall(json.dumps(answer).encode() + b"\n")
                if asked["call"] == "delete":
                    return
            except (OSError, ValueError, KeyError):
                pass  # a caller that was ended in the middle; the machine lives on


def start(path, name):
    """Leaves a machine behind that has nothing in common with this run but its program."""
    if os.fork() == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        os.closerange(3, 256)  # the lock too: it is the starter's
        os.chdir(path)
        if os.path.exists("socket"):
            os.remove("socket")
        try:
            live(name)
        finally:
            os._exit(0)


def create(question):
    path = folder(question)
    os.makedirs(path, mode=0o700, exist_ok=True)
    with open(os.path.join(path, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = tell(path, {"call": "look"})
        if answer is None:
            start(path, question["machine"])
        while answer is None:
            time.sleep(0.01)
            answer = tell(path, {"call": "look"})
    return {"host": str(answer["pid"])}


def configure(question):
    if tell(folder(question), question) is None:
        sys.exit("the machine does not answer")


def ready(question):
    answer = tell(folder(question), {"call": "look"})
    if answer is None:
        sys.exit("the machine does not answer")
    if answer["cluster"] != question["cluster"]:
        sys.exit(TRY_LATER)


def drain(question):
    if tell(folder(question), question) is None:
        sys.exit("the machine does not answer")


def delete(question):
    path = folder(question)
    while tell(path, question) is not None:
        time.sleep(0.01)
    os.chdir("/")
    shutil.rmtree(path, ignore_errors=True)


def describe(_question):
    names = sorted(os.listdir(ROOT)) if os.path.isdir(ROOT) else []
    answers = [(name, tell(os.path.join(ROOT, name), {"call": "look"})) for name in names]
    return {"hosts": [{"machine": name, "host": str(it["pid"])} for name, it in answers if it]}


if __name__ == "__main__":
    calls = {it.__name__: it for it in (create, configure, ready, drain, delete, describe)}
    answer = calls[sys.argv[1]](json.load(sys.stdin))
    if answer:
        json.dump(answer, sys.stdout)
