"""A server that is seldom the limit: one prepared reply, written in one piece, for each POST.

It lists one model, so that `headway bench` accepts it as a target. Run by the benchmarks as a
process of its own; prints its port.
"""

from __future__ import annotations

import argparse
import asyncio

import uvloop


def chat_event(text: str) -> bytes:
    return (
        b'data: {"id":"chatcmpl-0123456789","object":"chat.completion.chunk","created":1790000000,'
        b'"model":"headway-sim","choices":[{"index":0,"delta":{"content":"%b"},'
        b'"logprobs":null,"finish_reason":null}]}\n\n' % text.encode()
    )


def stream_reply(chunks: int) -> bytes:
    events = [chat_event(f" tok{i}") for i in range(chunks)]
    events.append(b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
    events.append(
        b'data: {"id":"x","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":%d}}\n\n'
        % chunks
    )
    events.append(b"data: [DONE]\n\n")
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return head + b"".join(b"%x\r\n%b\r\n" % (len(e), e) for e in events) + b"0\r\n\r\n"


def whole_reply() -> bytes:
    body = (
        b'{"id":"chatcmpl-0123456789","object":"chat.completion","created":1790000000,"model":'
        b'"headway-sim","choices":[{"index":0,"message":{"role":"assistant","content":"one two '
        b'three four five six seven eight"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,'
        b'"completion_tokens":8,"total_tokens":17}}'
    )
    return json_reply(body)


def json_reply(body: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 %b\r\nServer: canned\r\nContent-Type: application/json\r\n" % status
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


MODELS = json_reply(b'{"object":"list","data":[{"id":"headway-sim","object":"model"}]}')


class Canned(asyncio.Protocol):
    def __init__(self, reply: bytes) -> None:
        self.reply = reply
        self.missing = 0
        self.answer = reply
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Knows requests with a Content-Length as their last header, which is what we send."""
        while data:
            if self.missing:
                taken = min(self.missing, len(data))
                self.missing -= taken
                data = data[taken:]
            else:
                head, _, data = data.partition(b"\r\n\r\n")
                self.answer = MODELS if head.startswith(b"GET") else self.reply
                _, found, length = head.lower().partition(b"content-length: ")
                self.missing = int(length.split(b"\r\n")[0]) if found else 0
            if not self.missing:
                assert self.transport is not None
                self.transport.write(self.answer)


async def main(chunks: int) -> None:
    reply = stream_reply(chunks) if chunks else whole_reply()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Canned(reply), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=0, help="0: a reply that is no stream")
    uvloop.run(main(parser.parse_args().chunks))
