// Pictures on the page: the landscape that is there in the beginning, files of the visitor, and
// answers of the server.

/** Longest side of what is sent. */
const MOST = 960;
/** Bytes above which a photograph is sent as JPEG. */
const MOST_BYTES = 900_000;

/** A number in [0, 1) for a number, always the same. */
function chance(n) {
  const x = Math.sin(n * 127.1 + 311.7) * 43758.5453;
  return x - Math.floor(x);
}

/** A line of hills: smooth noise of a few octaves, about -1 to 1. */
function ridge(x, seed) {
  let [sum, height, width] = [0, 1, 1];
  for (let octave = 0; octave < 5; octave++) {
    const at = x * width + seed * 17 + octave * 5;
    const whole = Math.floor(at);
    const part = at - whole;
    const smooth = part * part * (3 - 2 * part);
    sum += height * (chance(whole) * (1 - smooth) + chance(whole + 1) * smooth - 0.5);
    height *= 0.5;
    width *= 2.1;
  }
  return sum;
}

const mix = (a, b, t) => a.map((value, i) => value + (b[i] - value) * t);

/** Hills: where they lie, how high they are, how wide, and their colour, from far to near. */
const HILLS = [
  [0.52, 0.12, 3.2, [150, 120, 150]],
  [0.57, 0.1, 4.1, [108, 92, 132]],
  [0.62, 0.09, 5.3, [70, 72, 110]],
  [0.655, 0.05, 8, [38, 54, 82]],
];
const LAKE = 0.68;
const SUN = [0.66, 0.4];

/** The colour of the land above the lake, at x and y from 0 to 1. */
function land(x, y, aspect, sun = 1) {
  for (const [at, high, wide, colour] of HILLS.toReversed()) {
    const seed = HILLS.findIndex((hill) => hill[0] === at) + 1;
    const top = at - high * ridge(x * wide, seed);
    if (y > top) return mix(colour, [255, 190, 150], Math.max(0, 0.22 - (y - top) * 1.6));
  }
  const sky = y < 0.3 ? mix([38, 48, 104], [196, 110, 132], y / 0.3) : mix([196, 110, 132], [255, 196, 140], Math.min(1, (y - 0.3) / 0.22));
  const far = Math.hypot((x - SUN[0]) * aspect, y - SUN[1]);
  if (far < 0.055 * sun) return [255, 244, 214];
  const clouds = Math.max(0, ridge(x * 3 + y * 9, 9) * 1.2 - 0.1) * Math.max(0, 1 - Math.abs(y - 0.22) * 5);
  return mix(mix(sky, [255, 226, 180], Math.exp(-far * 5) * 0.8), [255, 176, 160], Math.min(0.7, clouds));
}

/** Paints an evening at a lake. */
export function landscape(canvas) {
  const [width, height] = [720, 480];
  size(canvas, width, height);
  const context = canvas.getContext("2d", { alpha: false });
  const image = context.createImageData(width, height);
  for (let row = 0, to = 0; row < height; row++) {
    const y = row / height;
    for (let column = 0; column < width; column++, to += 4) {
      let x = column / width;
      let colour;
      if (y < LAKE) {
        colour = land(x, y, 1.5);
      } else {
        const depth = y - LAKE;
        const wave = Math.sin(depth * 420 / (1 + depth * 6) + 3 * ridge(x * 5, 12)) * (0.002 + depth * 0.03);
        colour = mix(land(x + wave, LAKE - depth * 1.25 - 0.002, 1.5, 0), [24, 40, 78], 0.22 + depth * 0.9);
        const glitter = Math.max(0, Math.sin(depth * 900 / (1 + depth * 9) + 5 * ridge(x * 9, 3)));
        colour = mix(colour, [255, 222, 178], glitter * 0.75 * Math.exp(-Math.abs(x + wave - SUN[0]) * (42 - depth * 60)));
        const shore = 0.93 - 0.1 * ridge(x * 4, 6) - 0.12 * Math.abs(x - 0.45);
        const reeds = chance(Math.floor(column / 2) + 900) * 0.07 * (x < 0.3 || x > 0.78 ? 1 : 0);
        if (y > shore + 0.06 - reeds) colour = mix([16, 26, 40], [30, 48, 58], (y - shore) * 3);
      }
      for (let c = 0; c < 3; c++) image.data[to + c] = colour[c];
      image.data[to + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

function size(canvas, width, height) {
  canvas.width = width;
  canvas.height = height;
}

const PIXMAPS = new Set(["image/x-portable-pixmap", "image/x-portable-graymap"]);

/** The pixels of a PPM or PGM file, which browsers do not read: `P6 width height 255` and bytes. */
async function pixmap(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 64)).match(/^P([56])\s+(\d+)\s+(\d+)\s+255\s/);
  const [step, width, height] = [head[1] === "6" ? 3 : 1, Number(head[2]), Number(head[3])];
  const image = new ImageData(width, height);
  for (let from = head[0].length, to = 0; to < image.data.length; from += step, to += 4) {
    for (let c = 0; c < 3; c++) image.data[to + c] = bytes[from + (c % step)];
    image.data[to + 3] = 255;
  }
  return image;
}

/** Shows a file or an answer; smaller, if `fit` and it is large. */
export async function show(canvas, blob, fit) {
  const bitmap = await createImageBitmap(PIXMAPS.has(blob.type) ? await pixmap(blob) : blob, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
  const scale = fit ? Math.min(1, MOST / Math.max(bitmap.width, bitmap.height)) : 1;
  size(canvas, Math.max(1, Math.round(bitmap.width * scale)), Math.max(1, Math.round(bitmap.height * scale)));
  const context = canvas.getContext("2d", { alpha: false });
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
}

/** What is shown, as a file: PNG, or JPEG if that would be too long. */
export async function file(canvas) {
  const blob = (type) => new Promise((done) => canvas.toBlob(done, type, 0.92));
  const png = await blob("image/png");
  return png.size <= MOST_BYTES ? png : blob("image/jpeg");
}
