"""Processes that time things on request, and contests between them.

On a shared computer only figures taken at about the same time can be compared.
So every side of a comparison stays loaded in a process of its own, and a contest
asks one after the other, round after round; a ratio is the median over rounds of
the ratios within a round. Where other work interrupts every round, the best rounds
say more: those in which a side was left alone.
"""

import json
import os
import selectors
import statistics
import subprocess
import time


class Failure(Exception):
    """The error of a process."""


class Server:
    """A process that answers each line by one line of JSON."""

    def __init__(self, name, command, environment=None, timeout=180):
        self.name, self.command, self.timeout = name, command, timeout
        self.environment = {**os.environ, **(environment or {})}
        self.process, self.loaded = None, []

    def ask(self, request):
        self.send(request)
        return self.receive()

    def load(self, request):
        """Asks for something to be loaded until `stop`, also by a process that takes the place of one that ended."""
        self.ask(request)
        self.loaded.append(request)

    def send(self, request):
        if self.process is None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True, env=self.environment)  # fmt: skip
            for earlier in self.loaded:
                self.ask(earlier)
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it gives no answer either

    def receive(self):
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            has_spoken = bool(selector.select(self.timeout))
            line = self.process.stdout.readline() if has_spoken else ""
        if not line:
            self.end()
            raise Failure(f"{self.name} " + ("ended without an answer" if has_spoken else f"gave no answer in {self.timeout} s"))
        reply = json.loads(line)
        if "error" in reply:
            raise Failure(f"{self.name}: {reply['error']}")
        return reply

    def stop(self):
        self.loaded = []
        self.end()

    def end(self):
        if not self.process:
            return
        try:
            # Its input ends. mpirun, if killed, leaves its processes behind.
            self.process.communicate(timeout=10)
        except (subprocess.TimeoutExpired, OSError, ValueError):
            self.process.kill()
            self.process.wait()
        self.process = None


class Servers:
    """Processes that do the same together: each gets every request."""

    def __init__(self, servers):
        self.servers = servers

    def ask(self, request):
        for server in self.servers:
            server.send(request)
        replies = [server.receive() for server in self.servers]
        return max(replies, key=lambda reply: reply.get("seconds", 0))

    def stop(self):
        for server in self.servers:
            if server.process:
                server.process.stdin.close()
        for server in self.servers:
            server.stop()


class Entrant:
    """Something that runs steps: a server's `verb` on what it calls `name`.

    With an `argument`, empty or not, a turn is as many runs of the verb as take about
    the time wanted; otherwise it is one run of as many steps."""

    def __init__(self, server, verb, name, argument=None):
        self.server, self.verb, self.name, self.argument = server, verb, name, argument
        self.steps, self.error, self.times = 1, None, []

    def run(self, wanted):
        argument = self.steps if self.argument is None else self.argument
        seconds = steps = 0
        while steps == 0 or (self.argument is not None and seconds < wanted):
            reply = self.server.ask(f"{self.verb} {self.name} {argument}".rstrip())
            seconds += reply["seconds"]
            steps += reply["steps"]
        return seconds / steps


class Result:
    """Seconds per step of each entrant in each round."""

    def __init__(self, entrants, best):
        self.entrants, self.best = entrants, best

    def seconds(self, key):
        """The median over rounds, or the best; None if it did not run."""
        entrant = self.entrants.get(key)
        if not entrant or not entrant.times or entrant.error:
            return None
        return self.one_of(entrant.times)

    def halves(self, key):
        """The same of the first, third, ... round and of the others; None of one round."""
        times = self.entrants[key].times
        return (self.one_of(times[::2]), self.one_of(times[1::2])) if len(times) > 1 else None

    def one_of(self, times):
        """What stands for all of them."""
        return min(times) if self.best else statistics.median(times)

    def ratio(self, above, below):
        """Median over rounds of `above` by `below`, or that of the best rounds; None
        if either did not run."""
        if self.seconds(above) is None or self.seconds(below) is None:
            return None
        if self.best:
            return self.seconds(above) / self.seconds(below)
        pairs = zip(self.entrants[above].times, self.entrants[below].times)
        return statistics.median(a / b for a, b in pairs)

    def has(self, key):
        return key in self.entrants

    def error(self, key):
        return self.entrants[key].error if key in self.entrants else None


def attempt(entrant, wanted=0):
    """Seconds per step of one turn; None, and the entrant is out, if it fails."""
    if entrant.error:
        return None
    try:
        return entrant.run(wanted)
    except Failure as failure:
        entrant.error = str(failure)
        return None


def hold(entrants, rounds, seconds, best=False, most=None):
    """Runs all of `entrants`, a dictionary, `rounds` times, about `seconds` each; after
    `most` seconds no further round begins."""
    for entrant in entrants.values():
        first = attempt(entrant)
        if first and first > seconds:
            continue  # One step is a turn.
        while entrant.argument is None and (once := attempt(entrant)):
            wanted = max(1, round(seconds / once))
            enough = wanted <= 4 * entrant.steps
            entrant.steps = wanted
            if enough:
                break
    start = time.monotonic()
    for number in range(rounds):
        if number and most and time.monotonic() - start > most:
            break
        for entrant in entrants.values():
            if (taken := attempt(entrant, seconds)) is not None:
                entrant.times.append(taken)
    return Result(entrants, best)
