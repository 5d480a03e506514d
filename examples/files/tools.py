"""Owns the tools of `tool_specs/files.tools.yaml`, over the folder that `AGENTCTL_FILES_HOME` names."""

from __future__ import annotations

from pathlib import Path

from done_once import DATA_FOLDER, CallContext, Result, moment_of, place, stamp

from engine import Failed, NotExecuted

FILES_VARIABLE = "AGENTCTL_FILES_HOME"
MAX_FILES = 500


def list_files(context: CallContext | None = None) -> Result:
    """Every file of the folder with its size in bytes, by path, at most five hundred."""
    folder = _folder()
    found = sorted(file for file in folder.rglob("*") if file.is_file() and not file.is_symlink())
    files = [
        {"path": file.relative_to(folder).as_posix(), "bytes": file.stat().st_size}
        for file in found[:MAX_FILES]
    ]
    return {"files": files, "total": len(found), "as_of": stamp(moment_of(context))}


def delete_file(file: str) -> Result:
    """Deletes one file for good. Deleting it twice is deleting it once."""
    path = _inside(file)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise NotExecuted(f"`{file}` cannot be deleted: {error.strerror}") from error
    return {"file": file, "deleted": True}


def file_exists(file: str) -> Result:
    """Whether the folder has this file."""
    return {"exists": _inside(file).is_file()}


def _folder() -> Path:
    folder = place(FILES_VARIABLE, DATA_FOLDER / "files").resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotExecuted(f"the folder `{folder}` cannot be made: {error.strerror}") from error
    return folder


def _inside(name: str) -> Path:
    folder = _folder()
    path = folder / name
    if folder not in path.parents or path.resolve() != path:
        raise Failed(f"`{name}` is not a file of the folder")
    return path
