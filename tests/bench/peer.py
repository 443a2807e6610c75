"""One compressor at work on one gradient, whoever wrote it."""
import time


class Peer:
    out = None  # the decoded gradient, once there is one

    def offers(self, call):
        return True

    def encode(self, repeats=1):
        """The next steps of training, one for each repeat. Gives seconds."""
        raise NotImplementedError

    def receive(self):
        """Makes the payload of the last encode that which decode works on."""

    def decode(self, repeats=1):
        """Gives seconds."""
        raise NotImplementedError

    def sync(self, repeats=1):
        """Of programs with such a body, in place of encode and decode. Gives seconds."""
        raise NotImplementedError

    def close(self):
        pass


def timed(call, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return time.perf_counter() - start
