#!/usr/bin/env python3
"""Ranks in network namespaces with slow links between them: how long dense, fp16 and compressed averaging take over MPI, over UCX, or both.

usage: slow_network.py [CINCH] [--ranks 4] [--mbit 100 1000] [--bytes 67108864] [--steps 3] [--input GRADIENT.npy] [--transport mpi ucx] [--congestion cubic]
                       [--methods dense onebit dgc] [--plans ring two_shot hierarchical] [--leaves 2 --uplink 200]

Needs root, iproute2 (ip, tc), a cinch, and for MPI Open MPI (mpirun) where that was built. Exit status 77: something of that is missing.
README.md says what the table means."""
import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
PREFIX = "cinch-slow-"
CANNOT_RUN = 77
# Name, program, plan and settings.
METHODS = [
    ("dense", "none", "allreduce", []),
    ("fp16", "fp16", "two_shot", []),
    ("qsgd, 4 bit", "qsgd", "two_shot", ["--set", "bits=4"]),
    ("onebit", "onebit", "two_shot", []),
    ("dgc, 0.1 %", "dgc", "allgather", []),
]
# The burst of a token bucket passes unshaped: it must be short beside what is sent.
BURSTS = {100: "16kb", 1000: "32kb"}


def run(*command, check=True, **options):
    return subprocess.run(command, check=check, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def what_is_missing(cinch, transports):
    """A line for each thing without which nothing can be measured here."""
    missing = []
    if os.geteuid() != 0:
        missing.append("root: network namespaces are made by root alone")
    launchers = [("mpirun", "openmpi-bin")] if "mpi" in transports else []
    for program, package in [("ip", "iproute2"), ("tc", "iproute2"), *launchers]:
        if shutil.which(program) is None:
            missing.append(f"the program '{program}' (Debian: {package})")
    if not os.access(cinch, os.X_OK):
        missing.append(f"{cinch}: build it (./dev build), or name another one")
    if missing:
        return missing
    for transport, package in [("mpi", "libopenmpi-dev"), ("ucx", "libucx-dev")]:
        library = os.path.join(os.path.dirname(cinch), "..", "lib", f"libcinch_{transport}.so")
        if transport in transports and not os.path.exists(library) and f"CINCH_{transport.upper()}" not in os.environ:
            missing.append(f"libcinch_{transport}.so beside cinch: it is built where Debian's {package} is")
    probe = run("unshare", "--net", "true", check=False)
    if probe.returncode != 0:
        missing.append("the right to make a network namespace: " + probe.stderr.strip())
    return missing


class Network:
    """A switch and a host for each rank, each in a namespace of its own: nothing outside of them changes, and they take all with them."""

    def __init__(self, ranks, congestion, leaves=1, uplink=None):
        """With several leaves, each is a switch of as many ranks, and has one link, of `uplink` Mbit/s, to a switch above."""
        self.ranks = ranks
        self.congestion = congestion
        self.leaves, self.uplink = leaves, uplink
        self.name = f"{PREFIX}{os.getpid()}-"
        self.switch = self.name + "switch"

    def host(self, rank):
        return f"10.77.0.{10 + rank}"

    def space(self, rank):
        return self.name + self.host(rank)

    def leaf_of(self, rank):
        return rank * self.leaves // self.ranks

    def switch_at(self, leaf):
        return self.switch if self.leaves == 1 else f"{self.switch}{leaf}"

    @staticmethod
    def add_switch(name):
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "add", "bridge", "type", "bridge")
        run("ip", "-n", name, "link", "set", "bridge", "up")

    def build(self):
        self.add_switch(self.switch)
        for leaf in range(self.leaves if self.leaves > 1 else 0):
            self.add_switch(self.switch_at(leaf))
            run("ip", "-n", self.switch_at(leaf), "link", "add", "up0", "type", "veth", "peer", "name", f"leaf{leaf}", "netns", self.switch)
            run("ip", "-n", self.switch_at(leaf), "link", "set", "up0", "master", "bridge", "up")
            run("ip", "-n", self.switch, "link", "set", f"leaf{leaf}", "master", "bridge", "up")
        for rank in range(self.ranks):
            space, switch = self.space(rank), self.switch_at(self.leaf_of(rank))
            run("ip", "netns", "add", space)
            run("ip", "-n", space, "link", "set", "lo", "up")
            run("ip", "-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{rank}", "netns", switch)
            run("ip", "-n", space, "address", "add", self.host(rank) + "/24", "dev", "eth0")
            run("ip", "-n", space, "link", "set", "eth0", "up")
            # What several flows to one rank make of its link depends on it.
            run("ip", "-n", space, "route", "replace", "10.77.0.0/24", "dev", "eth0", "src", self.host(rank), "congctl", self.congestion)
            run("ip", "-n", switch, "link", "set", f"port{rank}", "master", "bridge", "up")

    def shape(self, mbit):
        """Both ends of each link: what a rank sends, and what it receives."""
        def limit(space, device, rate):
            run("tc", "-n", space, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{rate}mbit", "burst", BURSTS.get(rate, "32kb"),
                "latency", "50ms")

        for rank in range(self.ranks):
            limit(self.space(rank), "eth0", mbit)
            limit(self.switch_at(self.leaf_of(rank)), f"port{rank}", mbit)
        for leaf in range(self.leaves if self.leaves > 1 else 0):
            limit(self.switch_at(leaf), "up0", self.uplink)
            limit(self.switch, f"leaf{leaf}", self.uplink)

    def sent_bytes(self):
        """Of each rank's interface, headers and all."""
        counted = []
        for rank in range(self.ranks):
            links = json.loads(run("ip", "-n", self.space(rank), "-s", "-j", "link", "show", "dev", "eth0").stdout)
            counted.append(links[0]["stats64"]["tx"]["bytes"])
        return counted

    @staticmethod
    def remove(names):
        for name in names:
            for pid in run("ip", "netns", "pids", name, check=False).stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            run("ip", "netns", "del", name, check=False)

    @staticmethod
    def existing():
        return [line.split()[0] for line in run("ip", "netns", "list").stdout.splitlines() if line.startswith(PREFIX)]

    def clean(self):
        self.remove([name for name in self.existing() if name.startswith(self.name)])

    def clean_leftovers(self):
        """Of runs that were killed."""
        for name in self.existing():
            pid = name[len(PREFIX):].split("-")[0]
            if not os.path.exists(f"/proc/{pid}"):
                self.remove([name])


class UcxLauncher:
    """A process in each namespace; they meet at a port of the first one."""

    name = "ucx"

    def __init__(self, network):
        self.network = network
        self.port = 29400

    def run(self, command):
        network = self.network
        self.port += 1
        where = ["--rendezvous", f"{network.host(0)}:{self.port}", "--interface", "eth0"]
        # Shared memory would reach across namespaces.
        environment = {**os.environ, "WORLD_SIZE": str(network.ranks), "CINCH_SECRET": "slow", "UCX_TLS": "tcp"}
        ranks = [subprocess.Popen(["ip", "netns", "exec", network.space(rank), *command, *where], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env={**environment, "RANK": str(rank)}) for rank in range(network.ranks)]
        outputs = [rank.communicate()[0] for rank in ranks]
        if any(rank.returncode for rank in ranks):
            sys.exit("ranks over UCX failed:\n" + "".join(outputs))
        return outputs[0]


class Launcher:
    """mpirun from the first rank's namespace; what stands for ssh enters the namespace of the host that it is given."""

    name = "mpi"

    def __init__(self, network, folder):
        self.network = network
        self.folder = folder
        self.agent = os.path.join(folder, "agent")
        with open(self.agent, "w", encoding="utf-8") as file:
            file.write(
                '#!/bin/sh\nhost=$1\nshift\n'
                f'export TMPDIR="{folder}/$host"\nmkdir -p "$TMPDIR"\n'  # daemons believe to be on machines of their own
                f'exec ip netns exec "{network.name}$host" sh -c "$*"\n')
        os.chmod(self.agent, 0o755)

    def run(self, command):
        network = self.network
        hosts = ",".join(network.host(rank) for rank in range(network.ranks))
        subnet = "10.77.0.0/24"
        # Shared memory would reach across namespaces; each daemon believes to have all cores to itself.
        settings = {"plm_rsh_agent": self.agent, "btl": "tcp,self", "btl_tcp_if_include": subnet, "oob_tcp_if_include": subnet}
        options = [word for name, value in settings.items() for word in ("--mca", name, value)]
        done = run(
            "ip", "netns", "exec", network.space(0), "mpirun", "--allow-run-as-root", "--bind-to", "none", "--host", hosts, *options,
            "-n", str(network.ranks), *command, check=False, env={**os.environ, "TMPDIR": self.folder})
        if done.returncode != 0:
            sys.exit(f"mpirun failed:\n{done.stdout}{done.stderr}")
        return done.stdout


def measure(launcher, arguments, program, plan, settings):
    """The report of a run, and what each interface sent in one step: the difference of a longer and a shorter run."""
    def once(steps):
        before = launcher.network.sent_bytes()
        output = launcher.run([
            arguments.cinch, "sync", program, "--input", arguments.input, "--repeat-to", str(arguments.bytes), "--transport", launcher.name,
            "--plan", plan, *settings, "--steps", str(steps), "--timeout", "600", "--json"])
        after = launcher.network.sent_bytes()
        report = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
        return report, [b - a for a, b in zip(before, after)]

    _, short = once(1)
    report, long = once(1 + arguments.steps)
    return report, max((b - a) / arguments.steps for a, b in zip(short, long))


def program_floor_ms(arguments, program, plan, settings):
    """What the bytes that a rank's programs must read and write take of the memory's bandwidth, which all ranks share: `cinch bench` has
    the floors of one call on the whole gradient."""
    if program == "none":
        return 0.0
    output = run(arguments.cinch, "bench", program, *settings, "--elements", str(arguments.bytes // 4), "--json").stdout
    figures = json.loads(output)[0]
    encode, decode, add = (figures[call]["floor_ms"] for call in ("encode", "decode", "decode_add"))
    finish = 2 * arguments.bytes / (figures["bandwidth_gb_per_s"] * 1e6)
    ranks = arguments.ranks
    one = encode * (1 + 1 / ranks) + add + finish / ranks + decode if plan == "two_shot" else encode + ranks * add + finish
    return ranks * one


def print_table(launcher, arguments, mbit):
    """The steps' times by method."""
    print(f"\n{arguments.ranks} ranks over {launcher.name} at {mbit} Mbit/s, {arguments.bytes} bytes of gradient each")
    print(
        f"{'':<14}{'step':>12}{'faster':>8}{'sent by a rank':>16}{'its interface':>15}{'of the link':>13}{'floor':>12}{'of it':>7}"
        f"{'error':>9}  same bits")
    dense_ms = None
    steps = {}
    for name, program, plan, settings in METHODS:
        if name.split(",")[0].split()[0] not in arguments.methods:
            continue
        for plan in arguments.plans or [plan]:
            label = f"{name} {plan}" if arguments.plans else name
            dense_ms = print_row(launcher, arguments, mbit, (label, program, plan, settings), dense_ms, steps)
    return steps


def print_row(launcher, arguments, mbit, method, dense_ms, steps):
    """Returns the time of a dense step; `steps` takes this one's."""
    name, program, plan, settings = method
    machines = ["--machine-ranks", str(arguments.ranks // arguments.leaves)] if plan == "hierarchical" else []
    report, interface = measure(launcher, arguments, program, plan, [*settings, *machines])
    step_ms = steps[name] = report["step_ms"]
    dense_ms = dense_ms or step_ms
    floor_ms = report["bytes_sent"] * 8 / (mbit * 1e3) + program_floor_ms(arguments, program, plan, settings)
    used = interface * 8 / (step_ms / 1e3) / (mbit * 1e6)
    print(
        f"{name:<14}{step_ms:>9.1f} ms{dense_ms / step_ms:>8.2f}{report['bytes_sent']:>14} B{interface:>13.0f} B{used:>13.0%}"
        f"{floor_ms:>9.1f} ms{floor_ms / step_ms:>7.2f}"
        f"{report['relative_error']:>9.3g}  {'yes' if report['same_bits'] else 'NO'}",
        flush=True)
    return dense_ms


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cinch", nargs="?", default=os.path.join(ROOT, "build", "release", "bin", "cinch"))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--mbit", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--bytes", type=int, default=64 << 20)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--congestion", default="cubic", help="TCP's congestion control, whatever this machine's own is")
    parser.add_argument("--input", default=os.path.join(ROOT, "examples", "data", "resnet-step40.npy"))
    parser.add_argument("--transport", nargs="+", choices=["mpi", "ucx"], default=["mpi"])
    names = [name.split(",")[0].split()[0] for name, *_ in METHODS]
    parser.add_argument("--methods", nargs="+", choices=names, default=names)
    parser.add_argument("--plans", nargs="+", help="instead of each method's own")
    parser.add_argument("--leaves", type=int, default=1, help="switches with an equal part of the ranks each, below another switch")
    parser.add_argument("--uplink", type=int, default=200, help="Mbit/s of a leaf's link to the switch above")
    arguments = parser.parse_args()
    arguments.cinch, arguments.input = os.path.abspath(arguments.cinch), os.path.abspath(arguments.input)
    return arguments


def main():
    arguments = parse_arguments()
    missing = what_is_missing(arguments.cinch, arguments.transport)
    if missing:
        print("the slow network cannot be built here; missing:", *missing, sep="\n  ", file=sys.stderr)
        return CANNOT_RUN
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    network = Network(arguments.ranks, arguments.congestion, arguments.leaves, arguments.uplink)
    network.clean_leftovers()
    with tempfile.TemporaryDirectory() as folder:
        try:
            network.build()
            launchers = [Launcher(network, folder) if name == "mpi" else UcxLauncher(network) for name in arguments.transport]
            for mbit in arguments.mbit:
                network.shape(mbit)
                steps = [print_table(launcher, arguments, mbit) for launcher in launchers]
                if len(steps) == 2:
                    print(f"\n{launchers[1].name}'s steps, of {launchers[0].name}'s:",
                          ", ".join(f"{name} {steps[1][name] / steps[0][name]:.2f}" for name in steps[0]), flush=True)
        finally:
            network.clean()
    return 0


if __name__ == "__main__":
    sys.exit(main())
