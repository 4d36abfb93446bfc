// Lesson 24: ten steps of descent in a steep valley and in a flat one, with a slider for the rate that both must share.
// It takes the place of the lesson's figure, which stays where there are no scripts, and in print.
"use strict";

(() => {
  const STEPS = 10;
  const VALLEYS = [{ name: "steep: λ", curvature: 1 }, { name: "flat: λ/10", curvature: 0.1 }];
  const WIDTH = 260, HEIGHT = 120, EDGE = 1.3, TOP = 0.7; // pixels, and the largest θ and loss that are in sight

  /* Where descent is after each step: θ ← (1 − rate · curvature) θ, from 1. */
  const descend = (rate, curvature) => {
    const places = [1];
    for (let step = 0; step < STEPS; step++) places.push((1 - rate * curvature) * places[step]);
    return places;
  };

  const x = (theta) => ((theta + EDGE) / (2 * EDGE)) * WIDTH;
  const y = (loss) => HEIGHT - 8 - (loss / TOP) * (HEIGHT - 16);
  const point = (theta, curvature) => [x(theta), y((curvature * theta * theta) / 2)];
  const digits = (share) => share.toPrecision(2).replace(/e([+-])(\d+)/, (_, sign, power) => ` · 10^${sign === "-" ? "−" : ""}${power}`);

  const svg = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  const draw = ({ drawing, curvature, name }, rate) => {
    const places = descend(rate, curvature);
    const far = places.findIndex((theta) => Math.abs(theta) > EDGE);
    const seen = far < 0 ? places : places.slice(0, far);
    const curve = Array.from({ length: 53 }, (_, i) => point(-EDGE + i * 0.05, curvature));
    const steps = seen.map((theta) => point(theta, curvature));
    const line = (points) => points.map((place) => place.map((number) => number.toFixed(1)).join(",")).join(" ");
    drawing.replaceChildren(
      svg("polyline", { class: "curve", points: line(curve) }),
      svg("polyline", { class: "path", points: line(steps) }),
      ...steps.map(([cx, cy], i) => svg("circle", { cx, cy, r: i ? 3 : 5 })),
    );
    const left = Math.abs(places[STEPS]);
    const said = far < 0 ? `${digits(left)} of the way left after ${STEPS} steps` : `out of the picture in step ${far}`;
    drawing.setAttribute("aria-label", `${name}: ${said}`);
    return said;
  };

  const build = (figure) => {
    const box = document.createElement("div");
    box.className = "valley";
    box.innerHTML =
      '<div class="panels"></div><label>Learning rate, in units of 1/λ: <output></output>' +
      '<input type="range" min="0.05" max="2.3" step="0.05" value="1.5"></label>';
    const [output, slider] = [box.querySelector("output"), box.querySelector("input")];
    const panels = VALLEYS.map((valley) => {
      const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
      const caption = document.createElement("figcaption");
      const panel = document.createElement("figure");
      panel.append(drawing, caption);
      box.querySelector(".panels").append(panel);
      return { ...valley, drawing, caption };
    });
    const show = () => {
      const rate = Number(slider.value);
      output.textContent = rate.toFixed(2);
      for (const panel of panels) panel.caption.textContent = `${panel.name}, ${draw(panel, rate)}`;
    };
    slider.addEventListener("input", show);
    show();
    figure.before(box);
    figure.classList.add("drawn-instead");
  };

  addEventListener("DOMContentLoaded", () => {
    const image = document.querySelector('article img[src*="24_sharpness_valley"]');
    if (image) build(image.closest("p, figure, a.figure") ?? image);
  });
})();
