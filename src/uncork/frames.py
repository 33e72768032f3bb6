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
        "albumentations", "apex", "audioread", "av", "bitsandbytes", "boto3", "botocore", "clearml", "click",
        "cloudpickle", "comet_ml", "coverage", "cupy", "cv2", "dask", "datasets", "debugpy", "decord", "deepspeed",
        "diffusers", "dill", "einops", "fairscale", "flash_attn", "fsspec", "functorch", "gcsfs", "h5py",
        "huggingface_hub", "hydra", "imageio", "imgaug", "intel_extension_for_pytorch", "ipykernel", "jax", "joblib",
        "jupyter_client", "kornia", "librosa", "lightning", "lightning_fabric", "line_profiler", "lmdb", "loguru",
        "lz4", "matplotlib", "megatron", "mlflow", "monai", "msgpack", "netCDF4", "nibabel", "numba", "numpy",
        "omegaconf", "orjson", "pandas", "pdbpp", "peft", "psutil", "pyarrow", "pydevd", "pydicom",
        "pytorch_lightning", "rasterio", "ray", "requests", "rich", "s3fs", "safetensors", "scipy", "sglang",
        "skimage", "sklearn", "soundfile", "tensorboard", "tensorboardX", "tensorflow", "tifffile", "timm",
        "tokenizers", "torch", "torch_npu", "torchao", "torchaudio", "torchdata", "torchmetrics", "torchtext",
        "torchvision", "tqdm", "transformer_engine", "transformers", "triton", "trl", "ujson", "uncork", "urllib3",
        "vllm", "wandb", "webdataset", "xarray", "xformers", "yaml", "zarr", "zstandard",
    )
)  # fmt: skip


@lru_cache(maxsize=1 << 16)  # many measurements ask about the same names
def split_frame(name: str) -> tuple[str, int, str]:
    """Return (file, line, function) of a frame's name; built-ins have no file, line 0 and their whole name."""
    found = FRAME.match(name)
    return (found["file"], int(found["line"]), found["function"]) if found else ("", 0, name)


def is_users(file: str) -> bool:
    """Return whether a source file is the user's own: neither built in, nor Python's, nor an installed package's."""
    if not file or file.startswith(("<", "~")) or _INSTALLED.search(file):
        return False
    top, *below = re.split(r"[/\\]", file.lstrip("./\\"))
    top = top.removesuffix(".py")
    if top == "uncork":  # what `uncork demo` runs stands for a program of the user's
        return below[:1] == ["demo"]
    return top not in _PACKAGES and (top not in sys.stdlib_module_names or file.startswith(("/", "\\")))


def is_users_frame(name: str) -> bool:
    """Return whether a trace's Python frame is the user's own."""
    return is_users(split_frame(name)[0])


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
