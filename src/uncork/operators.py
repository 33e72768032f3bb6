"""What an event on a host thread is about, read from its name; decided once per distinct name."""

import re
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from uncork.events import EventTable, Kind, starting

CLASSES = (
    "loader",
    "compile",
    "comm",
    "optimizer",
    "region",
    "wrapper",
    "view",
    "memory",
    "compute",
)
"""Of operators and regions. ``wrapper``: autograd nodes and operators that only call others; ``region``: named by
the user or by a library, says nothing about the work inside."""

SPEAKING = (Kind.PYTHON_FUNCTION, Kind.CPU_OP, Kind.USER_ANNOTATION)
"""Kinds of host events whose names say what the program does."""

OVERHEAD = frozenset({"region", "wrapper", "view"})
"""Classes whose own time is never work on data."""

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        # The DataLoader names its next() itself; Lightning, TorchRec and people name theirs in these words.
        (
            "loader",
            (
                r"^enumerate\(data(loader|pipe)\)|dataloader.*next|(train|val|test|predict)_next|(^|[^a-z])(data_?load(ing|er)?|(load|next|get|fetch)_"
                r"(batch|data)|(batch|data)_(load|fetch)(ing)?)([^a-z]|$)"
            ),
        ),
        (
            "compile",
            (
                r"\(dynamo_timed\)|torchdynamo|compile_id=|^(dynamo|entire_frame_compile|compile_attempt_\d+|backend_compile"
                r"|inductor_compile|bytecode_tracing|code_gen|build_guards|fx_codegen_and_compile)$|^pass\.\w+_passes"
                r"|cudagraphs? capture|triton.*(compile|autotun)|aclopcompile|opcompile"
            ),
        ),
        (
            "comm",
            (
                r"^(nccl|rccl|gloo|mpi|ucc|hccl|xccl|ccl|oneccl|smddp|bccl|mccl):|^_?c10d(_functional)?::|^record_param_comms"
                r"|torch_ccl::"
            ),
        ),
        ("optimizer", r"^optimizer\.(step|zero_grad)#"),
        ("region", r"^profilerstep|^distributeddataparallel\.|^##|^\[param\||^torch-compiled region|^nn\.module"),
        (
            "wrapper",
            (
                r"^autograd::|^(?!aten::)\w*backward\d*$|^compiledfunction"
                r"|^aten::(to|conv[123]d|_?convolution|linear|matmul|item|dropout"
                r"|batch_norm|_batch_norm_impl_index|layer_norm|group_norm|instance_norm|max_pool[123]d|adaptive_avg_pool[123]d"
                r"|scaled_dot_product_attention|lstm|gru|einsum|cross_entropy_loss|nll_loss(_nd)?|embedding|type_as|float|half"
                r"|is_nonzero|result_type|convolution_backward_overrideable|is_floating_point|_has_compatible_shallow_copy_type"
                r")$"
            ),
        ),
        (
            "view",
            (
                r"^aten::(view|_?unsafe_view|_?reshape(_alias|_as)?|view_as|permute|transpose_?|t_?|swapaxes|movedim|expand(_as)?"
                r"|select|slice|narrow|as_strided_?|squeeze_?|unsqueeze_?|unbind|unsafe_split|split(_with_sizes)?|chunk|flatten"
                r"|unflatten|detach_?|alias|lift_fresh|resolve_(conj|neg)|real|imag|diagonal|numpy_t|set_|data|_conj|unfold"
                r"|tensor_split|broadcast_(to|tensors))$|^detach_?$"
            ),
        ),
        (
            "memory",
            (
                r"^aten::(copy_|_to_copy|clone|contiguous|_?cat|concat|stack|fill_|zero_|(zeros|ones|full|empty)(_like|_strided"
                r"|_permuted)?|new_(zeros|ones|full|empty)(_strided)?|empty_quantized|resize_(as_)?|repeat(_interleave)?|pad"
                r"|constant_pad_nd|_local_scalar_dense|_pin_memory|pin_memory|is_pinned|flip|roll|tile|_efficientzerotensor"
                r"|to_dense|scalar_tensor)$"
            ),
        ),
    )
)

_OVERLOAD = re.compile(r"(?<=^aten::)(?P<name>\w+)\.\w+$")
_PREPARES = re.compile(
    r"processing_\w+\.py|feature_extraction_\w+\.py|tokenization_\w+\.py|tokenizers?/|image_transforms\.py"
    r"|torchvision/(transforms|io)/|monai/transforms/|albumentations/|kornia/augmentation|pil/|pil\\\\|cv2/"
    r"|utils/data/_utils/collate|librosa/|soundfile|datasets/(arrow_dataset|iterable_dataset|formatting)|decord/|webdataset/"
    r"|torchaudio/|torchcodec/|tiktoken/|sentencepiece/|torch_geometric/(loader|sampler)/|dgl/dataloading/|h5py/|zarr/"
    r"|lmdb/|pandas/io/|npyio(_impl)?\.py|imageio/|skimage/|litdata/|neighbor_sample"
    r"|: \w*(preprocess|collate|tokenize|prefetch)\w*$|: \w*(next|get|load|fetch|read)_(batch|sample|example)(es|s)?$"
)
_PREPROCESS = re.compile(r"\w*preprocess\w*$")

AUTOGRAD = re.compile(r"^autograd::engine::evaluate_function")
ATEN = re.compile(r"^aten::")

ALLOCATES = re.compile(r"^aten::(new_)?empty(_like|_strided|_permuted|_quantized)?$|^aten::resize_")
READS_BACK = re.compile(r"^aten::_local_scalar_dense$")
"""Operators that read a value from the device and so wait for it."""

TORCH_FRAME = re.compile(
    starting("torch", r"^/\\", r"[/\\]")
    + r"|^uncork[/\\]capture[/\\]|<built-in (method|function) .*( of type object| of Tensor object|torch|pybind11)"
)
"""Python frames of PyTorch itself and of the recorder: none of them takes milliseconds without calling anything."""

_WAITS = re.compile(
    r"(^|[/\\\\])(queue|threading|selectors|socket|ssl|subprocess|asyncio[/\\\\]\w+|concurrent[/\\\\]futures[/\\\\]_base"
    r"|multiprocessing[/\\\\](connection|queues|synchronize|popen_\w+|process))\.py\(\d+\): $"
)
_WAITING = re.compile(r"(get|_?wait\w*|_?select|_?recv\w*|read\w*|accept|join|result|_?poll|acquire)$")
_WAITING_BUILT_IN = re.compile(
    r"<built-in method (acquire|poll|select|control|recv\w*|accept|read|wait\w*) of "
    r"(_thread|select|_?socket|_?ssl|_multiprocessing|posix)"
)

LOADER_FRAME = re.compile(r"torch/utils/data/dataloader\.py\(\d+\): (__next__|_next_data|_get_data)", re.IGNORECASE)
_WRITES = re.compile(
    r"torch/serialization\.py\(\d+\): (_?save|load)|tensorboard\S*\(\d+\): |wandb\S*\(\d+\): |mlflow\S*\(\d+\): "
    r"|logging/__init__\S*\(\d+\): |checkpoint\S*\(\d+\): _?(save|load)|<built-in (function|method) (print|fsync)"
    r"|<built-in function (replace|rename)>"  # of posix: a file is put in its place
    r"|lightning\S*/(loggers|logger_connector)/\S+\(\d+\): "
)
INPUT_OUTPUT_REGION = re.compile(r"checkpoint.*(save|load|writ)|(save|load|writ).*checkpoint|save_model", re.IGNORECASE)

LAUNCH_CALL = re.compile(r"launch|ModuleLoad|EnqueueKernel|enqueueCommand|ExecuteCommandList", re.IGNORECASE)
KERNEL_CALL = re.compile(r"^(cuda|cu|hip)\w*(?<!Graph)Launch(?!\w*Host)")
"""Calls that start one kernel each, with a record of its own."""
CAPTURE_CALL = re.compile(r"StreamBeginCapture|StreamEndCapture")
COPY_CALL = re.compile(r"memcpy|aclrtMemcpy", re.IGNORECASE)
WAIT_CALL = re.compile(r"synchronize|syncStreams|aclrtSynchronize|StreamWaitValue|zeEventHostSync", re.IGNORECASE)
ALLOCATOR_CALL = re.compile(
    r"(malloc|free|hostalloc|hostregister|hostunregister|memcreate|memrelease|memmap|memunmap|memaddress\w+"
    r"|memsetaccess|mempool\w*)(async|managed|host|host_v2|_v2)?(_r\d+)?$",
    re.IGNORECASE,
)
FIRST_USE_CALL = re.compile(
    r"launch|module|libraryload|(cuda|hip|aclrt)free$|init|getdevicecount|getdeviceprop|streamcreate|eventcreate"
    r"|funcgetattr|funcsetattr|occupancy|devicegetattribute|devicegetstreampriority|driverget|streamiscapturing"
    r"|getsymboladdress|contextcreate|ctxcreate|devicesetcache|pointergetattributes|eventrecord|hostalloc",
    re.IGNORECASE,
)
"""Calls that carry the cost of a first use: loading modules, making contexts, reading attributes."""


def prepares_input(name: str) -> bool:
    """Return whether a Python frame or a region makes a step's input."""
    folded = name.casefold().replace("\\", "/")
    if folded.endswith(": __getitem__") and "torch/" not in folded:
        return True
    return bool(_PREPARES.search(folded) or _PREPROCESS.match(folded))


def waits_for_others(name: str) -> bool:
    """Return whether in a Python frame a thread waits for another thread, process or machine: a request, a result."""
    file, space, function = name.rpartition(" ")
    if _WAITING.match(function) and _WAITS.search(file + space):
        return True
    return name.startswith("<") and _WAITING_BUILT_IN.match(name) is not None


def writes_out(name: str) -> bool:
    """Return whether a Python frame saves, loads or logs."""
    return bool(_WRITES.search(name.casefold().replace("\\", "/")))


@lru_cache(maxsize=1 << 16)  # many measurements ask about the same names
def operator_class(name: str) -> str:
    """Return what an operator or region of that name is about, one of `CLASSES`; ``compute`` where nothing fits."""
    folded = _OVERLOAD.sub(r"\g<name>", name.casefold())
    return next((kind for kind, pattern in _PATTERNS if pattern.search(folded)), "compute")


def is_loader(name: str) -> bool:
    """Return whether an operator or region of that name is the loader's next."""
    return operator_class(name) == "loader"


def is_compile(name: str) -> bool:
    """Return whether an operator or region of that name compiles."""
    return operator_class(name) == "compile"


def operator_classes(table: EventTable) -> npt.NDArray[np.int8]:
    """Return for each text the place of its class in `CLASSES`, int8 (strings,); -1 for those that name no operator."""
    return table.coded(lambda name: CLASSES.index(operator_class(name)), Kind.CPU_OP, Kind.USER_ANNOTATION)
