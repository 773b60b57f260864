"""`make parity-rest`: record what Flink's REST answers, for the contract test of headwater's and for the dashboard.

Starts a Flink session cluster (of `.bench/flink`, or of the Python given with --python), submits `RestShapes.java` to
it so that one job runs, one has finished, one has failed and one is cancelled, asks every route about
them, and stores the answers in `tests/unit/server/flink_rest`, one file per route:

    {"route": "/jobs/:jobid", "method": "GET",
     "answers": [{"case": "running", "path": "...", "status": 200, "body": {...}}]}

Paths and names of the recording machine are replaced.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

from parity_record import kill_group, package_of  # noqa: E402

from benchmarks.harness.environments import FLINK  # noqa: E402

RECORDED = ROOT / "tests" / "unit" / "server" / "flink_rest"
UNKNOWN = "f" * 32
LONGEST_TEXT = 800


class Flink:
    """A session cluster: one JobManager, one TaskManager with four slots. A context manager."""

    def __init__(self, package: Path, folder: Path) -> None:
        self.package = package
        self.folder = folder
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Flink:
        conf = self.folder / "conf"
        shutil.copytree(self.package / "conf", conf)
        settings = (conf / "config.yaml").read_text("utf-8")
        options = settings[: settings.index("jobmanager:")]  # the JVM's options; the rest is ours
        (conf / "config.yaml").write_text(
            options
            + "".join(
                f"{key}: {value}\n"
                for key, value in {
                    "jobmanager.rpc.address": "localhost",
                    "jobmanager.rpc.port": free_port(),
                    "jobmanager.bind-host": "localhost",
                    "jobmanager.memory.process.size": "1g",
                    "taskmanager.bind-host": "localhost",
                    "taskmanager.host": "localhost",
                    "taskmanager.numberOfTaskSlots": 4,
                    "taskmanager.memory.process.size": "1g",
                    "taskmanager.memory.managed.size": "64m",
                    "rest.port": self.port,
                    "rest.address": "localhost",
                    "rest.bind-address": "localhost",
                    "web.upload.dir": self.folder / "upload",
                    "io.tmp.dirs": self.folder / "tmp",
                    "execution.checkpointing.interval": "2s",
                    "execution.checkpointing.dir": f"file://{self.folder}/checkpoints",
                    "execution.checkpointing.savepoint-dir": f"file://{self.folder}/savepoints",
                    "restart-strategy.type": "fixed-delay",
                    "restart-strategy.fixed-delay.attempts": 1,
                    "restart-strategy.fixed-delay.delay": "1s",
                    "metrics.latency.interval": 0,
                }.items()
            ),
            "utf-8",
        )
        for program in ("jobmanager.sh", "taskmanager.sh"):
            self._processes.append(
                subprocess.Popen(
                    ["bash", self.package / "bin" / program, "start-foreground"],
                    env=os.environ
                    | {
                        "FLINK_CONF_DIR": str(conf),
                        "FLINK_LOG_DIR": str(self.folder / "log"),
                        "FLINK_PID_DIR": str(self.folder),
                        "FLINK_HOME": str(self.package),
                        "_FLINK_HOME_DETERMINED": "1",
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=(self.folder / f"{program}.out").open("wb"),
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            )
        wait("the task manager", lambda: self.get("/overview").get("slots-total") == 4)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            kill_group(process)

    def get(self, path: str) -> Any:
        return self.ask("GET", path)[1]

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> tuple[int, Any, str]:
        """Return status, body (JSON if it is) and content type."""
        request = urllib.request.Request(self.url + path, body, {"Content-Type": kind} if kind else {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, raw, kind = answer.status, answer.read(), answer.headers.get("Content-Type", "")
        except urllib.error.HTTPError as answer:
            status, raw, kind = answer.code, answer.read(), answer.headers.get("Content-Type", "")
        except OSError:
            return 0, {}, ""
        with contextlib.suppress(ValueError):
            return status, json.loads(raw), kind
        return status, raw.decode("utf-8", "replace")[:LONGEST_TEXT], kind

    def post(self, path: str, body: Any, method: str = "POST") -> tuple[int, Any, str]:
        return self.ask(method, path, json.dumps(body).encode(), "application/json")

    def upload(self, jar: Path) -> tuple[int, Any, str]:
        mark = "recording-flink-rest"
        head = f'--{mark}\r\nContent-Disposition: form-data; name="jarfile"; filename="{jar.name}"\r\n'
        body = f"{head}Content-Type: application/x-java-archive\r\n\r\n".encode() + jar.read_bytes()
        kind = f"multipart/form-data; boundary={mark}"
        return self.ask("POST", "/jars/upload", body + f"\r\n--{mark}--\r\n".encode(), kind)


class Recording:
    """Answers by route, as files."""

    def __init__(self, flink: Flink) -> None:
        self.flink = flink
        self.routes: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def add(self, case: str, method: str, route: str, path: str, answer: tuple[int, Any, str], sent: Any = None) -> Any:
        status, body, kind = answer
        entry = {"case": case, "path": path, "status": status, "content_type": kind, "body": shorter(body)}
        if sent is not None:
            entry["sent"] = sent
        self.routes.setdefault((method, route), []).append(entry)
        print(f"{status} {method} {path} ({case})", flush=True)
        return body

    def get(self, case: str, route: str, **names: str) -> Any:
        """Fill `:name` in the route in, and record the answer."""
        path = re.sub(r":(\w+)", lambda name: names[name[1]], route)
        template, _, _ = route.partition("?")
        return self.add(case, "GET", template, path, self.flink.ask("GET", path))

    def send(self, case: str, method: str, route: str, body: Any, **names: str) -> Any:
        path = re.sub(r":(\w+)", lambda name: names[name[1]], route)
        template, _, _ = route.partition("?")
        answer = self.flink.ask(method, path) if body is None else self.flink.post(path, body, method)
        return self.add(case, method, template, path, answer, body)

    def write(self) -> None:
        shutil.rmtree(RECORDED, ignore_errors=True)
        RECORDED.mkdir(parents=True)
        for (method, route), answers in self.routes.items():
            name = "_".join(re.findall(r"[\w-]+", route)) or "root"
            document = {"route": route, "method": method, "answers": answers}
            text = self.anonymous(json.dumps(document, indent=1, ensure_ascii=False))
            (RECORDED / f"{name}.{method.lower()}.json").write_text(text + "\n", "utf-8")
        print(f"{len(self.routes)} routes in {RECORDED.relative_to(ROOT)}")

    def anonymous(self, text: str) -> str:
        text = text.replace(str(self.flink.folder), "/flink").replace(str(self.flink.package), "/opt/flink")
        text = re.sub(r"/tmp/flink-web-[\w-]+", "/flink/web", text)
        return re.sub(rf"\b{re.escape(socket.gethostname())}\b", "localhost", text)


JOB = (
    "/jobs/:jobid",
    "/jobs/:jobid/status",
    "/jobs/:jobid/plan",
    "/jobs/:jobid/exceptions",
    "/jobs/:jobid/config",
    "/jobs/:jobid/accumulators",
    "/jobs/:jobid/checkpoints",
    "/jobs/:jobid/checkpoints/config",
    "/jobs/:jobid/execution-result",
    "/jobs/:jobid/jobmanager/config",
    "/jobs/:jobid/metrics",
    "/jobs/:jobid/metrics?get=uptime,numberOfCompletedCheckpoints,lastCheckpointDuration",
    "/jobs/:jobid/resource-requirements",
)
VERTEX = (
    "/jobs/:jobid/vertices/:vertexid",
    "/jobs/:jobid/vertices/:vertexid/accumulators",
    "/jobs/:jobid/vertices/:vertexid/backpressure",
    "/jobs/:jobid/vertices/:vertexid/metrics",
    "/jobs/:jobid/vertices/:vertexid/metrics?get=0.numRecordsIn,0.busyTimeMsPerSecond",
    "/jobs/:jobid/vertices/:vertexid/subtasks/accumulators",
    "/jobs/:jobid/vertices/:vertexid/subtasks/metrics",
    "/jobs/:jobid/vertices/:vertexid/subtasks/metrics?get=numRecordsIn,numRecordsOut",
    "/jobs/:jobid/vertices/:vertexid/subtasks/metrics?get=numRecordsIn&agg=max",
    "/jobs/:jobid/vertices/:vertexid/subtasks/:subtaskindex",
    "/jobs/:jobid/vertices/:vertexid/subtasks/:subtaskindex/attempts/:attempt",
    "/jobs/:jobid/vertices/:vertexid/subtasks/:subtaskindex/metrics",
    "/jobs/:jobid/vertices/:vertexid/subtasks/:subtaskindex/metrics?get=numRecordsIn,isBackPressured",
    "/jobs/:jobid/vertices/:vertexid/subtasktimes",
    "/jobs/:jobid/vertices/:vertexid/taskmanagers",
    "/jobs/:jobid/vertices/:vertexid/watermarks",
)
CLUSTER = (
    "/overview",
    "/config",
    "/jobs",
    "/jobs/overview",
    "/jobs/metrics",
    "/taskmanagers",
    "/taskmanagers/metrics",
    "/jobmanager/config",
    "/jobmanager/environment",
    "/jobmanager/logs",
    "/jobmanager/log",
    "/jobmanager/stdout",
    "/jobmanager/metrics",
    "/jobmanager/metrics?get=taskSlotsTotal,numRunningJobs,Status.JVM.CPU.Load",
    "/datasets",
    "/jars",
    "/metrics",
    "/nothing-here",
)
TASKMANAGER = (
    "/taskmanagers/:taskmanagerid",
    "/taskmanagers/:taskmanagerid/metrics",
    "/taskmanagers/:taskmanagerid/metrics?get=Status.JVM.CPU.Load,Status.JVM.Memory.Heap.Used",
    "/taskmanagers/:taskmanagerid/logs",
    "/taskmanagers/:taskmanagerid/log",
    "/taskmanagers/:taskmanagerid/stdout",
)


def record(flink: Flink, jar: Path) -> None:
    rest = Recording(flink)
    rest.get("no jars", "/jars")
    rest.add("not a jar", "POST", "/jars/upload", "/jars/upload", flink.post("/jars/upload", {}))
    uploaded = rest.add("jar", "POST", "/jars/upload", "/jars/upload", flink.upload(jar))
    jar_id = uploaded["filename"].rpartition("/")[2]
    rest.get("unknown", "/jars/:jarid/plan", jarid="nothing.jar")
    rest.get("jar", "/jars/:jarid/plan?programArg=running", jarid=jar_id)

    def run(how: str, **more: Any) -> str:
        sent = {"entryClass": "RestShapes", "programArgsList": [how], "parallelism": 2, **more}
        return str(rest.send(how, "POST", "/jars/:jarid/run", sent, jarid=jar_id)["jobid"])

    jobs = {how: run(how) for how in ("finished", "failed", "running", "cancelled")}
    rest.send("unknown jar", "POST", "/jars/:jarid/run", {}, jarid="nothing.jar")
    rest.send("no such class", "POST", "/jars/:jarid/run", {"entryClass": "Nothing"}, jarid=jar_id)

    def status_of(job: str) -> str:
        return str(flink.get(f"/jobs/{job}/status").get("status"))

    wait(
        "the jobs that end", lambda: (status_of(jobs["finished"]), status_of(jobs["failed"])) == ("FINISHED", "FAILED")
    )
    rest.send("running", "PATCH", "/jobs/:jobid", None, jobid=jobs["cancelled"])
    wait("the cancelled job", lambda: status_of(jobs["cancelled"]) == "CANCELED")
    running = jobs["running"]
    wait("checkpoints", lambda: flink.get(f"/jobs/{running}/checkpoints")["counts"]["completed"] > 2)
    rest.send("finished", "PATCH", "/jobs/:jobid", None, jobid=jobs["finished"])
    rest.send("unknown", "PATCH", "/jobs/:jobid", None, jobid=UNKNOWN)
    rest.send("bad mode", "PATCH", "/jobs/:jobid?mode=nonsense", None, jobid=running)
    triggers(rest, running, jobs["finished"])
    for route in CLUSTER:
        rest.get("cluster", route)
    ask_about_metrics(flink, running)
    for case, job in [*jobs.items(), ("unknown", UNKNOWN), ("malformed", "not-a-job-id")]:
        for route in JOB:
            rest.get(case, route, jobid=job)
        for number, vertex in enumerate(flink.get(f"/jobs/{job}").get("vertices", [{"id": UNKNOWN}])):
            for route in VERTEX:
                rest.get(
                    f"{case} vertex {number}", route, jobid=job, vertexid=vertex["id"], subtaskindex="0", attempt="0"
                )
    vertex = flink.get(f"/jobs/{running}")["vertices"][0]["id"]
    for route in VERTEX:
        rest.get("unknown vertex", route, jobid=running, vertexid=UNKNOWN, subtaskindex="0", attempt="0")
        rest.get("malformed vertex", route, jobid=running, vertexid="no-vertex", subtaskindex="0", attempt="0")
    for route in (route for route in VERTEX if ":subtaskindex" in route):
        rest.get("unknown subtask", route, jobid=running, vertexid=vertex, subtaskindex="99", attempt="0")
        rest.get("malformed subtask", route, jobid=running, vertexid=vertex, subtaskindex="x", attempt="0")
    checkpoints(rest, running, vertex)
    manager = flink.get("/taskmanagers")["taskmanagers"][0]["id"]
    for route in TASKMANAGER:
        rest.get("task manager", route, taskmanagerid=manager)
        rest.get("unknown", route, taskmanagerid="nothing")
    rest.get("stopped", "/jobs/:jobid", jobid=stop(rest, running))
    rest.send("jar", "DELETE", "/jars/:jarid", None, jarid=jar_id)
    rest.send("unknown", "DELETE", "/jars/:jarid", None, jarid="nothing.jar")
    for method, path in (
        ("POST", "/overview"),
        ("DELETE", "/jobs"),
        ("PUT", f"/jobs/{running}"),
        ("GET", "/jars/upload"),
    ):
        rest.add(f"{method} {path}", "ANY", "wrong-method", path, flink.ask(method, path))
    rest.write()


def checkpoints(rest: Recording, job: str, vertex: str) -> None:
    done = rest.flink.get(f"/jobs/{job}/checkpoints")["latest"]["completed"]["id"]
    detail = "/jobs/:jobid/checkpoints/details/:checkpointid"
    for case, number in (("completed", str(done)), ("unknown", "99999999"), ("malformed", "x")):
        rest.get(case, detail, jobid=job, checkpointid=number)
        rest.get(case, f"{detail}/subtasks/:vertexid", jobid=job, checkpointid=number, vertexid=vertex)
    rest.get("unknown vertex", f"{detail}/subtasks/:vertexid", jobid=job, checkpointid=str(done), vertexid=UNKNOWN)


def triggers(rest: Recording, running: str, finished: str) -> None:
    """What is asked for once and asked about by a trigger's id."""

    def triggered(route: str, status_route: str, body: Any, method: str = "POST") -> Any:
        answer = rest.send("running", method, route, body, jobid=running)
        if "request-id" in answer:
            path = status_route.replace(":jobid", running).replace(":triggerid", answer["request-id"])
            rest.get("first", status_route, jobid=running, triggerid=answer["request-id"])
            wait(path, lambda: rest.flink.get(path).get("status", {}).get("id") == "COMPLETED")
            answer = rest.get("later", status_route, jobid=running, triggerid=answer["request-id"])
        rest.get("unknown trigger", status_route, jobid=running, triggerid=UNKNOWN)
        rest.get("malformed trigger", status_route, jobid=running, triggerid="x")
        rest.send("unknown job", method, route, body, jobid=UNKNOWN)
        rest.send("finished", method, route, body, jobid=finished)
        return answer

    savepoint = "/jobs/:jobid/savepoints"
    made = triggered(savepoint, f"{savepoint}/:triggerid", {"cancel-job": False})
    rest.send("bad type", "POST", savepoint, {"cancel-job": "perhaps"}, jobid=running)
    rest.send("unknown field", "POST", savepoint, {"nothing": 1}, jobid=running)
    checkpoint = "/jobs/:jobid/checkpoints"
    triggered(checkpoint, f"{checkpoint}/:triggerid", {"checkpointType": "FULL"})
    rescaling = "/jobs/:jobid/rescaling"
    triggered(f"{rescaling}?parallelism=3", f"{rescaling}/:triggerid", None, "PATCH")
    location = made["operation"]["location"]
    disposal = "/savepoint-disposal"
    for case, path in (("savepoint", location), ("unknown", "/nothing/here")):
        request = rest.send(case, "POST", disposal, {"savepoint-path": path})["request-id"]
        wait(case, lambda: rest.flink.get(f"{disposal}/{request}")["status"]["id"] == "COMPLETED")  # noqa: B023
        rest.get(case, f"{disposal}/:triggerid", triggerid=request)
    rest.send("nothing", "POST", disposal, {})
    rest.get("unknown trigger", f"{disposal}/:triggerid", triggerid=UNKNOWN)


def stop(rest: Recording, job: str) -> str:
    answer = rest.send("running", "POST", "/jobs/:jobid/stop", {"drain": False}, jobid=job)
    path = f"/jobs/{job}/savepoints/{answer['request-id']}"
    wait("the savepoint", lambda: rest.flink.get(path)["status"]["id"] == "COMPLETED")
    wait("the end", lambda: rest.flink.get(f"/jobs/{job}/status")["status"] == "FINISHED")
    rest.get("stopped", "/jobs/:jobid/savepoints/:triggerid", jobid=job, triggerid=answer["request-id"])
    rest.send("unknown job", "POST", "/jobs/:jobid/stop", {}, jobid=UNKNOWN)
    return job


def ask_about_metrics(flink: Flink, job: str) -> None:
    """Flink fetches figures when somebody asks; the first answer of each route is empty."""
    vertices = [vertex["id"] for vertex in flink.get(f"/jobs/{job}")["vertices"]]
    paths = [f"/jobs/{job}/metrics", *(f"/jobs/{job}/vertices/{vertex}/metrics" for vertex in vertices)]
    paths += [f"/jobs/{job}/vertices/{vertex}/backpressure" for vertex in vertices]
    wait("metrics", lambda: all(flink.get(path) for path in paths) and bool(flink.get(paths[1])))
    wait("back pressure", lambda: all(flink.get(path).get("status") != "deprecated" for path in paths[3:]))


def wait(what: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while True:
        with contextlib.suppress(KeyError, TypeError, AttributeError):
            if holds():
                return
        if time.monotonic() > deadline:
            raise SystemExit(f"gave up waiting for {what}")
        time.sleep(0.3)


def shorter(body: Any) -> Any:
    """Keep the first entries of the long lists that are all alike."""
    if isinstance(body, dict):
        return {key: shorter(value) for key, value in body.items()}
    if isinstance(body, list):
        return [shorter(value) for value in body[:60]]
    return body[:LONGEST_TEXT] if isinstance(body, str) else body


def compiled(package: Path, folder: Path) -> Path:
    classes = folder / "classes"
    jars = os.pathsep.join(str(jar) for jar in sorted((package / "lib").glob("*.jar")))
    source = ROOT / "scripts" / "RestShapes.java"
    subprocess.run(["javac", "--release", "17", "-cp", jars, "-d", classes, source], check=True)
    jar = folder / "rest-shapes.jar"
    subprocess.run(["jar", "--create", "--file", jar, "--main-class", "RestShapes", "-C", classes, "."], check=True)
    return jar


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as server:
        return int(server.getsockname()[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, help="a Python that has PyFlink, instead of .bench/flink")
    python = parser.parse_args().python
    if python is None:
        FLINK.ensure()
        python = FLINK.python
    package = package_of(python)
    with tempfile.TemporaryDirectory(prefix="flink-rest-") as folder:
        jar = compiled(package, Path(folder))
        with Flink(package, Path(folder)) as flink:
            record(flink, jar)
    return 0


if __name__ == "__main__":
    sys.exit(main())
