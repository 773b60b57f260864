"""What the network's apps do: ask the read side in charge. And how another one takes charge, without a gap.

    python examples/social_network/readers.py network likes p1
    python examples/social_network/readers.py network switch 127.0.0.1:8081 JOB-ID-OF-VERSION-2

The file network/current says which job is in charge: `host:port job-id`. It is replaced in one step.
"""

import json
import os
import sys
import time

from headwater.queryable_state import QueryableStateClient

VIEWS = {"likes": ("likes", "likes"), "followers": ("followers", "followers"), "ranking": ("ranking", "top")}


class ReadSide:
    """One job that answers."""

    def __init__(self, where):
        address, self.job_id = where.split()
        host, port = address.rsplit(":", 1)
        self.client = QueryableStateClient(host, int(port))

    def ask(self, view, key):
        found = self.client.get_many(self.job_id, *VIEWS[view], [key])[0]
        return found.value

    def position(self):
        """How many events of the log its answers contain."""
        return self.client.get_many(self.job_id, "position", "events", ["log"])[0].value or 0


def in_charge(folder):
    with open(os.path.join(folder, "current")) as file:
        return ReadSide(file.read())


def put_in_charge(folder, where):
    """From now on, `where` answers. A reader finds the old name or the new one, never half of one."""
    draft = os.path.join(folder, ".current")
    with open(draft, "w") as file:
        file.write(where)
    os.replace(draft, os.path.join(folder, "current"))


def switch(folder, where, seconds=600):
    """Wait until `where` has read as much of the log as the job in charge, and put it in charge."""
    old, new, until = in_charge(folder), ReadSide(where), time.monotonic() + seconds
    while (behind := old.position() - new.position()) > 0:
        if time.monotonic() > until:
            raise SystemExit(f"{where} is still {behind} events behind; nothing was changed")
        time.sleep(0.1)
    put_in_charge(folder, where)


if __name__ == "__main__":
    folder, verb, *arguments = sys.argv[1:]
    if verb == "switch":
        switch(folder, " ".join(arguments))
    else:
        print(json.dumps(in_charge(folder).ask(verb, arguments[0] if arguments else "all")))
