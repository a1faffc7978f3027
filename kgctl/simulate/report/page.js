"use strict";
/* Draws the chosen variant: makes records of the compact data, gives them to the charts, fills in the legend. */
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const chart = JSON.parse(document.getElementById("chart").textContent);
  const target = document.getElementById("figure");
  const mostOfSvg = 4000; // beyond that a canvas is drawn: quicker, and without a name for each stretch

  const clock = (us) => {
    const all = Math.abs(us) / 1e6, hours = Math.floor(all / 3600), minutes = Math.floor(all / 60) % 60;
    const seconds = Math.round((all % 60) * 1000) / 1000;
    const parts = [hours ? hours + "h" : "", minutes ? minutes + "m" : ""].filter(Boolean);
    if (seconds || !parts.length) parts.push(seconds + "s");
    return (us < 0 ? "-" : "") + parts.join(" ");
  };

  /* Eight hues a golden angle apart, then eight between them that are darker, then eight that are lighter. */
  const colorOf = (index) => {
    const hue = (210 + index * 137.508) % 360, band = Math.floor(index / 8) % 3;
    return `hsl(${hue.toFixed(0)} ${[52, 42, 55][band]}% ${[74, 54, 87][band]}%)`;
  };

  /* Round times, some twelve of them. */
  const ticksOf = ({ from, to }) => {
    const steps = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400];
    return steps.find((step) => (to - from) / 1e6 / step <= 14) || 604800;
  };

  const segmentOf = (picture, [lane, from, to, cause, ...owners]) => {
    const partition = picture.lanes[lane], why = picture.causes[cause];
    const owner = owners.length ? owners.map((each) => picture.owners[each]).join(" and ") : "nobody";
    const label = `${partition}: ${owner}${why ? `, ${why}` : ""}, ${clock(from)} to ${clock(to)}`;
    return {
      lane: partition, partition, owner, cause: why || "-", label,
      from: from / 1e6, to: to / 1e6, begin: clock(from), end: clock(to), length: clock(to - from),
      kind: ["nobody", "owned"][owners.length] || "two", color: owners.length ? colorOf(owners[0]) : "",
    };
  };

  const lagOf = (picture) => picture.lag.flatMap(({ topic, points }) =>
    points.map(([at, lag]) => ({ topic, at_s: at / 1e6, lag })));

  /* A line that holds its last value to the end. */
  const replicasOf = (picture) => picture.replicas.flatMap(({ what, points }) =>
    [...points, [picture.to, points.length ? points[points.length - 1][1] : 0]].map(([at, pods]) => ({ what, at_s: at / 1e6, pods })));

  /* Each event with its words in the first row that has room for them; in the last row, without, where none has. */
  const marksOf = (picture, width) => {
    const rows = [-Infinity, -Infinity, -Infinity, -Infinity], scale = width / Math.max(1, picture.to - picture.from);
    return picture.marks.map(([at, text]) => {
      const x = (at - picture.from) * scale, needed = 16 + 5.6 * text.length;
      const row = x + needed <= width + 40 ? rows.findIndex((end) => end <= x) : -1;
      if (row >= 0) rows[row] = x + needed;
      return { at_s: at / 1e6, at: clock(at), text, words: row >= 0 ? text : "", row: row >= 0 ? row : rows.length, label: `${text} at ${clock(at)}` };
    });
  };

  const specOf = (picture) => {
    const spec = structuredClone(chart), lanes = picture.lanes.length;
    const lag = lagOf(picture), replicas = replicasOf(picture);
    if (!lag.length) { // then the lanes bear the time axis
      const { axis, title } = spec.vconcat.pop().encoding.x;
      Object.assign(spec.vconcat[2].encoding.x, { axis, title });
    }
    if (!replicas.length) spec.vconcat.splice(1, 1);
    spec.params[0].views = ["events", ...(replicas.length ? ["replicas"] : []), "lanes", ...(lag.length ? ["lag"] : [])];
    const labels = Math.min(220, Math.max(...picture.lanes.map((name) => name.length)) * 7);
    for (const view of spec.vconcat) {
      view.width = Math.max(320, target.clientWidth - labels - 40);
      if (view.encoding.x.axis.tickCount) view.encoding.x.axis.tickMinStep = ticksOf(picture);
      view.encoding.x.scale = { nice: false, domain: [picture.from / 1e6, picture.to / 1e6] };
    }
    spec.vconcat[replicas.length ? 2 : 1].height = lanes * Math.max(3, Math.min(20, Math.floor(680 / lanes)));
    spec.datasets = {
      events: marksOf(picture, spec.vconcat[0].width), segments: picture.segments.map((row) => segmentOf(picture, row)), lag, replicas,
    };
    return spec;
  };

  const chip = (color, text) => {
    const item = document.createElement("span"), box = document.createElement("i");
    box.style.background = color;
    item.append(box, text);
    return item;
  };

  const describe = (picture) => {
    const legend = document.getElementById("legend"), more = picture.left_out;
    legend.replaceChildren(chip("var(--dark)", "nobody"), chip("var(--alarm)", "two owners"),
      ...picture.owners.slice(0, 60).map((owner, index) => chip(colorOf(index), owner)));
    document.getElementById("drawn").textContent = picture.caption +
      (more ? `; ${more} more partitions, with shorter gaps, are not drawn` : "");
  };

  const show = (name) => draw(name).catch((error) => { target.textContent = `cannot draw: ${error.message}`; });

  const draw = async (name) => {
    const picture = data.variants[name], many = picture.segments.length > mostOfSvg;
    describe(picture);
    target.dataset.variant = name;
    await vegaEmbed(target, specOf(picture), {
      renderer: many ? "canvas" : "svg", tooltip: { theme: "dark" },
      actions: { export: true, source: false, compiled: false, editor: false },
    });
    target.dataset.drawn = name;
  };

  const chosen = () => document.querySelector("input[name=variant]:checked").value;
  if (!Object.keys(data.variants).length) return;
  for (const input of document.querySelectorAll("input[name=variant]")) input.addEventListener("change", () => show(input.value));
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => show(chosen()), 200); });
  show(chosen());
})();
