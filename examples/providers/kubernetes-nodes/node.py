#!/usr/bin/env python3
"""Machines that become Nodes of the cluster they are configured for, through its API server; no kubelet, no pods run.

    create ─▶ a folder    configure ─▶ a daemon: registers the Node, keeps its Lease    delete ─▶ no folder
                          drain ─▶ the daemon cordons the Node, waits for its Pods, removes it, ends

Bootstrap data is a kubeconfig in JSON. It stays in the memory of the daemon: drain and delete are given none, and
no file, command line or variable has it. Every call may come twice; the second finds done what the first did.
"""
import base64
import fcntl
import http.client
import json
import os
import shutil
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request

ROOT = os.path.join(os.getcwd(), "machines")
TRY_LATER, REFUSED = 75, 64
LEASE_SECONDS = 40


class Api:
    """The API server a kubeconfig names, with the credentials it has."""

    def __init__(self, kubeconfig):
        config = json.loads(kubeconfig)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server, self.token = cluster["server"].rstrip("/"), user.get("token")
        self.tls = None
        if self.server.startswith("https:"):
            authority = cluster.get("certificate-authority-data")
            self.tls = ssl.create_default_context(cadata=base64.b64decode(authority).decode() if authority else None)
            if "client-certificate-data" in user:
                self.show(user["client-certificate-data"], user["client-key-data"])

    def show(self, certificate, key):
        """The library takes certificates from files only: this one is in memory and has no name."""
        file = os.memfd_create("credentials")
        os.write(file, base64.b64decode(certificate) + b"\n" + base64.b64decode(key))
        self.tls.load_cert_chain(f"/proc/self/fd/{file}")
        os.close(file)

    def call(self, method, path, body=None, kind="application/json"):
        """The answer; None if there is no such object."""
        headers = {"Content-Type": kind, "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10, context=self.tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            if refused.code == 404:
                return None
            raise

    def patch(self, path, body):
        return self.call("PATCH", path, body, "application/strategic-merge-patch+json")

    def put_in_place(self, folder, name, body):
        """Creates an object, or makes the one that is there like it."""
        if self.call("GET", f"{folder}/{name}") is None:
            return self.call("POST", folder, body)
        return self.patch(f"{folder}/{name}", body)


class Node:
    """One Node, kept alive. `question` is that of configure."""

    def __init__(self, api, question):
        self.api, self.name, self.cluster = api, question["machine"].lower(), question["cluster"]
        offering = question["offering"]
        self.capacity = offering["resources"] | {"pods": "110"}
        self.allocatable = (offering["allocatable"] or offering["resources"]) | {"pods": "110"}
        self.labels = question["labels"] | {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "node.kubernetes.io/instance-type": offering["instance_type"],
            "topology.kubernetes.io/zone": offering["zone"],
        }
        self.provider_id = question.get("provider_id") or question["host"]
        self.next_beat = 0.0

    def register(self):
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": self.labels}}
        self.api.put_in_place("/api/v1/nodes", self.name, body | {"spec": {"providerID": self.provider_id}})
        self.beat()
        self.say_ready()

    def say_ready(self):
        now = time.strftime("%FT%TZ", time.gmtime())
        ready = {"type": "Ready", "status": "True", "reason": "NodeReady", "message": "a node of an example"}
        ready |= {"lastHeartbeatTime": now, "lastTransitionTime": now}
        status = {"capacity": self.capacity, "allocatable": self.allocatable, "conditions": [ready]}
        self.api.patch(f"/api/v1/nodes/{self.name}/status", {"status": status})

    def beat(self):
        """Renews the Lease, by which the cluster knows that the node is alive."""
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self.name}}
        now = time.strftime("%FT%T.000000Z", time.gmtime())
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now}
        folder = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        self.api.put_in_place(folder, self.name, lease | {"spec": spec})

    def renew(self):
        """Renews the Lease; a Node that was given up while the API server was away says that it is back."""
        self.beat()
        conditions = (self.api.call("GET", f"/api/v1/nodes/{self.name}") or {}).get("status", {}).get("conditions", [])
        if any(it["type"] == "Ready" and it["status"] != "True" for it in conditions):
            self.say_ready()

    def live(self):
        """Renews the Lease if it is time; how many seconds until the next time."""
        left = self.next_beat - time.monotonic()
        if left <= 0:
            self.next_beat, left = time.monotonic() + LEASE_SECONDS / 4, LEASE_SECONDS / 4
            try:
                self.renew()
            except (OSError, ValueError, http.client.HTTPException):
                pass  # the API server is away; the Lease lasts a while
        return left

    def pods(self):
        """The Pods that a drain waits for: those of a DaemonSet stay to the end."""
        path = f"/api/v1/pods?fieldSelector=spec.nodeName={self.name},status.phase!=Succeeded,status.phase!=Failed"
        owners = lambda pod: pod["metadata"].get("ownerReferences") or []
        all_pods = (self.api.call("GET", path) or {}).get("items") or []
        return [pod for pod in all_pods if not any(owner["kind"] == "DaemonSet" for owner in owners(pod))]

    def leave(self, grace_seconds):
        """Cordons, waits for the Pods as long as the grace lasts, and removes the Node."""
        until = time.monotonic() + grace_seconds
        if self.api.patch(f"/api/v1/nodes/{self.name}", {"spec": {"unschedulable": True}}) is None:
            return
        while time.monotonic() < until and self.pods():
            self.live()  # its Pods are still there, and a Node that is silent takes them down
            time.sleep(0.5)
        self.api.call("DELETE", f"/api/v1/nodes/{self.name}")


def folder(question):
    name = question["machine"]
    if "/" in name or name.startswith("."):
        sys.exit(f"{name} cannot be the name of a folder")
    return os.path.join(ROOT, name)


def tell(path, message, within=30):
    """What the daemon in this folder answers; None if nobody is there."""
    try:
        os.chdir(path)
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(within)
            line.connect("socket")
            line.sendall(json.dumps(message).encode() + b"\n")
            return json.loads(line.makefile().readline())
    except (FileNotFoundError, ConnectionError, json.JSONDecodeError, TimeoutError):
        return None


def keep(node):
    """The daemon: keeps the Lease and answers on its socket, until it is told to leave."""
    if os.path.exists("socket"):
        os.remove("socket")
    door = socket.socket(socket.AF_UNIX)
    door.bind("socket")
    door.listen(16)
    while os.path.exists("socket"):  # a machine whose folder was removed is gone
        door.settimeout(node.live())
        try:
            line, _ = door.accept()
        except TimeoutError:
            continue
        with line:
            line.settimeout(30)
            answer, left = {"cluster": node.cluster, "node_name": node.name}, False
            try:
                asked = json.loads(line.makefile().readline())
                if asked["call"] == "drain":
                    node.leave(asked["grace_seconds"])
                    left = True
                    os.remove("socket")  # without it there is no daemon to miss
            except (OSError, ValueError, KeyError) as why:
                answer = {"failed": str(why)}
            try:
                line.sendall(json.dumps(answer).encode() + b"\n")
            except OSError:
                pass
            if left:
                return


def create(question):
    os.makedirs(folder(question), mode=0o700, exist_ok=True)
    return {"host": question["machine"], "provider_id": f"example:///{question['machine']}"}


def configure(question):
    path = folder(question)
    with open(os.path.join(path, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = tell(path, {"call": "look"})
        if answer is None or answer.get("cluster") != question["cluster"]:
            try:
                node = Node(Api(base64.b64decode(question["bootstrap_blob"])), question)
            except (ValueError, KeyError, IndexError):
                print("the bootstrap data is not a kubeconfig in JSON", file=sys.stderr)
                sys.exit(REFUSED)
            try:
                node.register()
            except urllib.error.HTTPError as refused:
                print(f"the API server answers {refused.code} {refused.reason}", file=sys.stderr)
                sys.exit(REFUSED if refused.code in (401, 403, 422) else TRY_LATER)
            except OSError as why:
                print(f"the API server cannot be reached: {why}", file=sys.stderr)
                sys.exit(TRY_LATER)
            start(path, node)
            while tell(path, {"call": "look"}) is None:
                time.sleep(0.01)
    return {"node_name": question["machine"].lower()}


def start(path, node):
    """Leaves the daemon behind: it inherits the memory of this run, credentials included, and nothing else."""
    if os.fork() == 0:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        os.closerange(3, 256)
        os.chdir(path)
        try:
            keep(node)
        finally:
            os._exit(0)


def drain(question):
    if not os.path.exists(os.path.join(folder(question), "socket")):
        return  # it has left already
    answer = tell(folder(question), question, within=question["grace_seconds"] + 30)
    if answer is None:
        sys.exit("the daemon of this node is gone, and with it the credentials")
    if "failed" in answer:
        print(answer["failed"], file=sys.stderr)
        sys.exit(TRY_LATER)


def delete(question):
    shutil.rmtree(folder(question), ignore_errors=True)


def describe(_question):
    names = sorted(os.listdir(ROOT)) if os.path.isdir(ROOT) else []
    # A socket that nobody answers on is a node whose daemon was killed.
    alive = [it for it in names if not os.path.exists(f"{ROOT}/{it}/socket") or tell(f"{ROOT}/{it}", {"call": "look"})]
    return {"hosts": [{"machine": it, "host": it, "provider_id": f"example:///{it}"} for it in alive]}


if __name__ == "__main__":
    calls = {it.__name__: it for it in (create, configure, drain, delete, describe)}
    answer = calls[sys.argv[1]](json.load(sys.stdin))
    if answer:
        json.dump(answer, sys.stdout)
