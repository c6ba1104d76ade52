// Draws the diagrams of the documentation from texts. A line of a text is one of
//   title TEXT            what the picture is called
//   alt TEXT              what it says, for those who do not see it
//   grid WIDTH HEIGHT ACROSS DOWN    the size of a box, and the space between boxes
//   box NAME COLUMN ROW LINE | LINE  a box; `store` for a database or a folder, `person` for a human or a program of theirs
//   arrow FROM TO LABEL | LABEL      from one box to another; `both` with two heads
// Positions count from 0 and may be fractions.

type Kind = "box" | "store" | "person";
type Box = { readonly kind: Kind; readonly x: number; readonly y: number; readonly lines: readonly string[] };
type Arrow = { readonly from: string; readonly to: string; readonly labels: readonly string[]; readonly heads: 1 | 2 };
type Grid = { readonly width: number; readonly height: number; readonly across: number; readonly down: number };
type Point = { readonly x: number; readonly y: number };

export type Diagram = {
  readonly title: string;
  readonly alt: string;
  readonly grid: Grid;
  readonly boxes: ReadonlyMap<string, Box>;
  readonly arrows: readonly Arrow[];
};

const MARGIN = 12;
const LINE_HEIGHT = 19;
/** Wide letters of the widest usual font, at the sizes below. */
const LETTER_WIDTH = { box: 7.6, label: 6.6 };
const BOX_PADDING = 8;

const STYLE = `
text { font: 14px system-ui, sans-serif; fill: #1c2330; text-anchor: middle }
.first { font-weight: 600 }
.label { font-size: 12px; fill: #414b5c; stroke: #ffffff; stroke-width: 5px; paint-order: stroke; stroke-linejoin: round }
.ground { fill: #ffffff }
rect.box { fill: #eef2ff; stroke: #1d4ed8 }
rect.store { fill: #e7f6ec; stroke: #13733f }
rect.person { fill: #f4f5f7; stroke: #566072 }
path.line { fill: none; stroke: #566072; stroke-width: 1.5 }
path.head { fill: #566072 }
@media (prefers-color-scheme: dark) {
  text { fill: #eef1f6 }
  .label { fill: #c3ccd9; stroke: #10141c }
  .ground { fill: #10141c }
  rect.box { fill: #17233f; stroke: #8ab4ff }
  rect.store { fill: #12291d; stroke: #63d297 }
  rect.person { fill: #1f2632; stroke: #aab4c4 }
  path.line { stroke: #aab4c4 }
  path.head { fill: #aab4c4 }
}
`;

export function parseDiagram(text: string): Diagram {
  let [title, alt] = ["", ""];
  let grid: Grid = { width: 180, height: 72, across: 110, down: 56 };
  const boxes = new Map<string, Box>();
  const arrows: Arrow[] = [];
  for (const line of text.split("\n").filter((each) => each !== "")) {
    const [word, ...rest] = line.split(" ");
    const linesFrom = (index: number) => splitLines(rest.slice(index).join(" "));
    if (word === "title") title = rest.join(" ");
    else if (word === "alt") alt = rest.join(" ");
    else if (word === "grid") {
      const [width, height, across, down] = rest.map(Number) as [number, number, number, number];
      grid = { width, height, across, down };
    } else if (word === "box" || word === "store" || word === "person") {
      boxes.set(rest[0]!, { kind: word, x: Number(rest[1]), y: Number(rest[2]), lines: linesFrom(3) });
    } else if (word === "arrow" || word === "both") {
      arrows.push({ from: rest[0]!, to: rest[1]!, labels: linesFrom(2), heads: word === "both" ? 2 : 1 });
    } else throw new Error(`A line that is none of a diagram: ${line}`);
  }
  return { title, alt, grid, boxes, arrows };
}

const splitLines = (text: string) => (text === "" ? [] : text.split(" | "));

/** Throws if a text does not fit into its box, or a label between its boxes. */
export function drawDiagram({ title, alt, grid, boxes, arrows }: Diagram): string {
  const corner = (box: Box): Point => ({
    x: MARGIN + box.x * (grid.width + grid.across),
    y: MARGIN + box.y * (grid.height + grid.down),
  });
  const every = [...boxes.values()];
  const width = Math.max(...every.map((box) => corner(box).x + grid.width)) + MARGIN;
  const height = Math.max(...every.map((box) => corner(box).y + grid.height)) + MARGIN;
  const found = (name: string) => {
    const box = boxes.get(name);
    if (!box) throw new Error(`${title}: there is no box ${name}.`);
    return box;
  };
  const drawnArrows = arrows.map(({ from, to, labels, heads }) => {
    const [start, end] = endsOf(corner(found(from)), corner(found(to)), grid);
    return drawArrow({ start, end, labels, heads });
  });
  const drawnBoxes = every.map((box) => drawBox(box, corner(box), grid));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title description">
<title id="title">${escaped(title)}</title>
<desc id="description">${escaped(alt)}</desc>
<style>${STYLE}</style>
<rect class="ground" width="${width}" height="${height}" rx="8"/>
${[...drawnArrows, ...drawnBoxes].join("\n")}
</svg>
`;
}

/** The ends of the line between two boxes, at the sides that face each other. */
function endsOf(from: Point, to: Point, { width, height }: Grid): [Point, Point] {
  const isBeside = Math.abs(to.x - from.x) >= width;
  const middle = (corner: Point) => ({ x: corner.x + width / 2, y: corner.y + height / 2 });
  const [a, b] = [middle(from), middle(to)];
  if (isBeside) {
    const side = Math.sign(b.x - a.x) * (width / 2);
    return [
      { x: a.x + side, y: a.y },
      { x: b.x - side, y: b.y },
    ];
  }
  const side = Math.sign(b.y - a.y) * (height / 2);
  return [
    { x: a.x, y: a.y + side },
    { x: b.x, y: b.y - side },
  ];
}

type DrawnArrow = Pick<Arrow, "labels" | "heads"> & { readonly start: Point; readonly end: Point };

function drawArrow({ start, end, labels, heads }: DrawnArrow): string {
  const isHorizontal = start.y === end.y;
  const room = isHorizontal ? Math.abs(end.x - start.x) : Number.POSITIVE_INFINITY;
  for (const label of labels) assertFits(label, LETTER_WIDTH.label, room);
  const middle = { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 };
  const lift = isHorizontal ? labels.length * 15 - 7 : (labels.length - 1) * 7.5 - 4;
  const texts = labels.map(
    (label, index) =>
      `<text class="label" x="${round(middle.x)}" y="${round(middle.y - lift + index * 15)}">${escaped(label)}</text>`,
  );
  const line = `<path class="line" d="M${round(start.x)} ${round(start.y)}L${round(end.x)} ${round(end.y)}"/>`;
  const second = heads === 2 ? [drawHead(end, start)] : [];
  return [line, drawHead(start, end), ...second, ...texts].join("\n");
}

function drawHead(from: Point, at: Point): string {
  const angle = Math.atan2(at.y - from.y, at.x - from.x);
  const corner = (turn: number) =>
    `${round(at.x - 10 * Math.cos(angle + turn))} ${round(at.y - 10 * Math.sin(angle + turn))}`;
  return `<path class="head" d="M${round(at.x)} ${round(at.y)}L${corner(0.4)}L${corner(-0.4)}Z"/>`;
}

function drawBox({ kind, lines }: Box, { x, y }: Point, { width, height }: Grid): string {
  const top = y + height / 2 - ((lines.length - 1) * LINE_HEIGHT) / 2 + 5;
  const texts = lines.map((line, index) => {
    assertFits(line, LETTER_WIDTH.box, width - BOX_PADDING);
    const first = index === 0 && lines.length > 1 ? ' class="first"' : "";
    return `<text${first} x="${round(x + width / 2)}" y="${round(top + index * LINE_HEIGHT)}">${escaped(line)}</text>`;
  });
  if (lines.length * LINE_HEIGHT > height) throw new Error(`A box has too many lines: ${lines.join(" | ")}`);
  return `<rect class="${kind}" x="${round(x)}" y="${round(y)}" width="${width}" height="${height}" rx="${kind === "store" ? 20 : 6}"/>\n${texts.join("\n")}`;
}

function assertFits(text: string, letterWidth: number, room: number): void {
  if (text.length * letterWidth > room) throw new Error(`A text is too long for its place: ${text}`);
}

const round = (value: number) => Math.round(value * 10) / 10;

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
