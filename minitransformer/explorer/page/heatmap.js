/* Draws one array as a heat map on a canvas that answers to the mouse and to the keyboard.

   Values are blue and gradients orange: the darker, the larger. A negative number has stripes, and in cells that are
   large enough each number is written out. An array of three axes (heads) is drawn as one matrix after the other. */
const Heatmap = (() => {
  "use strict";

  const GAP = 14; // between heads
  const LABEL = 13; // height of the labels of columns
  const FONT = "10px system-ui, sans-serif";
  const drawn = new WeakMap(); // canvas -> {options, draw}

  /* heatmap({name, values, select(flat), enter(), selected, summary(flat), compact, width, what, label, kind}) -> element.
     What is not given is that of the array `name`; `what` its numbers are is read in the label. `compact` is a picture without
     labels and numbers. Another `array` may stand for a part of it. Arrow keys and a click select, and Enter calls `enter`. With open(flat), a click and Enter open instead,
     and without select the arrow keys only move a frame. summary(flat) of a cell is also written to the element `output`. With
     `abreast`, heads stand side by side, even if that makes them small. */
  function heatmap(given) {
    const { name, compact = false, open, array = App.machine.get(name) } = given;
    const { kind = Show.kind(array), what = Strings.legend[kind] } = given;
    const options = { kind, values: given.values ?? App.machine.data(name), summary: (flat) => App.cellSummary(name, flat), ...given };
    options.label ??= Strings.heatmap[compact ? "picture" : "label"](Show.nameText(name), array.shape, what, open);
    const layout = measure(array, options.width ?? 320, compact, options.abreast);
    const canvas = Dom.element("canvas", {
      role: compact ? "img" : "application", tabindex: compact ? null : 0,
      "aria-roledescription": compact ? null : Strings.heatmap.role, class: `heatmap ${kind}`,
      "data-array": name, "data-kind": kind,
    });
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.ceil(layout.width * scale);
    canvas.height = Math.ceil(layout.height * scale);
    canvas.style.width = `${layout.width}px`;
    canvas.style.height = `${layout.height}px`;
    const draw = drawer(canvas, array, layout, options, scale);
    draw(true);
    drawn.set(canvas, { options, draw });
    if (options.select || options.open) listen(canvas, array, layout, options, draw);
    return canvas;
  }

  /* Draw a map with other options; its numbers are painted again only if they are `fresh`. */
  function update(canvas, changes, fresh = false) {
    const { options, draw } = drawn.get(canvas);
    Object.assign(options, changes);
    draw(fresh);
  }

  /* -> draw(fresh). A picture without frames is kept, because painting the numbers takes long. */
  function drawer(canvas, array, layout, options, scale) {
    const context = canvas.getContext("2d");
    let bare = null, framed = false;
    return (fresh = false) => {
      const { kind, label, summary, marked, selected = null } = options;
      canvas.setAttribute("aria-label", (selected === null ? "" : `${summary(selected)}. `) + label);
      const frames = [...(marked ?? []).map((flat) => [flat, "text", 1]), ...(selected === null ? [] : [[selected, "mark", 2.5]])];
      if (fresh) {
        bare = null;
        context.setTransform(scale, 0, 0, scale, 0, 0);
        context.clearRect(0, 0, layout.width, layout.height);
        paint(context, array, layout, options);
      } else if (framed) copy(bare, canvas);
      framed = frames.length > 0;
      if (!framed) return;
      bare ??= copy(canvas, Dom.element("canvas", { width: canvas.width, height: canvas.height }));
      const inks = colors(kind);
      for (const [flat, ink, width] of frames) frame(context, layout, flat, inks[ink], width);
    };
  }

  function copy(from, to) {
    const context = to.getContext("2d");
    context.save();
    context.resetTransform();
    context.clearRect(0, 0, to.width, to.height);
    context.drawImage(from, 0, 0);
    context.restore();
    return to;
  }

  /* Where everything is: sizes of cells, and the place of each head. */
  function measure({ shape }, width, compact, oneRow) {
    const heads = shape.length === 3 ? shape[0] : 1;
    const columns = shape.length ? shape.at(-1) : 1;
    const rows = shape.length >= 2 ? shape.at(-2) : 1;
    const left = compact ? 0 : 40;
    const room = ((oneRow ? (width + GAP) / heads - GAP : width) - left) / columns;
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
      numbers: !compact && cellWidth >= 27 && cellHeight >= 14,
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
    return { ink: read(`--${kind}-ink`), paper: read("--cell"), text: read("--text"), faint: read("--faint"), mark: read("--mark") };
  }

  /* Black or white, whichever has more contrast with `alpha` of one color over another: 4.5 or more. */
  function readable(above, below, alpha) {
    const luminance = [0.2126, 0.7152, 0.0722].reduce((sum, weight, n) => {
      const [a, b] = [above, below].map((color) => parseInt(color.slice(1 + 2 * n, 3 + 2 * n), 16) / 255);
      const mixed = alpha * a + (1 - alpha) * b;
      return sum + weight * (mixed <= 0.04045 ? mixed / 12.92 : ((mixed + 0.055) / 1.055) ** 2.4);
    }, 0);
    return luminance > 0.179 ? "#000" : "#fff";
  }

  function paint(context, array, layout, { values, kind, compact, largest }) {
    const { ink, paper, text, faint, mark } = colors(kind);
    const { cellWidth, cellHeight, numbers } = layout;
    let most = largest ?? 0;
    if (largest === undefined && App.machine.isRounding(array.name)) most = Infinity; // no color for what is 0 in truth
    else if (largest === undefined) for (const value of values) if (Math.abs(value) > most) most = Math.abs(value);
    context.font = FONT;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (let flat = 0; flat < values.length; flat++) {
      const [x, y] = corner(layout, flat);
      const value = values[flat];
      const strength = most > 0 ? Math.min(1, Math.abs(value) / most) : 0;
      const [color, alpha] = Number.isFinite(value) ? [ink, Math.sqrt(strength)] : [mark, 1];
      const fill = (...rectangle) => {
        context.fillStyle = paper;
        context.fillRect(...rectangle);
        context.globalAlpha = alpha;
        context.fillStyle = color;
        context.fillRect(...rectangle);
        context.globalAlpha = 1;
      };
      fill(x, y, cellWidth, cellHeight);
      if (value < 0 && cellWidth >= 7 && cellHeight >= 5) stripes(context, x, y, cellWidth, cellHeight, paper);
      if (numbers) {
        if (value < 0) fill(x + 1, y + 4, cellWidth - 2, cellHeight - 8); // no stripes behind the number
        context.fillStyle = readable(color, paper, alpha);
        context.fillText(cellNumber(value), x + cellWidth / 2, y + cellHeight / 2 + 0.5, cellWidth - 4);
      }
    }
    if (!compact) {
      if (cellWidth >= 5) grid(context, layout, faint);
      if (layout.labels) labels(context, array, layout, text);
    }
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

  function cellNumber(value) {
    const size = Math.abs(value);
    if (Number.isInteger(value) || !(size < 1000)) return Show.number(value);
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
      for (let column = 0, free = -Infinity; column < columns && axes; column++) {
        const [label, x] = [App.label(array, axes - 1, column, true), x0 + (column + 0.5) * cellWidth];
        const half = context.measureText(label).width / 2;
        if (x - half < free) continue; // it would run into the label before it
        context.fillText(label, x, y0 - top / 2);
        free = x + half + 1;
      }
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

  /* `options.selected` is the framed cell; draw() paints it. */
  function listen(canvas, array, layout, options, draw) {
    const { select, open = select, enter, output, summary } = options;
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
      const next = flat === null ? 0 : flat + moves[event.key];
      if (event.key === "Home") move(0);
      else if (event.key === "End") move(last);
      else if (event.key in moves) move(next >= 0 && next <= last ? next : flat);
      else if (options.open) open(flat ?? 0);
      else if (flat === null) select(0);
      else enter?.();
    });
  }

  return { heatmap, update };
})();
