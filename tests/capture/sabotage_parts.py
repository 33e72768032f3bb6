"""The parts of the recorder that sabotage.py can break."""

PARTS = (
    "finder",
    "update",
    "backward",
    "plan",
    "light-start",
    "light-stop",
    "functions-stop",
    "names",
    "marks",
    "marks-close",
    "garbage",
    "cores",
    "home",
    "spans",
    "settings",
    "files",
    "sampler",
    "holdings",
    "finish",
)
