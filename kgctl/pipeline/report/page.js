"use strict";
/* Draws the group that the address names (#cluster=&group=&topic=&from=&to=): makes records of the compact data for the charts. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const chart = JSON.parse(document.getElementById("chart").textContent);
  const target = document.getElementById("figure"), choice = document.getElementById("group");
  const topics = document.getElementById("topic"), here = document.getElementById("here");
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

  const ofTopic = (series, topic) => topic ? series.filter((each) => each.topic === topic) : series;
  const datasets = (group, topic) => ({
    health: group.health.map(stretch("health")),
    rebalances: group.rebalances.map(stretch("rebalance")),
    resets: group.resets.map(([at_ms, what, row]) => ({ at_ms, what, row, at: clock(at_ms), label: `reset: ${what} at ${clock(at_ms)}` })),
    changes: group.changes.map(([at_ms, what]) => ({ at_ms, what, at: clock(at_ms), label: `change: ${what} at ${clock(at_ms)}` })),
    members: lines(prolonged([{ topic: "", points: group.members }]), 1),
    lag: lines(prolonged(ofTopic(group.lag, topic)), 1),
    rate: lines(filled(ofTopic(group.rate, topic), group.rate_ms), 1000 / group.rate_ms),
  });

  const specOf = (group, asked) => {
    const spec = structuredClone(chart);
    spec.datasets = datasets(group, asked.topic);
    spec.vconcat = spec.vconcat.filter((view) => spec.datasets[view.name].length); // a chart of nothing has no size
    spec.params[0].views = spec.vconcat.map((view) => view.name);
    if (spec.vconcat.length) Object.assign(spec.vconcat.at(-1).encoding.x, chart.usermeta); // the lowest bears the time axis
    for (const view of spec.vconcat) {
      view.width = Math.max(320, target.clientWidth - 110);
      view.encoding.x.scale.domain = [asked.from, asked.to];
    }
    return spec;
  };

  const draw = async (index, asked) => {
    const group = data.groups[index], spec = specOf(group, asked);
    const marks = Object.values(spec.datasets).reduce((sum, rows) => sum + rows.length, 0);
    document.getElementById("notes").textContent = group.notes.length ? `Not everything is drawn: ${group.notes.join("; ")}.` : "";
    document.getElementById("shown").textContent = choice.options[index].text + (asked.topic ? `, topic ${asked.topic}` : "");
    target.dataset.charts = spec.vconcat.map((view) => view.name).join(" ");
    if (marks) {
      const { view } = await vegaEmbed(target, spec, {
        renderer: marks > mostOfSvg ? "canvas" : "svg", tooltip: { theme: "dark" },
        actions: { export: true, source: false, compiled: false, editor: false },
      });
      view.addEventListener("click", (_, item) => { if (item && item.datum && item.datum.row) point(item.datum.row); });
    } else target.textContent = "nothing is known of this group in that time";
    target.dataset.drawn = group.group;
  };

  /* From a mark in the chart to its row in the list, where it is listed. */
  const point = (row) => {
    document.querySelectorAll("tr.meant").forEach((each) => each.classList.remove("meant"));
    const found = document.getElementById(row);
    if (found) { found.classList.add("meant"); found.scrollIntoView({ block: "center" }); }
  };

  /* What the address asks for; what it does not say, or says wrongly, is as without it. */
  const asked = () => {
    const words = new URLSearchParams(location.hash.slice(1)), name = words.get("group"), cluster = words.get("cluster");
    const index = data.groups.findIndex((each) => each.group === name && (cluster === null || each.cluster === cluster));
    const from = Number(words.get("from")), to = Number(words.get("to")), isSpan = from > 0 && to > from;
    return {
      index, topic: words.get("topic") || "",
      from: isSpan ? Math.max(from, data.from) : data.from, to: isSpan ? Math.min(to, data.to) : data.to, isSpan,
    };
  };
  const addressOf = (index, wanted) => {
    const { cluster, group } = data.groups[index];
    const span = wanted.isSpan ? { from: wanted.from, to: wanted.to } : {};
    return "#" + new URLSearchParams({ cluster, group, ...(wanted.topic && { topic: wanted.topic }), ...span });
  };

  const offer = (group, topic) => {
    const names = [...new Set([...group.lag, ...group.rate].map((each) => each.topic))].sort();
    topics.replaceChildren(...["", ...names].map((name) => new Option(name || "all", name, false, name === topic)));
    return names.includes(topic) ? topic : "";
  };

  const show = () => {
    const wanted = asked(), index = wanted.index >= 0 ? wanted.index : Math.max(choice.selectedIndex, 0);
    choice.selectedIndex = index;
    wanted.topic = offer(data.groups[index], wanted.topic);
    if (wanted.to <= wanted.from) [wanted.from, wanted.to] = [data.from, data.to];
    here.href = addressOf(index, wanted);
    return draw(index, wanted).catch((error) => { target.textContent = `cannot draw: ${error.message}`; });
  };

  const choose = (topic) => {
    history.replaceState(null, "", addressOf(choice.selectedIndex, { topic, isSpan: false }));
    show();
  };
  choice.addEventListener("change", () => choose(""));
  topics.addEventListener("change", () => choose(topics.value));
  addEventListener("hashchange", () => {
    if (asked().index < 0) return; // a section of the page
    show();
    document.getElementById("charts").scrollIntoView();
  });
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(show, 200); });
  show();
})();
