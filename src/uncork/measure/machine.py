"""Machine: what advice must know: cores, versions, device, and how the program's loader is set."""

import math
import re
from collections.abc import Mapping

from uncork.findings import Location
from uncork.frames import is_users
from uncork.measure import Measurement, Rank
from uncork.records import dataclass

_KINDS = (("npu", ("npu", "ascend")), ("xpu", ("xpu",)), ("mps", ("mps",)), ("hip", ("amd", "instinct", "radeon")))
_FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
"""Optimizers of ``torch.optim`` that take ``fused=True`` (torch 2.8's documentation)."""


@dataclass(frozen=True)
class Machine(Measurement):
    """Facts about the machine and the program; None where nothing says.

    Args:
        cores: Processor cores that the program may use.
        memory_bytes: Memory of the host.
        torch: (major, minor) of PyTorch.
        device: ``cuda hip npu xpu mps``, or ``cpu`` where no device is listed and none works.
        num_workers: Workers of the DataLoader.
        pin_memory: Whether the DataLoader pins its batches.
        persistent_workers: Whether its workers outlive an epoch.
        prefetch_factor: Batches that each worker keeps ready.
        batch_size: Items per batch.
        shuffle: Whether it shuffles; None where the sampler is the program's own, or unknown.
        optimizer: Name of the optimizer's class, or empty.
        anomaly: Whether autograd's anomaly detection is on.
        dataset: Where the data set's class makes an item; nothing where it is not the user's.
        modelless: Whether `uncork run` watched the program and saw no module at work.
        loader_of: The framework that makes the program's loader, or empty.
        host_bf16: The processor's instructions for bf16; None where the recording does not tell.
        tracer: Package that Python calls for every line (``bdb``), or empty.
    """

    cores: int | None
    memory_bytes: int | None
    torch: tuple[int, int] | None
    device: str
    num_workers: int | None
    pin_memory: bool | None
    persistent_workers: bool | None
    prefetch_factor: int | None
    batch_size: int | None
    optimizer: str
    anomaly: bool | None
    dataset: Location
    modelless: bool = False
    shuffle: bool | None = None
    tracer: str = ""
    loader_of: str = ""
    host_bf16: tuple[str, ...] | None = None

    @classmethod
    def of(cls, rank: Rank) -> "Machine":
        """Return the facts of a rank; never missing as a whole."""
        recording = rank.recording
        settings = dict(recording.run.settings) if recording.run else {}
        works = recording.events is not None and len(recording.events) > 0 and len(rank.timeline.device) > 0
        name = next((one.name for one in recording.devices if one.name), "")
        return cls(
            cores=_count(recording.host.get("cores_allowed", recording.host.get("cores", settings.get("cores")))),
            memory_bytes=_count(recording.host.get("memory_bytes")),
            torch=_version(recording.versions.get("torch") or str(settings.get("torch", ""))),
            device=_kind(name, "hip" in recording.versions) if recording.devices or works else "cpu",
            num_workers=_count(settings.get("num_workers")),
            pin_memory=_flag(settings.get("pin_memory")),
            persistent_workers=_flag(settings.get("persistent_workers")),
            prefetch_factor=_count(settings.get("prefetch_factor")),
            batch_size=_count(settings.get("batch_size")),
            optimizer=str(settings.get("optimizer") or ""),
            anomaly=_flag(settings.get("anomaly_detection")),
            dataset=_dataset(settings),
            modelless=recording.run is not None and "threads" in settings and "model" not in settings,
            shuffle=_flag(settings.get("shuffle")),
            tracer=str(settings.get("tracer") or ""),
            loader_of=str(settings.get("loader_of") or ""),
            host_bf16=_words(recording.host.get("cpu_bf16")),
        )

    @property
    def accelerator(self) -> str:
        """Return what PyTorch calls the device (``torch.autocast(…)``): AMD's answers to ``cuda`` as well."""
        return "cuda" if self.device == "hip" else self.device

    @property
    def kept(self) -> Mapping[str, str]:
        """Return what advice to paste keeps of the program: as it is now, ``...`` where the recording does not say."""
        return {
            "accelerator": self.accelerator,
            "batch_size": _said(self.batch_size),
            "twice_batch_size": str(2 * self.batch_size) if self.batch_size else "2 * batch_size",
            "shuffle": _said(self.shuffle),
            "num_workers": _said(self.num_workers),
            "more_workers": _said(
                self.cores if self.num_workers == 0 else 2 * self.num_workers if self.num_workers else None
            ),
            "optimizer": self.optimizer if self.optimizer in _FUSED else "AdamW",
            **({"loader_of": self.loader_of} if self.loader_of else {}),
        }

    def workers_for(
        self, load_ns: float, rest_ns: float, *, waiting: bool = False, awake_share: float | None = None
    ) -> int:
        """Return how many workers hide the loading of a batch behind the rest of a step, and no more than cores.

        Little's law: as many as batches must be in the making at once. One core stays with the main process, unless
        the workers mostly wait; where it is known how much they wait, more of them share each of the others.

        Args:
            load_ns: Time one worker takes to make a batch.
            rest_ns: Time of a step without the wait for data.
            waiting: Whether workers mostly wait for disk or network.
            awake_share: Share of that time in which it needs a core, where that is known.
        """
        cores = self.cores or DEFAULT_CORES
        others = max(cores - 1, 1)
        if awake_share is not None:
            most = int(others / max(awake_share, LEAST_AWAKE_SHARE))
        else:
            most = cores if waiting else others
        return max(1, math.ceil(min(load_ns / max(rest_ns, 1.0), most)))

    def hidden_share(self, load_ns: float, rest_ns: float, workers: int) -> float:
        """Return the share of a step won by loading in so many workers: the slower of both sides remains."""
        step = load_ns + rest_ns
        return max(0.0, 1.0 - max(rest_ns, load_ns / workers) / step) if step > 0 else 0.0


DEFAULT_CORES = 8
"""Cores assumed where the recording does not say; the advice then tells people to stay below their own number."""

LEAST_AWAKE_SHARE = 0.25
"""Four workers for each core are the most that is advised: each takes memory, and a disk serves only so many."""


def _said(value: int | None) -> str:
    return "..." if value is None else str(value)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _words(value: object) -> tuple[str, ...] | None:
    return tuple(map(str, value)) if isinstance(value, (list, tuple)) else None


def _dataset(settings: Mapping[str, object]) -> Location:
    file, line = settings.get("dataset_file"), _count(settings.get("dataset_line"))
    # A library's own data set, as TensorDataset, is no place of the user's to change.
    known = isinstance(file, str) and is_users(file)
    return Location(file=str(file), line=line, function="__getitem__") if known else Location()


def _version(text: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


def _kind(name: str, hip: bool) -> str:
    folded = name.casefold()
    if hip:
        return "hip"
    return next((kind for kind, words in _KINDS if any(word in folded for word in words)), "cuda")
