/* Draws one array as a heat map on a canvas that answers to the mouse and to the keyboard.

   Values are blue and gradients orange: the darker, the larger. A negative number has stripes, and in cells that are
   large enough each number is written out. An array of three axes (heads) is drawn as one matrix after the other. */
const Heatmap = (() => {
  "use strict";

  const GAP = 14; // between heads
  const LABEL = 13; // height of the labels of columns
  const FONT = "10px system-ui, sans-serif";

  /* heatmap({name, values, select(flat), selected, compact, width, label, kind}) -> element. `compact` is a picture
     without labels and numbers. With open(flat) instead of select, arrow keys only move a frame, and Enter or a click
     opens; summary(flat) is the text of a cell, which is also written to the element `output`. */
  function heatmap(options) {
    const { name, values, compact = false, kind = "value" } = options;
    const array = App.machine.get(name);
    const layout = measure(array, options.width ?? 320, compact);
    const canvas = Dom.element("canvas", {
      role: compact ? "img" : "application", "aria-label": options.label, tabindex: compact ? null : 0,
      "aria-roledescription": compact ? null : Strings.heatmap.role, class: `heatmap ${kind}`,
      "data-array": name, "data-kind": kind,
    });
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.ceil(layout.width * scale);
    canvas.height = Math.ceil(layout.height * scale);
    canvas.style.width = `${layout.width}px`;
    canvas.style.height = `${layout.height}px`;
    const draw = () => {
      const context = canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.clearRect(0, 0, layout.width, layout.height);
      paint(context, array, values, layout, options);
    };
    draw();
    if (options.select || options.open) listen(canvas, array, layout, options, draw);
    return canvas;
  }

  /* Where everything is: sizes of cells, and the place of each head. */
  function measure({ shape }, width, compact) {
    const heads = shape.length === 3 ? shape[0] : 1;
    const columns = shape.length ? shape.at(-1) : 1;
    const rows = shape.length >= 2 ? shape.at(-2) : 1;
    const left = compact ? 0 : 40;
    const room = (width - left) / columns;
    const cellWidth = compact ? Math.min(12, room) : Math.max(2, Math.min(42, Math.floor(room * 2) / 2));
    const cellHeight = compact ? Math.max(2, Math.min(cellWidth, 8)) : Math.min(22, Math.max(2, cellWidth));
    const labels = !compact && cellWidth >= 9;
    const top = labels ? LABEL : 0;
    const gap = compact ? 3 : GAP;
    const headLabel = !compact && heads > 1 ? LABEL : 0;
    const blockWidth = left + columns * cellWidth + gap;
    const blockHeight = headLabel + top + rows * cellHeight + gap;
    const abreast = compact ? 1 : Math.max(1, Math.min(heads, Math.floor((width + gap) / blockWidth)));
    return {
      heads, rows, columns, left, cellWidth, cellHeight, labels, top, headLabel, abreast, blockWidth, blockHeight,
      numbers: !compact && cellWidth >= 32 && cellHeight >= 14,
      width: abreast * blockWidth - gap + 1,
      height: Math.ceil(heads / abreast) * blockHeight - gap + 1,
    };
  }

  const blockAt = ({ abreast, blockWidth, blockHeight }, head) => [(head % abreast) * blockWidth, Math.floor(head / abreast) * blockHeight];

  /* The corner of a cell. */
  function corner(layout, flat) {
    const { rows, columns, cellWidth, cellHeight, left, top, headLabel } = layout;
    const column = flat % columns;
    const row = Math.floor(flat / columns) % rows;
    const [x0, y0] = blockAt(layout, Math.floor(flat / (rows * columns)));
    return [x0 + left + column * cellWidth, y0 + headLabel + top + row * cellHeight];
  }

  function colors(kind) {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return { ink: read(`--${kind}-ink`), paper: read("--cell"), text: read("--text"), faint: read("--faint"), mark: read("--mark"), inverse: read("--inverse") };
  }

  function paint(context, array, values, layout, { kind = "value", selected, marked, compact, largest }) {
    const { ink, paper, text, faint, mark, inverse } = colors(kind);
    const { cellWidth, cellHeight, numbers } = layout;
    let most = largest ?? 0;
    if (largest === undefined) for (const value of values) if (Math.abs(value) > most) most = Math.abs(value);
    context.font = FONT;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let flat = 0; flat < values.length; flat++) {
      const [x, y] = corner(layout, flat);
      const value = values[flat];
      const strength = most > 0 ? Math.min(1, Math.abs(value) / most) : 0;
      context.fillStyle = paper;
      context.fillRect(x, y, cellWidth, cellHeight);
      context.globalAlpha = Number.isFinite(value) ? Math.sqrt(strength) * 0.92 : 1;
      context.fillStyle = Number.isFinite(value) ? ink : mark;
      context.fillRect(x, y, cellWidth, cellHeight);
      context.globalAlpha = 1;
      if (value < 0 && cellWidth >= 7 && cellHeight >= 5) stripes(context, x, y, cellWidth, cellHeight, paper);
      if (numbers) {
        context.fillStyle = Math.sqrt(strength) > 0.6 ? inverse : text;
        if (value < 0 && Math.sqrt(strength) > 0.6) plate(context, x, y, cellWidth, cellHeight, ink);
        context.fillText(cellNumber(value), x + cellWidth / 2, y + cellHeight / 2 + 0.5);
      }
    }
    if (!compact) {
      if (cellWidth >= 5) grid(context, layout, faint);
      if (layout.labels) labels(context, array, layout, text);
    }
    for (const flat of marked ?? []) frame(context, layout, flat, text, 1);
    if (selected !== undefined && selected !== null) frame(context, layout, selected, mark, 2.5);
  }

  function stripes(context, x, y, width, height, color) {
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.strokeStyle = color;
    context.globalAlpha = 0.55;
    context.lineWidth = 1;
    context.beginPath();
    for (let at = -height; at < width; at += 5) {
      context.moveTo(x + at, y + height);
      context.lineTo(x + at + height, y);
    }
    context.stroke();
    context.restore();
  }

  /* Behind a number on dark stripes, so that it can be read. */
  function plate(context, x, y, width, height, ink) {
    const before = context.fillStyle;
    context.fillStyle = ink;
    context.fillRect(x + 2, y + 4, width - 4, height - 8);
    context.fillStyle = before;
  }

  function cellNumber(value) {
    const size = Math.abs(value);
    if (size === 0 || Number.isInteger(value)) return Show.number(value);
    if (!Number.isFinite(value) || size >= 1000) return Show.number(value);
    if (size >= 0.01) return (value < 0 ? "−" : "") + size.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
    return (value < 0 ? "−" : "") + size.toExponential(0).replace("e-", "e−");
  }

  function grid(context, layout, color) {
    const { rows, columns, cellWidth, cellHeight } = layout;
    context.strokeStyle = color;
    context.lineWidth = 0.5;
    context.beginPath();
    for (let head = 0; head < layout.heads; head++) {
      const [x0, y0] = corner(layout, head * rows * columns);
      for (let row = 0; row <= rows; row++) {
        context.moveTo(x0, y0 + row * cellHeight + 0.5);
        context.lineTo(x0 + columns * cellWidth, y0 + row * cellHeight + 0.5);
      }
      for (let column = 0; column <= columns; column++) {
        context.moveTo(x0 + column * cellWidth + 0.5, y0);
        context.lineTo(x0 + column * cellWidth + 0.5, y0 + rows * cellHeight);
      }
    }
    context.stroke();
  }

  function labels(context, array, layout, color) {
    const { rows, columns, top, headLabel, cellWidth, cellHeight } = layout;
    const axes = array.shape.length;
    context.fillStyle = color;
    for (let head = 0; head < layout.heads; head++) {
      const [x0, y0] = corner(layout, head * rows * columns);
      context.textAlign = "left";
      if (headLabel) context.fillText(Strings.heatmap.head(head), x0, y0 - top - headLabel / 2);
      context.textAlign = "center";
      for (let column = 0; column < columns && axes; column++)
        context.fillText(App.label(array, axes - 1, column, true), x0 + (column + 0.5) * cellWidth, y0 - top / 2);
      context.textAlign = "right";
      for (let row = 0; row < rows && axes >= 2 && cellHeight >= 9; row++)
        context.fillText(App.label(array, axes - 2, row, true), x0 - 3, y0 + (row + 0.5) * cellHeight);
    }
    context.textAlign = "center";
  }

  function frame(context, layout, flat, color, width) {
    const [x, y] = corner(layout, flat);
    context.strokeStyle = color;
    context.lineWidth = width;
    context.strokeRect(x + 0.5, y + 0.5, layout.cellWidth, layout.cellHeight);
  }

  /* The cell at a place on the canvas, or null. */
  function cellAt(layout, { offsetX, offsetY }) {
    const { rows, columns, cellWidth, cellHeight, abreast, blockWidth, blockHeight } = layout;
    const head = Math.floor(offsetY / blockHeight) * abreast + Math.floor(offsetX / blockWidth);
    if (head < 0 || head >= layout.heads) return null;
    const [x0, y0] = corner(layout, head * rows * columns);
    const [column, row] = [Math.floor((offsetX - x0) / cellWidth), Math.floor((offsetY - y0) / cellHeight)];
    return column < 0 || column >= columns || row < 0 || row >= rows ? null : (head * rows + row) * columns + column;
  }

  function listen(canvas, array, layout, options, draw) {
    const { select, open = select, output, summary = (flat) => App.cellSummary(array.name, flat) } = options;
    const say = (flat) => {
      if (output) output.textContent = summary(flat);
    };
    const move = (flat) => {
      if (select) return select(flat);
      options.selected = flat;
      say(flat);
      return draw();
    };
    canvas.addEventListener("click", (event) => {
      const flat = cellAt(layout, event);
      if (flat !== null) open(flat);
    });
    canvas.addEventListener("pointermove", (event) => {
      const flat = cellAt(layout, event);
      canvas.style.cursor = flat === null ? "default" : "pointer";
      canvas.title = flat === null ? "" : summary(flat);
      if (flat !== null) say(flat);
    });
    canvas.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -layout.columns, ArrowDown: layout.columns };
      const last = array.size - 1;
      const flat = options.selected ?? null;
      if (![...Object.keys(moves), "Home", "End", "Enter", " "].includes(event.key)) return;
      event.preventDefault();
      if (event.key === "Enter" || event.key === " ") open(flat ?? 0);
      else if (event.key === "Home") move(0);
      else if (event.key === "End") move(last);
      else if (event.key in moves) move(flat === null ? 0 : Math.max(0, Math.min(last, flat + moves[event.key])));
    });
  }

  return { heatmap };
})();
