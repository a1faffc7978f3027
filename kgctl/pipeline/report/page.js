"use strict";
/* Draws the chosen group: makes records of the compact data and gives them to the charts. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const chart = JSON.parse(document.getElementById("chart").textContent);
  const target = document.getElementById("figure"), choice = document.getElementById("group");
  const mostOfSvg = 4000; // beyond that a canvas is drawn: quicker, and without a name for each mark

  const clock = (ms) => new Date(ms).toISOString().replace("T", " ").replace(/\.000Z$|Z$/, "");
  const stretch = (kind) => ([from, to, what]) => ({
    from, to, what, begin: clock(from), end: clock(to), label: `${kind}: ${what}, ${clock(from)} to ${clock(to)}`,
  });
  const lines = (series, scale) => series.flatMap(({ topic, points }) =>
    points.map(([at_ms, value]) => ({ topic, at_ms, value: value === null ? null : value * scale })));

  /* What holds at the end of a line holds until the end of the time that is shown. */
  const prolonged = (series) => series.map((each) => {
    const last = each.points[each.points.length - 1];
    return last && last[0] < data.to ? { ...each, points: [...each.points, [data.to, last[1]]] } : each;
  });

  /* Windows without a commit are windows in which nothing was read. */
  const filled = (series, width) => series.map(({ topic, points }) => ({
    topic,
    points: points.flatMap(([at, value], i) => {
      const following = i + 1 < points.length ? points[i + 1][0] : data.to;
      if (at + width < following) return [[at, value], [at + width, 0]];
      return i + 1 < points.length ? [[at, value]] : [[at, value], [data.to, value]];
    }),
  }));

  const datasets = (group) => ({
    health: group.health.map(stretch("health")),
    rebalances: group.rebalances.map(stretch("rebalance")),
    resets: group.resets.map(([at_ms, what]) => ({ at_ms, what, at: clock(at_ms), label: `reset: ${what} at ${clock(at_ms)}` })),
    members: lines(prolonged([{ topic: "", points: group.members }]), 1),
    lag: lines(prolonged(group.lag), 1),
    rate: lines(filled(group.rate, group.rate_ms), 1000 / group.rate_ms),
  });

  const specOf = (group) => {
    const spec = structuredClone(chart);
    spec.datasets = datasets(group);
    spec.vconcat = spec.vconcat.filter((view) => spec.datasets[view.name].length); // a chart of nothing has no size
    spec.params[0].views = spec.vconcat.map((view) => view.name);
    if (spec.vconcat.length) Object.assign(spec.vconcat.at(-1).encoding.x, chart.usermeta); // the lowest bears the time axis
    for (const view of spec.vconcat) {
      view.width = Math.max(320, target.clientWidth - 110);
      view.encoding.x.scale.domain = [data.from, data.to];
    }
    return spec;
  };

  const draw = async (index) => {
    const group = data.groups[index], spec = specOf(group);
    const marks = Object.values(spec.datasets).reduce((sum, rows) => sum + rows.length, 0);
    document.getElementById("notes").textContent = group.notes.length ? `Not everything is drawn: ${group.notes.join("; ")}.` : "";
    target.dataset.charts = spec.vconcat.map((view) => view.name).join(" ");
    if (marks) await vegaEmbed(target, spec, {
      renderer: marks > mostOfSvg ? "canvas" : "svg", tooltip: { theme: "dark" },
      actions: { export: true, source: false, compiled: false, editor: false },
    });
    else target.textContent = "nothing is known of this group in that time";
    target.dataset.drawn = group.group;
  };

  const show = () => draw(choice.selectedIndex).catch((error) => { target.textContent = `cannot draw: ${error.message}`; });
  choice.addEventListener("change", show);
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(show, 200); });
  show();
})();
