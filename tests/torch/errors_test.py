"""What is wrong is an exception on every rank, and says what."""
import warnings

import pytest
import torch
import torch.distributed as dist
from support import loss_of, small_model, train, wrapped

import cinch
import cinch.torch


def compresses(rank, world, make, program, settings, only_on=None):
    """On the ranks beside `only_on` nothing is wrong."""
    is_fine = only_on is not None and rank != only_on
    model = small_model() if is_fine else make()
    cinch.torch.compress(wrapped(model), "qsgd" if is_fine else program, **{"timeout": 10, **({} if is_fine else settings)})


def embedding():
    return torch.nn.Sequential(torch.nn.Embedding(100, 64, sparse=True), torch.nn.Linear(64, 3))


def double():
    return small_model().double()


def complex_parameter():
    return torch.nn.Sequential(torch.nn.Linear(64, 72, dtype=torch.complex64))


GOSSIP = """compressor gossip {
  sync(g: [f32; n]) { 0.5 * (g + sendrecv(g, to: (worker + 1) % world)) }
  claims local
}
"""


def many_wrong(rank, world):
    """Messages by case: ranks fail alike, and take the next case."""
    cases = [
        ("program", small_model, "nosuch", {}),
        ("expression", small_model, "error_feedback(nosuch)", {}),
        ("parameter", small_model, "qsgd", {"nosuch": 1}),
        ("range", small_model, "dgc", {"ratio": 7}),
        ("sparse", embedding, "qsgd", {}),
        ("double", double, "qsgd", {}),
        ("complex", complex_parameter, "qsgd", {}),
        ("rules", small_model, "qsgd", {"rules": "[1"}),
        ("off", small_model, "qsgd", {"rules": [{"use": "off"}]}),
        ("plan", small_model, "qsgd", {"plan": "nosuch"}),
        ("schedule", small_model, "qsgd", {"schedule": {"nosuch": lambda step: 0.1}}),
        ("transport", small_model, "qsgd", {"transport": "tcp"}),
        ("nccl", small_model, "qsgd", {"transport": "nccl"}),
        ("no program", small_model, None, {}),
        ("of exact tensors", tiny_model, "topkk", {}),
        ("parameter of exact tensors", tiny_model, "topk", {"ratio": 3}),
        ("parameter of none", tiny_model, "none", {"ratio": 3}),
        ("timeout", small_model, "qsgd", {"timeout": float("nan")}),
        ("dense_steps", small_model, "qsgd", {"dense_steps": 1.5}),
        ("first_step", small_model, "qsgd", {"first_step": 1 << 60}),
        ("scale", small_model, "qsgd", {"scale": 5}),
        ("secret", small_model, "qsgd", {"secret": "x"}),
        ("parts", small_model, "qsgd", {"plan": "reduce_scatter"}),
        ("rules of a number", small_model, "qsgd", {"rules": 7}),
        ("rule of a number", small_model, "qsgd", {"rules": [{"use": "exact", "name": "x"}, 7]}),
        ("said", small_model, "qsgd", {"rules": [lambda name, shape: 5]}),
        ("local", small_model, cinch.compile(text=GOSSIP), {}),
    ]
    told = {}
    for name, make, program, settings in cases:
        try:
            compresses(rank, world, make, program, settings)
            told[name] = None
        except cinch.Error as failure:
            told[name] = f"{type(failure).__name__}: {failure}"
    for name, case in (("bare", not_ddp), ("twice", second_hook), ("python_reducer", python_reducer)):
        try:
            case(rank)
            told[name] = None
        except cinch.InvalidArgumentError as failure:
            told[name] = str(failure)
    return told


ODD = """compressor even {
  wire { v: [f32; n] }
  encode(g: [f32; n]) { assert n % 2 == 0, "an even number is wanted"; wire { v: g } }
  decode(w) { w.v }
}
"""


def odd_parameter(rank, world, file):
    model = small_model(71)
    ddp = wrapped(model)
    cinch.torch.compress(ddp, file, rules=[{"name": "0.*"}], timeout=5)
    loss_of(ddp, rank).backward()


def test_a_condition_of_the_program_that_a_parameter_does_not_keep(ranks, tmp_path):
    file = tmp_path / "even.cinch"
    file.write_text(ODD)
    for failure in ranks.fail(2, odd_parameter, str(file)):
        assert "0.bias" in failure.text and "an even number is wanted" in failure.text
        assert failure.text.endswith('. 0.bias has the shape (71,); the rule {"name": "0.bias", "use": "exact"} keeps it out')


def tiny_model():
    """All of its tensors are exact."""
    return torch.nn.Linear(8, 2)


def not_ddp(rank):
    cinch.torch.compress(small_model(), "qsgd")


def second_hook(rank):
    ddp = wrapped(small_model())
    cinch.torch.compress(ddp, "qsgd")
    cinch.torch.compress(ddp, "qsgd")


def python_reducer(rank):
    with torch._dynamo.config.patch(optimize_ddp="python_reducer"):
        cinch.torch.compress(wrapped(small_model()), "qsgd")


def test_what_is_wrong_on_all_ranks(ranks):
    words = {
        "program": "nosuch",
        "expression": "nosuch",
        "parameter": "nosuch",
        "range": "ratio",
        "sparse": "0: gradients of an embedding with sparse=True",
        "double": "0.weight: gradients of torch.float64 are not taken; float32, float16 and bfloat16 are: convert the parameter",
        "complex": "0.weight: gradients of torch.complex64",
        "rules": "policy",
        "off": "0.weight",
        "plan": "nosuch",
        "schedule": "nosuch",
        "transport": "transport is 'tcp'",
        "nccl": "on the CPU",
        "no program": "program is None",
        "of exact tensors": "topkk",
        "parameter of exact tensors": "ratio",
        "parameter of none": '"none" has no parameter ratio',
        "timeout": "timeout is nan",
        "dense_steps": "dense_steps is 1.5",
        "first_step": "first_step is",
        "scale": "scale is 5, which is not a function",
        "secret": "secret is of type str",
        "parts": "plan is 'reduce_scatter'",
        "rules of a number": "rules are of type int",
        "rule of a number": "rule 2 is 7",
        "said": "rule 1 says 5 of 0.weight",
        "local": "gossip claims `local`",
        "bare": "not a Sequential",
        "twice": "hook already",
        "python_reducer": "python_reducer",
    }
    for told in ranks.run(2, many_wrong):
        for name, word in words.items():
            assert told[name] is not None and word in told[name], f"{name}: {told[name]}"


def warned_of_tiny_model(rank, world):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cinch.torch.compress(wrapped(tiny_model()), "topk", timeout=10)
    return [str(each.message) for each in caught if "no parameter is compressed" in str(each.message)]


def test_that_nothing_is_compressed_is_warned_of(ranks):
    told = ranks.run(2, warned_of_tiny_model)
    assert len(told[0]) == 1 and told[1] == []


def differ_in_tiny_model(rank, world):
    cinch.torch.compress(wrapped(tiny_model()), ["topk", "dgc"][rank], timeout=10)


def test_programs_of_exact_tensors_are_compared(ranks):
    for failure in ranks.fail(2, differ_in_tiny_model):
        assert "program is topk" in failure.text and "dgc" in failure.text, failure


def one_hook_for_two(rank, world):
    hook = cinch.torch.Hook("qsgd")
    first, second = wrapped(small_model()), wrapped(torch.nn.Linear(64, 65))
    first.register_comm_hook(hook, cinch.torch.run_hook)
    second.register_comm_hook(hook, cinch.torch.run_hook)
    loss_of(first, rank, 0).backward()
    for _ in range(2):
        with pytest.raises(cinch.SyncError, match="a hook of its own"):
            second(torch.ones(3, 64)).sum().backward()


def test_one_hook_for_two_models(ranks):
    ranks.run(2, one_hook_for_two)


def the_same_twice(rank, world):
    weight = torch.nn.Parameter(torch.zeros(72, 64))
    with pytest.raises(cinch.InvalidArgumentError, match="b is the parameter a, too"):
        cinch.torch.Averager([("a", weight), ("b", weight)], "qsgd")
    with pytest.raises(cinch.InvalidArgumentError, match="Adam has no momentum"):
        cinch.torch.take_momentum(torch.optim.Adam([weight]))


def test_a_parameter_given_twice(ranks):
    ranks.run(2, the_same_twice)


@pytest.mark.parametrize(
    "make, program, settings, words",
    [
        (small_model, "nosuch", {}, "nosuch"),
        (small_model, "qsgd", {"nosuch": 1}, "nosuch"),
        (small_model, "onebit", {}, ""),
        (small_model, "qsgd", {"bits": 3}, ""),
        (small_model, "qsgd", {"plan": "allgather"}, ""),
        (small_model, "qsgd", {"seed": 7}, "seed"),
        (small_model, "qsgd", {"rules": [{"use": "exact"}]}, ""),
        (small_model, "qsgd", {"dense_steps": 2}, "dense_steps is 0 on rank 0 and 2 on rank 1"),
        (small_model, "qsgd", {"skips_non_finite": True}, "skips_non_finite"),
    ],
)
def test_what_is_wrong_on_one_rank(ranks, make, program, settings, words):
    failures = ranks.fail(3, compresses, make, program, settings, 1)
    for rank, failure in enumerate(failures):
        assert words in failure.text, failure
        assert failure.kind != "TimedOutError"
        assert rank == 1 or "rank 1" in failure.text, failure


def averages(rank, world, shapes):
    weights = [(name, torch.nn.Parameter(torch.zeros(*shape))) for name, shape in shapes[rank]]
    cinch.torch.Averager(weights, "qsgd", timeout=10)


@pytest.mark.parametrize(
    "other",
    [[("b", (9, 5)), ("a", (72, 64))], [("a", (72, 64))], [("a", (72, 64)), ("c", (9, 5))], []],
)
def test_parameters_that_differ(ranks, other):
    for failure in ranks.fail(2, averages, [[("a", (72, 64)), ("b", (9, 5))], other]):
        assert failure.kind in ("InvalidArgumentError", "CancelledError"), failure
        assert "rank" in failure.text or "no parameter" in failure.text, failure


def stays_away(rank, world):
    if rank == 1:
        return dist.get_rank()
    cinch.torch.Averager([("a", torch.nn.Parameter(torch.zeros(3)))], "qsgd", timeout=1)


def test_a_rank_that_does_not_come_is_named(ranks):
    told = ranks.answers(3, stays_away)
    assert told[1] == 1
    for failure in (told[0], told[2]):
        assert failure.kind == "TimedOutError" and "rank 1 " in failure.text


def schedule_fails(rank, world):
    def value_at(step):
        if step == 2 and rank == 1:
            raise KeyError("no value for step 2")
        return 0.01

    model = small_model()
    ddp = wrapped(model)
    cinch.torch.compress(ddp, "topk", schedule={"ratio": value_at}, timeout=4)
    train(ddp, torch.optim.SGD(model.parameters(), lr=0.05), rank, 4)


def test_a_schedule_that_raises(ranks):
    failures = ranks.fail(2, schedule_fails)
    assert "no value for step 2" in failures[1].text
    assert [failure.kind for failure in failures] == ["SyncError"] * 2 and "rank 1" in failures[0].text


def after_a_failure(rank, world):
    """The step that fails, and the next one."""
    model = small_model()
    ddp = wrapped(model)
    compression = cinch.torch.compress(ddp, "qsgd", timeout=4)
    train(ddp, torch.optim.SGD(model.parameters(), lr=0.05), rank, 1)
    if rank == 1:
        compression.close()
    told = []
    for _ in range(2):
        ddp.zero_grad()
        try:
            loss_of(ddp, rank).backward()
        except cinch.SyncError as failure:
            told.append(str(failure))
    return told


def test_steps_after_a_failure_fail(ranks):
    told = ranks.run(2, after_a_failure)
    for said in told:
        assert len(said) == 2 and said[0] == said[1], told
    assert "rank 1" in told[0][0]
