"""What train.py trains with, by name."""

OF_TORCH = ("dense", "torch_fp16", "torch_bf16", "torch_powersgd")

# By name: the program and its parameters. Those with states begin after a tenth of 200 steps.
CINCH = {
    "none": ("none", {}),
    "fp16": ("fp16", {}),
    "qsgd": ("qsgd", {"bits": 4}),
    "int8_block": ("int8_block", {}),
    "int4_block": ("int4_block", {}),
    "nvfp4": ("nvfp4", {}),
    "eden": ("eden", {}),
    "eden_3": ("eden", {"bits": 3}),
    "drive": ("drive", {}),
    "drive_unbiased": ("drive(unbiased: true)", {"plan": "allgather"}),
    "onebit": ("onebit", {}),
    "ef_onebit": ("error_feedback(onebit)", {"dense_steps": 20}),
    "ef_sign": ("ef_sign", {"dense_steps": 20}),
    "dgc": ("dgc", {"ratio": 0.001, "dense_steps": 0}),
    "dgc_1": ("dgc", {"ratio": 0.01, "dense_steps": 20}),
    "powersgd": ("powersgd(rank: 4)", {"dense_steps": 0}),
    "powersgd_20": ("powersgd(rank: 4)", {"dense_steps": 20}),
    "qsgd_auto": ("qsgd", {"bits": 4, "plan": "auto"}),
    "dgc_auto": ("dgc", {"ratio": 0.001, "plan": "auto", "dense_steps": 0}),
}

# By name: a class of cinch.torch and its arguments. README.md says what they do.
METHODS = {
    "sync": ("Delayed", {"method": "sync"}),
    "sync_qsgd": ("Delayed", {"method": "sync", "program": "qsgd(bits: 4)"}),
    "stale": ("Delayed", {"method": "stale"}),
    "stale_qsgd": ("Delayed", {"method": "stale", "program": "qsgd(bits: 4)"}),
    "od_sgd": ("Delayed", {"method": "od_sgd"}),
    "od_sgd_full": ("Delayed", {"method": "od_sgd", "own_share": 1}),
    "cd_sgd": ("Delayed", {"method": "cd_sgd", "program": "correct_every(two_bit(tau: 0.001), every: 5)", "plan": "two_shot", "dense_steps": 0}),
    "cd_sgd_up": ("Delayed", {"method": "cd_sgd", "program": "correct_every(two_bit(tau: 0.001), every: 5)", "plan": "allgather", "dense_steps": 0}),
    "two_bit": ("Delayed", {"method": "sync", "program": "correct_every(two_bit(tau: 0.001), every: 5)", "plan": "two_shot", "dense_steps": 0}),
    "ssd_sgd": ("Delayed", {"method": "ssd_sgd"}),
    "local_sgd": ("DiLoCo", {"every": 20, "outer_lr": 1, "outer_momentum": 0}),
    "diloco": ("DiLoCo", {"every": 20}),
    "diloco_published": ("DiLoCo", {"every": 20, "outer_momentum": 0.9}),
    "diloco_streaming": ("DiLoCo", {"every": 20, "fragments": 4, "delay": 3, "mix": 0.5}),
    "sparse_loco": ("DiLoCo", {"every": 20, "outer_lr": 1, "outer_momentum": 0, "program": "sparse_loco"}),
    "torchft_diloco": ("torchft", {"every": 20}),
    "local_sgd_100": ("DiLoCo", {"every": 100, "outer_lr": 1, "outer_momentum": 0}),
    "diloco_100": ("DiLoCo", {"every": 100}),
    "sparse_loco_100": ("DiLoCo", {"every": 100, "outer_lr": 1, "outer_momentum": 0, "program": "sparse_loco"}),
}
