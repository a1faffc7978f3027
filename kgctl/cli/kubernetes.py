"""A command that is run in a pod: for clusters whose brokers only pods can reach. ``kubectl`` logs in, and carries what is typed.

A context's ``kubernetes:`` block names the pod that stays, and has kgctl (``pod: deploy/kgctl``, by ``kubectl exec``), or the
image of one that is made for each command and removed after it (``image:``, by ``kubectl run``). What the pod's kgctl says, and
its exit code, are the command's. Files on the line are the pod's; stdin is carried, and the terminal where there is one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from kgctl.admin.connect import ADDRESSES, ClusterContext, is_pointer, is_secret
from kgctl.cli.project import read_contexts
from kgctl.errors import UsageError

if TYPE_CHECKING:
    from kgctl.cli.environment import Environment
    from kgctl.cli.session import Session
    from kgctl.cli.settings import Flags

VIA = "KGCTL_VIA"
"""In the pod: the options by which its user's own kgctl gets there, for lines that are to be typed again."""
LOCAL = ("--context", "--k8s")


@dataclass(frozen=True, slots=True)
class Pod:
    """Where to run: a pod that stays (``pod``), or else one made of ``image``."""

    context: str = ""
    namespace: str = ""
    pod: str = ""
    image: str = ""
    kubectl: str = "kubectl"

    def words(self, command: Sequence[str], via: str, name: str, *, has_terminal: bool) -> list[str]:
        """The line of kubectl that runs this command there; ``name`` is what a pod that is made is called."""
        where = [
            word
            for flag, value in (("--context", self.context), ("--namespace", self.namespace))
            if value
            for word in (flag, value)
        ]
        terminal = ["--stdin", *(["--tty"] if has_terminal else [])]
        if self.pod:
            return [self.kubectl, *where, "exec", *terminal, self.pod, "--", "env", f"{VIA}={via}", *command]
        made = ["--rm", "--quiet", "--restart=Never", f"--image={self.image}", f"--env={VIA}={via}"]
        return [self.kubectl, *where, "run", name, *terminal, *made, "--command", "--", *command]


def run_in_pod(session: Session, argv: Sequence[str], parameters: Mapping[str, Any]) -> None:
    """Become kubectl where the flags or the context say so; return where the cluster is reached from here.

    Raises:
        UsageError: no pod and no image is named, there is no kubectl, or a secret would be seen on the pod's command line.
    """
    flags, environment = session.flags, session.environment
    if environment.variables.get(VIA):  # this is the pod
        return
    context = _context(flags, environment)
    if not (flags.k8s or context.kubernetes):
        return
    pod = _pod(flags.k8s, context.kubernetes, environment.variables)
    _check_undo(pod, parameters)
    has_terminal = environment.stdin.isatty() and environment.stdout_is_terminal
    named = ["--context", context.name] if context.name else []
    via = shlex.join([*named, *(["--k8s", flags.k8s] if flags.k8s else [])])
    command, name = ["kgctl", *_of_context(flags, context), *_without_local(argv)], f"kgctl-{os.getpid()}-{environment.now_ms()}"
    _become(pod.words(command, via, name, has_terminal=has_terminal))


def _context(flags: Flags, environment: Environment) -> ClusterContext:
    """The context in use; an address that is given stands alone, as everywhere."""
    named = flags.context or environment.variables.get("KGCTL_CONTEXT")
    variables = ("KGCTL_BOOTSTRAP_SERVER", "KGCTL_ZOOKEEPER")
    by_x = any(text.partition("=")[0].strip() in ADDRESSES for text in flags.properties)
    by_flag = flags.bootstrap_server or flags.embedded or flags.zookeeper or by_x
    if by_flag or any(map(environment.variables.get, variables)):
        return read_contexts(environment).context(flags.context) if flags.context else ClusterContext("")
    return read_contexts(environment).context(named)


def _pod(flag: str | None, block: Mapping[str, str], variables: Mapping[str, str]) -> Pod:
    pod = Pod(**block)
    if flag:
        pod = replace(pod, **in_kubernetes(flag))
    if not (pod.pod or pod.image):
        pod = replace(pod, pod=variables.get("KGCTL_K8S_POD", ""), image=variables.get("KGCTL_K8S_IMAGE", ""))
    if not (pod.pod or pod.image):
        raise UsageError(
            "say where in Kubernetes kgctl is: a pod that has it (pod: in the context's kubernetes block, or KGCTL_K8S_POD), or "
            "an image (image:, or KGCTL_K8S_IMAGE)"
        )
    if shutil.which(pod.kubectl) is None:
        raise UsageError(f"{pod.kubectl} is not on the PATH (kubectl: in the context's kubernetes block names another program)")
    return pod


def in_kubernetes(flag: str) -> dict[str, str]:
    """Return the context and the namespace of ``--k8s``. Raises UsageError; a context's name may have a slash in it."""
    context, _, namespace = flag.rpartition("/")
    if not (context and namespace):
        raise UsageError(f"--k8s {flag!r}: write CONTEXT/NAMESPACE, as kubectl config get-contexts shows them")
    return {"context": context, "namespace": namespace}


def _check_undo(pod: Pod, parameters: Mapping[str, Any]) -> None:
    """A pod that is removed takes its files with it: the undo file, and a plan."""
    changes = bool(parameters["execute"]) if "execute" in parameters else parameters.get("dry_run") is False
    if not pod.pod and (parameters.get("plan_out") or (changes and parameters.get("no_backup") is False)):
        what = "plan" if parameters.get("plan_out") else "undo file"
        raise UsageError(
            f"the pod that kubectl makes is removed with its {what}: name a pod that stays (pod: deploy/NAME)"
            f"{'' if parameters.get('plan_out') else ', or do without an undo file (--no-backup)'}"
        )


def _of_context(flags: Flags, context: ClusterContext) -> Iterator[str]:
    """What the context says of the cluster, as options; secrets stay where the pod finds them."""
    for text in flags.properties:
        _check_secret(*text.partition("=")[::2])
    if flags.bootstrap_server or flags.embedded or flags.zookeeper:
        return
    settings = ("bootstrap_server", "zookeeper", "embedded", "command_config", "timeout")
    for name in settings:
        if value := getattr(context, name):
            yield from (f"--{name.replace('_', '-')}", value)
    for key, value in context.properties.items():
        _check_secret(key, value)
        yield from ("-X", f"{key}={value}")


def _check_secret(key: str, value: str) -> None:
    if is_secret(key) and not is_pointer(value):
        raise UsageError(
            f"{key}: a secret would be on the pod's command line for all to see; write where the pod has it: env:NAME, file:PATH"
        )


def _without_local(argv: Sequence[str]) -> Iterator[str]:
    """The words that were typed, without the options that the pod does not know."""
    words = iter(argv)
    for word in words:
        if word == "--":
            yield from (word, *words)
        elif word in LOCAL:
            next(words, None)
        elif not word.startswith(tuple(f"{option}=" for option in LOCAL)):
            yield word


def _become(words: Sequence[str]) -> NoReturn:
    """The process is kubectl's from here on: its signals, its terminal and its exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(words[0], list(words))  # noqa: S606 - the user's own configuration names it
