"""reference.py URL CODE: the sub-calls of the reference's local REPL, with its own client and handler.

Needs the packages rlm and openai. Prints nothing but errors: the endpoint measures.
"""
import sys

from rlm.clients.openai import OpenAIClient
from rlm.core.lm_handler import LMHandler
from rlm.environments.local_repl import LocalREPL

url, code = sys.argv[1], sys.argv[2]
with LMHandler(OpenAIClient(api_key="none", model_name="constant", base_url=url)) as handler:
    repl = LocalREPL(lm_handler_address=handler.address, context_payload="hello\n")
    result = repl.execute_code(code + "\nprint('complete')")
    if result.stdout.strip() != "complete":
        sys.exit(result.stderr or "the code did not run to its end")
