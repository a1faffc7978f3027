"""``network``: latency, loss, or a partition between pods and the brokers."""

from __future__ import annotations

from kgctl.simulate.engine.events.kind import EventKind, EventRun, Field, FieldType, Target
from kgctl.simulate.engine.events.pods import duration_of, end_after, pods_of
from kgctl.simulate.engine.network import FOREVER_US, LinkFault
from kgctl.simulate.engine.pods.pod import Pod


def _begin(run: EventRun) -> None:
    pods = pods_of(run)
    duration_us = duration_of(run)
    until_us = FOREVER_US if duration_us is None else run.world.loop.now_us + duration_us
    fault = LinkFault(latency=run["latency"], loss_ppm=run["loss"], is_partition=bool(run["partition"]), until_us=until_us)
    for pod in pods:
        if pod.process is not None:
            pod.process.thaw()
            run.world.ownership.materialise(pod.process)
        pod.link.add(fault)
        if fault.is_partition and pod.process is not None:
            pod.process.cut_off()
    end_after(run, duration_us, lambda: _end(pods, fault))


def _end(pods: list[Pod], fault: LinkFault) -> None:
    for pod in pods:
        pod.link.remove(fault)
        if pod.process is not None and not pod.link.is_partitioned:
            pod.process.connect_again()


KIND = EventKind(
    name="network",
    target=Target.PODS,
    help="Between these pods and the brokers messages are slower, get lost, or do not come through at all.",
    begin=_begin,
    fields=(
        Field(name="latency", type=FieldType.DISTRIBUTION, help="of one direction"),
        Field(name="loss", type=FieldType.SHARE, help="of the packets; they are sent again as TCP does"),
        Field(name="partition", type=FieldType.FLAG, help="nothing comes through", default=False),
        Field(name="for", type=FieldType.DISTRIBUTION, help="how long; without it, for good"),
    ),
    one_of=("latency", "loss", "partition"),
)
