"""Images, kernels and results of convolutions in memory, and copies of images with their padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I8, Value, bits_of
from hloforge.pipelines.codegen.products.arithmetic import Arithmetic
from hloforge.pipelines.codegen.products.loops import each
from hloforge.pipelines.codegen.products.operands import clamped, strided
from hloforge.pipelines.codegen.products.packing import element

# Elements that are moved at once, phases that pixels are dealt out to in registers, features that are put next to each
# other there, and pixels of a row for which that pays.
_MOVED, _DEALT, _WOVEN, _LEAST_WOVEN = 16, 4, 8, 4


@dataclass(frozen=True)
class Image:
    """Images, or results, in memory; all strides count elements.

    Attributes:
        kind: LLVM's type of an element in memory.
        batch: the stride between images.
        spatial: the stride of each spatial dimension.
        feature: the stride between features of a group.
        group: the stride between groups of features.
        signed: whether an integer narrower than the sums has a sign.
    """

    kind: str
    batch: int
    spatial: tuple[int, ...]
    feature: int
    group: int = 0
    signed: bool = True

    @property
    def bytes(self) -> int:
        """Of an element."""
        return bits_of(self.kind) // 8


@dataclass(frozen=True)
class Kernel:
    """The weights of a convolution in memory; all strides count elements.

    Attributes:
        spatial: the stride of each dimension of the window; negative for one that is reversed.
        input: the stride between input features of a group.
        output: the stride between output features of a group.
        group: the stride between groups of output features.
        start: the place of the window's first weight, where a dimension is reversed.
    """

    kind: str
    spatial: tuple[int, ...]
    input: int
    output: int
    group: int = 0
    start: int = 0
    signed: bool = True

    @property
    def bytes(self) -> int:
        """Of an element."""
        return bits_of(self.kind) // 8


@dataclass(frozen=True)
class Axis:
    """A spatial dimension of a convolution.

    Attributes:
        size: of the image.
        out: of the result.
        window: weights.
        stride: from one window to the next.
        dilation: from one weight to the next.
        low: padding before the image; negative for pixels that no window sees.
        base: from one pixel of the image to the next among zeros.
    """

    size: int
    out: int
    window: int
    stride: int = 1
    dilation: int = 1
    low: int = 0
    base: int = 1

    @property
    def padded(self) -> int:
        """What all windows see together."""
        return self.rows_for(self.out)

    def rows_for(self, windows: int) -> int:
        """What so many consecutive windows see together."""
        return (windows - 1) * self.stride + (self.window - 1) * self.dilation + 1

    @property
    def seen(self) -> tuple[int, int]:
        """The first pixel of the image that windows see, and the one behind the last."""
        first = max(0, -(self.low // self.base))
        return first, max(first, min(self.size, (self.padded - 1 - self.low) // self.base + 1))

    @property
    def phases_seen(self) -> int:
        """How many of the phases that windows begin with, of ``stride``, windows see: the first ones."""
        is_dense = self.dilation == 1 or self.window == 1
        return min(self.window, self.stride) if is_dense else self.stride

    @property
    def is_plain(self) -> bool:
        """Whether windows see pixels of the image alone."""
        return self.base == 1 and self.low <= 0 and self.padded + -self.low <= self.size


@dataclass(frozen=True)
class Copy:
    """A copy of consecutive rows of an image with its padding, for the micro-kernel.

    Attributes:
        axes: two spatial dimensions or more; rows are positions of the first one.
        features: of a pixel.
        strides: of the copy's spatial dimensions, in bytes.
        feature: the same of its features, or of an element where features of a pixel follow each other.
        phases: into how many images each dimension is dealt out, so that a window's stride in one of them is 1.
        phase_strides: from one of these to the next, in bytes.
        size: in bytes. What belongs to no pixel is zeros.
        arithmetic: whose elements it has.
    """

    axes: tuple[Axis, ...]
    features: int
    strides: tuple[int, ...]
    feature: int
    phases: tuple[int, ...]
    phase_strides: tuple[int, ...]
    size: int
    arithmetic: Arithmetic

    def place_of(self, axis: int, position: int) -> int:
        """The distance of a known position."""
        count = self.phases[axis]
        return position // count * self.strides[axis] + position % count * self.phase_strides[axis]

    def place(self, axis: int, position: Value) -> Value:
        """The distance of a position of the padded image, in bytes."""
        count = self.phases[axis]
        if count == 1:
            return position * self.strides[axis]
        return position.udiv(count) * self.strides[axis] + position.urem(count) * self.phase_strides[axis]

    @property
    def _element_bytes(self) -> int:
        return bits_of(self.arithmetic.element) // 8

    @property
    def _is_by_pixels(self) -> bool:
        return self.feature == self._element_bytes

    @property
    def _is_covered(self) -> bool:
        """Whether pixels fill the copy."""
        return (
            all(axis.is_plain for axis in self.axes)
            and max(self.phases) == 1
            and self.strides[-1] in (self._element_bytes, self.features * self._element_bytes)
        )

    def clear(self, function: Function, target: Value) -> None:
        """Write the zeros that belong to no pixel."""
        if not self._is_covered:
            function.clear(target, self.size)

    def fill(
        self,
        function: Function,
        image: Image,
        source: Value,
        origin: Value,
        rows: Value,
        target: Value,
        *,
        is_cleared: bool = False,
    ) -> None:
        """Copy a part of an image.

        Args:
            source: the address of the image's first pixel and of its first feature that counts.
            origin: the first row that is copied, counted with the padding.
            rows: how many are.
            is_cleared: whether ``clear`` was called, and since then all parts that were copied had this origin.
        """
        if not is_cleared:
            self.clear(function, target)
        planes = 1 if self._is_by_pixels else self.features
        with each(function, 0, planes) as plane:
            start = strided(function, source, image.kind, [plane], [image.feature])
            to = strided(function, target, I8, [plane], [self.feature])
            if length := self._run_of_rows(image):
                self._rows(function, image, (start, to), origin, rows, length)
            elif self._has_single_pixels:
                self._pixels(function, image, (start, to), origin, rows)
            else:
                self._single_rows(function, image, (start, to), origin, rows)

    def _rows(
        self, function: Function, image: Image, plane: tuple[Value, Value], origin: Value, rows: Value, length: int
    ) -> None:
        """All rows of a plane at once, which have so many elements each."""
        (source, target), first = plane, self.axes[0]
        low, high = first.seen
        begin = (origin - first.low).maximum(low)
        count = ((origin + rows - first.low).minimum(high) - begin) * length
        at = strided(function, source, image.kind, [begin], [image.spatial[0]])
        to = strided(function, target, I8, [begin + first.low - origin], [self.strides[0]])

        def move(place: Value, lanes: int) -> None:
            value = element(function, self.arithmetic, image, strided(function, at, image.kind, [place], [1]), lanes)
            function.store(value, strided(function, to, self.arithmetic.element, [place], [1]))

        vectors = count.compare("sge", _MOVED)
        with function.if_(vectors), each(function, 0, count, _MOVED) as reached:
            # The last vector begins early enough to end with the rows.
            move(reached.minimum(count - _MOVED), _MOVED)
        with function.if_(~vectors), each(function, 0, count) as place:
            move(place, 1)

    @property
    def _has_single_pixels(self) -> bool:
        """Whether rows of planes have one pixel, and no zeros lie between them."""
        is_single = all((axis.low, axis.padded, axis.size) == (0, 1, 1) for axis in self.axes[1:])
        return is_single and not self._is_by_pixels and self.axes[0].base == 1

    def _pixels(self, function: Function, image: Image, plane: tuple[Value, Value], origin: Value, rows: Value) -> None:
        """The pixels of a plane whose rows have one each, phase by phase."""
        (source, target), first, count = plane, self.axes[0], self.phases[0]
        low, high = first.seen
        begin = (origin - first.low).maximum(low)
        end = (origin + rows - first.low).minimum(high)
        for phase in range(first.phases_seen):
            # The first pixel of this phase from there on; what is added keeps the dividend positive.
            row = begin + (first.low + count * (1 + abs(first.low))) - origin
            pixel = begin + (phase + count - row.urem(count)).urem(count)
            turns = (end - pixel + (count - 1)).maximum(0).udiv(count)
            at = strided(function, source, image.kind, [pixel], [image.spatial[0]])
            to = strided(function, target, I8, [self.place(0, pixel + first.low - origin)], [1])
            with each(function, 0, turns) as turn:
                value = element(
                    *(function, self.arithmetic, image),
                    strided(function, at, image.kind, [turn], [count * image.spatial[0]]),
                    1,
                )
                function.store(value, strided(function, to, I8, [turn], [self.strides[0]]))

    def _single_rows(
        self, function: Function, image: Image, plane: tuple[Value, Value], origin: Value, rows: Value
    ) -> None:
        (source, target), first = plane, self.axes[0]
        with each(function, *first.seen) as pixel:
            row = pixel * first.base + first.low - origin
            is_copied = row.compare("ult", rows)
            if self.phases[0] > first.phases_seen:
                is_copied = is_copied & row.urem(self.phases[0]).compare("ult", first.phases_seen)
            with function.if_(is_copied):
                at = strided(function, source, image.kind, [pixel], [image.spatial[0]])
                self._rest(function, image, at, strided(function, target, I8, [self.place(0, row)], [1]), 1)

    def _rest(self, function: Function, image: Image, source: Value, target: Value, axis: int) -> None:
        """The dimensions from ``axis`` on."""
        dimension, is_last = self.axes[axis], axis == len(self.axes) - 1
        first, last = dimension.seen
        if is_last and (length := self._run_of_pixels(image)):
            place = self.place(axis, function.index(first + dimension.low))
            start = function.offset(source, image.kind, first * image.spatial[axis])
            self._run(function, image, start, strided(function, target, I8, [place], [1]), (last - first) * length)
            return
        if is_last and self._is_dealt(image):
            self._deal(function, image, source, target)
            return
        if is_last and self._is_woven(image):
            self._weave(function, image, source, target)
            return
        with each(function, first, last) as pixel:
            at = strided(function, source, image.kind, [pixel], [image.spatial[axis]])
            place = self.place(axis, pixel * dimension.base + dimension.low)
            to = strided(function, target, I8, [place], [1])
            if not is_last:
                self._rest(function, image, at, to, axis + 1)
            elif not self._is_by_pixels:
                self._run(function, image, at, to, 1)
            elif image.feature == 1:
                self._run(function, image, at, to, self.features)
            else:
                with each(function, 0, self.features) as feature:
                    start = strided(function, at, image.kind, [feature], [image.feature])
                    self._run(function, image, start, strided(function, to, I8, [feature], [self.feature]), 1)

    def _is_dealt(self, image: Image) -> bool:
        """Whether pixels of a row follow each other in the image, and are dealt out to a few rows of the copy."""
        is_dense = self.axes[-1].base == 1 and image.spatial[-1] == 1 and not self._is_by_pixels
        return is_dense and 1 < self.phases[-1] <= _DEALT

    def _deal(self, function: Function, image: Image, source: Value, target: Value) -> None:
        """Deal a row's pixels out, as many vectors at once as there are phases."""
        axis, count = self.axes[-1], self.phases[-1]
        first, last = axis.seen
        turns, rest = divmod(last - first, count)
        places = {
            number: self.place_of(len(self.axes) - 1, first + axis.low + number)
            for number in range(count)
            if (first + axis.low + number) % count < axis.phases_seen
        }
        if turns:
            lanes = min(_MOVED, 1 << (turns.bit_length() - 1))
            with each(function, 0, turns, lanes) as reached:
                turn = clamped(function, reached, turns - lanes) if turns % lanes else reached
                start = strided(function, function.offset(source, image.kind, first), image.kind, [turn], [count])
                pixels = element(function, self.arithmetic, image, start, lanes * count)
                to = strided(function, target, self.arithmetic.element, [turn], [1])
                for number, place in places.items():
                    dealt = function.shuffle(pixels, None, range(number, lanes * count, count))
                    function.store(dealt, function.offset(to, I8, place))
        for number in sorted(places.keys() & range(rest)):
            start = function.offset(source, image.kind, first + turns * count + number)
            to = function.offset(target, I8, places[number] + turns * self.strides[-1])
            function.store(element(function, self.arithmetic, image, start, 1), to)

    def _is_woven(self, image: Image) -> bool:
        """Whether pixels of a row follow each other in the image, and the few features of each in the copy."""
        axis = self.axes[-1]
        is_dense = axis.base == 1 and image.spatial[-1] == 1 and self.phases[-1] == 1
        is_whole = self._is_by_pixels and self.strides[-1] == self.features * self._element_bytes
        first, last = axis.seen
        return is_dense and is_whole and 1 < self.features <= _WOVEN and last - first >= _LEAST_WOVEN

    def _weave(self, function: Function, image: Image, source: Value, target: Value) -> None:
        """Put the features of a row's pixels next to each other, a vector of pixels of each feature at a time."""
        axis, count = len(self.axes) - 1, self.features
        first, last = self.axes[-1].seen
        lanes = min(_MOVED, 1 << ((last - first).bit_length() - 1))
        place = self.place_of(axis, first + self.axes[-1].low)
        with each(function, 0, last - first, lanes) as reached:
            pixel = clamped(function, reached, last - first - lanes) if (last - first) % lanes else reached
            start = function.offset(source, image.kind, pixel + first)
            planes = [
                element(function, self.arithmetic, image, function.offset(start, image.kind, n * image.feature), lanes)
                for n in range(count)
            ]
            to = function.offset(strided(function, target, I8, [pixel], [self.strides[-1]]), I8, place)
            for number in range(count):
                # Of each of the vector's elements, the pixel and the feature.
                places = [divmod(number * lanes + lane, count) for lane in range(lanes)]
                woven = planes[0]
                for feature in range(1, count):
                    is_first = feature == 1
                    woven = function.shuffle(
                        woven,
                        planes[feature],
                        [
                            lanes + at if own == feature else at if is_first else lane
                            for lane, (at, own) in enumerate(places)
                        ],
                    )
                function.store(woven, function.offset(to, self.arithmetic.element, number * lanes))

    def _run_of_pixels(self, image: Image) -> int:
        """The elements of each pixel, where pixels of a row follow each other both in the image and in the copy."""
        length = self.features if self._is_by_pixels else 1
        follows = image.spatial[-1] == length and self.strides[-1] == length * self._element_bytes
        is_dense = self.axes[-1].base == 1 and self.phases[-1] == 1
        return length if follows and is_dense and (length == 1 or image.feature == 1) else 0

    def _run_of_rows(self, image: Image) -> int:
        """The elements of each row, where rows follow each other both in the image and in the copy; else 0."""
        if self.axes[0].base != 1 or self.phases[0] != 1:
            return 0
        length, stride = self._run_of_pixels(image), self._run_of_pixels(image) * self._element_bytes
        for place in reversed(range(len(self.axes))):
            axis = self.axes[place]
            if (image.spatial[place], self.strides[place]) != (length, stride):
                return 0
            if place == 0:
                return length
            if (axis.low, axis.padded) != (0, axis.size):
                return 0
            length, stride = length * axis.size, stride * axis.size
        return 0

    def _run(self, function: Function, image: Image, source: Value, target: Value, count: int) -> None:
        """Copy elements that follow each other."""
        if count < 1:
            return
        lanes = min(_MOVED, 1 << (count.bit_length() - 1))
        with each(function, 0, count, lanes) as reached:
            place = clamped(function, reached, count - lanes) if count % lanes else reached
            value = element(function, self.arithmetic, image, function.offset(source, image.kind, place), lanes)
            function.store(value, function.offset(target, self.arithmetic.element, place))


def by_pixels(axes: Sequence[Axis], features: int, rows: int, arithmetic: Arithmetic, room: int = 0) -> Copy:
    """A copy of rows whose features follow each other, in whole groups of terms.

    Args:
        room: for features of a pixel, of which the last ones are zeros; 0 for as many as there are.
    """
    pixel = -(-max(features, room) // arithmetic.group) * arithmetic.unit_bytes
    strides, step = [], pixel
    for size in reversed([rows, *(axis.padded for axis in axes[1:])]):
        strides.append(step)
        step *= size
    ones = (1,) * len(axes)
    element_bytes = bits_of(arithmetic.element) // 8
    return Copy(
        tuple(axes), features, tuple(reversed(strides)), element_bytes, ones, (0,) * len(axes), step, arithmetic
    )


def by_planes(axes: Sequence[Axis], features: int, rows: int, arithmetic: Arithmetic) -> Copy:
    """A copy of rows with a plane for each feature, dealt out so that windows are next to each other."""
    phases = tuple(axis.stride for axis in axes)
    sizes = [-(-size // count) for size, count in zip((rows, *(axis.padded for axis in axes[1:])), phases, strict=True)]
    strides, step = [], bits_of(arithmetic.element) // 8
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    phase_strides = []
    for count in reversed(phases):
        phase_strides.append(step)
        step *= count
    return Copy(
        tuple(axes),
        features,
        tuple(reversed(strides)),
        step,
        phases,
        tuple(reversed(phase_strides)),
        step * features,
        arithmetic,
    )
