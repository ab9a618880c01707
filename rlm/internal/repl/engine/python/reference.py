class ReferenceAnswer(dict):
    """The variable answer: each true value for "ready" makes its content the final answer at once."""

    def __init__(self, capture, values=()):
        super().__init__(content="", ready=False)
        super().update(values)
        self._capture = capture

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        if key == "ready" and value:
            self._capture(self.get("content", ""))


class Reference(Engine):
    """Runs the blocks of a log by the rules of the reference implementation: a block that raises binds
    nothing, names with an underscore end with their block, deleted names come back, a function sees the
    names as they were in its block, and the standard error is kept apart."""

    # In its environment "local", these builtins are None, these are absent, and these exceptions are there.
    NONE = ("input", "eval", "exec", "compile", "globals", "locals")
    ABSENT = (
        "frozenset", "aiter", "anext", "breakpoint", "copyright", "credits", "exit", "quit", "help", "license",
        "Ellipsis", "NotImplemented", "__build_class__", "__debug__", "__doc__", "__loader__", "__name__",
        "__package__", "__spec__",
    )
    EXCEPTIONS = (
        "BaseException", "Exception", "ArithmeticError", "AssertionError", "AttributeError", "FileNotFoundError",
        "IOError", "ImportError", "IndexError", "KeyError", "LookupError", "NameError", "NotImplementedError",
        "OSError", "RuntimeError", "StopIteration", "TypeError", "ValueError", "Warning",
    )

    def __init__(self, link, init):
        super().__init__(link, init)
        rules = init["reference"]
        self.local, self.keeps = rules["environment"] == "local", rules["environment"] == "ipython"
        self.form, self.lock = rules.get("context", ""), threading.Lock()
        self.errors = Output(self.max_output)
        names = ("llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched", "SHOW_VARS", "FINAL_VAR")
        self.hosts = {name: getattr(self, "f_" + name) for name in names}
        self.hosts["__name__"], self.hosts["__builtins__"] = "__main__", self.builtins()
        self.reserved, self.helpers = {}, {}
        self.answer = ReferenceAnswer(self.ready)
        self.names = {"answer": self.answer}
        self.hidden = {"answer", "context", "context_0", "f"}

    def builtins(self):
        if not self.local:
            return builtins
        allowed = {
            name: value for name, value in vars(builtins).items()
            if name not in self.ABSENT and not (isinstance(value, type) and issubclass(value, BaseException))
        }
        allowed.update({name: getattr(builtins, name) for name in self.EXCEPTIONS})
        allowed.update(dict.fromkeys(self.NONE))
        return allowed

    def errors_text(self):
        return self.errors.text()

    def check_thread(self, function):
        pass  # a log has the answers of all threads, found by their prompts

    def request(self, function, **args):
        with self.lock:
            return super().request(function, **args)

    @staticmethod
    def text(value):
        return value if isinstance(value, str) else json.dumps(value)

    def query(self, function, prompt, model):
        try:
            return super().query(function, prompt, model)
        except RuntimeError as e:
            return "Error: LM query failed - %s" % e

    def batch(self, function, prompts, model):
        try:
            return super().batch(function, prompts, model)
        except RuntimeError as e:
            return ["Error: LM query failed - %s" % e] * len(prompts)

    def f_SHOW_VARS(self):
        found = {n: type(v).__name__ for n, v in self.names.items() if not n.startswith("_") and n != "answer"}
        if not found:
            return "No variables created yet. Use ```repl``` blocks to create variables."
        return "Available variables: %s" % found

    def f_FINAL_VAR(self, name):
        name = name.strip().strip("\"'")
        return str(self.names[name]) if name in self.names else "Error: Variable '%s' not found." % name

    def ready(self, content):
        self.final = None  # the last one counts
        self.capture(str(content), "answer")

    def load(self):
        """Binds the context as the reference does, which leaves the names of its own code."""
        self.loaded = True
        file = self.contents.get("text")
        if file is None:
            return
        value = self.whole(file)
        if self.form == "json":
            self.names["json"], value = json, json.loads(value)
        elif self.form == "repr":
            value = self.evaluated(value)
        self.names["f"] = io.TextIOWrapper(io.BytesIO())
        self.names["f"].close()
        self.names["context_0"] = self.names["context"] = value

    @staticmethod
    def evaluated(text):
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text

    def execute(self, message):
        self.errors.clear()
        if not self.loaded:
            self.load()
        super().execute(message)

    def evaluate(self, code, name):
        sys.stderr = self.errors
        program = compile(code, name, "exec")
        bound = {**self.hosts, **self.names}
        self.limit_cpu()
        try:
            exec(program, bound)
        except BaseException:
            if self.keeps:
                self.bind(bound)
            raise
        self.bind(bound)

    def bind(self, bound):
        self.names.update({n: v for n, v in bound.items() if n not in self.hosts and not n.startswith("_")})
        if "context_0" in self.names:
            self.names["context"] = self.names["context_0"]
        if "history_0" in self.names:
            self.names["history"] = self.names["history_0"]

    def changes(self):
        return [], []  # a replay compares what was printed

    def settle_answer(self):
        value = self.names.get("answer")
        if isinstance(value, ReferenceAnswer):
            return
        self.names["answer"] = self.answer = ReferenceAnswer(self.ready, value if isinstance(value, dict) else ())
        if self.answer.get("ready") and self.final is None:
            self.ready(self.answer.get("content", ""))
