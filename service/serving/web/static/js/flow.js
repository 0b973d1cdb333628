/** How many labels came in, and how many of them found a mistake. */

import { bottomAxis, countAxis, figure, frame, timeFormat } from "./chart.js";
import { s } from "./dom.js";
import { count, pluralize, moment } from "./format.js";

/** @param {any[]} flow @param {number} width */
export function flowView(flow, width) {
  const sum = (/** @type {"correct" | "incorrect"} */ kind) => flow.reduce((total, bin) => total + bin[kind], 0);
  const [correct, incorrect] = [sum("correct"), sum("incorrect")];
  const words = {
    title: "Labels over time",
    heading: "h3",
    note: `${pluralize(correct + incorrect, "label")}: ${count(correct)} correct (plain), ${count(incorrect)} incorrect (hatched)`,
  };
  if (!flow.length) return figure(frame(width, 30), { ...words, label: "No labels", note: "No labels yet." });
  const of = frame(width, 170);
  const [begin, end] = [flow[0].begin, flow[flow.length - 1].end];
  const x = d3.scaleTime([new Date(begin * 1000), new Date(end * 1000)], [of.left, of.right]);
  const most = Math.max(1, ...flow.map((bin) => bin.correct + bin.incorrect));
  const y = d3.scaleLinear([0, most], [of.bottom, of.top]).nice(4);
  return figure(
    of,
    { ...words, label: `Labels from ${moment(begin)} to ${moment(end)}: ${words.note}` },
    s(
      "defs",
      {},
      s(
        "pattern",
        { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        s("rect", { class: "ground", width: 5, height: 5 }),
        s("line", { class: "stroke", x1: 0, y1: 0, x2: 0, y2: 5 }),
      ),
    ),
    countAxis(y, of),
    bottomAxis(x, of, timeFormat(end - begin)),
    flow.map((bin) => {
      const left = x(bin.begin * 1000) + 0.75;
      const size = { x: left, width: Math.max(0.5, x(bin.end * 1000) - left - 0.75) };
      const [top, middle] = [y(bin.correct + bin.incorrect), y(bin.correct)];
      const title = `${moment(bin.begin)}: ${count(bin.correct)} correct, ${count(bin.incorrect)} incorrect`;
      return s(
        "g",
        { class: "flow" },
        s("title", {}, title),
        s("rect", { class: "correct", ...size, y: middle, height: y(0) - middle }),
        s("rect", { class: "incorrect", ...size, y: top, height: middle - top }),
      );
    }),
  );
}
