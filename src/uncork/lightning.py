"""UncorkCallback for Lightning: ``Trainer(callbacks=[UncorkCallback()])`` records a fit and says what is slow."""

import sys
from typing import Any

from uncork.training import TrainingRecording

if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning.callbacks import Callback
else:
    from lightning.pytorch.callbacks import Callback


class UncorkCallback(Callback):  # type: ignore[misc]  # Lightning may be absent where types are checked
    """Records fit, test and predict from their first batch to their end.

    Args:
        folder: The run folder; a new one under ``uncork-runs`` by default.
        show: Print the report at the end.
        **options: Fields of `uncork.capture.CaptureOptions`.
    """

    def __init__(self, folder: str | None = None, *, show: bool = True, **options: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.recording = TrainingRecording(folder, show=show, **options)

    def on_train_start(self, trainer: Any, *_: object) -> None:  # noqa: ANN401 - Lightning's, of any version
        """Begin after the sanity check."""
        self.recording.begin(trainer.strategy.broadcast)

    def on_train_end(self, *_: object) -> None:
        """End and report."""
        self.recording.end()

    on_test_start = on_predict_start = on_train_start
    on_test_end = on_predict_end = on_exception = on_train_end
