"use strict";
/* Draws the charts as wide as the page is. */
(() => {
  const spec = JSON.parse(document.getElementById("chart").textContent);
  const target = document.getElementById("figure");
  for (const view of spec.vconcat) view.width = Math.max(320, target.clientWidth - 320);
  vegaEmbed(target, spec, { actions: false, renderer: "svg" }).then(() => { target.dataset.drawn = "yes"; });
})();
