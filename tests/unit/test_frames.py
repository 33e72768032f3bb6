"""Whose a Python frame is: paths as traces, cProfile and other systems write them."""

import pytest

from uncork.frames import is_users, is_users_frame, split_frame


@pytest.mark.parametrize(
    "file",
    [
        "train.py",
        "src/models/resnet.py",
        "/home/user/project/train.py",
        "C:\\work\\train.py",
        "./main.py",
        "/home/user/io.py",
        "switch_transformers/model.py",
    ],
)
def test_scripts_and_packages_of_the_user_are_theirs(file: str):
    """Relative or absolute, Windows or not; a file of theirs may be called like a module of Python's."""
    assert is_users(file)


@pytest.mark.parametrize(
    "file",
    [
        "",
        "~",
        "<built-in method conv2d>",
        "<frozen importlib._bootstrap>",
        "torch/nn/functional.py",
        "transformers/models/bert/modeling_bert.py",
        "threading.py",
        "contextlib.py",
        "/venv/lib/site-packages/torch/tensor.py",
        "/usr/lib/python3.11/threading.py",
        "/usr/lib/python3/dist-packages/numpy/core.py",
        "/var/cache/torchinductor_user/ab/cab.py",
    ],
)
def test_libraries_python_and_compiled_code_are_not(file: str):
    """Kineto cuts the path up to site-packages, so a library is known by its own name."""
    assert not is_users(file)


def test_a_frame_is_split_into_file_line_and_function():
    """Built-ins have neither file nor line; a function's name may hold brackets."""
    assert split_frame("net.py(12): forward") == ("net.py", 12, "forward")
    assert split_frame("a (copy).py(3): <lambda>") == ("a (copy).py", 3, "<lambda>")
    assert split_frame("<built-in function linear>") == ("", 0, "<built-in function linear>")
    assert is_users_frame("net.py(12): forward")
    assert not is_users_frame("nn.Module: Linear_0")
