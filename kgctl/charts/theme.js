"use strict";
/* Charts in the colours of a dark page, where the reader wants one; drawn again when that changes. */
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)"), embed = window.vegaEmbed;
  const inks = { "#1d2430": "#c3cad5", "#5b6472": "#9aa4b2", "#e7eaee": "#2a323e", "#c8ced6": "#4a5463", "#e1e5ea": "#323a47" };
  const inDark = (spec) => {
    const { datasets, data, ...looks } = spec;
    const text = JSON.stringify(looks).replace(/#(1d2430|5b6472|e7eaee|c8ced6|e1e5ea)\b/g, (ink) => inks[ink]);
    return { ...JSON.parse(text), ...(datasets && { datasets }), ...(data && { data }) };
  };
  window.vegaEmbed = (target, spec, options) => {
    const element = typeof target === "string" ? document.querySelector(target) : target;
    if (element) element.dataset.theme = dark.matches ? "dark" : "light";
    return embed(target, dark.matches ? inDark(spec) : spec, options);
  };
  dark.addEventListener("change", () => dispatchEvent(new Event("resize")));
})();
