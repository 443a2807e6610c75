"""Sites of ranks that a slow link with a delay joins: what netem does where a kernel has it, a relay over TUN devices does everywhere else."""
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from slow_network import Network, run  # noqa: E402

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
_MTU = 9000
_QUEUE_SECONDS = 0.2  # of the link's rate: what waits longer is dropped, as in a router


class Sites(Network):
    """A switch for each site, with a host for each of its ranks, and one link between two sites. Ranks of a site come one behind the other."""

    def __init__(self, ranks, congestion, sites):
        super().__init__(ranks, congestion)
        self.sites, self.relay = sites, None

    def site(self, rank):
        return rank * self.sites // self.ranks

    def host(self, rank):
        return f"10.77.{self.site(rank)}.{10 + rank}"

    def switch_of(self, site):
        return f"{self.switch}{site}"

    def build(self):
        for site in range(self.sites):
            switch = self.switch_of(site)
            run("ip", "netns", "add", switch)
            run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
            run("ip", "-n", switch, "address", "add", f"10.77.{site}.1/24", "dev", "bridge")
            run("ip", "-n", switch, "link", "set", "bridge", "up")
            run("ip", "netns", "exec", switch, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for rank in range(self.ranks):
            space, switch = self.space(rank), self.switch_of(self.site(rank))
            run("ip", "netns", "add", space)
            run("ip", "-n", space, "link", "set", "lo", "up")
            run("ip", "-n", space, "link", "add", "eth0", "mtu", str(_MTU), "type", "veth", "peer", "name", f"port{rank}", "mtu", str(_MTU), "netns", switch)
            run("ip", "-n", space, "address", "add", self.host(rank) + "/24", "dev", "eth0")
            run("ip", "-n", space, "link", "set", "eth0", "up")
            run("ip", "-n", switch, "link", "set", f"port{rank}", "master", "bridge", "up")
            run("ip", "-n", space, "route", "add", "10.77.0.0/16", "via", f"10.77.{self.site(rank)}.1", "congctl", self.congestion)

    def join(self, mbit, milliseconds):
        """Joins two sites by a link of that rate each way, whose packets come so many milliseconds later."""
        names = [f"cinch{os.getpid() % 100000}{end}" for end in "ab"]
        ends = [_tun(name) for name in names]
        for site, name in enumerate(names):
            switch = self.switch_of(site)
            run("ip", "link", "set", name, "netns", switch)
            run("ip", "-n", switch, "link", "set", name, "mtu", str(_MTU), "up")
            run("ip", "-n", switch, "route", "add", f"10.77.{1 - site}.0/24", "dev", name)
        child = os.fork()
        if child == 0:
            relay(ends, mbit * 1e6 / 8, milliseconds / 1e3)
        for end in ends:
            os.close(end)
        self.relay = child

    def clean(self):
        if self.relay is not None:
            os.kill(self.relay, 9)
            os.waitpid(self.relay, 0)
            self.relay = None
        super().clean()


def _tun(name):
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, _TUNSETIFF, struct.pack("16sH", name.encode(), _IFF_TUN | _IFF_NO_PI))
    return end


def relay(ends, rate, delay):
    """Carries packets between two TUN devices for ever: `rate` in bytes a second each way, `delay` in seconds. Never returns."""
    free, waiting, order = [0.0, 0.0], [], 0  # when each direction can send next; packets by the time at which they arrive
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, _, to, packet = heapq.heappop(waiting)
            try:
                os.write(ends[to], packet)
            except OSError:
                pass  # a full queue drops it, as a network does
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for end in select.select(ends, [], [], timeout)[0]:
            came = ends.index(end)
            for _ in range(64):
                try:
                    packet = os.read(end, _MTU + 64)
                except BlockingIOError:
                    break
                now = time.monotonic()
                if free[came] - now > _QUEUE_SECONDS:
                    continue
                free[came] = max(free[came], now) + len(packet) / rate
                order += 1
                heapq.heappush(waiting, (free[came] + delay, order, 1 - came, packet))


def what_is_missing():
    """A line for each thing without which sites cannot be joined here."""
    if os.geteuid() != 0:
        return ["root: network namespaces are made by root alone"]
    if not os.path.exists("/dev/net/tun"):
        return ["/dev/net/tun, over which packets between sites are delayed"]
    return []


def measured(network):
    """Milliseconds until the first rank is connected to the last, a way there and back, and Mbit/s from one to the other."""
    first, last = network.space(0), network.space(network.ranks - 1)
    receive = "import socket as s\nl=s.create_server(('', 5555))\nc=l.accept()[0]\nn=0\nimport time\nt=None\nwhile d:=c.recv(1<<16):\n t=t or time.time(); n+=len(d)\nprint(n*8e-6/(time.time()-t))"
    send = (f"import socket as s, time\nb=time.time()\nc=s.create_connection(('{network.host(network.ranks - 1)}', 5555))\nprint(1e3*(time.time()-b))\n"
            "for _ in range(400): c.sendall(bytes(1<<17))")
    server = subprocess.Popen(["ip", "netns", "exec", last, sys.executable, "-c", receive], stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    back = run("ip", "netns", "exec", first, sys.executable, "-c", send).stdout
    return float(back), float(server.communicate()[0])


if __name__ == "__main__":
    network = Sites(2, "cubic", 2)
    network.clean_leftovers()
    try:
        network.build()
        network.join(float(sys.argv[1]) if len(sys.argv) > 1 else 100, float(sys.argv[2]) if len(sys.argv) > 2 else 50)
        print("%.1f ms there and back, %.1f Mbit/s" % measured(network))
    finally:
        network.clean()
