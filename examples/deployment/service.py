"""A web service of one program on asyncio: requests that wait together are one batch of the program.

    python service.py model.vmfb --port=8000
    curl --data-binary @image.npy localhost:8000 --output result.npy

The program takes one array, and its first dimension is the batch: model.vmfb of examples/model.hlo takes ten images of
16x16. A request has one image less the batch (f32[16,16,1]) as a .npy file, and gets its own row of the first result.
"""

from __future__ import annotations

import argparse
import asyncio
import io
from typing import Any

import numpy as np

import hloforge

Array = np.ndarray[Any, Any]
# How long the first request of a batch waits for others.
SECONDS = 0.002
LONGEST = 64 * 2**20


class Batches:
    """Requests gathered into calls of a session."""

    def __init__(self, session: hloforge.Session) -> None:
        (parameter,) = session.signature.parameters
        self.session = session
        self.shape = parameter.shape.dimensions
        self.dtype = parameter.shape.element.dtype
        self.waiting: asyncio.Queue[tuple[Array, asyncio.Future[Array]]] = asyncio.Queue(4 * self.shape[0])

    async def ask(self, row: Array) -> Array:
        """The result for one row of a batch. Raises ValueError for a row that does not fit."""
        if row.shape != self.shape[1:] or row.dtype != self.dtype:
            raise ValueError(f"a request is {self.dtype}{list(self.shape[1:])}, not {row.dtype}{list(row.shape)}")
        answer: asyncio.Future[Array] = asyncio.get_running_loop().create_future()
        await self.waiting.put((row, answer))  # waits where too many do
        return await answer

    async def serve(self) -> None:
        """Make batches of what waits, for ever. The next batch is gathered while this one is computed."""
        calls: set[asyncio.Task[None]] = set()
        while True:
            batch = [await self.waiting.get()]
            if self.waiting.empty():
                await asyncio.sleep(SECONDS)
            while len(batch) < self.shape[0] and not self.waiting.empty():
                batch.append(self.waiting.get_nowait())
            call = asyncio.create_task(self._compute(batch))
            calls.add(call)
            call.add_done_callback(calls.discard)

    async def _compute(self, batch: list[tuple[Array, asyncio.Future[Array]]]) -> None:
        argument = np.zeros(self.shape, self.dtype)
        for number, (row, _) in enumerate(batch):
            argument[number] = row
        try:
            results = await self.session.submit(argument)
        except hloforge.Error as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        rows = results[0] if isinstance(results, tuple) else results
        for number, (_, answer) in enumerate(batch):
            if not answer.done():  # who asked may have gone away
                answer.set_result(rows[number])


async def answer(batches: Batches, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One request of HTTP."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
        if not 0 < length <= LONGEST:
            raise ValueError(f"a request has 1 to {LONGEST} bytes")
        body = await reader.readexactly(length)
        made = io.BytesIO()
        np.save(made, await batches.ask(np.load(io.BytesIO(body), allow_pickle=False)))
        status, content = "200 OK", made.getvalue()
    except (ValueError, EOFError, asyncio.IncompleteReadError) as error:
        status, content = "400 Bad Request", f"{error}\n".encode()
    except hloforge.Error as error:
        status, content = "500 Internal Server Error", f"{error}\n".encode()
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode() + content)
    await writer.drain()
    writer.close()


async def main(path: str, host: str, port: int) -> None:
    with hloforge.load(path) as session:
        batches = Batches(session)
        work = asyncio.create_task(batches.serve())
        server = await asyncio.start_server(lambda r, w: answer(batches, r, w), host, port)
        print(f"serving {session!r} at {server.sockets[0].getsockname()[1]}", flush=True)
        async with server:
            await asyncio.wait({work, asyncio.create_task(server.serve_forever())}, return_when="FIRST_COMPLETED")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    asyncio.run(main(options.model, options.host, options.port))
