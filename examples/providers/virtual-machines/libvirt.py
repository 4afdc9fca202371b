#!/usr/bin/env python3
"""The same guests as domains of libvirt: `virsh -c qemu:///session`, as an ordinary user.

What a guest is told, and how, is in machine.py; here is only how it begins and ends.
"""
import json
import os
import shutil
import subprocess
import sys
from xml.sax.saxutils import escape

import machine

DOMAIN = """<domain type='qemu'>
  <name>{name}</name><memory unit='MiB'>128</memory><vcpu>1</vcpu>
  <os><type arch='x86_64'>hvm</type><kernel>{cache}/vmlinuz</kernel><initrd>{cache}/initrd</initrd>
    <cmdline>console=ttyS0 quiet panic=-1</cmdline></os>
  <on_reboot>destroy</on_reboot>
  <devices>
    <serial type='file'><source path='{path}/console'/><target port='0'/></serial>
    <serial type='unix'><source mode='bind' path='{path}/line'/><target port='1'/></serial>
  </devices>
</domain>"""


def virsh(*words, given=None):
    command = ["virsh", "-q", "-c", "qemu:///session", *words]
    return subprocess.run(command, input=given, capture_output=True, text=True)


def process(path):
    """Whether the domain of this folder runs."""
    return virsh("domstate", os.path.basename(path)).stdout.strip() == "running" or None


def boot(path, name, _instance_type):
    home = os.path.dirname(os.path.abspath(__file__))
    cache = subprocess.run([f"{home}/prepare.py"], check=True, capture_output=True, text=True).stdout.strip()
    xml = DOMAIN.format(name=escape(name), cache=escape(cache), path=escape(path))
    for words in (("define", "/dev/stdin"), ("start", name)):
        done = virsh(*words, given=xml)
        if done.returncode:
            sys.exit(done.stderr)


def delete(question):
    for word in ("destroy", "undefine"):
        virsh(word, question["machine"])  # one that is not there is what is wanted
    if process(machine.folder(question)):
        sys.exit("the domain still runs")
    shutil.rmtree(machine.folder(question), ignore_errors=True)


if __name__ == "__main__":
    machine.process, machine.boot = process, boot
    kept = (machine.create, machine.configure, machine.ready, machine.drain, machine.describe)
    calls = {it.__name__: it for it in (*kept, delete)}
    answer = calls[sys.argv[1]](json.load(sys.stdin))
    if answer:
        json.dump(answer, sys.stdout)
