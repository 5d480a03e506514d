"""Owns the import of handler modules from the directories that a project lists."""

from __future__ import annotations

import importlib
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from engine.domain.diagnostics import did_you_mean
from engine.domain.policy import PythonHandler

_IMPORTING = threading.RLock()


class HandlerNotFound(Exception):
    """The module or function of a handler is not there; the text says what was looked for and where."""


class HandlerModules:
    """Resolves `python:module:function`, once per module."""

    def __init__(self, import_paths: Iterable[str | Path]) -> None:
        self._paths = [str(Path(path).resolve()) for path in import_paths]
        self._modules: dict[str, ModuleType] = {}

    def function(self, handler: PythonHandler) -> Callable[..., object]:
        """The callable. Raises HandlerNotFound."""
        module = self._module(handler.module)
        found = getattr(module, handler.function, None)
        if callable(found):
            return found  # type: ignore[no-any-return]  # an attribute of a stranger's module
        if found is not None:
            raise HandlerNotFound(f"`{handler.function}` in module `{handler.module}` is no function")
        near = did_you_mean(handler.function, vars(module))
        hint = f"; did you mean `{near}`?" if near else ""
        raise HandlerNotFound(f"no function `{handler.function}` in module `{handler.module}`{hint}")

    def _module(self, name: str) -> ModuleType:
        found = self._modules.get(name)
        if found is None:
            with _IMPORTING, self._searched():
                found = self._modules[name] = self._import(name)
        return found

    def _import(self, name: str) -> ModuleType:
        try:
            self._forget_namesake(name)
            found = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name == name or name.startswith(f"{error.name}."):
                raise HandlerNotFound(f"no module `{name}` in {self._where()}") from error
            raise HandlerNotFound(
                f"module `{name}` imports `{error.name}`, which is not installed"
            ) from error
        except (Exception, SystemExit) as error:
            raise HandlerNotFound(
                f"module `{name}` fails while it is imported: {_last_line(error)}"
            ) from error
        if found.__spec__ is not None and found.__spec__.origin is None:
            raise HandlerNotFound(f"no module `{name}` in {self._where()}: only a folder has that name")
        return found

    def _forget_namesake(self, name: str) -> None:
        """Two projects in one process may both have a `tools.py`: the one in our directories is meant."""
        top = name.partition(".")[0]
        spec = PathFinder.find_spec(top, self._paths) if self._paths else None
        loaded = sys.modules.get(top)
        if spec is None or spec.origin is None or loaded is None or loaded.__spec__ is None:
            return
        if loaded.__spec__.origin != spec.origin:
            for other in [key for key in sys.modules if key == top or key.startswith(f"{top}.")]:
                del sys.modules[other]

    @contextmanager
    def _searched(self) -> Iterator[None]:
        before = list(sys.path)
        sys.path[:0] = self._paths
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path[:] = before

    def _where(self) -> str:
        listed = ", ".join(f"`{path}`" for path in self._paths)
        return listed or "the Python path (`handlers` in `agentctl.yaml` lists no directory)"


def _last_line(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({error.filename}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
