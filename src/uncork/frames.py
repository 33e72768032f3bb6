"""Whose a Python frame is: the user's own, or a library's."""

import re
import sys
from functools import lru_cache

# Spelt as in a trace (``loader.py(16): decode``) or as cProfile's file, line and name.
FRAME = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)$")
_INSTALLED = re.compile(
    r"(site|dist)-packages[/\\]|[/\\]lib(64)?[/\\]python\d|[/\\]Lib[/\\]|torchinductor_|[/\\]miniforge|frozen "
)
# Kineto cuts the longest prefix that is on sys.path, so installed packages begin with their own name.
_PACKAGES = frozenset(
    (
        "IPython", "PIL", "SimpleITK", "_pydev_bundle", "_pydevd_bundle", "absl", "accelerate", "aiohttp",
        "albumentations", "ale_py", "apex", "audioread", "av", "bitsandbytes", "boto3", "botocore", "botorch",
        "cachetools", "captum", "catalyst", "causal_conv1d", "clearml", "click", "cloudpickle", "comet_ml", "composer",
        "coverage", "cupy", "cv2", "darts", "dask", "datasets", "debugpy", "decord", "deepspeed", "detectron2", "dgl",
        "diffusers", "dill", "e3nn", "einops", "espnet2", "evaluate", "fairscale", "fairseq", "fastai", "fastcore",
        "fastprogress", "fire", "flair", "flash_attn", "flax", "fsspec", "functorch", "fvcore", "gcsfs", "gensim",
        "gluonts", "gpytorch", "gym", "gymnasium", "h5py", "huggingface_hub", "hydra", "ignite", "imageio", "imgaug",
        "intel_extension_for_pytorch", "iopath", "ipykernel", "jax", "jinja2", "joblib", "jupyter_client", "keras",
        "kornia", "librosa", "liger_kernel", "lightning", "lightning_fabric", "lightning_utilities", "line_profiler",
        "linear_operator", "lmdb", "loguru", "lz4", "mamba_ssm", "matplotlib", "megatron", "mlflow", "mmcv", "mmdet",
        "mmengine", "mmseg", "monai", "msgpack", "multiprocess", "nemo", "netCDF4", "networkx", "neuralforecast",
        "nibabel", "nltk", "numba", "numpy", "ogb", "omegaconf", "open_clip", "openpyxl", "opt_einsum", "optimum",
        "optuna", "orjson",
        "pandas", "pdbpp", "peft", "pettingzoo", "polars", "psutil", "pyarrow", "pycocotools", "pydantic", "pydevd",
        "pydicom", "pyg_lib", "pyro", "pytorch3d", "pytorch_forecasting", "pytorch_lightning",
        "pytorch_metric_learning", "pytorchvideo", "rasterio", "ray", "requests", "rich", "s3fs", "safetensors",
        "sb3_contrib", "scipy", "segmentation_models_pytorch", "sentence_transformers", "sentencepiece", "sglang",
        "skimage", "sklearn", "skorch", "soundfile", "spacy", "speechbrain", "stable_baselines3", "streaming", "sympy",
        "tables", "tensorboard", "tensorboardX", "tensordict", "tensorflow", "thinc", "threadpoolctl", "tianshou",
        "tifffile", "tiktoken", "timm", "tokenizers", "torch", "torch_geometric", "torch_npu", "torch_scatter",
        "torch_sparse", "torch_xla", "torchao", "torchaudio", "torchdata", "torchdiffeq", "torchio", "torchmetrics",
        "torchrl", "torchsde", "torchtext", "torchtune", "torchvision", "tqdm", "transformer_engine", "transformers",
        "triton", "trl", "typer", "ujson", "ultralytics", "uncork", "unsloth", "urllib3", "vllm", "wandb",
        "webdataset", "xarray", "xformers", "yaml", "zarr", "zstandard",
    )
)  # fmt: skip


@lru_cache(maxsize=1 << 16)  # many measurements ask about the same names
def split_frame(name: str) -> tuple[str, int, str]:
    """Return (file, line, function) of a frame's name; built-ins have no file, line 0 and their whole name."""
    found = FRAME.match(name)
    return (found["file"], int(found["line"]), found["function"]) if found else ("", 0, name)


def is_installed(file: str) -> bool:
    """Return whether a whole path is that of an installed package, of Python's own library, or of generated code."""
    return bool(_INSTALLED.search(file))


def is_users(file: str) -> bool:
    """Return whether a source file is the user's own: neither built in, nor Python's, nor an installed package's."""
    if not file or file.startswith(("<", "~")) or is_installed(file):
        return False
    top, *below = re.split(r"[/\\]", file.lstrip("./\\"))
    top = top.removesuffix(".py")
    if top == "uncork":  # what `uncork demo` runs stands for a program of the user's
        return below[:1] == ["demo"]
    # A whole path that is no library's is theirs, whatever the folders are called.
    return file.startswith(("/", "\\")) or (top not in _PACKAGES and top not in sys.stdlib_module_names)


def is_users_frame(name: str) -> bool:
    """Return whether a trace's Python frame is the user's own."""
    return is_users(split_frame(name)[0])


_PACKAGE = re.compile(r".*(?:site|dist)-packages[/\\]")
_NOT_OTHERS = frozenset(("torch", "functorch", "uncork", *sys.stdlib_module_names))


def is_others_frame(name: str) -> bool:
    """Return whether a trace's Python frame is a library's that is neither PyTorch nor Python's own."""
    file = split_frame(name)[0]
    if not file or file.startswith("<") or is_users(file):
        return False
    inside = _PACKAGE.sub("", file)
    top = re.split(r"[/\\]", inside)[0].removesuffix(".py")
    return top not in _NOT_OTHERS and not is_installed(inside)


def same_file(left: str, right: str) -> bool:
    """Return whether two spellings of a path mean the same file: traces cut the front of it."""
    left, right = left.replace("\\", "/"), right.replace("\\", "/")
    return bool(left and right) and (left == right or left.endswith("/" + right) or right.endswith("/" + left))


# Regions that PyTorch, its libraries and the recorder open themselves.
_OF_LIBRARIES = re.compile(
    r"^(ProfilerStep|Optimizer\.|enumerate\(Data|DistributedDataParallel\.|(nccl|gloo|mpi|ucc|xccl|hccl):"
    r"|nn\.Module: |Torch-Compiled Region|TorchDynamo|## Call Compiled|CompiledFunction|PyTorch Profiler|FSDP::"
    r"|\[param|uncork: )"
)


def is_users_region(name: str) -> bool:
    """Return whether a region was named by the user (``record_function``), not by PyTorch or one of its libraries."""
    return not _OF_LIBRARIES.match(name)
