"""Programs for all sizes, whose sessions compile forms of their own for sizes that calls repeat.

Code for all sizes is IREE's, two to forty times as slow as our kernels, which know their sizes. Sizes that come once
are not worth a compilation; those that several calls in a row have will come again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from hloforge.dialect.errors import ArgumentError, Error
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.compile.generated import is_asked
from hloforge.runtime.compile.specialize import KEPT
from hloforge.runtime.compile.targets import Target
from hloforge.runtime.options import CompileOptions
from hloforge.runtime.session.convention import leaf_values
from hloforge.runtime.session.session import Session, load

# Compiles the program for the sizes of its open arguments, by their names.
AtSizes: TypeAlias = Callable[[Mapping[str, tuple[int, ...]]], Executable]
_Sizes: TypeAlias = tuple[tuple[int, ...], ...]

# Calls in a row with the same sizes after which these get a form; at least as many as there are forms, so that
# compilations stay few among calls of many sizes.
REPEATS = 3


def with_forms(executable: Executable, target: Target, options: CompileOptions, at: AtSizes) -> Executable:
    """The executable, with forms for repeated sizes if it is for all sizes and our code generator makes its forms."""
    is_open = any(not leaf.shape.is_static for leaf in executable.manifest.signature.flat_parameters)
    may_have = type(executable) is Executable and options.dynamic_shapes == "auto" and not options.buckets
    # Weights in a file would be written anew for each form.
    is_general = not executable.manifest.is_generated and not executable.manifest.weights
    if not (is_open and may_have and is_general and is_asked(target, options)):
        return executable
    return RepeatingExecutable(
        executable.vmfb,
        executable.manifest,
        weights=executable.weights,
        host=executable.host,
        libraries=executable.libraries,
        at=at,
    )


@dataclass(frozen=True)
class RepeatingExecutable(Executable):
    """A program for all sizes; its vmfb is that of ``keep``.

    Attributes:
        at: compiles a form.
    """

    compiles_at_calls: ClassVar[bool] = True
    at: AtSizes = field(kw_only=True, repr=False)

    def load(self, *, device: str | None = None, threads: int | Sequence[int] | None = None, **options: Any) -> Session:
        of_all = Executable(self.vmfb, self.manifest, weights=self.weights, host=self.host, libraries=self.libraries)
        general = load(of_all, device=device, threads=threads, **options)
        of_forms = {**options, "device": device, "threads": threads, "feeds": general.feeds}
        return RepeatingSession(general, self.at, of_forms)


class RepeatingSession(Session):
    """A session of a program for all sizes, with sessions of the forms that it has compiled.

    Calls on IREE's buffer views are those of the program for all sizes.
    """

    def __init__(self, general: Session, at: AtSizes, options: Mapping[str, Any]) -> None:
        self._take_manifest(general.manifest)
        self.device, self._device, self._apart = general.device, general._device, general._apart
        self.dispatch_names, self.feeds = general.dispatch_names, general.feeds
        self._native = None
        self._general, self._at, self._options = general, at, options
        self._open = [n for n, codec in enumerate(self._parameters) if not codec.shape.is_static]
        self._forms: OrderedDict[_Sizes, Session] = OrderedDict()
        # The sizes of the last call, and how many calls in a row had them; None in a program that has no forms.
        self._last: _Sizes | None = ()
        self._calls = 0
        self._lock = threading.Lock()

    @property
    def forms(self) -> tuple[_Sizes, ...]:
        """The sizes of open arguments that have forms, the last used ones last."""
        return tuple(self._forms)

    def close(self) -> None:
        with self._lock:
            forms = list(self._forms.values())
            self._forms.clear()
        for session in (self._general, *forms):
            session.close()

    @property
    def closed(self) -> bool:
        return self._general.closed

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        ordered = self._in_order(arguments, named)
        return self._session(ordered)(*ordered)

    def call_device(self, *arguments: Any, **named: Any) -> Any:
        ordered = self._in_order(arguments, named)
        return self._session(ordered).call_device(*ordered)

    def call_views(self, views: Sequence[Any]) -> list[Any]:
        return self._general.call_views(views)

    def _session(self, arguments: Sequence[Any]) -> Session:
        """The session that runs a call."""
        if self._last is None or self.closed:
            return self._general
        flat = leaf_values(self.signature, arguments)
        sizes = tuple(self._parameters[number].sizes(flat[number]) for number in self._open)
        with self._lock:
            if sizes not in self._forms:
                self._calls = self._calls + 1 if sizes == self._last else 1
                self._last = sizes
                if self._calls < max(REPEATS, len(self._forms)):
                    return self._general
                form = self._compiled(sizes)
                if form is None:
                    return self._general
                self._forms[sizes] = form
                if len(self._forms) > KEPT:
                    self._forms.popitem(last=False)
            self._forms.move_to_end(sizes)
            return self._forms[sizes]

    def _compiled(self, sizes: _Sizes) -> Session | None:
        """The session of a form; None if there is none, and from now on if none would be better."""
        names = [self._parameters[number].name for number in self._open]
        try:
            form = self._at(dict(zip(names, sizes, strict=True)))
        except ArgumentError:
            # The program for all sizes says what is wrong with the call.
            self._calls = 0
            return None
        except Error:
            self._last = None
            return None
        if not form.manifest.is_generated:
            self._last = None
            return None
        return form.load(**self._options)
