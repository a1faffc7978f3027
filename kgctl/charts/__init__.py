"""Self-contained HTML pages with charts: they open from disk, from a build's artefacts or a pull request, without a network.

The charts are Vega-Lite's, taken from the wheel of ``vl-convert-python`` (the extra ``html``). Looked at and left: Plotly (4.7 MB
of JavaScript in each page, and one SVG path for each stretch of a lane: seconds for 200 partitions), Bokeh (a canvas as well, but
NumPy, Pillow, Tornado and more behind it, and ids that change from run to run), Altair (writes the same charts, and needs this
wheel for pages that work offline). A chart here is a description in JSON, so the same data gives the same bytes.
"""
