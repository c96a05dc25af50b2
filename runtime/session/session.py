"""Sessions: a loaded vmfb that is called like a function."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from time import time_ns
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from hloforge.dialect.abi import SHAPE_ASSERTION, crosses, donated_arguments
from hloforge.dialect.errors import ArgumentError, Error, ExecutionError, LoadError
from hloforge.dialect.program import Signature
from hloforge.pipelines.weight_names import WEIGHTS
from hloforge.runtime.artifact import bundle
from hloforge.runtime.artifact.bucket_file import table_of, weights_in
from hloforge.runtime.artifact.code_signing import Key, verified
from hloforge.runtime.artifact.executable import Executable
from hloforge.runtime.artifact.functions import function as named
from hloforge.runtime.artifact.manifest import Manifest
from hloforge.runtime.artifact.vm_modules import ADVICE as _ADVICE
from hloforge.runtime.artifact.weights import provider, provider_of
from hloforge.runtime.compile.targets import KINDS, Target
from hloforge.runtime.devices import devices
from hloforge.runtime.devices.devices import FAILURES, instance, reason, rt
from hloforge.runtime.host.vm_module import Host, check_raised, take_raised
from hloforge.runtime.native.calls import NativeCalls, native_program
from hloforge.runtime.native.pool import processors
from hloforge.runtime.native.team import Framework
from hloforge.runtime.replicas.calls import refusals
from hloforge.runtime.session.arrays import Codec, DeviceArray, placed, share
from hloforge.runtime.session.background import Background
from hloforge.runtime.session.convention import (
    detach,
    disjoint,
    leaf_values,
    nest_results,
    nesting,
    spread,
    wrong_count,
)
from hloforge.runtime.session.deadlines import Deadline
from hloforge.runtime.session.feeds import Feeds, Queue, feed_functions
from hloforge.runtime.session.modules import dispatch_names_of, entry_of, manifest_of, module_for, weights_near
from hloforge.runtime.session.small_calls import SmallCalls
from hloforge.runtime.session.timed import TimedCall

_DLPACK_CPU = 1


def load(
    source: str | PathLike[str] | bytes | Executable,
    *,
    function: str | None = None,
    device: str | None = None,
    threads: int | Sequence[int] | None = None,
    weights: str | PathLike[str] | Mapping[str, np.ndarray[Any, Any]] | None = None,
    host: Mapping[str, Any] | None = None,
    libraries: Sequence[str | PathLike[str]] = (),
    check_lifetimes: bool = False,
    feeds: Feeds | None = None,
    deadline: float | None = None,
    expect_sha256: str | None = None,
    public_keys: Key | Sequence[Key] | None = None,
    signature: str | PathLike[str] | bytes | None = None,
) -> Session:
    """Load a compiled program: native code, which can do whatever this process can.

    Args:
        source: path of a vmfb, its bytes, or what ``compile`` returned.
        function: the name of one of the file's functions (``compile`` of a dict, ``join``); None for its first one.
        device: ``local-sync`` (the caller's thread), ``local-task`` (a pool of threads), ``vulkan``, ``cuda`` or a
            device's URI (``vulkan://GPU-6d65…``); None chooses by the program's target, and of processors' by its size.
        threads: size of the pool, or the numbers of the processors that its threads are pinned to; None for one a core.
        weights: the file of its weights, for a program that was compiled with one; None for the file of that name
            beside the vmfb. Or arrays by name, whose memory the session uses: they must not change while it lives.
        host: functions of the host for this session, by the names that the program calls them by, in any form that
            ``hloforge.host.register`` takes; they go before registered ones.
        libraries: shared libraries whose functions are called where a name is found nowhere else.
        check_lifetimes: fail if a Python function of the host keeps an argument beyond its call; for debugging.
        feeds: the queues of its infeed, outfeed and channels, if they are those of another session; else new ones.
        deadline: seconds that a call may take: one that hangs on its device becomes an ExecutionError. None for ever.
        expect_sha256: the digest of the only file that is wanted.
        public_keys: PEM files of Ed25519 keys, or their bytes: load only what was signed with one of them.
        signature: of the vmfb, or the file that holds it; by default ``model.vmfb.sig`` beside it.

    Raises:
        LoadError: no such file or function, no vmfb, damaged, or of another version; not the file that is wanted, or
            not signed; weights that are not the program's; functions of the host that are not found.
        OptionError: a malformed digest or key.
    """
    asked = expect_sha256, public_keys, signature
    # Who wants one file alone gets no other code than that.
    is_one_file = isinstance(source, Executable) and bool(source.vmfb) and any(one is not None for one in asked)
    if isinstance(source, Executable) and source.compiles_at_calls and function is None and not is_one_file:
        others: dict[str, Any] = {"weights": weights, "host": host, "feeds": feeds, "deadline": deadline}
        given = {name: value for name, value in others.items() if value is not None}
        checks = {"check_lifetimes": True} if check_lifetimes else {}
        return source.load(device=device, threads=threads, libraries=libraries, **checks, **given)
    here = isinstance(source, Executable)
    near = weights_near(source) if weights is None else weights if isinstance(weights, Mapping) else Path(weights)
    if isinstance(source, Executable):
        host, libraries = {**source.host, **(host or {})}, (*libraries, *source.libraries)
        source = source.vmfb
    source = verified(source, *asked, compiled_here=here)
    if function is None and (table := table_of(source)) is not None:
        from hloforge.runtime.session.bucketed import BucketFileSession

        given = {"host": host, "libraries": tuple(libraries), "deadline": deadline, "check_lifetimes": check_lifetimes}
        return BucketFileSession(source, table, device, threads, feeds or Feeds(), given)
    if function is not None:
        if weights is None and (table := table_of(source)) is not None:
            near = weights_in(source, table)
        # A part of a file that was let in.
        source, here = named(source, function), True
    feeds = feeds or Feeds()
    return loaded(
        source,
        here,
        near,
        feeds,
        device=device,
        threads=threads,
        host=host,
        libraries=libraries,
        check_lifetimes=check_lifetimes,
        deadline=deadline,
    )


def loaded(
    source: str | PathLike[str] | bytes,
    here: bool,
    weights: Path | Mapping[str, np.ndarray[Any, Any]],
    feeds: Feeds,
    *,
    device: str | None,
    threads: int | Sequence[int] | None,
    host: Mapping[str, Any] | None,
    libraries: Sequence[str | PathLike[str]],
    check_lifetimes: bool,
    deadline: float | None,
) -> Session:
    """The session of a vmfb that was let in; arguments as of ``load``."""
    functions = {**refusals(), **feed_functions((feeds,)), **(host or {})}
    found = Host(functions, tuple(libraries), check_lifetimes)
    session = Session(module_for(source, device, here), device, threads, weights, found, feeds, deadline)
    session.call_natively(source)
    return session


class _Closed:
    """The context of a session that was closed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def invoke(self, *arguments: Any) -> NoReturn:
        raise ExecutionError(f"the session of {self.name} is closed", hint="load the program again")


class Session(Background):
    """A program on a device. Calls are safe from several threads at once.

    What it holds (code, weights, buffers) is freed when nothing refers to it any more, or by ``close``. In a ``with``
    statement it is closed at the end.

    Attributes:
        manifest: what the vmfb says of itself.
        dispatch_names: names of dispatches in the program by those of their kernels, where they differ.
        device: the name of the driver that it runs on.
        feeds: infeed, outfeed and channels of the program.
        is_specializing: whether forms of the program are compiled for the sizes of each call.
    """

    is_specializing: ClassVar[bool] = False

    @property
    def buckets(self) -> tuple[Any, ...]:
        """The ranges of sizes that it was compiled for (``runtime/compile/buckets.py``); empty if it has none."""
        return ()

    def __init__(
        self,
        module: Any,
        driver: str | None = None,
        threads: int | Sequence[int] | None = None,
        weights: Path | Mapping[str, np.ndarray[Any, Any]] | None = None,
        host: Host | None = None,
        feeds: Feeds | None = None,
        deadline: float | None = None,
    ) -> None:
        self.feeds = feeds or Feeds()
        self._deadline = Deadline(deadline) if deadline is not None else None
        entry = entry_of(module)
        self._take_manifest(manifest_of(entry))
        self.dispatch_names = dispatch_names_of(entry)
        threads = threads if threads is not None else self.manifest.threads or None
        self.device = driver or self.manifest.device or _driver_of(self.manifest, threads)
        if self.device == "local-task" and self.manifest.is_generated and self.manifest.host_calls:
            # Kernels call the host in their own threads, and others may have to run before it answers.
            self.device = "local-sync"
        self._device = devices.device(self.device, threads)
        self._apart = devices.apart(self._device)
        if self._apart is not None and self.manifest.target:
            bundle.check_device(Target.parse(self.manifest.target), self.device)
        bundle.check_instructions(self.manifest)
        self._waits = self.device == "local-task"
        self._entry = entry
        self._weights_entry = module.lookup_function(WEIGHTS) if self.manifest.weights else None
        self._host = (host or Host()).module(self.manifest.host_calls, self._device)
        self._context = self._create_context(module, weights or Path())
        fits = self._flat and self._apart is None and SmallCalls.fit(self._parameters, self._results)
        self._small = SmallCalls(self._parameters, self._device) if fits else None
        self._native: NativeCalls | None = None
        self._native_threads = _native_threads(driver or self.manifest.device, threads)

    def close(self) -> None:
        """Free the code, weights and buffers once the calls that run have ended; results stay. Twice does no harm.

        Later calls raise ExecutionError.
        """
        self._native = self._small = None
        self._native_threads = 0
        self._context = _Closed(self.manifest.name)
        self._entry = self._weights_entry = self._host = None

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return isinstance(self._context, _Closed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"on {self.device}" if self.device else "on any device"
        return f"<Session {self.manifest.name} {self.signature}, {where}>"

    def call_natively(self, source: str | PathLike[str] | bytes) -> None:
        """Call kernels without IREE's runtime from now on, where the program and its device allow it.

        Args:
            source: what the module was made of.
        """
        if not self._native_threads or self._apart is not None or self._deadline is not None or self._has_tokens:
            return
        if bundle.appended(source):
            return
        program = native_program(source)
        if program is not None and NativeCalls.fit(program, self._parameters, self._results):
            table = self._host.table if self._host is not None else None
            if table is not None or not program.schedule.calls_host:
                weights = self._loaded_weights(program.schedule.weights)
                self._native = NativeCalls(
                    program, self._parameters, self._results, self._native_threads, table, weights
                )

    def _loaded_weights(self, count: int) -> list[np.ndarray[Any, Any]]:
        """The bytes of the program's weights, where IREE has them."""
        if not count:
            return []
        outputs = rt.VmVariantList(count)
        self._context.invoke(self._weights_entry, rt.VmVariantList(0), outputs)
        views = [outputs.get_as_object(number, rt.HalBufferView) for number in range(count)]
        return [np.ndarray(view.byte_length, np.uint8, view.map()) for view in views]

    def _take_manifest(self, manifest: Manifest) -> None:
        """Prepare for calls of the manifest's signature."""
        self.manifest = manifest
        signature = manifest.signature
        parameters = [leaf for leaf in signature.flat_parameters if crosses(leaf.shape)]
        donated = donated_arguments(signature)
        # Only hloforge's own modules copy what they would overwrite and nobody gave away.
        foreign = not self.manifest.target
        self._parameters = tuple(
            Codec(leaf.name, leaf.shape, overwritten=foreign, donated=number in donated)
            for number, leaf in enumerate(parameters)
        )
        self._donates = bool(donated)
        self._results = tuple(Codec(f"result {i}", s) for i, s in enumerate(signature.flat_results) if crosses(s))
        self._result_count = len(self._results)
        self._flat = all(parameter.shape.is_array for parameter in signature.parameters)
        self._has_tokens = len(parameters) != len(signature.flat_parameters)
        self._nestings = tuple(nesting(parameter.shape) for parameter in signature.parameters)
        self._leaves = _leaf_numbers(self._parameters)
        self._names = {parameter.name: i for i, parameter in enumerate(signature.parameters)}
        self._count = len(signature.parameters)
        self._single = signature.result.is_array

    def _create_context(self, module: Any, weights: Path | Mapping[str, np.ndarray[Any, Any]]) -> Any:
        modules = [rt.create_hal_module(instance(), self._device), module]
        if self.manifest.weights:
            modules.insert(0, self._weights(weights))
        if self._host is not None:
            modules.insert(0, self._host.module)
        try:
            return rt.VmContext(instance(), modules=modules)
        except FAILURES as error:
            said = reason(error)
            if said.startswith("HAL device"):  # and then all that IREE knows of that device
                said = f"device {self.device} does not run code for {self.manifest.target or 'its target'}"
            raise LoadError(f"the vmfb cannot run here: {said}", hint=self._version_advice()) from None

    def _weights(self, source: Path | Mapping[str, np.ndarray[Any, Any]]) -> Any:
        wanted = dict(self.manifest.weights)
        if isinstance(source, Mapping):
            return provider_of(source, wanted)
        return provider(source / self.manifest.weights_file if source.is_dir() else source, wanted)

    def _version_advice(self) -> str:
        made, here = dict(self.manifest.versions).get("iree-base-compiler"), version("iree-base-runtime")
        if made == here:
            return f"it was compiled for {self.manifest.target}; hloforge devices shows what runs here"
        return f"compiled by IREE {made or 'of an unknown version'}, and this is {here}; {_ADVICE}"

    @property
    def infeed(self) -> Queue:
        """What the program's Infeed takes: ``session.infeed.put(item)``."""
        return self.feeds.infeed

    @property
    def outfeed(self) -> Queue:
        """What the program's Outfeed gives: ``session.outfeed.get()``."""
        return self.feeds.outfeed

    @property
    def memory(self) -> devices.Memory:
        """Bytes of the session's device that are taken, by all sessions of this process together."""
        return devices.memory(self._device)

    @property
    def native(self) -> NativeCalls | None:
        """Calls without IREE's runtime, which has to be shown memory that may be written; None where it is needed."""
        return self._native

    @property
    def signature(self) -> Signature:
        """The program's signature in XLA's terms."""
        return self.manifest.signature

    @property
    def labels(self) -> dict[str, tuple[str | int, ...]]:
        """What numbers stand for, by the name of their parameter or result: strings by number, classes of columns."""
        return dict(self.manifest.signature.labels)

    @property
    def parameters(self) -> tuple[Codec, ...]:
        """How each array that the program takes crosses to the device, in order; leaves of tuples one by one."""
        return self._parameters

    @property
    def results(self) -> tuple[Codec, ...]:
        """How each array that it returns crosses back."""
        return self._results

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the program.

        Args:
            arguments: one a parameter, in order: numpy arrays, anything with ``__array__`` or ``__dlpack__``, device
                arrays, and Python scalars for ``f32[]`` and the like; a tuple for a parameter of tuple shape. A
                parameter with a layout takes a logical array of any strides.
            named: arguments by the parameter's name.

        Returns:
            numpy arrays, nested in tuples as the program's result shape says. A token is None.

        Raises:
            ArgumentError: count, name, element type or shape do not fit; names the argument.
            ExecutionError: the program failed, such as for want of memory.
            Exception: what a function of the host raised.
        """
        # Another thread may close the session meanwhile.
        native, small = self._native, self._small
        if native is not None and not named:
            found = self._called_natively(native, self._spread(arguments))
            if found is not None:
                found = [_writable(array) for array in found] if native.inside else found
                return found[0] if self._single else nest_results(self.signature.result, found)
        if small is not None and not named and len(arguments) == self._count:
            frame = small.borrow()
            if frame.take(arguments):
                arrays = [frame.own(array) for array in self._decoded(self._invoke(frame.inputs))]
                small.give_back(frame)
                return self._nested(arrays)
        views, borrowed, flat = self._run(arguments, named)
        arrays = self._decoded(views)
        foreign = borrowed + [value.host for value in self._kept(flat) if not value.is_apart]
        if foreign:
            arrays = [detach(array, foreign) for array in arrays]
        return self._nested(arrays)

    def _spread(self, arguments: tuple[Any, ...]) -> Sequence[Any] | None:
        """Arguments without the tuples of parameters; None if they are nested in another way."""
        return arguments if self._flat else spread(arguments, self._nestings)

    def _called_natively(
        self, native: NativeCalls, arguments: Sequence[Any] | None
    ) -> list[np.ndarray[Any, Any]] | None:
        """The results of a call without IREE's runtime; None if the arguments are not as its kernels take them.

        Args:
            arguments: one for each leaf of the parameters; None for such as are not nested as these are.
        """
        if arguments is None:
            return None
        donates = self._donates and len(arguments) == len(self._parameters)
        given = self._given_up(arguments) if donates else ()
        try:
            flat = [value.plain if type(value) is DeviceArray else value for value in arguments]
            for number in native.inside.values() if donates else ():
                flat[number] = _own(arguments[number], flat[number])
            found = native(flat)
            if found is None and not native.inside and (own := placed(self._parameters, flat)) is not None:
                found = native(own)
        except MemoryError as error:
            raise ExecutionError(f"the program {self.manifest.name} failed: {error}") from None
        if self._host is not None:
            check_raised()
        if found is not None:
            for codec, value in given:
                value.end(codec.name)
        return found

    def _decoded(self, views: list[Any]) -> list[np.ndarray[Any, Any]]:
        return [codec.decode(view, self._apart) for codec, view in zip(self._results, views, strict=True)]

    def _nested(self, arrays: list[np.ndarray[Any, Any]]) -> Any:
        """The results as the program's result shape nests them."""
        return arrays[0] if self._single else nest_results(self.signature.result, disjoint(arrays))

    def call_device(self, *arguments: Any, **named: Any) -> Any:
        """Run the program and leave its results on the device, as ``DeviceArray``s nested like the result.

        Raises:
            ArgumentError, ExecutionError: as a call.
        """
        native = self._native
        if native is not None and not named:
            flat = self._spread(arguments)
            # A call ends what it is given; a result in such memory is IREE's as well.
            lasting = {array.__array_interface__["data"][0]: view for array, view in self._given_views(native, flat)}
            found = self._called_natively(native, flat)
            if found is not None:
                made = []
                for array, codec in zip(found, self._results, strict=True):
                    view = lasting.get(array.__array_interface__["data"][0]) if lasting else None
                    own = DeviceArray.on_host(array, codec, self._device) if view is None else DeviceArray(view, codec)
                    made.append(own)
                return made[0] if self._single else nest_results(self.signature.result, made)
        views, borrowed, flat = self._run(arguments, named)
        arrays = [DeviceArray(view, codec, self._apart) for codec, view in zip(self._results, views, strict=True)]
        if borrowed:
            arrays = [self._own(array, codec, borrowed) for codec, array in zip(self._results, arrays, strict=True)]
        share(arrays, self._kept(flat))
        return arrays[0] if self._single else nest_results(self.signature.result, arrays)

    def _given_views(self, native: NativeCalls, arguments: Sequence[Any] | None) -> Iterator[tuple[Any, Any]]:
        """Arrays in IREE's memory that a call may overwrite, with IREE's views of them."""
        if arguments is None or len(arguments) != len(self._parameters):
            return
        for number in native.inside.values():
            value = arguments[number]
            if type(value) is DeviceArray and not value.is_on_host and value.plain is not None:
                yield value.plain, value.buffer_view

    def lasting(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        """A device array's elements in physical form, with no object of IREE's bindings to keep them alive.

        For another library that holds arrays until the interpreter has ended: the bindings complain of what is left.
        """
        if array.is_apart:
            return array.host.copy()
        if array.is_on_host:
            return array.host.view()
        view = array.buffer_view
        shown = array.host
        memory: Any = (ctypes.c_char * shown.nbytes).from_address(shown.__array_interface__["data"][0])
        memory.owner = self._device.create_dlpack_capsule(view, _DLPACK_CPU, 0)
        return np.ndarray(shown.shape, shown.dtype, memory)

    def _kept(self, flat: Sequence[Any]) -> list[DeviceArray]:
        """The device arrays among a call's arguments that still are theirs who passed them."""
        pairs = zip(self._parameters, flat, strict=True)
        return [value for codec, value in pairs if type(value) is DeviceArray and not codec.donated]

    def _own(self, array: DeviceArray, codec: Codec, borrowed: list[np.ndarray[Any, Any]]) -> DeviceArray:
        """A copy if the array lies in a caller's memory, which may change."""
        if not any(np.may_share_memory(array.host, owner) for owner in borrowed):
            return array
        return codec.store(np.asarray(array), self._device)

    def put(self, value: Any, parameter: int | str) -> DeviceArray:
        """Copy an argument to the device, in the form of a parameter; it can be passed in any call.

        Args:
            parameter: its number or its name. Leaves of tuples count one by one, and are named as in ``x{1,0}``.

        Raises:
            ArgumentError: no such parameter, or the value does not fit it.
        """
        index = self._leaves.get(parameter)
        if index is None:
            what = "no parameter is called" if isinstance(parameter, str) else "there is no array parameter"
            raise ArgumentError(f"{what} {parameter!r}", hint=f"signature: {self.signature}")
        return self._parameters[index].store(value, self._device)

    def _run(
        self, arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[list[Any], list[np.ndarray[Any, Any]], Sequence[Any]]:
        """Results as buffer views, the callers' arrays that the program saw in place, and the flat arguments."""
        arguments = self._in_order(arguments, named)
        flat: Sequence[Any] = arguments if self._flat else leaf_values(self.signature, arguments)
        borrowed: list[np.ndarray[Any, Any]] = []
        inputs = rt.VmVariantList(len(flat))
        device = self._device
        for codec, argument in zip(self._parameters, flat, strict=True):
            inputs.push_ref(codec.encode(argument, device, borrowed))
        for codec, value in self._given_up(flat) if self._donates else ():
            value.end(codec.name)
        return self._invoke(inputs), borrowed, flat

    def _given_up(self, flat: Sequence[Any]) -> list[tuple[Codec, DeviceArray]]:
        """The device arrays of donated arguments, which are to be taken away from who passed them."""
        arrays = [
            (codec, value) for codec, value in zip(self._parameters, flat, strict=True) if type(value) is DeviceArray
        ]
        times = Counter(id(value) for _, value in arrays)
        given = [(codec, value) for codec, value in arrays if codec.donated]
        for codec, value in given:
            if times[id(value)] > 1:
                message = f"argument {codec.name!r} is donated, and the same device array is passed a second time"
                raise ArgumentError(message, hint="put the second one on the device separately")
        return given

    def call_views(self, views: Sequence[Any]) -> list[Any]:
        """Run the program on IREE's buffer views, one an array, and return such.

        For callers who know the shapes, and whom donated arguments belong to: these are overwritten.

        Raises:
            ExecutionError: as a call.
        """
        native = self._native
        if native is not None and native.is_shared and not native.is_bounded:
            # Our threads take work over sooner than IREE's. Where there is none to share, IREE's views cost more.
            made = self._made_views(native, views)
            is_done = native.write(*self._shown(views, made))
            if self._host is not None:
                check_raised()
            if is_done:
                return made
        inputs = rt.VmVariantList(len(views))
        push = inputs.push_ref
        for view in views:
            push(view)
        return self._invoke(inputs)

    @property
    def writes(self) -> bool:
        """Whether ``write`` may run it: its kernels need no IREE, and decide no sizes."""
        native = self._native
        return native is not None and not native.is_bounded

    @property
    def overwrites(self) -> Mapping[int, int]:
        """The arguments that ``write`` overwrites, by the numbers of the results that lie in them."""
        return {} if self._native is None else self._native.inside

    def write(self, arguments: Sequence[Any], results: Sequence[Any], framework: Framework | None = None) -> bool:
        """Run the program on arrays where they lie, and write the results into others.

        Args:
            results: a result that lies in an argument (``overwrites``) is that argument.
            framework: whose threads help, and whose tensors may stand in for arrays; the caller vouches for their
                element types, sizes and orders in memory.

        Returns:
            False if nothing ran, because an array has not the element type or the shape of the program's, or is not
            contiguous.

        Raises:
            ExecutionError: as a call.
            Exception: what a function of the host raised.
        """
        native = self._native
        if native is None or not self.writes:
            return False
        try:
            is_done = native.write(arguments, results, framework)
        except MemoryError as error:
            raise ExecutionError(f"the program {self.manifest.name} failed: {error}") from None
        if self._host is not None:
            check_raised()
        return is_done

    def call_views_timed(self, views: Sequence[Any]) -> TimedCall:
        """As ``call_views``, for a profiler."""
        native = self._native
        begin = time_ns()
        if native is not None and not native.is_bounded:
            made = self._made_views(native, views)
            kernels = native.write_timed(*self._shown(views, made))
            if self._host is not None:
                check_raised()
            if kernels is not None:
                return TimedCall(made, begin, time_ns(), tuple(kernels))
        made = self.call_views(views)
        return TimedCall(made, begin, time_ns())

    def _made_views(self, native: NativeCalls, views: Sequence[Any]) -> list[Any]:
        """Buffer views for the results of a call without IREE's runtime."""
        inside = native.inside
        try:
            return [
                views[inside[number]] if number in inside else codec.allocate(self._device)
                for number, codec in enumerate(self._results)
            ]
        except FAILURES as error:
            raise ExecutionError(f"the program {self.manifest.name} failed: {reason(error)}") from None

    def _shown(self, views: Sequence[Any], made: list[Any]) -> tuple[list[Any], list[np.ndarray[Any, Any]]]:
        """Arguments and results as arrays."""
        arrays = [codec.physical(view) for codec, view in zip(self._parameters, views, strict=True)]
        return arrays, self._decoded(made)

    def _invoke(self, inputs: Any) -> list[Any]:
        """The results of a call as buffer views."""
        if self.device != "local-sync" and devices.is_lost(self._device):
            message = f"the session was loaded before this process was forked: {self.device} works in the parent alone"
            raise ExecutionError(message, hint="load the program again in the child")
        count = self._result_count
        outputs = rt.VmVariantList(count)
        try:
            if self._deadline is not None:
                self._deadline.run(partial(self._context.invoke, self._entry, inputs, outputs))
            elif self._waits:
                with devices.patience():
                    self._context.invoke(self._entry, inputs, outputs)
            else:
                self._context.invoke(self._entry, inputs, outputs)
        except FAILURES as error:
            # Nothing here names what is raised: its traceback would refer to this frame, and the frame to it.
            raise (self._host and take_raised()) or self._failure(reason(error), inputs) from None
        get, kind = outputs.get_as_object, rt.HalBufferView
        if count == 1:
            return [get(0, kind)]
        return [get(i, kind) for i in range(count)]

    def _failure(self, text: str, inputs: Any) -> Error:
        """The error for what IREE says of a failed call."""
        if not text.startswith(SHAPE_ASSERTION):
            return ExecutionError(f"the program {self.manifest.name} failed: {text}")
        views = [inputs.get_as_object(number, rt.HalBufferView) for number in range(len(self._parameters))]
        sizes = [codec.logical_dimensions(view.shape) for codec, view in zip(self._parameters, views, strict=True)]
        given = ", ".join(f"{codec.name} {list(dims)}" for codec, dims in zip(self._parameters, sizes, strict=True))
        message = text.removeprefix(SHAPE_ASSERTION)
        return ArgumentError(message, notes=(f"sizes of the arguments: {given}",))

    def _in_order(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """One positional argument a parameter. Raises ArgumentError for any other number, and for unknown names."""
        if named:
            arguments = self._ordered(arguments, named)
        if len(arguments) != self._count:
            raise wrong_count(self.signature, len(arguments))
        return arguments

    def _ordered(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Positional and named arguments as positional ones."""
        parameters = self.signature.parameters
        missing = object()
        slots: list[Any] = [*arguments, *[missing] * (len(parameters) - len(arguments))]
        for name, value in named.items():
            number = self._names.get(name)
            if number is None:
                raise ArgumentError(f"no parameter is called {name!r}", hint=f"signature: {self.signature}")
            if slots[number] is not missing:
                raise ArgumentError(f"argument {name!r} is given twice")
            slots[number] = value
        absent = [p.name for p, value in zip(parameters, slots, strict=False) if value is missing]
        if absent:
            raise ArgumentError(
                f"missing arguments: {', '.join(map(repr, absent))}", hint=f"signature: {self.signature}"
            )
        return tuple(slots)


def _own(value: Any, array: Any) -> Any:
    """The array of an argument that a call overwrites: a device array's own memory, or a copy."""
    is_own = type(value) is DeviceArray and not value.is_shared
    return array if is_own or type(array) is not np.ndarray else array.copy()


def _writable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A result that may lie in what was a device array, whose elements nobody else refers to."""
    try:
        array.flags.writeable = True
    except ValueError:
        return array.copy()
    return array


def _driver_of(manifest: Manifest, threads: int | Sequence[int] | None) -> str:
    """The driver for a program that names none."""
    return KINDS.get(manifest.target.partition(":")[0]) or devices.choose_driver(manifest.work, threads)


def _native_threads(driver: str, threads: int | Sequence[int] | None) -> int:
    """Threads of calls without IREE's runtime; 0 where IREE's pool is asked for by its processors, and for GPUs.

    Args:
        driver: that is asked for; empty for none.
    """
    if driver == "local-sync":
        return 1
    if driver not in ("", "local-task") or not isinstance(threads, int | None):
        return 0
    return threads or processors()


def _leaf_numbers(leaves: Sequence[Codec]) -> dict[int | str, int]:
    """The position of an array leaf, by its name and by itself."""
    found: dict[int | str, int] = {leaf.name: i for i, leaf in enumerate(leaves)}
    return found | {i: i for i in range(len(leaves))}
