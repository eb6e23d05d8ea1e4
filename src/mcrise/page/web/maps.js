// Maps in the browser: unpacking, coloring, and reading values off them. The report uses it too.

const FAINT = 0.25, STRONG = 0.9; // opacity below and above two standard errors, as in plots.py

/** What `mcrise.report.pack` wrote: its header, and `at(k, pixel)` giving [value, error]. */
export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const maps = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const n = maps.shape[0] * maps.shape[1] * maps.shape[2];
  const values = new Int16Array(buffer, 4 + length, n);
  const errors = new Uint16Array(buffer, 4 + length + 2 * n, n);
  const size = maps.shape[1] * maps.shape[2];
  maps.at = (k, pixel) => [
    values[k * size + pixel] * maps.step, errors[k * size + pixel] * maps.se_step,
  ];
  return maps;
}

/** The pixels of a picture in gray, lifted so that colors stay visible over it. */
export function lifted(pixels) {
  const gray = new Float32Array(pixels.length / 4);
  for (let i = 0; i < gray.length; i++) {
    const luma = 0.299 * pixels[4 * i] + 0.587 * pixels[4 * i + 1] + 0.114 * pixels[4 * i + 2];
    gray[i] = 0.35 * 255 + 0.65 * luma;
  }
  return gray;
}

/** The color of a share 0..1 of the way along a scale. */
export function colorAt(stops, share) {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return [0, 1, 2].map((c) => stops[low][c] + (place - low) * (stops[low + 1][c] - stops[low][c]));
}

/** Draw map k over a gray picture; `strength` 0 shows the picture alone, in its colors. */
export function drawMap(canvas, maps, k, scale, gray, pixels, strength) {
  const [, height, width] = maps.shape;
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const table = Array.from({ length: 256 }, (_, i) => colorAt(maps.stops, i / 255));
  const image = new ImageData(width, height);
  const out = image.data, range = scale.high - scale.low;
  for (let i = 0; i < gray.length; i++) {
    const [value, error] = maps.at(k, i);
    const size = Math.abs(value);
    let opacity = STRONG;
    if (maps.diverging) {
      // Near zero the map is white: let the picture through there, so that one sees what is where.
      opacity = (size >= 2 * error ? STRONG : FAINT)
        * Math.min(Math.max(size / (0.25 * scale.high), 0.35), 1);
    }
    const share = Math.min(Math.max((value - scale.low) / range, 0), 1);
    const color = table[Math.round(255 * share)];
    for (let c = 0; c < 3; c++) {
      const mixed = opacity * color[c] + (1 - opacity) * gray[i];
      out[4 * i + c] = strength * mixed + (1 - strength) * pixels[4 * i + c];
    }
    out[4 * i + 3] = 255;
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

/** One scale for several maps. */
export function sharedScale(rows) {
  return {
    low: Math.min(...rows.map((maps) => maps.low)), high: Math.max(...rows.map((maps) => maps.high)),
  };
}

export function signed(value, digits = 4) {
  return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(digits);
}

/** An element with a class and text; text is never read as HTML. */
export function element(tag, name = "", text = "") {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.textContent = text;
  return made;
}

/** Value and error of every color at one pixel, as small bars. */
export function drawBars(place, maps, scale, swatches, row, column) {
  const pixel = row * maps.shape[2] + column;
  const span = Math.max(Math.abs(scale.low), Math.abs(scale.high)) * (maps.diverging ? 2 : 1);
  const zero = maps.diverging ? 0.5 : 0;
  const lines = [element("div", "head", `${maps.label}: row ${row}, column ${column}`)];
  maps.names.forEach((name, k) => {
    const [value, error] = maps.at(k, pixel);
    const line = element("div", "bar");
    const swatch = element("span", swatches[k] ? "swatch" : "");
    if (swatches[k]) swatch.style.background = swatches[k];
    const track = element("div", "track");
    const bar = element("i", value < 0 ? "value low" : "value");
    between(bar, zero + Math.min(value, 0) / span, zero + Math.max(value, 0) / span);
    const whisker = element("i", "error");
    between(whisker, zero + (value - error) / span, zero + (value + error) / span);
    const middle = element("i", "zero");
    middle.style.left = `${100 * zero}%`;
    track.append(bar, whisker, middle);
    const number = element("span", "number", `${signed(value)} ± ${error.toFixed(4)}`);
    line.append(swatch, element("span", "name", name), track, number);
    lines.push(line);
  });
  place.replaceChildren(...lines);
}

function between(bar, low, high) {
  const [left, right] = [low, high].map((share) => Math.min(Math.max(share, 0), 1));
  bar.style.left = `${100 * left}%`;
  bar.style.width = `${100 * (right - left)}%`;
}

export function drawScale(place, maps, scale) {
  const canvas = element("canvas");
  canvas.width = 256;
  canvas.height = 1;
  const context = canvas.getContext("2d");
  for (let i = 0; i < 256; i++) {
    context.fillStyle = `rgb(${colorAt(maps.stops, i / 255).map(Math.round).join(" ")})`;
    context.fillRect(i, 0, 1, 1);
  }
  const ends = element("div");
  const digits = scale.high < 0.01 ? 4 : 3;
  ends.append(element("span", "", maps.diverging ? signed(scale.low, digits) : scale.low.toFixed(digits)),
    element("span", "", maps.unit),
    element("span", "", maps.diverging ? signed(scale.high, digits) : scale.high.toFixed(digits)));
  place.replaceChildren(canvas, ends);
}

/** Two canvases on top of each other: one for pixels, one for marks. */
export function makeView(place, label) {
  const picture = element("canvas"), marks = element("canvas");
  picture.tabIndex = 0;
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", label);
  marks.setAttribute("aria-hidden", "true");
  place.replaceChildren(picture, marks);
  return { picture, marks };
}

/** Outline a region, given as runs of pixels outside and inside, and the pixel under the pointer. */
export function mark(view, runs, point) {
  const { picture, marks } = view, zoom = Math.max(1, Math.round(768 / picture.width));
  marks.width = zoom * picture.width;
  marks.height = zoom * picture.height;
  const context = marks.getContext("2d");
  if (runs) {
    const width = picture.width, inside = new Uint8Array(width * picture.height);
    let at = 0;
    runs.forEach((n, i) => { inside.fill(i % 2, at, at + n); at += n; });
    const path = new Path2D();
    const is = (row, column) => row >= 0 && row < picture.height && column >= 0 && column < width
      && inside[row * width + column] === 1;
    for (let row = 0; row <= picture.height; row++) {
      for (let column = 0; column <= width; column++) {
        const [x, y] = [zoom * column, zoom * row];
        if (is(row, column) !== is(row - 1, column)) { path.moveTo(x, y); path.lineTo(x + zoom, y); }
        if (is(row, column) !== is(row, column - 1)) { path.moveTo(x, y); path.lineTo(x, y + zoom); }
      }
    }
    for (const [color, wide] of [["#000", 7], ["#fff", 3]]) {
      context.strokeStyle = color;
      context.lineWidth = wide;
      context.lineCap = "round";
      context.stroke(path);
    }
  }
  if (point) {
    const [x, y] = [zoom * (point.column + 0.5), zoom * (point.row + 0.5)];
    for (const [color, wide] of [["#000", 4], ["#fff", 2]]) {
      context.strokeStyle = color;
      context.lineWidth = wide;
      context.beginPath();
      context.arc(x, y, 9, 0, 7);
      context.stroke();
    }
  }
}

/** Call `moved` with the pixel under the pointer, or that the arrow keys lead to. */
export function track(canvas, moved) {
  let here = null; // keys start from the middle
  const go = (row, column, event) => {
    here = {
      row: Math.min(Math.max(row, 0), canvas.height - 1),
      column: Math.min(Math.max(column, 0), canvas.width - 1),
    };
    moved(here, event);
  };
  const follow = (event) => {
    const box = canvas.getBoundingClientRect();
    go(Math.floor((event.clientY - box.top) / box.height * canvas.height),
      Math.floor((event.clientX - box.left) / box.width * canvas.width), event);
  };
  canvas.addEventListener("pointermove", follow);
  canvas.addEventListener("pointerdown", follow);
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], " ": [0, 0] };
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    const reach = event.shiftKey ? 1 : Math.max(1, Math.round(canvas.width / 32));
    const [down, across] = steps[event.key];
    const from = here ?? { row: canvas.height >> 1, column: canvas.width >> 1 };
    go(from.row + reach * down, from.column + reach * across, event);
  });
}
