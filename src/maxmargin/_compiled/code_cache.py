"""The cache of a compiled function: code in files first, then Numba's cache of this user, then the compiler.

Files are read with the functions of Numba that its own cache uses. Whatever goes wrong leads to compilation.
"""

from __future__ import annotations

import pickle
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

from numba.core import sigutils
from numba.core.caching import FunctionCache, NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from maxmargin._compiled import ready_code

#: Specialisations that are recorded instead of cached, while a file is made.
recorded: MutableMapping[str, bytes] | None = None
#: Specialisations that were read from a file, and failures to do so.
loaded: list[str] = []
failed: list[str] = []


class CodeCache:
    """The cache of a dispatcher, with the methods of Numba's `_Cache`.

    Parameters
    ----------
    function : callable
        The Python function. Closures are not read from files: their names do not identify them.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._own: Any = None

    @property
    def own(self) -> Any:
        """Numba's cache, made at first use."""
        if self._own is None:
            try:
                self._own = FunctionCache(self._function)
                # Numba looks at the file of the function only, but functions of others are inlined into it.
                self._own._cache_file._source_stamp = ready_code.sources_of(self._function.__module__)
            except (RuntimeError, AttributeError, OSError):
                # Changed sources, or "no locator available": a read-only installation, and no home.
                self._own = NullCache()
        return self._own

    @property
    def cache_path(self) -> Any:
        """Folder of Numba's cache."""
        return self.own.cache_path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled specialisation, or None: it is compiled then."""
        found = self._from_file(sig, target_context)
        if recorded is not None:
            return found
        return self._from_cache(sig, target_context) if found is None else found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was just compiled."""
        if recorded is None:
            self.own.save_overload(sig, data)
        elif self._function.__closure__ is None and not data.lifted and not data.library.has_dynamic_globals:
            recorded[self._key(sig)] = dumps(data._reduce())

    def enable(self) -> None:
        """Use Numba's cache."""
        self.own.enable()

    def disable(self) -> None:
        """Do not use Numba's cache."""
        self.own.disable()

    def flush(self) -> None:
        """Empty Numba's cache."""
        self.own.flush()

    def _key(self, sig: Any) -> str:
        arguments, _ = sigutils.normalize_signature(sig)
        return f"{self._function.__module__}.{self._function.__qualname__}({', '.join(map(str, arguments))})"

    def _from_cache(self, sig: Any, target_context: Any) -> Any:
        try:
            return self.own.load_overload(sig, target_context)
        except Exception:  # of another version of this package: its types may have moved
            with suppress(OSError):
                self.own.flush()
            return None

    def _from_file(self, sig: Any, target_context: Any) -> Any:
        try:
            if self._function.__closure__ is not None:
                return None
            key = self._key(sig)
            if recorded is not None:
                entry = recorded.get(key)
            else:
                file = ready_code.choice().file
                entry = None if file is None else file.read(key)
            if entry is None:
                return None
            target_context.refresh()
            found = CompileResult._rebuild(target_context, *pickle.loads(entry))
        except Exception as error:
            failed.append(f"{self._function.__qualname__}: {error!r}")
            return None
        loaded.append(key)
        return found
