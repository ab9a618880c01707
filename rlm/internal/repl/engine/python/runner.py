"""Runs blocks of Python code for a host, over frames on the standard streams.

A frame is four bytes of length, big-endian, and that many bytes of JSON. The host sends init,
exec, reply and set; this program sends ready, request, done and ok. See package pipe.
"""
import ast
import base64
import bisect
import builtins
import errno
import hashlib
import io
import json
import linecache
import os
import re
import resource
import signal
import struct
import sys
import threading
import traceback
import types


class Link:
    """The frames. The descriptors are not 0 to 2, which belong to the code."""

    def __init__(self):
        self.input = os.fdopen(os.dup(0), "rb")
        self.output = os.fdopen(os.dup(1), "wb")
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.close(null)

    def receive(self):
        head = self.input.read(4)
        if len(head) < 4:
            os._exit(0)  # the host is gone
        (left,) = struct.unpack(">I", head)
        try:
            data = self.input.read(left)
        except MemoryError:  # the next frame begins behind this one
            while left > 0:
                left -= len(self.input.read(min(left, 4096))) or left
            raise
        return json.loads(data)

    def send(self, message, most=None):
        """Sends a message, unless it has more bytes than most; returns how many it has."""
        try:
            data = json.dumps(message, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # lone surrogates
            data = json.dumps(message).encode()
        if most is None or len(data) <= most:
            self.output.write(struct.pack(">I", len(data)) + data)
            self.output.flush()
        return len(data)


class Clock:
    """The time that the code sees, in microseconds since 1970: it comes from the host."""

    def __init__(self):
        self.now = 0

    def read(self):
        self.now += 1000
        return self.now

    def advance(self, to):
        self.now = max(self.now, to)

    def install(self):
        import datetime
        # These wait in real time, so that they keep the real clock.
        import queue, selectors, subprocess
        import time

        gmtime, strftime = time.gmtime, time.strftime
        def seconds():
            return self.read() / 1e6

        def nanoseconds():
            return self.read() * 1000

        def sleep(duration):
            self.now += max(int(duration * 1e6), 0)

        def broken_down(at=None):
            return gmtime(seconds() if at is None else at)

        time.time = time.monotonic = time.perf_counter = time.process_time = time.thread_time = seconds
        time.time_ns = time.monotonic_ns = time.perf_counter_ns = time.process_time_ns = nanoseconds
        time.clock_gettime, time.clock_gettime_ns = lambda clock: seconds(), lambda clock: nanoseconds()
        time.sleep = sleep
        time.gmtime = time.localtime = broken_down
        time.strftime = lambda form, t=None: strftime(form, broken_down() if t is None else t)
        time.ctime = lambda at=None: strftime("%a %b %e %H:%M:%S %Y", broken_down(at))
        time.asctime = lambda t=None: strftime("%a %b %e %H:%M:%S %Y", broken_down() if t is None else t)

        real = datetime.datetime
        real_date = datetime.date

        class Meta(type):
            def __instancecheck__(cls, obj):
                return isinstance(obj, real)

            def __subclasscheck__(cls, sub):
                return issubclass(sub, real)

        class Now(real, metaclass=Meta):
            @classmethod
            def now(cls, tz=None):
                return real.fromtimestamp(seconds(), tz)

            @classmethod
            def utcnow(cls):
                return real.fromtimestamp(seconds(), datetime.timezone.utc).replace(tzinfo=None)

            @classmethod
            def today(cls):
                return cls.now()

            def __new__(cls, *args, **kwargs):
                return real(*args, **kwargs)

        class MetaDate(type):
            def __instancecheck__(cls, obj):
                return isinstance(obj, real_date)

            def __subclasscheck__(cls, sub):
                return issubclass(sub, real_date)

        class Today(real_date, metaclass=MetaDate):
            @classmethod
            def today(cls):
                return Now.now().date()

            def __new__(cls, *args, **kwargs):
                return real_date(*args, **kwargs)

        for cls, base in ((Now, real), (Today, real_date)):
            cls.__name__ = cls.__qualname__ = base.__name__
            cls.__module__ = "datetime"
        datetime.datetime, datetime.date = Now, Today

        class Selector(selectors.DefaultSelector):
            """That of the loops of asyncio, whose sleep is one of this clock: nothing but time can
            end a wait of a loop that has only the socket with which its threads wake it."""

            def select(inner, timeout=None):
                alone = threading.active_count() == 1 and len(inner.get_map()) <= 1
                if alone and timeout is None:
                    raise RuntimeError("the code waits for something that nothing else does")
                found = super().select(0 if alone else timeout)
                if not found and timeout is not None:
                    sleep(timeout)
                return found

        selectors.DefaultSelector = Selector


class Chance:
    """Random numbers and IDs: a function of the seed of the block."""

    def __init__(self):
        import random
        import uuid

        self.source = random.Random(0)
        os.urandom = self.bytes
        if hasattr(os, "getrandom"):
            os.getrandom = lambda size, flags=0: self.bytes(size)
        random._urandom = self.bytes
        seed = random.Random.seed
        random.Random.seed = lambda inner, a=None, version=2: seed(inner, self.bytes(32) if a is None else a, version)
        random.seed = random._inst.seed
        uuid._generate_time_safe = uuid._UuidCreate = None
        uuid.getnode = lambda: 0x010203040506
        self.random, self.uuid = random, uuid

    def bytes(self, size):
        return self.source.getrandbits(8 * size).to_bytes(size, "big") if size else b""

    def seed(self, seed):
        self.source.seed(seed)
        self.random.seed(seed)
        self.uuid._last_timestamp = None
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            numpy.random.seed(seed & 0xFFFFFFFF)


ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def without_addresses(text):
    return ADDRESS.sub(" at 0x0", text)


class Output(io.TextIOBase):
    """What the code prints: its beginning, its length and its hash."""

    def __init__(self, limit):
        self.limit = limit
        self.clear()

    def clear(self):
        self.parts, self.kept, self.bytes, self.hash = [], 0, 0, hashlib.sha256()

    def writable(self):
        return True

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        data = without_addresses(text).encode("utf-8", "replace")
        self.bytes += len(data)
        self.hash.update(data)
        if self.kept < self.limit:
            part = data[: self.limit - self.kept]
            self.parts.append(part)
            self.kept += len(part)
        return len(text)

    def text(self):
        return b"".join(self.parts).decode("utf-8", "ignore")


class AwaitableText(str):
    def __await__(self):
        return self
        yield


class AwaitableList(list):
    def __await__(self):
        return self
        yield


class AwaitableDict(dict):
    def __await__(self):
        return self
        yield


class Answer(dict):
    """The variable answer: a true value for "ready" makes its content the final answer, at once, or at
    the end of the block if there is no capture."""

    def __init__(self, capture):
        super().__init__(content="", ready=False)
        self._capture = capture

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if key == "ready" and value and self._capture:
            self._capture(self.get("content"))

    def update(self, *args, **kwargs):
        given = dict(*args, **kwargs)
        for key in sorted(given, key=lambda k: k == "ready"):
            self[key] = given[key]

    def __ior__(self, other):
        self.update(other)
        return self


class LazyText:
    """A text of the context that is too long to be held: it is read in parts."""

    def __init__(self, engine, name, size):
        self._engine, self._name, self._size = engine, name, size
        self._offsets, self._chars = [0], [0]  # the bytes and characters before each known part
        self._held = (None, "")  # the number and the text of the part that was read last

    def _part(self, number):
        """The text of a part, which ends between characters; those before it were read."""
        if self._held[0] == number:
            return self._held[1]
        offset = self._offsets[number]
        data = self._engine.read(self._name, offset, min(self._engine.part, self._size - offset))
        end = len(data)
        if offset + end < self._size:
            while end > 0 and end > len(data) - 4 and data[end - 1] & 0xC0 == 0x80:
                end -= 1
            if end > 0 and data[end - 1] >= 0xC0:
                end -= 1
        text = data[:end].decode("utf-8", "replace")
        if number + 1 == len(self._offsets):
            self._offsets.append(offset + end)
            self._chars.append(self._chars[number] + len(text))
        self._held = (number, text)
        return text

    def _parts(self, number=0):
        while self._offsets[number] < self._size:
            yield self._part(number)
            number += 1

    def _before(self, index):
        """The number of the last known part that begins at a character or before it."""
        return bisect.bisect_right(self._chars, index) - 1

    def __len__(self):
        for _ in self._parts(len(self._offsets) - 1):
            pass
        return self._chars[-1]

    def __iter__(self):
        for part in self._parts():
            yield from part

    def lines(self):
        """Yields the lines that the functions lines, grep and cite count, without their ends."""
        return self._split(False)

    def _split(self, empty):
        """Yields the texts between newlines; empty: the last one also if it is empty."""
        begun = []  # the parts of a line whose end was not read yet
        for part in self._parts():
            found = part.split("\n")
            begun.append(found[0])
            if len(found) > 1:
                yield "".join(begun)
                yield from found[1:-1]
                begun = [found[-1]]
        rest = "".join(begun)
        if rest or empty:
            yield rest

    def _slice(self, start, stop):
        number, out = self._before(start), []
        while self._chars[number] < stop and self._offsets[number] < self._size:
            part, at = self._part(number), self._chars[number]
            out.append(part[max(start - at, 0) : stop - at])
            number += 1
        return "".join(out)

    def __getitem__(self, index):
        if isinstance(index, slice):
            first, last, step = index.start, index.stop, index.step
            if (first or 0) >= 0 and last is not None and last >= 0 and step in (None, 1):
                return self._slice(first or 0, last)  # without counting the characters
            first, last, step = index.indices(len(self))
            if step != 1:
                raise ValueError("slices of a long text have the step 1")
            return self._slice(first, last)
        index = index.__index__()
        if index < 0:
            index += len(self)
        found = self._slice(index, index + 1)
        if not found:
            raise IndexError("string index out of range")
        return found

    def find(self, sub, start=0, end=None):
        if start is None or start < 0 or end is not None and end < 0:
            start, end, _ = slice(start, end).indices(len(self))
        number, rest = self._before(start), ""
        at = self._chars[number]
        for part in self._parts(number):
            text = rest + part
            found = text.find(sub, max(start - at, 0))
            if found >= 0:
                return at + found if end is None or at + found + len(sub) <= end else -1
            keep = min(len(sub) - 1, len(text)) if sub else 0
            at, rest = at + len(text) - keep, text[len(text) - keep :]
        return -1

    def __contains__(self, sub):
        return self.find(sub) >= 0

    def count(self, sub):
        if not sub:
            raise ValueError("count of an empty text")
        n, rest = 0, ""
        for part in self._parts():
            if len(sub) == 1:
                n += part.count(sub)
                continue
            between = (rest + part).split(sub)
            n += len(between) - 1
            rest = between[-1][1 - len(sub) :]
        return n

    def splitlines(self, keepends=False):
        """Yields the lines as str.splitlines has them."""
        begun, held = [], ""  # the parts of a line whose end was not read yet
        for part in self._parts():
            part = held + part
            held = "\r" if part.endswith("\r") else ""  # its end can go on in the next part
            found = part[: len(part) - len(held)].splitlines(True)
            rest = found.pop() if found and found[-1].splitlines()[0] == found[-1] else ""
            if found:
                yield from ("".join(begun) + "".join(found)).splitlines(keepends)
                begun = []
            begun.append(rest)
        yield from ("".join(begun) + held).splitlines(keepends)

    def split(self, sep=None, maxsplit=-1):
        if sep == "\n" and maxsplit == -1:
            return self._split(True)
        raise self._long("split")

    def startswith(self, prefix):
        longest = max(map(len, prefix), default=0) if isinstance(prefix, tuple) else len(prefix)
        return self._slice(0, longest).startswith(prefix)

    def _long(self, what):
        return TypeError(
            "%s needs the whole text, and this one has %d bytes: use grep, search, lines, .lines() or slices"
            % (what, self._size)
        )

    def __str__(self):
        raise self._long("str")

    def __add__(self, other):
        raise self._long("+")

    __radd__ = __add__

    def __repr__(self):
        return "<text of %d bytes: use slices, .lines(), find, count, or grep, search, lines>" % self._size

    def __getattr__(self, name):
        if name.startswith("_") or not hasattr(str, name):
            raise AttributeError(name)
        raise self._long(name)


class LazyFiles(dict):
    """The dictionary of a context that is too long to be held."""

    def __init__(self, engine, files):
        super().__init__({f["name"]: LazyText(engine, f["name"], f["bytes"]) for f in files})


class Namespace:
    """The functions of the host under the name perdure, which code cannot change."""

    def __init__(self, functions):
        self.__dict__.update(functions)

    def __setattr__(self, name, value):
        raise AttributeError("perdure has the functions of the REPL and cannot be changed")

    __delattr__ = lambda self, name: self.__setattr__(name, None)

    def __repr__(self):
        return "<the functions of the REPL: %s>" % ", ".join(sorted(self.__dict__))


class Failed(Exception):
    """What the host refused; it is raised in the code as a RuntimeError."""


RESERVED_NAMES = (
    "context", "llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched", "budget", "files", "search", "grep",
    "lines", "cite", "SHOW_VARS", "FINAL", "FINAL_VAR", "SUBMIT", "done",
)

# HELPERS are the names that only this program has: code may bind them to something else.
HELPERS = ("budget", "files", "search", "grep", "lines", "cite", "done")

PART = 4 << 20  # bytes of a file that are read at once, if as many can be held
PLAIN = (str, int, float, bool, type(None), bytes, complex)
MANY = 200_000  # values of a container that is compared as a whole
LONG = 16 << 20  # characters of the same
ALL_VARS = 16 << 20  # characters of all variables of a block that are handed out
LONG_FAILURE = 10_000  # characters of the text of an exception


# WAITS is after how many times its limit of processor time a block that only waits is ended.
WAITS = 5


class Engine:
    def __init__(self, link, init):
        self.link = link
        self.max_output, self.max_var = init["max_output"], init["max_var"]
        self.max_request, self.max_answer = init["max_request"], init["max_answer"]
        self.contents, self.lazy = init["contents"], init["lazy_bytes"]
        self.part = min(PART, max(self.lazy, 1 << 10))
        self.cpu = init["cpu_seconds"]
        self.clock, self.chance = Clock(), Chance()
        self.clock.install()
        self.output = Output(self.max_output)
        self.main = threading.get_ident()
        self.exchanging = self.over = False  # see stop
        self.waited, self.asked, self.used = 0, 0, 0.0  # see look
        self.final, self.blocks, self.awaits, self.loaded = None, 0, False, False
        self.history = None  # the messages of the conversation, if the host gives them
        self.known = {}  # name to the object and the hash of the last block
        self.keep_names = init.get("keep_names", False)
        self.answer = Answer(None if self.keep_names else lambda content: self.capture(content, "answer"))
        self.names = {"__name__": "__main__", "__builtins__": builtins}
        self.reserved = {name: getattr(self, "f_" + name) for name in RESERVED_NAMES if name != "context"}
        for name, function in self.reserved.items():
            function.__func__.__name__ = name
        self.reserved["context"] = None
        self.reserved.update({name: self.tool(name) for name in init.get("tools") or []})
        self.helpers = {}
        self.names.update(self.reserved)
        if self.keep_names:
            functions = {name: f for name, f in self.reserved.items() if name != "context"}
            self.helpers = {name: self.reserved.pop(name) for name in HELPERS}
            self.reserved["perdure"] = self.names["perdure"] = Namespace(functions)
        self.names["answer"] = self.answer
        self.hidden = set(self.names) - set(self.helpers)
        sys.stdout = sys.stderr = self.output
        sys.stdin = io.StringIO()

    # Functions of the host.

    def request(self, function, **args):
        self.check_thread(function)
        self.exchanging = True
        self.asked += 1
        try:
            size = self.link.send({"type": "request", "function": function, "args": args}, self.max_request)
            if size > self.max_request:
                raise RuntimeError("%s: the request has %d bytes, at most %d are possible" % (function, size, self.max_request))
            reply = self.link.receive()
        finally:
            self.exchanging = False
            if self.over:
                self.stop()
        self.clock.advance(reply.get("clock") or 0)
        if reply.get("err"):
            raise RuntimeError(reply["err"])
        return reply.get("value")

    def check_thread(self, function):
        if threading.get_ident() != self.main:
            raise RuntimeError(function + " can only be called by the main thread; use llm_query_batched")

    def result(self, value):
        if not self.awaits:
            return value
        for kind, awaitable in ((list, AwaitableList), (dict, AwaitableDict), (str, AwaitableText)):
            if isinstance(value, kind):
                return awaitable(value)
        return value

    @staticmethod
    def text(value):
        if isinstance(value, LazyText):
            raise value._long("a prompt")
        return value if isinstance(value, str) else str(value)

    def query(self, function, prompt, model):
        return self.result(self.request(function, prompt=self.text(prompt), model=model))

    def batch(self, function, prompts, model):
        if isinstance(prompts, (str, LazyText)):
            raise TypeError(function + " takes a list of prompts")
        return self.result(self.request(function, prompts=[self.text(p) for p in prompts], model=model))

    def f_llm_query(self, prompt, model=None):
        return self.query("llm_query", prompt, model)

    def f_rlm_query(self, prompt, model=None):
        return self.query("rlm_query", prompt, model)

    def f_llm_query_batched(self, prompts, model=None):
        return self.batch("llm_query_batched", prompts, model)

    def f_rlm_query_batched(self, prompts, model=None):
        return self.batch("rlm_query_batched", prompts, model)

    def tool(self, name):
        """The function by which the code calls a tool of the user."""
        def call(*args, **kwargs):
            return self.result(self.request("tool", name=name, args=args, kwargs=kwargs))
        call.__name__ = call.__qualname__ = name
        return call

    def f_budget(self):
        return self.request("budget")

    def f_files(self, glob="**"):
        return self.request("files", glob=glob)

    def f_search(self, query, k=10):
        return self.request("search", query=query, k=k)

    def f_grep(self, regex, glob="**", k=100):
        return self.request("grep", regex=getattr(regex, "pattern", regex), glob=glob, k=k)

    def f_lines(self, file, first, last, column=1):
        return self.request("lines", file=file, first=first, last=last, column=column)

    def f_cite(self, file, first, last):
        return self.request("cite", file=file, first=first, last=last)

    def f_SHOW_VARS(self):
        found = ["%s: %s" % (name, type(self.names[name]).__name__) for name in self.variables()]
        return "\n".join(found) or "(no variables)"

    def f_FINAL(self, value=""):
        self.capture(value, "FINAL")
        return value

    def f_done(self, value=""):
        self.capture(value, "done")
        return value

    def f_FINAL_VAR(self, value):
        if isinstance(value, str) and value.strip("\"' ").isidentifier():
            name = value.strip("\"' ")
            if name in self.names:
                value = self.names[name]
            elif name == value:
                raise NameError("FINAL_VAR: there is no variable %r; the variables are: %s"
                                % (name, listed(self.variables())))
        self.capture(value, "FINAL_VAR")
        return value

    def f_SUBMIT(self, *args, **fields):
        value = fields if fields else args[0] if len(args) == 1 else list(args)
        self.capture(value, "SUBMIT")
        return value

    def capture(self, value, by):
        if self.final is None:
            exact, text = encode(value), str(value)
            size = len(text.encode("utf-8", "replace"))
            if size > self.max_answer:
                raise ValueError("the answer has %d bytes, at most %d are possible" % (size, self.max_answer))
            self.final = {"json": exact if exact is not None else json.dumps(text), "text": text, "by": by}

    # The context.

    def read(self, name, offset, length):
        return base64.b64decode(self.request("read", file=name, offset=offset, length=length)["data"])

    def load(self):
        """Makes the variable context, when code first names it."""
        self.loaded = True
        one, many = self.contents.get("text"), self.contents.get("files") or []
        total = sum(f["bytes"] for f in ([one] if one else many))
        if total > self.lazy:
            value = LazyText(self, one["name"], one["bytes"]) if one else LazyFiles(self, many)
        elif one:
            value = self.whole(one)
        elif many:
            value = {f["name"]: self.whole(f) for f in many}
        else:
            value = ""
        self.reserved["context"] = self.names["context"] = value

    def whole(self, file):
        parts, offset = [], 0
        while offset < file["bytes"]:
            part = self.read(file["name"], offset, min(self.part, file["bytes"] - offset))
            parts.append(part)
            offset += len(part)
        return b"".join(parts).decode("utf-8", "replace")

    # Blocks.

    def execute(self, message):
        self.clock.advance(message["clock"])
        self.chance.seed(message["seed"])
        self.output.clear()
        self.final = None
        self.blocks += 1
        sys.stdout = sys.stderr = self.output
        name = "<block %d>" % self.blocks
        if message.get("history"):
            self.remember(message["history"])
        try:
            failure = self.run(message["code"], name)
        except TimeoutError as e:  # the limit was reached at the very end
            failure = self.failure(e, name)
        try:
            self.settle_answer()
            if self.keep_names:
                self.read_answer(failure)
        except BaseException as e:
            failure = failure or self.failure(e, name)
        self.names.update(self.reserved)
        for helper, function in self.helpers.items():
            self.names.setdefault(helper, function)
        changed, gone = self.changes()
        done = {
            "output": self.output.text(), "output_bytes": self.output.bytes, "output_sha256": self.output.hash.hexdigest(),
            "failure": failure, "final": self.final, "vars": changed, "gone": gone, "draft": self.draft(),
            "errors": self.errors_text(),
        }
        self.link.send({"type": "done", "done": done})

    def remember(self, messages):
        """Adds messages of the conversation to the variable history."""
        if self.history is None:
            self.history = []
            if self.keep_names:
                self.helpers["history"] = self.history
                self.reserved["perdure"].__dict__["history"] = self.history
            else:
                self.reserved["history"] = self.history
                self.hidden.add("history")
        self.history.extend(messages)
        if self.keep_names:
            self.names.setdefault("history", self.history)
        else:
            self.names["history"] = self.history

    def draft(self):
        """The text of the best answer so far, empty if there is none."""
        content = self.answer.get("content")
        try:
            text = "" if content is None else str(content)
        except BaseException:  # its text cannot be made
            return ""
        return text.encode("utf-8", "replace")[: self.max_answer].decode("utf-8", "ignore")

    def settle_answer(self):
        """Takes back the variable answer if the code bound it to another value."""
        value, self.names["answer"] = self.names.get("answer"), self.answer
        if value is not self.answer and isinstance(value, dict):
            self.answer.update(value)

    def read_answer(self, failure):
        """Takes the answer that the block left. One that does not count is not ready in later blocks."""
        if not self.answer.get("ready"):
            return
        content = self.answer.get("content")
        if failure is None:
            self.capture(content, "answer")
        if failure is not None or content is None or content == "":
            dict.__setitem__(self.answer, "ready", False)

    def run(self, code, name):
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        try:
            self.evaluate(code, name)
        except BaseException as e:  # also SystemExit: the code ends, the engine does not
            return self.failure(e, name)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        return None

    def evaluate(self, code, name):
        tree = ast.parse(code, name)
        nodes = list(ast.walk(tree))
        self.awaits = any(isinstance(n, (ast.Await, ast.AsyncFunctionDef)) for n in nodes)
        if not self.loaded and "context" in code:
            self.load()
        program = compile(tree, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        self.limit_cpu()
        if program.co_flags & 0x80:  # a coroutine
            import asyncio

            loop = asyncio.new_event_loop()
            try:
                loop.run_until_complete(types.FunctionType(program, self.names)())
            finally:
                loop.close()
        else:
            exec(program, self.names)

    def errors_text(self):
        """What the code wrote to the standard error, if that is kept apart from the output."""
        return ""

    def stop(self, *_):
        """Ends the block, but no exchange of frames: the next one would read the rest of it."""
        self.over = self.exchanging
        if not self.over:
            raise TimeoutError("the block used more than %d s of processor time" % self.cpu)

    def limit_cpu(self):
        self.over = False
        signal.signal(signal.SIGPROF, self.stop)
        signal.setitimer(signal.ITIMER_PROF, self.cpu)
        # Processes that the code starts have no timer, and inherit this; they begin at 0.
        enough, most = int(used_cpu()) + 2 * self.cpu + min(self.cpu, 5), resource.getrlimit(resource.RLIMIT_CPU)[1]
        if most == resource.RLIM_INFINITY or enough < most:
            resource.setrlimit(resource.RLIMIT_CPU, (enough, most))
        self.waited, self.asked, self.used = 0, 0, used_cpu()
        signal.signal(signal.SIGALRM, self.look)
        signal.setitimer(signal.ITIMER_REAL, self.cpu, self.cpu)

    def look(self, *_):
        """Ends a block that waits for something that does not come. A process that gets no
        processor because others have it receives no signals either."""
        used, asked = used_cpu(), self.asked
        still = not self.exchanging and asked == 0 and used - self.used < 0.02
        self.waited = self.waited + 1 if still else 0
        self.asked, self.used = 0, used
        if self.waited == WAITS:
            self.waited = 0
            raise TimeoutError("the block waited for %d s and did nothing" % (WAITS * self.cpu))

    def failure(self, e, name):
        frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename.startswith("<block ")]
        line = next((f.lineno for f in reversed(frames) if f.filename == name), 0)
        if isinstance(e, SyntaxError) and e.filename == name:
            line = e.lineno or 0
        parts = ["Traceback (most recent call last):\n"] + traceback.format_list(frames) if frames else []
        parts += [shortened(without_addresses(part)) for part in traceback.format_exception_only(type(e), e)]
        try:
            message = str(e)
        except BaseException:
            message = "(its text cannot be made)"
        safe = lambda s: shortened(without_addresses(s)).encode("utf-8", "replace").decode()
        return {"type": type(e).__name__, "message": safe(message), "line": line or 0, "traceback": safe("".join(parts))}

    # Variables.

    def variables(self):
        return sorted(
            n for n, v in self.names.items()
            if isinstance(n, str) and n not in self.hidden and not n.startswith("__")
            and not (n in self.helpers and v is self.helpers[n])
            and not issubclass(type(v), types.ModuleType)
        )

    def changes(self):
        changed, names, left = [], self.variables(), ALL_VARS
        for name in names:
            value = self.names[name]
            before = self.known.get(name)
            if before is not None and before[0] is value and type(value) in PLAIN:
                continue
            described = describe(name, value, min(self.max_var, left))
            if before is None or before[1] != described["sha256"]:
                changed.append(described)
                left -= len(described.get("json", ""))
            self.known[name] = (value, described["sha256"])
        gone = sorted(set(self.known) - set(names))
        for name in gone:
            del self.known[name]
        return changed, gone

    def set(self, message):
        for v in message["vars"]:
            self.names[v["name"]] = v["value"]
            self.known[v["name"]] = (v["value"], describe(v["name"], v["value"], self.max_var)["sha256"])
        self.link.send({"type": "ok"})


def listed(names):
    """Returns a list of names, shortened."""
    most = 50
    more = ", and %d more" % (len(names) - most) if len(names) > most else ""
    return (", ".join(name[:80] for name in names[:most]) or "none") + more


def shortened(text):
    """Returns the beginning and the end of the text of an exception."""
    half, most = LONG_FAILURE // 2, LONG_FAILURE + 100  # room for the note
    if len(text) <= most:
        return text
    return "%s\n… (%d characters are left out) …\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def size_of(value, budget):
    """Takes the size of a value off a budget of values and characters; returns what is left."""
    todo = [value]
    values, chars = budget
    while todo and values > 0 and chars > 0:
        v = todo.pop()
        values -= 1
        kind = type(v)
        if kind is str or kind is bytes:
            chars -= len(v)
        elif kind is dict:
            if len(v) > values:
                return 0, 0
            todo.extend(v.values())
            chars -= sum(len(k) for k in v if type(k) is str)
        elif kind in (list, tuple, set, frozenset):
            if len(v) > values:
                return 0, 0
            todo.extend(v)
    return values, chars


def exact(value, depth=0):
    """Reports whether JSON holds a value exactly."""
    kind = type(value)
    if kind in (str, bool, int, type(None)) or kind in (AwaitableText,):
        return True
    if kind is float:
        return value == value and value not in (float("inf"), float("-inf"))
    if depth > 100:
        return False
    if kind is list or kind is AwaitableList:
        return all(exact(v, depth + 1) for v in value)
    if kind is dict or kind is AwaitableDict:
        return all(type(k) is str for k in value) and all(exact(v, depth + 1) for v in value.values())
    return False


def encode(value):
    """Returns a value as JSON, None if JSON does not hold it exactly or it is very large."""
    values, chars = size_of(value, (MANY, LONG))
    if values <= 0 or chars <= 0 or not exact(value):
        return None
    try:
        return json.dumps(value, separators=(",", ":"))
    except (ValueError, MemoryError):  # an integer of very many digits
        return None


def describe(name, value, limit):
    kind = type(value)
    plain = {AwaitableText: str, AwaitableList: list, AwaitableDict: dict}.get(kind, kind)
    out = {"name": name, "type": plain.__name__}
    text = encode(value)
    if text is None:
        text = out["repr"] = represent(value)
        out["repr"] = text[:2000]
    elif len(text) <= limit:
        out["json"] = text
    else:
        out["repr"] = text[:2000]
    data = text.encode("utf-8", "replace")
    out["sha256"], out["bytes"] = hashlib.sha256(data).hexdigest(), len(data)
    return out


def represent(value):
    """Returns a text that identifies a value in every run."""
    try:
        return representation(value)
    except BaseException as e:  # also of code: it ends the text, not the engine
        return "<%s without a text: %s>" % (type(value).__name__, type(e).__name__)


def representation(value):
    if isinstance(value, types.FunctionType):
        code = value.__code__
        return "<function %s %s>" % (value.__name__, hashlib.sha256(code.co_code + repr(code.co_names).encode()).hexdigest())
    if isinstance(value, type):
        return "<class %s>" % value.__name__
    if isinstance(value, LazyText):
        return repr(value)
    if type(value) is int:  # too long for its decimal digits
        return hex(value)
    values, chars = size_of(value, (MANY, LONG))
    if values <= 0 or chars <= 0:
        return "<%s of %d values>" % (type(value).__name__, len(value)) if hasattr(value, "__len__") else "<large>"
    if isinstance(value, (set, frozenset)):
        return "%s(%s)" % (type(value).__name__, ", ".join(sorted(repr(v) for v in value)))
    return without_addresses(repr(value))


class Attempts:
    """What code must not be able to do: in a sandbox that holds, each raises an OSError."""

    @staticmethod
    def read(path, port):
        os.close(os.open(path, os.O_RDONLY))

    @staticmethod
    def write(path, port):
        os.close(os.open(path, os.O_WRONLY))

    @staticmethod
    def create(path, port):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))

    @staticmethod
    def link(path, port):
        os.link(path or json.__file__, "link")
        os.remove("link")

    @staticmethod
    def connect(path, port):
        import _socket  # the module socket takes longer to load

        s = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        try:
            s.settimeout(2)
            s.connect(("127.0.0.1", port))
        finally:
            s.close()

    @staticmethod
    def dial(path, port):
        import _socket

        s = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            s.settimeout(2)
            s.connect(path)
        finally:
            s.close()

    @staticmethod
    def parent():
        number = os.getppid()
        if number == 0:
            raise ProcessLookupError(errno.ESRCH, "the parent has no number here")
        return number

    @staticmethod
    def signal(path, port):
        os.kill(Attempts.parent(), 0)

    @staticmethod
    def environment(path, port):
        parent = Attempts.parent()
        if sys.platform != "darwin":
            return Attempts.read("/proc/%d/environ" % parent, 0)
        import ctypes

        KERN, PROCARGS2 = 1, 49  # of sysctl(3)
        name, size = (ctypes.c_int * 3)(KERN, PROCARGS2, parent), ctypes.c_size_t(1 << 20)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.sysctl(name, 3, ctypes.create_string_buffer(size.value), ctypes.byref(size), None, 0) != 0:
            raise OSError(ctypes.get_errno(), "sysctl")

    @staticmethod
    def fork(path, port):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

    @staticmethod
    def run(path, port):
        os.waitpid(os.posix_spawn(path, [path], {}), 0)


def outcome(attempt):
    """Makes an attempt. Another error than those expected ends the engine."""
    function, number = getattr(Attempts, attempt["kind"]), 0
    try:
        function(attempt.get("path", ""), attempt.get("port", 0))
    except OSError as e:
        number = e.errno or -1
    except ImportError:
        number = -1
    return {"name": attempt["name"], "errno": number}


def used_cpu():
    """The seconds of processor time of this process and of those that it waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def limit(init):
    memory = -1 if sys.platform == "darwin" else init["memory_bytes"]  # there, the host watches it
    for name, most in (("RLIMIT_AS", memory), ("RLIMIT_FSIZE", init["file_bytes"]), ("RLIMIT_CORE", 0),
                       ("RLIMIT_NOFILE", 256), ("RLIMIT_NPROC", init["processes"])):
        if most >= 0:
            resource.setrlimit(getattr(resource, name), (most, most))


def main():
    link = Link()
    init = link.receive()
    if init.get("work"):  # a name that is the same in each process
        try:
            os.mkdir(init["work"])
            os.chdir(init["work"])
            os.environ["PWD"] = init["work"]
        except OSError:
            pass  # /tmp is a link, and so that of the machine
    sys.path = [p for p in sys.path if p]  # not the scratch folder
    outcomes = [outcome(a) for a in init.get("attempts") or []]
    limit(init)
    engine = (Reference if init.get("reference") else Engine)(link, init)
    link.send({"type": "ready", "outcomes": outcomes, "version": "%d.%d.%d" % sys.version_info[:3]})
    while True:
        message = link.receive()
        if message["type"] == "exec":
            engine.execute(message)
        elif message["type"] == "set":
            engine.set(message)

