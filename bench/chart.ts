import { html } from "#rest-gateway/pages";

/** The requests in the chart, by the section of the page that has their figures. */
const DRAWN: readonly { readonly section: string; readonly request: string; readonly title: string }[] = [
  { section: "rest", request: "one row by key", title: "REST: one row by key" },
  { section: "rest", request: "20 rows with a many-to-one embed", title: "REST: 20 rows with an embedded row each" },
  { section: "rest", request: "insert one row", title: "REST: insert one row" },
  {
    section: "graphql",
    request: "10 articles with authors, page info and total count",
    title: "GraphQL: 10 articles with authors and total count",
  },
  { section: "graphql", request: "createArticle", title: "GraphQL: create an article" },
];

/** pgbench measures SQL alone, without HTTP, JSON web tokens or JSON. */
const UPPER_BOUND = "pgbench";
const OURS = "ours";

const WIDTH = 820;
const NAME_WIDTH = 210;
const VALUE_WIDTH = 90;
const BAR_HEIGHT = 18;
const BAR_STEP = 24;
const GROUP_GAP = 46;
const TOP = 62;

const STYLE = `
text { font: 14px system-ui, sans-serif; fill: #1c2330 }
.title { font-size: 18px; font-weight: 600 }
.group, .ours { font-weight: 600 }
.quiet { fill: #566072 }
rect { fill: #8a94a6 }
rect.ours { fill: #1d4ed8 }
rect.bound { fill: none; stroke: #8a94a6; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #eef1f6 }
  .quiet { fill: #aab4c4 }
  rect { fill: #6b7688 }
  rect.ours { fill: #8ab4ff }
  rect.bound { stroke: #aab4c4 }
}`;

type Measurement = { readonly name: string; readonly rate: number };
type Group = { readonly title: string; readonly measurements: readonly Measurement[] };

/** Draws `docs/pictures/benchmarks.svg` from the figures in `docs/benchmarks.md`. */
export function benchmarkChart(page: string): string {
  const groups = DRAWN.map(({ section, request, title }) => ({ title, measurements: ratesOf(page, section, request) }));
  const [, day] = /wrote it on (\d{4}-\d\d-\d\d)/.exec(page)!;
  const [, machine] = /^- Machine: (.*?),/m.exec(page)!;
  const peak = Math.max(...groups.flatMap(({ measurements }) => measurements.map(({ rate }) => rate)));
  let y = TOP;
  const drawn = groups.map((group) => {
    const top = y;
    y += GROUP_GAP + group.measurements.length * BAR_STEP;
    return toMarkup(group, top, peak);
  });
  return html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" role="img" aria-labelledby="title description">
<title id="title">Requests per second of this service and of others</title>
<desc id="description">${groups.map(describe).join(" ")}</desc>
<style>${STYLE}
</style>
<text class="title" x="0" y="20">Requests per second</text>
<text class="quiet" x="0" y="42">16 connections, row-level security on; ${machine}, shared by client, service and Postgres; ${day}</text>
${drawn}</svg>
`.text;
}

function toMarkup({ title, measurements }: Group, top: number, peak: number) {
  const bars = measurements.map(({ name, rate }, index) => {
    const y = top + 30 + index * BAR_STEP;
    const width = Math.max(1, Math.round((rate / peak) * (WIDTH - NAME_WIDTH - VALUE_WIDTH)));
    const style = name === OURS ? "ours" : name === UPPER_BOUND ? "bound" : "peer";
    return html`<text class="${style}" x="0" y="${y + 14}">${labelOf(name)}</text>
<rect class="${style}" x="${NAME_WIDTH}" y="${y}" width="${width}" height="${BAR_HEIGHT}" rx="2"/>
<text class="${style}" x="${NAME_WIDTH + width + 8}" y="${y + 14}">${rate.toLocaleString("en")}</text>
`;
  });
  return html`<text class="group" x="0" y="${top + 16}">${title}</text>
${bars}`;
}

function describe({ title, measurements }: Group): string {
  return `${title}: ${measurements.map(({ name, rate }) => `${labelOf(name)} ${rate}`).join(", ")}.`;
}

function labelOf(name: string): string {
  if (name === OURS) return "this service";
  return name === UPPER_BOUND ? "pgbench (SQL, no HTTP)" : name;
}

/** Reads lines such as `    ours     24598/s    0.60 ms …` below the line of the request. */
function ratesOf(page: string, section: string, request: string): Measurement[] {
  const text = page.slice(page.indexOf(`\n## ${section}\n`));
  const start = text.indexOf(`\n  ${request} (`);
  if (start < 0) throw new Error(`docs/benchmarks.md has no figures of "${request}".`);
  const [lines] = text.slice(start + 1).split("\n\n");
  return [...lines!.matchAll(/^ {4}(\S.*?) +(\d+)\/s/gm)].map(([, name, rate]) => ({
    name: name!,
    rate: Number(rate),
  }));
}
