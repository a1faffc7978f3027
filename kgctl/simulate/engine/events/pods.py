"""``start``: pods that do not run are started."""

from __future__ import annotations

from kgctl.simulate.engine.events.event_run import (
    Countdown,
    EventRun,
    bring_back,
    duration_of,
    end_after,
    in_a_while,
    pods_of,
    processes_of,
)
from kgctl.simulate.engine.network import FOREVER_US, LinkFault
from kgctl.simulate.engine.pods import Pod
from kgctl.simulate.engine.process import Process
from kgctl.simulate.recording.trace import PodChanged


def start(run: EventRun) -> None:
    pods = [pod for pod in pods_of(run) if pod.process is None]
    countdown = Countdown(len(pods), run.over)
    for pod in pods:
        pod.configure(run["with"])
        pod.boot(countdown.one)


def stop(run: EventRun) -> None:
    processes = processes_of(run)
    countdown = Countdown(len(processes), run.over)
    down_us = duration_of(run)

    def back(pod: Pod) -> None:
        pod.configure(run["with"])
        bring_back(run, pod, down_us, countdown.one)

    for process in processes:
        process.stop(lambda pod=process.pod: back(pod))  # type: ignore[misc]


def crash(run: EventRun) -> None:
    processes = processes_of(run)
    countdown = Countdown(len(processes), run.over)
    down_us = duration_of(run)
    for process in processes:
        process.die("crash")
        process.pod.configure(run["with"])
        bring_back(run, process.pod, down_us, countdown.one)


def restart(run: EventRun) -> None:
    pods = pods_of(run)
    countdown = Countdown(len(pods), run.over)
    down_us = duration_of(run) or 0

    def back(pod: Pod) -> None:
        pod.configure(run["with"])
        bring_back(run, pod, down_us, countdown.one)

    for pod in pods:
        if pod.process is None:
            back(pod)
        else:
            pod.process.stop(lambda pod=pod: back(pod))  # type: ignore[misc]


def scale(run: EventRun) -> None:
    pods = run.simulation.sets[run.event.target]
    present = [pod for pod in pods if pod.is_wanted]
    wanted = run["to"] if run["to"] is not None else max(len(present) + run["by"], 0)
    changes = _to_start(run, present, wanted) if wanted > len(present) else present[wanted:][::-1]
    countdown = Countdown(len(changes), run.over)
    for number, pod in enumerate(changes):
        pod.want(is_wanted=wanted > len(present))
        _change(run, pod, run["over"] * number // len(changes), countdown)


def _to_start(run: EventRun, present: list[Pod], wanted: int) -> list[Pod]:
    """Those with the lowest numbers that are not there, then new ones."""
    pods = run.simulation.sets[run.event.target]
    idle = [pod for pod in pods if not pod.is_wanted][: wanted - len(present)]
    members = run.simulation.members(run.event.target)
    return idle + [run.simulation.add_pod(members) for _ in range(wanted - len(present) - len(idle))]


def _change(run: EventRun, pod: Pod, delay_us: int, countdown: Countdown) -> None:
    def change(_: object) -> None:
        if pod.is_wanted:
            pod.boot(countdown.one)
        elif pod.process is None:
            countdown.one()
        else:
            pod.process.stop(countdown.one)

    in_a_while(run, delay_us, change)


def stall(run: EventRun) -> None:
    duration_us = duration_of(run) or 0
    for process in processes_of(run):
        run.simulation.log(PodChanged(run.simulation.log_time, process.pod.name, "stall"))
        process.stall(run.simulation.loop.now_us + duration_us)
    in_a_while(run, duration_us, run.over)


USUAL_PPM = 1_000_000


def slow(run: EventRun) -> None:
    pods = pods_of(run)
    for pod in pods:
        _set(pod, pod.factor_ppm * run["factor"] // USUAL_PPM)
        run.simulation.log(PodChanged(run.simulation.log_time, pod.name, "slow"))
    end_after(run, duration_of(run), lambda: _end_slow(run, pods))


def _end_slow(run: EventRun, pods: list[Pod]) -> None:
    for pod in pods:
        _set(pod, max(pod.factor_ppm * USUAL_PPM // run["factor"], 1))
        run.simulation.log(PodChanged(run.simulation.log_time, pod.name, "unslow"))


def _set(pod: Pod, factor_ppm: int) -> None:
    pod.factor_ppm = factor_ppm
    if pod.process is not None:
        pod.process.slow()


def pause_process(run: EventRun) -> None:
    processes = processes_of(run)
    for process in processes:
        process.suspend()
    in_a_while(run, duration_of(run) or 0, lambda _: _end_pause(run, processes))


def _end_pause(run: EventRun, processes: list[Process]) -> None:
    for process in processes:
        process.resume()
    run.over()


def network(run: EventRun) -> None:
    pods = pods_of(run)
    duration_us = duration_of(run)
    until_us = FOREVER_US if duration_us is None else run.simulation.loop.now_us + duration_us
    fault = LinkFault(latency=run["latency"], loss_ppm=run["loss"], is_partition=bool(run["partition"]), until_us=until_us)
    for pod in pods:
        if pod.process is not None:
            pod.process.catch_up()
            run.simulation.ownership.settle_unseen(pod.process)
        pod.link.add(fault)
        run.simulation.history.pods[pod.number].latency_us = pod.link.mean_us
        if fault.is_partition and pod.process is not None:
            pod.process.cut_off()
    end_after(run, duration_us, lambda: _end_fault(pods, fault))


def _end_fault(pods: list[Pod], fault: LinkFault) -> None:
    for pod in pods:
        pod.link.remove(fault)
        pod.simulation.history.pods[pod.number].latency_us = pod.link.mean_us
        if pod.process is not None and not pod.link.is_partitioned:
            pod.process.connect_again()
