"""Whose a Python frame is: the user's own, or a library's."""

import re
import sys

# Spelt as in a trace (``loader.py(16): decode``) or as cProfile's file, line and name.
FRAME = re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): (?P<function>.+)$")
_INSTALLED = re.compile(r"(site|dist)-packages[/\\]|[/\\]lib(64)?[/\\]python\d|[/\\]Lib[/\\]")
# Kineto cuts the longest prefix that is on sys.path, so installed packages begin with their own name.
_PACKAGES = frozenset({
    "torch", "torchvision", "torchaudio", "torchtext", "torchdata", "torchmetrics", "torchao", "triton",
    "functorch", "numpy", "scipy", "PIL", "cv2", "pandas", "pyarrow", "h5py", "zarr", "lmdb", "skimage", "sklearn",
    "imageio", "matplotlib", "albumentations", "imgaug", "kornia", "monai", "tqdm", "wandb", "tensorboard",
    "tensorboardX", "mlflow", "comet_ml", "clearml", "lightning", "pytorch_lightning", "lightning_fabric",
    "transformers", "accelerate", "datasets", "tokenizers", "huggingface_hub", "safetensors", "diffusers", "timm",
    "peft", "trl", "deepspeed", "apex", "fairscale", "xformers", "flash_attn", "bitsandbytes", "einops", "dill",
    "cloudpickle", "fsspec", "s3fs", "gcsfs", "boto3", "botocore", "requests", "urllib3", "aiohttp", "webdataset",
    "decord", "av", "soundfile", "librosa", "audioread", "joblib", "psutil", "yaml", "omegaconf", "hydra", "absl",
    "click", "rich", "loguru", "pydevd", "debugpy", "_pydevd_bundle", "_pydev_bundle", "pdbpp", "IPython",
    "ipykernel", "jupyter_client", "coverage", "line_profiler", "torch_npu", "intel_extension_for_pytorch",
    "msgpack", "orjson", "ujson", "lz4", "zstandard", "numba", "cupy", "jax", "tensorflow", "nibabel", "pydicom",
    "SimpleITK", "tifffile", "rasterio", "netCDF4", "xarray", "dask", "ray",
})  # fmt: skip


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
    if top == "uncork":
        return below[:1] == ["demo"]
    return top not in _PACKAGES and (top not in sys.stdlib_module_names or file.startswith(("/", "\\")))


def is_users_frame(name: str) -> bool:
    """Return whether a trace's Python frame is the user's own."""
    return is_users(split_frame(name)[0])
