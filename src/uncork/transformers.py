"""UncorkCallback for Hugging Face's Trainer: ``Trainer(callbacks=[UncorkCallback()])`` says what is slow."""

from typing import Any

from transformers import TrainerCallback

from uncork.training import TrainingRecording


class UncorkCallback(TrainerCallback):  # type: ignore[misc]  # transformers may be absent where types are checked
    """Records ``trainer.train()`` from its first step to its end.

    Args:
        folder: The run folder; a new one under ``uncork-runs`` by default.
        show: Print the report at the end.
        **options: Fields of `uncork.capture.CaptureOptions`.
    """

    def __init__(self, folder: str | None = None, *, show: bool = True, **options: Any) -> None:  # noqa: ANN401
        self.recording = TrainingRecording(folder, show=show, **options)

    def on_train_begin(self, *_: object, **__: object) -> None:
        """Begin; a launcher's ranks find one folder by themselves."""
        self.recording.begin(str)

    def on_train_end(self, *_: object, **__: object) -> None:
        """End and report."""
        self.recording.end()
