"use strict";
/* Draws the chosen variant: makes records of the compact data, gives them to the charts, fills in the legend. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = { figure: "chart", lanes: "lane-chart" };
  const specs = Object.entries(charts).map(([place, id]) => [document.getElementById(place), JSON.parse(document.getElementById(id).textContent)]);
  const mostOfSvg = 4000; // beyond that a canvas is drawn: quicker, and without a name for each stretch

  const clock = (us) => {
    const all = Math.abs(us) / 1e6, hours = Math.floor(all / 3600), minutes = Math.floor(all / 60) % 60;
    const seconds = Math.round((all % 60) * 1000) / 1000;
    const parts = [hours ? hours + "h" : "", minutes ? minutes + "m" : ""].filter(Boolean);
    if (seconds || !parts.length) parts.push(seconds + "s");
    return (us < 0 ? "-" : "") + parts.join(" ");
  };

  /* Round times, some twelve of them. */
  const ticksOf = ({ from, to }) => {
    const steps = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400];
    return steps.find((step) => (to - from) / 1e6 / step <= 14) || 604800;
  };

  /* A line, or an area, that holds its last value to the end. */
  const held = (points, end) => points.length ? [...points, [end, ...points[points.length - 1].slice(1)]] : [];

  const goneOf = ({ gone, causes, to }) => held(gone, to).flatMap(([at, ...counts]) =>
    causes.map(([cause], order) => ({ at_s: at / 1e6, cause, order, partitions: counts[order] })));

  /* The blocks of a step stand on one another, in partition-seconds. */
  const stepsOf = ({ steps, causes }) => steps.flatMap(([step, from, to, ...spent]) => {
    let low = 0;
    return causes.map(([cause], order) => {
      const high = low + spent[order] / 1e6, said = (high - low).toFixed(1);
      const block = { step, from: from / 1e6, to: to / 1e6, begin: clock(from), cause, spent: said, low, high, label: `${step}: ${cause} ${said}` };
      low = high;
      return block;
    });
  });

  const lagOf = (picture) => picture.lag.flatMap(({ topic, points }) =>
    points.map(([at, lag]) => ({ topic, at_s: at / 1e6, lag })));

  const generationsOf = ({ generations, to }) => held(generations, to).map(([at, generation]) => ({ at_s: at / 1e6, generation }));

  const replicasOf = (picture) => picture.replicas.flatMap(({ what, points }) =>
    held(points, picture.to).map(([at, pods]) => ({ what, at_s: at / 1e6, pods })));

  /* The tone changes with the owner, so that a change is seen where there is no gap between two. */
  const segmentsOf = (picture) => {
    const tones = picture.lanes.map(() => [-1, 0]);
    return picture.segments.map(([lane, from, to, how, ...owners]) => {
      const partition = picture.lanes[lane], why = picture.how[how], last = tones[lane];
      const owner = owners.length ? owners.map((each) => picture.owners[each]).join(" and ") : "nobody";
      if (owners.length && owners[0] !== last[0]) tones[lane] = [owners[0], 1 - last[1]];
      return {
        lane: partition, partition, owner, cause: why || (owners.length ? "-" : "unknown"), tone: tones[lane][1],
        label: `${partition}: ${owner}${why ? `, ${why}` : ""}, ${clock(from)} to ${clock(to)}`,
        from: from / 1e6, to: to / 1e6, begin: clock(from), end: clock(to), length: clock(to - from),
        kind: ["nobody", "owned"][owners.length] || "two",
      };
    });
  };

  /* Each event with its words in the first row that has room for them; in the last row, without, where none has. */
  const marksOf = (picture, width) => {
    const rows = [-Infinity, -Infinity, -Infinity, -Infinity], scale = width / Math.max(1, picture.to - picture.from);
    return picture.marks.map(([at, text]) => {
      const x = (at - picture.from) * scale, needed = 16 + 5.6 * text.length;
      const row = x + needed <= width + 10 ? rows.findIndex((end) => end <= x) : -1;
      if (row >= 0) rows[row] = x + needed;
      return { at_s: at / 1e6, at: clock(at), text, words: row >= 0 ? text : "", row: row >= 0 ? row : rows.length, label: `${text} at ${clock(at)}` };
    });
  };

  /* Without the views that have no data; the last one bears the time axis. A page without any gap has its areas all the same. */
  const specOf = (form, picture, target) => {
    const spec = structuredClone(form), lanes = picture.lanes.length;
    const labels = spec.vconcat.some((view) => view.data.name === "segments")
      ? Math.min(220, Math.max(0, ...picture.lanes.map((name) => name.length)) * 7) : 70;
    const width = Math.max(320, target.clientWidth - labels - 40);
    const datasets = {
      events: marksOf(picture, width), gone: goneOf(picture), lag: lagOf(picture), generations: generationsOf(picture),
      replicas: replicasOf(picture), steps: stepsOf(picture), segments: segmentsOf(picture),
    };
    spec.vconcat = spec.vconcat.filter((view) => view.data.name === "events" || datasets[view.data.name].length);
    spec.datasets = Object.fromEntries(spec.vconcat.map((view) => [view.data.name, datasets[view.data.name]]));
    spec.vconcat.forEach((view, place) => {
      const x = view.encoding.x;
      view.width = width;
      x.scale = { nice: false, domain: [picture.from / 1e6, picture.to / 1e6] };
      x.axis.tickMinStep = ticksOf(picture);
      if (place < spec.vconcat.length - 1) Object.assign(x, { title: null, axis: { ...x.axis, labels: false, ticks: false, domain: false, grid: place > 0 } });
      if (view.encoding.color && view.encoding.color.legend && view.data.name === "gone") view.encoding.color.legend.values = picture.causes.map(([cause]) => cause);
      if (view.data.name === "segments") view.height = lanes * Math.max(6, Math.min(20, Math.floor(680 / lanes)));
    });
    spec.params[0].views = spec.vconcat.map((view) => view.name || view.layer[0].name);
    return spec;
  };

  const chip = (color, text) => {
    const item = document.createElement("span"), box = document.createElement("i");
    box.style.background = color;
    item.append(box, text);
    return item;
  };

  const describe = (picture) => {
    const { left_out: more, whole, causes, lanes } = picture;
    document.getElementById("legend").replaceChildren(...(lanes.length ? [
      ...causes.map(([cause, color]) => chip(color, `nobody: ${cause}`)), chip("var(--alarm)", "two owners"), chip("#c8ced6", "owned; the tone changes with the owner"),
    ] : []));
    document.getElementById("drawn").textContent = causes.length ? picture.caption + columnOf(picture) : `${picture.caption}: each partition had a consumer all the time`;
    document.getElementById("left-out").textContent = [
      lanes.length ? "" : "none",
      more ? `${more} more, which had a consumer for longer, are not drawn` : "",
      whole ? `${whole} partitions had one consumer all the time` : "",
    ].filter(Boolean).join("; ");
  };

  /* What a column of the first chart stands for. */
  const columnOf = ({ from, to, causes }) => causes.length ? `; each column is the worst moment of ${clock(Math.max(1000, Math.round((to - from) / 1e6) * 1000))}` : "";

  const show = (name) => draw(name).catch((error) => { specs[0][0].textContent = `cannot draw: ${error.message}`; });

  const draw = async (name) => {
    const picture = data.variants[name], many = picture.segments.length > mostOfSvg;
    describe(picture);
    for (const [target, form] of specs) {
      target.dataset.variant = name;
      target.hidden = target.id === "lanes" && !picture.lanes.length;
      if (target.hidden) continue;
      await vegaEmbed(target, specOf(form, picture, target), {
        renderer: many && target.id === "lanes" ? "canvas" : "svg", tooltip: { theme: "dark" },
        actions: { export: true, source: false, compiled: false, editor: false },
      });
    }
    for (const [target] of specs) target.dataset.drawn = name;
  };

  const chosen = () => document.querySelector("input[name=variant]:checked").value;
  if (!Object.keys(data.variants).length) return;
  for (const input of document.querySelectorAll("input[name=variant]")) input.addEventListener("change", () => show(input.value));
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => show(chosen()), 200); });
  show(chosen());
})();
