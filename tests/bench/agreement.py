"""Whether a peer does what Cinch's program does: before anything is timed, decoded gradients are compared, step by step."""
from ctypes import c_float

import loop_peer

STEPS = 3
# Scales are sums in different orders: levels differ by rounding, and so do a few elements near the border of two levels.
TOLERANCE = 1e-5
MOST_FAR = 1e-5  # of the elements, and two
SCALED = {"onebit", "ef_sign", "qsgd", "terngrad"}
ROUNDED_AT_RANDOM = {"minmax", "qsgd", "terngrad", "natural"}
# Distances from Cinch's decoded gradient, relative to its length. Selections at a border may differ, and then differ in later steps, too.
MOST_APART = {"signsgd": 0, "mxfp8": 0, "dynamic8": 1e-3, "adacomp": 0.02, "demo": 0.02, "redsync": 0.05, "sidco": 0.05}
# For random values, which no other generator draws alike: lengths of decoded gradients, and of their errors.
MOST_LENGTHS, MOST_LOSSES = 3, 1.5
PERIOD = 1 << 20  # of the gradient: each magnitude occurs in each of them


class Disagreement(Exception):
    pass


def differs_little(name, difference, elements):
    if name in SCALED:
        return difference.far <= 2 + MOST_FAR * elements
    return difference.differing == 0


def selects_alike(name, difference, elements, step):
    """PyTorch breaks ties of topk as it likes, and draws a sample of its own for the threshold of graddrop."""
    copies = elements // PERIOD + 1
    if name == "graddrop":
        share = difference.nonzero_b / max(difference.nonzero_a, 1)
        return 0.25 < share < 4 and (step > 0 or difference.unequal_where_both == 0)
    # Later steps have left or sent what one step selected differently.
    return difference.nonzero_a == difference.nonzero_b and difference.differing <= 4 * copies * (step + 1)


def check_loop(name, cinch, loop, elements, library, step):
    difference = loop_peer.compare(library, cinch.out, loop.out, elements, TOLERANCE)
    if not differs_little(name, difference, elements):
        raise Disagreement(f"{name}, step {step}: {difference.differing} of {elements} decoded elements differ from the hand-written "
                           f"loop's, {difference.far} of them by more than {TOLERANCE:g}")


def torch_agrees(name, cinch, peer, elements, library, step):
    import torch

    import torch_peers
    if name in ROUNDED_AT_RANDOM:
        return torch_peers.rounds_alike(peer, torch.frombuffer(cinch.out, dtype=torch.float32, count=elements))
    out = (c_float * elements).from_address(peer.out.data_ptr())
    difference = loop_peer.compare(library, cinch.out, out, elements, TOLERANCE)
    if name in {"topk", "dgc", "graddrop"}:
        return selects_alike(name, difference, elements, step)
    return differs_little(name, difference, elements)


def is_alike(name, cinch, peer, gradient):
    """Of programs without a loop by hand."""
    import torch
    found = peer.out.reshape(-1)
    own, exact = (torch.frombuffer(array, dtype=torch.float32, count=found.numel()) for array in (cinch.out, gradient))
    if name in MOST_APART:
        return (found - own).norm() <= MOST_APART[name] * own.norm()
    lengths, losses = found.norm() / own.norm(), (found - exact).norm() / (own - exact).norm()
    return 1 / MOST_LENGTHS < lengths < MOST_LENGTHS and 1 / MOST_LOSSES < losses < MOST_LOSSES


def others_agree(measured, peers, gradient, elements, library, step):
    if measured.has_loop:
        return torch_agrees(measured.name, peers["cinch"], peers["torch"], elements, library, step)
    return all(is_alike(measured.name, peers["cinch"], peer, gradient) for name, peer in peers.items()
               if name != "cinch" and peer.offers(measured.calls[-1]))


def call_all(peer, calls):
    for call in calls:
        if not peer.offers(call):
            continue
        getattr(peer, call)()
        peer.receive()


def check(measured, peers, gradient, elements, library):
    """Three steps of all, so that states count, too. Gives the names of those whose results were compared. Raises Disagreement."""
    for step in range(STEPS):
        for peer in peers.values():
            call_all(peer, measured.calls)
        if measured.has_loop:
            check_loop(measured.name, peers["cinch"], peers["loop"], elements, library, step)
        if "torch" in peers and not others_agree(measured, peers, gradient, elements, library, step):
            raise Disagreement(f"{measured.name}, step {step}: PyTorch's decoded gradient is not that of Cinch")
    return [name for name, peer in peers.items() if peer.offers(measured.calls[-1])]
