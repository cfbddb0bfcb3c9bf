"""Check what a profile names against what there is: launchers, frameworks, sources, binds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from harness import plugins
from harness.errors import nearest
from harness.toml.document import Document, Place

_VARIANT = re.compile(r"[@\[]")  # torch@horovod, jax[orbax]
_BIND = re.compile(r"/[^:]*(:/[^:]*(:(ro|rw))?)?")


def fault_names(document: Document) -> None:
    """Fault every name in a profile that nothing answers to."""
    data = document.data
    launcher = _table(data, "launcher").get("name")
    if isinstance(launcher, str):
        _among(document, ("launcher", "name"), launcher, "launcher", plugins.modules("launchers"))
    for source in _table(_table(data, "observer"), "rates"):
        known = ["all", *plugins.modules("samplers")]
        _among(document, ("observer", "rates", source), source, "source", known)
    for name, storage in _tables(data, "storage"):
        path = storage.get("path")
        if isinstance(path, str) and not path.startswith("/"):
            document.fault(("storage", name, "path"), f"'{path}' must begin with '/'")
    for ref, there in _tables(data, "frameworks"):
        framework, place = _VARIANT.split(ref)[0], ("frameworks", ref)
        _among(document, place, framework, "framework", plugins.adapter_files())
        binds = _table(there, "container").get("binds")
        for number, bind in enumerate(binds if isinstance(binds, list) else ()):
            if isinstance(bind, str) and not _BIND.fullmatch(bind):
                words = f"'{bind}' is no bind: write /host, /host:/inside or /host:/inside:rw"
                document.fault((*place, "container", "binds", number), words)


def takes_setting(data: Mapping[str, Any], key: str) -> bool:
    """Tell whether a profile's launcher has a setting; any launcher, where it names none."""
    every, name = plugins.modules("launchers"), _table(data, "launcher").get("name")
    names = [name] if name in every else list(every)
    return any(key in plugins.load("launchers", one).SETTINGS for one in names)


def fault_launcher_settings(document: Document, name: str, inherited: Mapping[str, object]) -> None:
    """Fault every setting that the launcher could not heed, of this file or of one it extends."""
    if name not in plugins.modules("launchers"):
        return  # a name that nothing answers to has its fault
    own = _table(_table(document.data, "launcher"), "settings")
    if not own and not inherited:
        return
    launcher = plugins.load("launchers", name)
    known = launcher.SETTINGS
    values = {"mpi": getattr(launcher, "MPI", ())}
    find_fault = getattr(launcher, "setting_fault", lambda _setting, _value: None)
    for setting, value in own.items():
        place = ("launcher", "settings", setting)
        if setting not in known:
            words = f"{name} has no such setting.{nearest(setting, known)}"
            document.fault(place, words, known or ("none",))
        elif not isinstance(value, str):
            pass  # it must be text, which is faulted elsewhere
        elif setting in values and value and value not in values[setting]:
            words = f"{name} knows no MPI called '{value}'.{nearest(value, values[setting])}"
            document.fault(place, words, values[setting])
        elif (fault := find_fault(setting, value)) is not None:
            document.fault(place, fault)
    for setting in inherited:
        if setting not in known:
            words = f"{name} has no setting '{setting}', which the profile that this extends sets"
            document.fault(("launcher", "name"), words, known or ("none",))


def _among(document: Document, place: Place, name: str, what: str, known: Iterable[str]) -> None:
    names = sorted(known)
    if name not in names:
        document.fault(place, f"no {what} is called '{name}'.{nearest(name, names)}", names)


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Give a table; one that is none is faulted elsewhere."""
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _tables(data: Mapping[str, Any], key: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    return ((name, one) for name, one in _table(data, key).items() if isinstance(one, dict))
