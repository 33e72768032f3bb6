"""TensorBoard: a tab that shows the report on the profiler traces of a log folder.

TensorBoard finds it by the entry point ``tensorboard_plugins``; ``pip install "uncork[tensorboard]"`` brings both.
"""

import html
import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tensorboard.plugins import base_plugin
from werkzeug.wrappers import Request, Response

from uncork import readers
from uncork.errors import UncorkError
from uncork.locale import default_language
from uncork.pipeline import analyze
from uncork.render import Options, renderers

App = Callable[[dict[str, Any], Any], Iterable[bytes]]

_SCRIPT = """
export async function render() {
  const runs = await (await fetch('./runs')).json();
  const choice = document.createElement('select');
  const frame = document.createElement('iframe');
  choice.append(...runs.map(run => new Option(run || '.', run)));
  choice.hidden = runs.length < 2;
  frame.setAttribute('sandbox', 'allow-scripts allow-downloads');
  frame.style.cssText = 'border:0;width:100%;height:calc(100vh - 8px)';
  const show = () => { frame.src = './page?run=' + encodeURIComponent(choice.value); };
  choice.onchange = show;
  document.body.style.margin = 0;
  document.body.append(choice, frame);
  show();
}
"""


class UncorkPlugin(base_plugin.TBPlugin):  # type: ignore[misc] # tensorboard has no types
    """The tab.

    Args:
        context: What TensorBoard hands its plugins.
    """

    plugin_name = "uncork"

    def __init__(self, context: base_plugin.TBContext) -> None:
        self._folder = Path(context.logdir or ".")
        self._pages: dict[str, str] = {}
        self._lock = threading.Lock()

    def get_plugin_apps(self) -> dict[str, App]:
        """Return what each route answers."""
        return {"/index.js": self._script, "/runs": self._runs, "/page": self._page}

    def is_active(self) -> bool:
        """Return whether the log folder holds profiler traces."""
        return bool(self._found())

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        """Return where TensorBoard finds the tab's script, and what the tab is called."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="uncork")

    def _found(self) -> list[str]:
        """Return the runs: folders below the log folder with traces in them, relative to it."""
        traces = (path for pattern in ("*.pt.trace.json", "*.pt.trace.json.gz") for path in self._folder.rglob(pattern))
        return sorted({path.parent.relative_to(self._folder).as_posix() for path in traces})

    def _script(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401 - WSGI
        return Response(_SCRIPT, mimetype="text/javascript")(environ, start_response)

    def _runs(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401 - WSGI
        return Response(json.dumps(self._found()), mimetype="application/json")(environ, start_response)

    def _page(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401 - WSGI
        """Answer the page of a run; only runs that the log folder holds, so no path leads out of it."""
        run = Request(environ).args.get("run", "")
        if run not in self._found():
            return Response("There is no such run here.", status=404, mimetype="text/plain")(environ, start_response)
        with self._lock:
            if run not in self._pages:
                self._pages[run] = self._made(run)
        return Response(self._pages[run], mimetype="text/html")(environ, start_response)

    def _made(self, run: str) -> str:
        lang = default_language()
        try:
            report = analyze(readers.expand([self._folder / run]), views=True)
        except UncorkError as fault:
            return f"<!doctype html><meta charset=utf-8><p>{html.escape(fault.told(lang))}"
        return renderers()["html"](report, Options(lang=lang))
